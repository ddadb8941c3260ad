"""``MetalBackend``: MSL, and functions of arrays, on any device of ours."""

from __future__ import annotations

import functools
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

import metalloid as mtl
from metalloid.compat.pydotcompute.backends.base import (
    Backend,
    BackendType,
    KernelExecutionResult,
    timed,
)
from metalloid.compat.pydotcompute.exceptions import MetalError, MSLCompilationError

_DEFAULT_KERNEL = "kernel_main"
#: NumPy's types that arrays hold there as something else.
_NARROWED: dict[Any, np.dtype[Any]] = {np.dtype(np.float64): np.dtype(np.float32)}


class MetalBufferState(Enum):
    """The state of an allocation."""

    ALLOCATED = 1
    FREED = 2
    IN_USE = 3


@dataclass
class MetalBufferInfo:
    """An allocation, as the registry knows it."""

    array_id: int
    size: int
    shape: tuple[int, ...]
    dtype: Any
    state: MetalBufferState = MetalBufferState.ALLOCATED
    created_at: float = field(default_factory=time.time)
    last_accessed: float = field(default_factory=time.time)


class MetalBackend(Backend):
    """Arrays of metalloid, and kernels that take them.

    Parameters
    ----------
    device_id : int
        Kept, and of no effect.

    Examples
    --------
    >>> backend = MetalBackend()
    >>> a = backend.copy_to_device(np.array([1, 2, 3], np.float32))
    >>> backend.copy_to_host(mtl.add(a, a))
    array([2., 4., 6.], dtype=float32)
    >>> twice = backend.compile_kernel('''kernel void twice(device float* x,
    ...     uint i [[thread_position_in_grid]]) { x[i] *= 2; }''', "twice")
    >>> twice(np.ones(2, np.float32))
    array([2., 2.], dtype=float32)
    """

    backend_type, is_available, device_count = BackendType.METAL, True, 1

    def __init__(self, device_id: int = 0) -> None:
        self.device_id = device_id
        self._buffer_registry: dict[int, MetalBufferInfo] = {}
        self._kernels: dict[Any, Callable[..., Any]] = {}
        self._lock = threading.RLock()

    # -- memory

    def allocate(self, shape: Any, dtype: Any) -> mtl.Array:
        """An array of zeros; see `Backend.allocate`.

        Raises
        ------
        MetalError
        """
        try:
            array = mtl.zeros(shape, dtype=self._dtype(dtype))
        except (TypeError, ValueError, MemoryError) as error:
            raise MetalError(f"Failed to allocate Metal memory: {error}") from error
        return self._registered(array)

    allocate_zeros = allocate

    @staticmethod
    def _dtype(dtype: Any) -> np.dtype[Any]:
        requested: np.dtype[Any] = np.dtype(dtype)
        return _NARROWED.get(requested, requested)

    def _registered(self, array: mtl.Array) -> mtl.Array:
        mtl.eval(array)
        with self._lock:
            info = MetalBufferInfo(id(array), array.nbytes, array.shape, array.dtype)
            self._buffer_registry[id(array)] = info
        return array

    def free(self, array: Any) -> None:
        """Take an array out of the registry; it can still be used."""
        with self._lock:
            self._buffer_registry.pop(id(array), None)

    def copy_to_device(self, host_array: np.ndarray) -> mtl.Array:
        """See `Backend.copy_to_device`; float64 becomes float32."""
        return self._registered(mtl.asarray(host_array.astype(self._dtype(host_array.dtype))))

    def copy_to_host(self, device_array: Any) -> np.ndarray:
        """See `Backend.copy_to_host`."""
        return np.array(device_array)

    def synchronize(self) -> None:
        """See `Backend.synchronize`."""
        mtl.Device().synchronize()

    def _cleanup(self) -> None:
        with self._lock:
            self._buffer_registry.clear()
            self._kernels.clear()

    def get_memory_info(self) -> dict[str, int]:
        """Bytes and number of registered arrays, and bytes that wait for the next array."""
        with self._lock:
            sizes = [info.size for info in self._buffer_registry.values()]
        return {
            "allocated": sum(sizes), "buffer_count": len(sizes),
            "cache_memory": mtl.get_cache_memory(), "peak_memory": mtl.get_peak_memory(),
        }  # fmt: skip

    def clear_cache(self) -> None:
        """Give memory that waits for the next array back."""
        mtl.clear_cache()

    # -- kernels

    def compile_kernel(self, func: Any, signature: str | None = None) -> Callable[..., Any]:
        """Something to call with arrays, of NumPy or of the device.

        Parameters
        ----------
        func : callable or str
            A function of arrays, or MSL source. A kernel of the source works on the arrays it is
            given and returns those it may write to.
        signature : str, optional
            Of MSL source, the name of the kernel; "kernel_main" without.

        Raises
        ------
        MSLCompilationError
        """
        key = (func if isinstance(func, str) else id(func), signature)
        with self._lock:
            if key not in self._kernels:
                self._kernels[key] = (
                    _MslKernel(func, signature or _DEFAULT_KERNEL)
                    if isinstance(func, str)
                    else self._wrapped(func)
                )
            return self._kernels[key]

    def _wrapped(self, func: Callable[..., Any]) -> Callable[..., Any]:
        def compiled(*args: Any, **kwargs: Any) -> Any:
            given = [
                mtl.asarray(a.astype(self._dtype(a.dtype))) if isinstance(a, np.ndarray) else a
                for a in args
            ]
            return _evaluated(func(*given, **kwargs))

        return compiled

    def execute_kernel(self, kernel: Callable[..., Any], grid_size: tuple[int, ...],
                       block_size: tuple[int, ...], *args: Any,
                       **kwargs: Any) -> KernelExecutionResult:  # fmt: skip
        """Call a kernel; see `Backend.execute_kernel`.

        Kernels of MSL source run in `grid_size` threadgroups of `block_size` threads. Functions of
        arrays have no use for either.
        """
        if isinstance(kernel, _MslKernel):
            return timed(kernel.in_groups, args, grid_size, block_size, **kwargs)
        return timed(lambda: _evaluated(kernel(*args, **kwargs)))

    def __repr__(self) -> str:
        cache_kbytes = mtl.get_cache_memory() // 1024
        count = len(self._buffer_registry)
        return (
            f"MetalBackend(device={self.device_id}, available=True, buffers={count}, "
            f"cache={cache_kbytes}KB)"
        )


def _evaluated(result: Any) -> Any:
    if isinstance(result, mtl.Array):
        mtl.eval(result)
    return result


class _MslKernel:
    """A kernel of an MSL source."""

    def __init__(self, text: str, name: str) -> None:
        try:
            self._kernel = mtl.library(text)[name]
        except (mtl.CompileError, mtl.UnknownFunction) as error:
            raise MSLCompilationError(name, error) from error
        buffers = self._kernel.signature.arguments
        self._written = [index for index, p in enumerate(buffers) if not p.layout.read_only]

    def __call__(self, *args: Any) -> Any:
        threads = next((a.size for a in args if hasattr(a, "size")), 0)
        return self._run(args, threads, None)

    def in_groups(
        self, args: tuple[Any, ...], groups: tuple[int, ...], size: tuple[int, ...]
    ) -> Any:
        """Run so many threadgroups of a size."""
        size = size or (1,) * len(groups)
        return self._run(args, _threads(tuple(groups), tuple(size)), size)

    def _run(self, args: tuple[Any, ...], threads: Any, size: Any) -> Any:
        self._kernel(*args, threads=threads, group_size=size, wait=True)
        written = [args[index] for index in self._written]
        return written[0] if len(written) == 1 else tuple(written)


@functools.lru_cache(1024)
def _threads(groups: tuple[int, ...], size: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(pair) for pair in zip(groups, size, strict=True))


def _check_metal_available() -> bool:
    return True


# -- kernels that are there already


def get_vector_add_kernel() -> Callable[..., Any]:
    """The sum of two arrays."""
    return mtl.add


def get_matrix_multiply_kernel() -> Callable[..., Any]:
    """The product of two matrices."""
    return mtl.matmul


_ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "add": mtl.add, "sub": mtl.subtract, "mul": mtl.multiply, "div": mtl.divide, "sqrt": mtl.sqrt,
    "exp": mtl.exp, "log": mtl.log, "sin": mtl.sin, "cos": mtl.cos, "abs": mtl.abs,
    "square": mtl.square, "negative": mtl.negative,
}  # fmt: skip


def get_elementwise_kernel(operation: str) -> Callable[..., Any] | None:
    """An elementwise function by its name there ("add", "sub", "mul" ...); None for others."""
    return _ELEMENTWISE.get(operation)
