"""Protocols of arrays: NumPy, DLPack, the buffer protocol, pickle, and user kernels."""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metalloid.arrays.execution.calls import KernelCall, call_nodes, read_array, to_host
from metalloid.arrays.execution.evaluate import evaluate
from metalloid.arrays.execution.small_results import forget_copy
from metalloid.arrays.interop.dlpack import dlpack_capsule, export_of, owned_copy, writeable
from metalloid.arrays.interop.numpy_functions import (
    OPERATIONS,
    call_function,
    call_ufunc,
    is_external,
)
from metalloid.arrays.interop.traced_launches import record_launch
from metalloid.arrays.ir.dtypes import DType, as_dtype
from metalloid.arrays.ir.extents import read_sizes
from metalloid.arrays.ir.host_arrays import from_numpy, recipe
from metalloid.arrays.ir.layout import Ints, is_contiguous
from metalloid.arrays.ir.native import library, when_loaded
from metalloid.arrays.ir.node import BUFFER, Node, fresh, topological_ids
from metalloid.arrays.ir.operands import unary
from metalloid.arrays.ir.substitute import is_traced
from metalloid.errors import TracedArgument
from metalloid.kernels.strides import row_major
from metalloid.runtime.devices.device import Device
from metalloid.runtime.devices.registry import get_device
from metalloid.runtime.interop.buffer_protocol import BufferExporter
from metalloid.runtime.interop.dlpack import can_say_read_only
from metalloid.runtime.interop.export import exports_in_place, require_cuda
from metalloid.runtime.memory.buffer import Window

#: Result of ``sys.getrefcount(x.attribute)`` if there is no other reference to the value: the
#: attribute and the argument.
ONE_REFERENCE = 2

_VERSIONS = (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


class _DroppedError(threading.local):
    """An error of ``__buffer__``: NumPy ignores it, even Ctrl-C, and calls ``__array__``."""

    _AT_ONCE = 0.01  # seconds

    node: Node | None = None
    error: BaseException
    time = 0.0

    def record(self, node: Node, error: BaseException) -> None:
        self.node, self.error, self.time = node, error, time.monotonic()

    def throw(self, node: Node) -> None:
        """Raise the error if this call of ``__array__`` immediately follows it."""
        failed, self.node = self.node, None
        if failed is node and time.monotonic() - self.time < self._AT_ONCE:
            raise self.error


_dropped = _DroppedError()
_row_major = functools.lru_cache(maxsize=1024)(row_major)


def _evaluate_for_buffer(array: Interop) -> None:
    """Evaluate an array whose buffer is asked for, unless it depends on tracers."""
    try:
        if not is_traced(array._node):
            evaluate([array._node])
    except BaseException as error:
        _dropped.record(array._node, error)
        raise


def _define_buffers(functions: Any) -> None:
    """Let arrays export buffers by native/host_array.c."""
    given = BUFFER, _evaluate_for_buffer, _dropped.record
    functions.mtl_define_buffers(*map(ctypes.py_object, given))


when_loaded(_define_buffers)


@functools.cache
def _fresh_array() -> Callable[[tuple[Any, ...]], Any] | None:
    """`fresh` in C, from a `recipe` to an array (native/fresh_array.c); None without it."""
    functions = library()
    if functions is None:
        return None
    make: Callable[[tuple[Any, ...]], Any]
    make = functions.mtl_fresh_array(ctypes.py_object((BUFFER, (), topological_ids)))
    return make


class Interop(BufferExporter):
    """Mixin class with the protocols through which other libraries use an array."""

    __slots__ = ()

    if TYPE_CHECKING:
        _node: Node

        def _new(self, node: Node) -> Any:
            """Wrap a node."""

    # -- NumPy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        _dropped.throw(self._node)
        array = read_array()(self._node)
        if array is None:
            (node,) = evaluate([self._node])
            array = read_array()(node)
            if array is None:
                array = to_host(node, read_only=True)
                array.flags.writeable = False  # of a copy, too
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(f"[asarray] {array.dtype} as {dtype} requires a copy.")
            return array.astype(dtype)
        if copy:
            return array.copy()
        return array

    def numpy(self) -> np.ndarray:
        """Return the values as a NumPy array: a read-only view if the memory allows it."""
        return self.__array__()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if len(inputs) == 1 and not options and method == "__call__" and ufunc in OPERATIONS:
            return self._new(unary(OPERATIONS[ufunc], self))  # the common case, without detours
        if any(map(is_external, (*inputs, *options.get("out", ())))):
            return NotImplemented
        return call_ufunc(self.__array_namespace__(), ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if not all(issubclass(kind, Interop | np.ndarray) for kind in types):
            return NotImplemented
        return call_function(self.__array_namespace__(), function, args, options)

    # -- other libraries

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        import metalloid

        if api_version not in _VERSIONS:
            raise ValueError(f"[array_namespace] unknown version {api_version!r}.")
        return metalloid

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
                   copy: bool | None = None) -> Any:  # fmt: skip
        if copy is False and not can_say_read_only(max_version):
            exports_in_place(self._node.device.exchange, dl_device, copy)  # or raises
            evaluate([self._node])
            is_exclusive = self._is_uniquely_referenced()
            self._node = writeable(self._node, is_exclusive)  # type: ignore[misc]
        return dlpack_capsule(self._node, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._node.device.exchange.dlpack_device

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        require_cuda(self._node.device.exchange)
        exported = export_of(self._node)
        # Consumers hold the array, which may drop this memory.
        weakref.finalize(self, _hold_reference, exported.owner).atexit = False
        return exported.to_cuda()

    def __buffer__(self, flags: int) -> memoryview:
        try:
            array = self.__array__()
        except BaseException as error:
            _dropped.record(self._node, error)
            raise
        return array.data

    def __reduce__(self) -> Any:
        return restored, (type(self), self.__array__(copy=True))

    # -- user kernels

    def _is_uniquely_referenced(self) -> bool:
        """Whether no other reference would observe a write to the memory."""
        if self._node.memory is None or not self._node.memory.is_own:
            return False
        # Do not bind the node or its memory to a local name: whether such references count depends
        # on the version of Python.
        counts = sys.getrefcount(self._node), sys.getrefcount(self._node.memory)
        return counts == (ONE_REFERENCE, ONE_REFERENCE) and is_contiguous(self._node.layout)

    def __metalloid_memory__(self, is_written: bool) -> np.ndarray | Window:
        """Return memory for a launch, copied if it is written and has other references."""
        if is_traced(self._node):
            raise TracedArgument(
                "[launch] a kernel is launched on an array that grad, vjp, jvp, vmap or compile "
                "traces: they cannot see what it computes. Wrap it in metal_kernel or "
                "custom_function."
            )
        if not is_written:
            array = read_array()(self._node)
            if array is not None and array.size and array.flags.c_contiguous:
                return array
        (node,) = evaluate([self._node])
        is_shared = is_written and not self._is_uniquely_referenced()
        if is_shared or not is_contiguous(node.layout):
            node = owned_copy(node)
            if is_written:
                self._node = node  # type: ignore[misc]
        if node.device.memory != "own":
            return to_host(node)
        assert node.memory is not None
        if is_written:
            forget_copy(node.memory)
        start = node.data[1] * node.dtype.itemsize
        return Window(node.memory.bound, start, node.dtype, node.shape, node.memory)

    def __metalloid_wrap__(self, array: np.ndarray) -> Any:
        """Wrap the result of a kernel."""
        return self._new(from_numpy(array, self._node.device, copy=False))

    def __metalloid_type__(self) -> tuple[DType, Ints] | None:
        """Return dtype and shape, if a launch can read all elements in place; evaluates them."""
        node = self._node
        if node.kind is not BUFFER:
            self.__metalloid_memory__(False)
            node = self._node
        memory, shape = node.memory, node.shape
        is_own = memory is not None and memory.is_own and node.device.memory != "own"
        is_plain = node.data[0] == _row_major(shape) or is_contiguous(node.layout)
        return (node.dtype, shape) if is_own and is_plain and 0 not in shape else None

    def __metalloid_new__(self, shape: Ints, dtype: DType) -> Any:
        """Return a new array on the same device, uninitialised, for the result of a kernel."""
        device, native = self._node.device, _fresh_array()
        if native is None:
            return self._new(fresh(as_dtype(dtype), shape, device))
        return native(recipe(shape, dtype, device))

    def __metalloid_launch__(self, kernel: Any, values: Sequence[Any], threads: Any,
                             group: Any) -> None:  # fmt: skip
        """Launch a kernel of a library on traced arrays: those it may write get new values."""
        for k, node in record_launch(kernel, values, threads, group).items():
            values[k]._node = node

    def __metalloid_call__(self, kernel: Any, inputs: Sequence[Any], options: dict[str, Any],
                           results: Sequence[tuple[DType, Ints]],
                           device: Device, sizes: Any) -> list[Any]:  # fmt: skip
        """Return lazy results of a kernel."""
        options, known = read_sizes((options, tuple(results)))
        call = KernelCall(kernel, inputs, options, known, sizes)
        return [self._new(node) for node in call_nodes(call, call.operands(inputs, device))]


def _hold_reference(memory: Any) -> None:
    """Finalizer that keeps the memory alive until it is called."""


def restored(kind: Any, array: np.ndarray) -> Any:
    """Unpickle an array."""
    return kind(from_numpy(array, get_device()))
