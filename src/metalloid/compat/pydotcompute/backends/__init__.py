"""Backends: where kernels run."""

from metalloid.compat.pydotcompute.backends.base import (
    Backend,
    BackendArray,
    BackendType,
    KernelExecutionResult,
)
from metalloid.compat.pydotcompute.backends.cpu import CPUBackend
from metalloid.compat.pydotcompute.backends.metal import MetalBackend

__all__ = [
    "Backend",
    "BackendArray",
    "BackendType",
    "CPUBackend",
    "KernelExecutionResult",
    "MetalBackend",
]
