"""Launches of kernels of a library on arrays that a transform traces."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from metalloid.arrays.execution.calls import call_nodes, to_host
from metalloid.arrays.interop.dlpack import owned_copy
from metalloid.arrays.ir.dtypes import DType
from metalloid.arrays.ir.layout import Ints, is_contiguous
from metalloid.arrays.ir.memory import Memory
from metalloid.arrays.ir.node import Node
from metalloid.errors import CompileError, TraceError
from metalloid.kernels.kernel import Kernel
from metalloid.runtime.devices.device import Device
from metalloid.runtime.launch.program import Size
from metalloid.runtime.memory.buffer import Buffer, Window


@dataclass
class LaunchInstance:
    """A kernel, its arguments and the size of a launch."""

    kernel: Kernel
    arguments: list[Any]
    threads: Size
    group: Size | None

    def at_user_lines(self, error: CompileError) -> CompileError:
        """The error, which has the lines of the library's text."""
        return error


class TracedLaunch:
    """A launch that happens when its results are needed: arrays as the kernel leaves them.

    Attributes
    ----------
    kernel : Kernel
    name : str
    results : tuple of (dtype, shape)
        Of the arrays that it may write.
    operand_names, result_names : list of str
        Parameters of array arguments, and those of them that it may write.
    result_nodes : list of (weakref.ref, int)
        As those of a `HostCall`.
    """

    #: Plans do not launch it.
    is_launched = False

    def __init__(
        self, kernel: Kernel, values: Sequence[Any], threads: Size, group: Size | None
    ) -> None:
        self.kernel, self.name, self._size = kernel, kernel.name, (threads, group)
        self._others: list[Any] = []
        self.operand_names: list[str] = []
        self.result_names: list[str] = []
        results = []
        for parameter, value in zip(kernel.signature.arguments, values, strict=True):
            node = getattr(value, "_node", None)
            is_written = not parameter.layout.read_only and parameter.layout.space == "device"
            if node is not None:
                self.operand_names.append(parameter.name)
                if is_written:
                    self.result_names.append(parameter.name)
                    results.append((node.dtype, node.shape))
            elif is_written or isinstance(value, Buffer):
                raise TraceError(
                    f"[{kernel.name}] {parameter.name!r} is memory that may change, in a launch on "
                    "arrays that grad, vjp, jvp, vmap or compile traces. Pass a metalloid array."
                )
            self._others.append(None if node is not None else _snapshot(value))
        self.results: tuple[tuple[DType, Ints], ...] = tuple(results)
        self.result_nodes: list[tuple[weakref.ref[Node], int]] = []

    @property
    def vjp_rule(self) -> Any:
        """The derivative that the user has stated."""
        return self.kernel.vjp_rule

    @property
    def _key(self) -> Any:
        return self.kernel, self._size, _key_of(self._others), self.results

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TracedLaunch) and self._key == other._key

    def add_result(self, node: Node, index: int) -> None:
        """Materialize a node when the kernel has run."""
        self.result_nodes.append((weakref.ref(node), index))

    def copy(self) -> TracedLaunch:
        """The same launch, for other operands."""
        other = object.__new__(TracedLaunch)
        other.__dict__ = {**self.__dict__, "result_nodes": []}
        return other

    def inputs(self, arrays: Sequence[Any]) -> list[Any]:
        """All arguments: arrays and others."""
        left = iter(arrays)
        return [next(left) if other is None else other for other in self._others]

    def instance(self, arrays: Sequence[Any], device: Device) -> LaunchInstance:
        """The launch with arrays."""
        return LaunchInstance(self.kernel, self.inputs(arrays), *self._size)

    def run(self, args: Sequence[Node], device: Device, wait: bool) -> list[Memory]:
        """Launch it on copies of what it may write."""
        nodes = [
            owned_copy(arg) if name in self.result_names or not is_contiguous(arg.layout) else arg
            for name, arg in zip(self.operand_names, args, strict=True)
        ]
        threads, group = self._size
        arguments = self.inputs(list(map(_memory, nodes)))
        self.kernel(*arguments, threads=threads, group_size=group, wait=True)
        return [
            memory
            for name, node in zip(self.operand_names, nodes, strict=True)
            if name in self.result_names and (memory := node.memory) is not None
        ]


def _snapshot(value: Any) -> Any:
    """A copy of arrays and structs, which may change before the launch."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, dict):
        return {name: _snapshot(member) for name, member in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_snapshot, value))
    return value


def _key_of(value: Any) -> Any:
    """Equal for equal numbers, arrays and structs, and for the same object."""
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, dict):
        return tuple((name, _key_of(member)) for name, member in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(map(_key_of, value))
    if value is None or isinstance(value, (bool, int, float, complex, np.generic)):
        return type(value), repr(value)
    return id(value)


def _memory(node: Node) -> np.ndarray | Window:
    if node.device.memory != "own":
        return to_host(node)
    assert node.memory is not None
    start = node.data[1] * node.dtype.itemsize
    return Window(node.memory.bound, start, node.dtype, node.shape)


def record_launch(
    kernel: Kernel, values: Sequence[Any], threads: Size, group: Size | None
) -> dict[int, Node]:
    """Launch a kernel on arrays, some of which are traced.

    Returns
    -------
    dict
        The new nodes of arguments that it may write, by position.
    """
    call = TracedLaunch(kernel, values, threads, group)
    arrays = [k for k, value in enumerate(values) if hasattr(value, "_node")]
    nodes = [values[k]._node for k in arrays]
    written = [k for k, name in zip(arrays, call.operand_names, strict=True)
               if name in call.result_names]  # fmt: skip
    for k in written:
        if sum(values[k] is value for value in values) > 1:
            raise TraceError(
                f"[{kernel.name}] an array is passed twice and written, in a launch on arrays that "
                "grad, vjp, jvp, vmap or compile traces. Pass a copy."
            )
    if not written:
        return {}
    if kernel.device.memory != "own":  # refuse what does not fit here, not where it runs
        empty = [np.empty(node.shape, node.dtype) for node in nodes]
        kernel._binder.bind(call.inputs(empty), {})
    return dict(zip(written, call_nodes(cast(Any, call), nodes), strict=True))
