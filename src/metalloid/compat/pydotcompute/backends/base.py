"""The base class of back ends."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np


class BackendType(Enum):
    """Kinds of backends."""

    CPU = 1
    CUDA = 2
    METAL = 3


@dataclass
class KernelExecutionResult:
    """The result of a launch.

    Attributes
    ----------
    success : bool
    execution_time_ms : float
    error : Exception or None
    output : object
        What the kernel returned, which the original drops.
    """

    success: bool
    execution_time_ms: float
    error: Exception | None = None
    output: Any = None


class Backend(ABC):
    """A back end that runs kernels."""

    @property
    @abstractmethod
    def backend_type(self) -> BackendType:
        """Its kind."""

    @property
    @abstractmethod
    def is_available(self) -> bool:
        """Whether it can be used here."""

    @property
    @abstractmethod
    def device_count(self) -> int:
        """Devices it has."""

    @abstractmethod
    def allocate(self, shape: Any, dtype: Any) -> Any:
        """Memory for an array."""

    @abstractmethod
    def free(self, array: Any) -> None:
        """Forget an array."""

    @abstractmethod
    def copy_to_device(self, host_array: np.ndarray) -> Any:
        """An array of the device with the same contents."""

    @abstractmethod
    def copy_to_host(self, device_array: Any) -> np.ndarray:
        """An array of NumPy with the same contents."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait for everything."""

    @abstractmethod
    def compile_kernel(self, func: Any, signature: str | None = None) -> Callable[..., Any]:
        """Something that can be called with arrays."""

    @abstractmethod
    def execute_kernel(self, kernel: Callable[..., Any], grid_size: tuple[int, ...],
                       block_size: tuple[int, ...], *args: Any,
                       **kwargs: Any) -> KernelExecutionResult:  # fmt: skip
        """Call a kernel, and say how it went."""


def timed(kernel: Callable[..., Any], *args: Any, **kwargs: Any) -> KernelExecutionResult:
    """The outcome of a call, including an exception that it raised."""
    start = time.perf_counter()
    try:
        output = kernel(*args, **kwargs)
    except Exception as error:
        return KernelExecutionResult(False, (time.perf_counter() - start) * 1e3, error)
    return KernelExecutionResult(True, (time.perf_counter() - start) * 1e3, None, output)


class BackendArray:
    """An array and the backend it belongs to.

    Attributes
    ----------
    data : object
    backend : Backend
    """

    def __init__(self, data: Any, backend: Backend, *, owns_data: bool = True) -> None:
        self.data, self.backend, self._owns_data = data, backend, owns_data

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent of each axis."""
        return tuple(self.data.shape)

    @property
    def dtype(self) -> Any:
        """Type of the elements."""
        return self.data.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return int(self.data.nbytes)

    def to_host(self) -> np.ndarray:
        """A copy where NumPy sees it."""
        return self.backend.copy_to_host(self.data)

    def synchronize(self) -> None:
        """Wait for what is computed into it."""
        self.backend.synchronize()

    def __del__(self) -> None:
        if self._owns_data:
            self.backend.free(self.data)
