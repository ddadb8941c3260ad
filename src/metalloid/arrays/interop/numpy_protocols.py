"""Arrays among others: NumPy, DLPack, the buffer protocol, pickle, and kernels of one's own."""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metalloid.arrays.execution.calls import KernelCall, call_nodes, to_host
from metalloid.arrays.execution.evaluate import evaluate
from metalloid.arrays.interop.dlpack import copied, dlpack_capsule, exported_memory
from metalloid.arrays.ir.dtypes import DType
from metalloid.arrays.ir.layout import Ints, is_contiguous
from metalloid.arrays.ir.node import Node
from metalloid.arrays.ir.operands import binary, from_numpy, unary
from metalloid.arrays.ir.ops import OPS
from metalloid.runtime.buffer import Window
from metalloid.runtime.device import Device
from metalloid.runtime.exporting import Exporting
from metalloid.runtime.lending import require_cuda
from metalloid.runtime.registry import get_device

#: NumPy's universal functions by their names there.
_UFUNCS = {row.reference or name: row for name, row in OPS.items()}
_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min",
               "logical_or": "any", "logical_and": "all"}  # fmt: skip
#: What ``sys.getrefcount(x.attribute)`` counts if nothing else refers to the value: the attribute
#: and the argument.
_ONE_REFERENCE = 2

_VERSIONS = (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def _namesake(namespace: Any, function: Any) -> Any:
    """Where a function of NumPy has its like: ``numpy.linalg.inv`` in ``linalg``."""
    part = str(function.__module__).partition(".")[2]
    return getattr(namespace, part) if part in ("fft", "linalg") else namespace


class _DroppedError(threading.local):
    """An error of ``__buffer__``: NumPy drops it, even Ctrl-C, and goes on to ``__array__``."""

    _AT_ONCE = 0.01  # seconds

    node: Node | None = None
    error: BaseException
    time = 0.0

    def keep(self, node: Node, error: BaseException) -> None:
        self.node, self.error, self.time = node, error, time.monotonic()

    def throw(self, node: Node) -> None:
        """Raise the error if this call of ``__array__`` follows it."""
        failed, self.node = self.node, None
        if failed is node and time.monotonic() - self.time < self._AT_ONCE:
            raise self.error


_dropped = _DroppedError()


class Interop(Exporting):
    """What others see of an array."""

    __slots__ = ()

    if TYPE_CHECKING:
        _node: Node

        def _new(self, node: Node) -> Any:
            """An array of a node."""

    # -- NumPy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        _dropped.throw(self._node)
        evaluate([self._node])
        array = to_host(self._node, read_only=True)
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(f"[asarray] {array.dtype} as {dtype} takes a copy.")
            return array.astype(dtype)
        if copy:
            return array.copy()
        array.flags.writeable = False  # of a copy, too
        return array

    def numpy(self) -> np.ndarray:
        """The values for NumPy: a read-only view of the same memory where there is one."""
        return self.__array__()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "reduce" and ufunc.__name__ in _REDUCTIONS:
            axis, keepdims = options.pop("axis", 0), options.pop("keepdims", False)
            if not options:
                reduction = getattr(self, _REDUCTIONS[ufunc.__name__])
                return reduction(axis=axis, keepdims=keepdims)
        row = _UFUNCS.get(ufunc.__name__)
        if row is None or method != "__call__" or options:
            return NotImplemented
        return self._new(unary(row, *inputs) if row.operands == 1 else binary(row, *inputs))

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        name = function.__name__
        if args and args[0] is self and hasattr(type(self), name):
            return getattr(self, name)(*args[1:], **options)
        own = getattr(_namesake(self.__array_namespace__(), function), name, None)
        return NotImplemented if own is None else own(*args, **options)

    # -- other libraries

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        import metalloid

        if api_version not in _VERSIONS:
            raise ValueError(f"[array_namespace] there is no version {api_version!r}.")
        return metalloid

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
                   copy: bool | None = None) -> Any:  # fmt: skip
        return dlpack_capsule(self._node, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._node.device.exchange.dlpack_device

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        require_cuda(self._node.device)
        dlpack_capsule = exported_memory(self._node)
        # Who asks keeps the array, which may forget this memory.
        weakref.finalize(self, _keep, dlpack_capsule.owner).atexit = False
        return dlpack_capsule.to_cuda()

    def __buffer__(self, flags: int) -> memoryview:
        try:
            array = self.__array__()
        except BaseException as error:
            _dropped.keep(self._node, error)
            raise
        return array.data

    def __reduce__(self) -> Any:
        return restored, (type(self), self.__array__(copy=True))

    # -- kernels of one's own

    def _is_uniquely_referenced(self) -> bool:
        """Whether nobody else would see it if the memory changed."""
        if self._node.memory is None or not self._node.memory.is_own:
            return False
        # No local name for the node or its memory: whether such a reference counts depends on the
        # version of Python.
        counts = sys.getrefcount(self._node), sys.getrefcount(self._node.memory)
        return counts == (_ONE_REFERENCE, _ONE_REFERENCE) and is_contiguous(self._node.layout)

    def __metalloid_memory__(self, is_written: bool) -> np.ndarray | Window:
        """Memory for a launch: the array's own, which nobody else sees if it is written to."""
        evaluate([self._node])
        is_shared = is_written and not self._is_uniquely_referenced()
        node = self._node
        if is_shared or not is_contiguous(node.layout):
            node = copied(node)
            if is_written:
                self._node = node  # type: ignore[misc]
        if node.device.memory != "own":
            return to_host(node)
        assert node.memory is not None
        start = node.data[1] * node.dtype.itemsize
        return Window(node.memory.bound, start, node.dtype, node.shape)

    def __metalloid_wrap__(self, array: np.ndarray) -> Any:
        """An array of what a kernel has returned."""
        return self._new(from_numpy(array, self._node.device, copy=False))

    def __metalloid_call__(self, kernel: Any, inputs: Sequence[Any], options: dict[str, Any],
                           results: Sequence[tuple[DType, Ints]],
                           device: Device) -> list[Any]:  # fmt: skip
        """What a kernel will return when it is needed."""
        call = KernelCall(kernel, inputs, options, tuple(results))
        return [self._new(node) for node in call_nodes(call, call.operands(inputs, device))]


def _keep(memory: Any) -> None:
    """A finalizer that refers to the memory until then."""


def restored(kind: Any, array: np.ndarray) -> Any:
    """An array that was pickled."""
    return kind(from_numpy(array, get_device()))
