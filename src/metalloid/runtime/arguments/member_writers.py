"""Encode structs from the values of their members.

Each member has a binder that checks its value, as a parameter has. A writer then stores the word of
a resource, or the bytes of a value.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from metalloid.errors import ArgumentError
from metalloid.msl.layout import Layout
from metalloid.msl.signature import BoundParameter
from metalloid.runtime.arguments.argument_binder import ArgumentBinder
from metalloid.runtime.devices.device import Device
from metalloid.runtime.launch.launches import Arguments, HostMemory
from metalloid.runtime.memory.buffer import Buffer

#: Size of a pointer, a texture or a sampler in a struct.
WORD_BYTES = 8

MakeBinder = Callable[[str, BoundParameter, Device], ArgumentBinder]


@dataclass(frozen=True)
class _Member(BoundParameter):
    """A member of a struct as a parameter; `owner` is the parameter that has the struct."""

    owner: BoundParameter

    @property
    def label(self) -> str:
        return f"{self.name!r} [[{self.owner.resource}({self.owner.index})]]"


class MemberWriter(ABC):
    """Writes the value of a member."""

    @abstractmethod
    def write(self, memory: np.ndarray, value: Any, bound: Arguments) -> None:
        """Write `value` to `memory`; objects that must stay alive are added to `bound`."""


def writer_for(
    binder: ArgumentBinder, path: str, layout: Layout, make_binder: MakeBinder
) -> MemberWriter:
    """The writer of a member.

    Parameters
    ----------
    binder : ArgumentBinder
        Of the parameter that has the member.
    path : str
        The member's path, for messages: ``"scene.lights[2]"``.
    make_binder : callable
        `binder_for`.
    """
    is_value = layout.form == "value"
    if layout.count and not (is_value and not layout.members):
        element = replace(layout, count=0)
        writers = [
            writer_for(binder, f"{path}[{number}]", element, make_binder)
            for number in range(layout.count)
        ]
        return _Array(binder, path, writers, layout.bytes if is_value else WORD_BYTES)
    if is_value and layout.members:
        return Members(binder, path, layout.members, make_binder)
    if is_value:
        # Bound as a constant reference, from whose memory the value is copied.
        referred = replace(layout, form="reference", space="constant", read_only=True, count=0)
        parameter = binder.parameter
        member = _Member(path, str(layout), 0, 0, referred, getattr(parameter, "owner", parameter))
        nbytes = layout.bytes * max(layout.count, 1)
        return _Value(make_binder(binder.kernel, member, binder.device), nbytes)
    parameter = binder.parameter
    member = _Member(path, str(layout), 0, 0, layout, getattr(parameter, "owner", parameter))
    return _Word(make_binder(binder.kernel, member, binder.device))


class _Word(MemberWriter):
    """A pointer, texture or sampler. None is the null pointer."""

    def __init__(self, binder: ArgumentBinder) -> None:
        self._binder = binder

    def write(self, memory: np.ndarray, value: Any, bound: Arguments) -> None:
        may_be_null = self._binder.parameter.layout.form in ("pointer", "texture")
        before = len(bound.staged)
        constants = len(bound.constants)
        word = 0 if value is None and may_be_null else self._binder.bind(value, bound)
        if len(bound.constants) > constants:  # a number for a pointer
            _, number = bound.constants.pop()
            bound.extents[self._binder.position] = len(number)
            copy = ctypes.create_string_buffer(number, len(number))
            bound.keep_alive.append(copy)
            word = ctypes.addressof(copy)
            bound.staged.append(HostMemory(word, len(number), False))
        memory[:WORD_BYTES].view(np.uint64)[0] = word
        nbytes = bound.extents.pop(self._binder.position, None) if word else 0
        if nbytes is not None:
            bound.pointees[int(memory.__array_interface__["data"][0])] = 0, nbytes
        if len(bound.staged) > before:
            # The last one is what the binder points to; the pointer is in the struct, not a word.
            bound.staged[-1] = bound.staged[-1]._replace(position=-1)
            bound.pointers.append(int(memory.__array_interface__["data"][0]))


class _Value(MemberWriter):
    """Numbers: a scalar, vector, matrix, or an array of them."""

    def __init__(self, binder: ArgumentBinder, nbytes: int) -> None:
        self._binder, self._bytes = binder, nbytes

    def write(self, memory: np.ndarray, value: Any, bound: Arguments) -> None:
        if isinstance(value, Buffer):
            raise self._binder.refuse(value, "the member holds a value, not memory")
        copied = Arguments(0)
        address: int | bytes = self._binder.bind(value, copied)
        if copied.constants:
            source: Any = copied.constants[-1][1]
            address, nbytes = source, len(source)
        else:
            source = copied.keep_alive[-1]
            nbytes = source.nbytes if isinstance(source, np.ndarray) else ctypes.sizeof(source)
        if nbytes != self._bytes:
            raise self._binder.refuse(value, f"it has {nbytes} bytes, the member {self._bytes}")
        ctypes.memmove(memory.ctypes.data, address, nbytes)


class _Array(MemberWriter):
    """An array of structs or resources."""

    def __init__(
        self, binder: ArgumentBinder, path: str, writers: list[MemberWriter], step: int
    ) -> None:
        self._binder, self._path, self._writers, self._step = binder, path, writers, step

    def write(self, memory: np.ndarray, value: Any, bound: Arguments) -> None:
        count = len(self._writers)
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            raise refuse_member(self._binder, self._path, value, f"it expects a list of {count}")
        if len(value) != count:
            raise refuse_member(
                self._binder,
                self._path,
                value,
                f"it expects {count} elements, the list has {len(value)}",
            )
        for number, (writer, given) in enumerate(zip(self._writers, value, strict=True)):
            writer.write(memory[number * self._step :], given, bound)


class Members(MemberWriter):
    """The members of a struct. Other resources have a single member without a name."""

    def __init__(
        self,
        binder: ArgumentBinder,
        path: str,
        layouts: tuple[Layout, ...],
        make_binder: MakeBinder,
    ) -> None:
        self._binder, self._path = binder, path
        self._offsets = {layout.name: layout.offset for layout in layouts}
        self._writers = {
            layout.name: writer_for(
                binder, f"{path}.{layout.name}" if layout.name else path, layout, make_binder
            )
            for layout in layouts
        }

    def write(self, memory: np.ndarray, value: Any, bound: Arguments) -> None:
        """See `MemberWriter.write`."""
        for name, given in self._by_name(value).items():
            self._writers[name].write(memory[self._offsets[name] :], given, bound)

    def _by_name(self, value: Any) -> Mapping[str, Any]:
        names = tuple(self._writers)
        if names == ("",):
            return {"": value}
        shown = f"Its members: {', '.join(names)}."
        if isinstance(value, tuple):
            if len(value) != len(names):
                raise self._refuse(value, f"the struct has {len(names)} members", shown)
            return dict(zip(names, value, strict=True))
        if not isinstance(value, Mapping):
            raise self._refuse(value, "a struct is a mapping of its members", shown)
        for name in names:
            if name not in value:
                raise self._refuse(value, f"the member {name!r} is missing", shown)
        for name in value:
            if name not in names:
                raise self._refuse(value, f"the struct has no member {name!r}", shown)
        return value

    def _refuse(self, value: Any, why: str, hint: str) -> ArgumentError:
        return refuse_member(self._binder, self._path, value, why, hint)


def refuse_member(
    binder: ArgumentBinder, path: str, value: Any, why: str, hint: str = ""
) -> ArgumentError:
    """The error for a value that does not fit the member that `path` names."""
    where = f"for {path!r} " if path != binder.parameter.name else ""
    return binder.refuse(value, where + why, hint)
