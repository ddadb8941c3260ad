"""NumPy as a backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metalloid.compat.pydotcompute.backends.base import (
    Backend,
    BackendType,
    KernelExecutionResult,
    timed,
)


class CPUBackend(Backend):
    """Arrays are NumPy's, kernels Python's functions.

    Examples
    --------
    >>> CPUBackend().execute_kernel(np.add, (1,), (1,), 1, 2).output
    np.int64(3)
    """

    backend_type, is_available, device_count = BackendType.CPU, True, 1

    def allocate(self, shape: Any, dtype: Any) -> np.ndarray:
        """See `Backend.allocate`."""
        return np.empty(shape, dtype)

    def allocate_zeros(self, shape: Any, dtype: Any) -> np.ndarray:
        """An array of zeros."""
        return np.zeros(shape, dtype)

    def free(self, array: Any) -> None:
        """Nothing to do."""

    def copy_to_device(self, host_array: np.ndarray) -> np.ndarray:
        """See `Backend.copy_to_device`."""
        return host_array.copy()

    def copy_to_host(self, device_array: Any) -> np.ndarray:
        """See `Backend.copy_to_host`."""
        return np.array(device_array)

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def compile_kernel(self, func: Any, signature: str | None = None) -> Callable[..., Any]:
        """The function itself."""
        compiled: Callable[..., Any] = func
        return compiled

    def execute_kernel(self, kernel: Callable[..., Any], grid_size: tuple[int, ...],
                       block_size: tuple[int, ...], *args: Any,
                       **kwargs: Any) -> KernelExecutionResult:  # fmt: skip
        """See `Backend.execute_kernel`."""
        return timed(kernel, *args, **kwargs)

    def parallel_for(self, start: int, end: int, func: Callable[[int], Any]) -> None:
        """Call a function with each number."""
        for number in range(start, end):
            func(number)

    def __repr__(self) -> str:
        return "CPUBackend(available=True)"


def vector_add_cpu(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The sum of two arrays."""
    return np.add(a, b)  # type: ignore[no-any-return]


def matrix_multiply_cpu(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of two matrices."""
    return np.matmul(a, b)  # type: ignore[no-any-return]
