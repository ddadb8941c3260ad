"""Bind the arguments of a call to the parameters of a kernel, and check them.

All errors of arguments are raised here, before anything runs. Memory is not copied: kernels work on
the caller's arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from metalloid.errors import ArgumentError
from metalloid.msl.signature import BoundParameter, Signature
from metalloid.runtime.arguments.argument_binder import (
    ArgumentBinder,
    ThreadgroupMemory,
    describe,
)
from metalloid.runtime.arguments.buffer_binder import BufferBinder
from metalloid.runtime.devices.device import Device
from metalloid.runtime.launch.launches import Arguments, PlainParameter

_THREADGROUP_ALIGNMENT = 16
#: Options of a launch, and their names in other libraries.
_OPTIONS = ("threads", "group_size", "wait", "timeout", "check")
_OTHER_NAMES = dict.fromkeys(
    ("thread", "grid", "grid_size", "global_size", "dim", "size", "n", "num_threads"), "threads"
) | dict.fromkeys(
    ("block", "block_size", "block_dim", "threadgroup", "threadgroup_size", "group", "local_size",
     "workgroup_size", "threads_per_threadgroup"), "group_size",
)  # fmt: skip
#: Maximum threadgroup memory of a launch: that of Apple's GPUs.
MAX_THREADGROUP_BYTES = 32 * 1024


def threadgroup_memory(nbytes: int) -> ThreadgroupMemory:
    """An argument: `nbytes` bytes of memory that the threads of each threadgroup share.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.threadgroup_memory(256 * 4)
    ThreadgroupMemory(nbytes=1024)
    """
    if not isinstance(nbytes, int) or nbytes < 0:
        raise ArgumentError(f"[threadgroup_memory] expects a size in bytes, got {nbytes!r}.")
    return ThreadgroupMemory(nbytes)


def _binder_for(kernel: str, parameter: BoundParameter, device: Device) -> ArgumentBinder:
    layout = parameter.layout
    if layout.form in ("pointer", "reference", "value") and not (layout.members or layout.count):
        return BufferBinder(kernel, parameter, device)
    from metalloid.runtime.arguments.struct_binder import binder_for  # here: most need none

    return binder_for(kernel, parameter, device)


class SignatureBinder:
    """Binds arguments to one signature."""

    def __init__(self, signature: Signature, device: Device) -> None:
        self.signature = signature
        self._binders = [_binder_for(signature.name, p, device) for p in signature.arguments]
        self._binds = [(binder.position, binder.bind) for binder in self._binders]
        self._threadgroup = signature.threadgroup
        self._names = {p.name: p for p in signature.arguments + signature.threadgroup if p.name}
        self._count = len(signature.sources)

    def bind(self, args: Sequence[Any], named: Mapping[str, Any]) -> Arguments:
        """Bind arguments by position (the order of `Signature.arguments`) and by name.

        Raises
        ------
        ArgumentError
            With the kernel, the parameter, and the expected and given values.
        """
        bound = Arguments(self._count)
        if named or self._threadgroup:
            args, sizes = self._arrange(args, named)
            self._bind_threadgroup(bound, sizes)
        if len(args) != len(self._binders):
            raise self._wrong_count(len(args))
        words = bound.words
        for (position, bind), value in zip(self._binds, args):  # noqa: B905 - same length
            words[position] = bind(value, bound)
        return bound

    def values(self, args: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """The arguments in the order of `Signature.arguments`, unbound."""
        if named or self._threadgroup:
            args, _ = self._arrange(args, named)
        return list(args)

    def check_names(self, named: Mapping[str, Any]) -> None:
        """Refuse names that are neither parameters nor options of a launch.

        Raises
        ------
        ArgumentError
            With the most similar name.
        """
        from difflib import get_close_matches  # here, as it is for errors

        for name in named:
            if name in self._names or name in self.signature.absent:
                continue
            meant = _OTHER_NAMES.get(name.lower())
            if meant is None:
                meant = next(iter(get_close_matches(name, [*self._names, *_OPTIONS], 1)), None)
            hint = f" Did you mean {meant}=?" if meant else ""
            raise ArgumentError(
                f"[{self.signature.name}] has no parameter {name!r}.{hint} "
                f"Its parameters: {', '.join(self._names) or 'none'}; "
                f"options of a launch: {', '.join(_OPTIONS)}."
            )

    def plain(self) -> list[PlainParameter] | None:
        """All parameters in the form for fast launches; None if one has none."""
        parameters = [binder.plain for binder in self._binders]
        plain = [parameter for parameter in parameters if parameter is not None]
        return None if self._threadgroup or len(plain) < len(parameters) else plain

    def _arrange(
        self, args: Sequence[Any], named: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Memory arguments in order of their index, and threadgroup arguments by label."""
        self.check_names(named)
        sizes = {}
        plain = []
        unnamed = [p for p in self._threadgroup if p.name not in named]
        for value in args:
            if isinstance(value, ThreadgroupMemory) and unnamed:
                sizes[unnamed.pop(0).label] = value
            else:
                plain.append(value)
        values: dict[int, Any] = {}
        for name, value in named.items():
            if name in self.signature.absent:
                continue  # as Metal allows buffers without a parameter
            parameter = self._names[name]
            if parameter.is_threadgroup:
                sizes[parameter.label] = value
            else:
                values[parameter.position] = value
        positions = [binder.position for binder in self._binders]
        remaining = [position for position in positions if position not in values]
        if len(plain) > len(remaining) and any(p.label not in sizes for p in self._threadgroup):
            self._threadgroup_bytes(unnamed[0], plain[-1])
        if len(plain) > len(remaining):
            raise self._wrong_count(len(args) + len(named))
        values.update(zip(remaining, plain, strict=False))
        missing = [binder.label for binder in self._binders if binder.position not in values]
        missing += [p.label for p in self._threadgroup if p.label not in sizes]
        if missing:
            raise ArgumentError(
                f"[{self.signature.name}] got no value for {', '.join(missing)}. "
                f"Signature: {self.signature}"
            )
        return [values[position] for position in positions], sizes

    def _bind_threadgroup(self, bound: Arguments, sizes: Mapping[str, Any]) -> None:
        total = 0
        for parameter in self._threadgroup:
            nbytes = self._threadgroup_bytes(parameter, sizes[parameter.label])
            bound.words[parameter.position] = total
            bound.extents[parameter.position] = nbytes
            total += -(-nbytes // _THREADGROUP_ALIGNMENT) * _THREADGROUP_ALIGNMENT
        if total > MAX_THREADGROUP_BYTES:
            raise ArgumentError(
                f"[{self.signature.name}] requests {total} bytes of threadgroup memory; "
                f"the limit is {MAX_THREADGROUP_BYTES}."
            )
        bound.threadgroup_bytes = total

    def _threadgroup_bytes(self, parameter: BoundParameter, value: Any) -> int:
        if not isinstance(value, ThreadgroupMemory):
            raise ArgumentError(
                f"[{self.signature.name}] {parameter.label} expects "
                f"metalloid.threadgroup_memory(nbytes), got {describe(value)}."
            )
        if value.nbytes % parameter.layout.bytes:
            raise ArgumentError(
                f"[{self.signature.name}] {parameter.label} holds elements of "
                f"{parameter.layout.bytes} bytes ({parameter.declaration}), "
                f"got {value.nbytes} bytes."
            )
        return value.nbytes

    def _wrong_count(self, got: int) -> ArgumentError:
        count = len(self._binders) + len(self._threadgroup)
        return ArgumentError(
            f"[{self.signature.name}] expects {count} argument{'s' * (count != 1)}, got {got}. "
            f"Signature: {self.signature}"
        )
