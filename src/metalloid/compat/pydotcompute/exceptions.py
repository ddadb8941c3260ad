"""What PyDotCompute raises. Attributes are called as the arguments."""

from __future__ import annotations

from typing import Any


class PyDotComputeError(Exception):
    """Base of all."""


class KernelError(PyDotComputeError):
    """Something about kernels."""


class KernelNotFoundError(KernelError):
    """There is no kernel of the name."""

    def __init__(self, kernel_id: str) -> None:
        self.kernel_id = kernel_id
        super().__init__(f"Kernel not found: {kernel_id}")


class CompilationError(PyDotComputeError):
    """Something does not compile."""


class KernelCompilationError(CompilationError):
    """A kernel does not compile."""

    def __init__(self, kernel_name: str, cause: Exception | None = None) -> None:
        self.kernel_name, self.cause = kernel_name, cause
        super().__init__(f"Failed to compile kernel '{kernel_name}': {cause}")


class BufferError(PyDotComputeError):
    """Something about buffers."""


class BufferNotAllocatedError(BufferError):
    """A buffer has no memory yet."""

    def __init__(self) -> None:
        super().__init__("Buffer has not been allocated. Call allocate() first.")


class BufferSyncError(BufferError):
    """A copy between host and device failed."""

    def __init__(self, direction: str, cause: Exception | None = None) -> None:
        self.direction, self.cause = direction, cause
        super().__init__(f"Buffer synchronization failed ({direction}): {cause}")


class BackendError(PyDotComputeError):
    """Something about backends."""


class BackendNotAvailableError(BackendError):
    """A backend cannot be used here."""

    def __init__(self, backend_name: str, reason: str = "") -> None:
        self.backend_name, self.reason = backend_name, reason
        super().__init__(f"Backend '{backend_name}' is not available: {reason}")


class CUDAError(BackendError):
    """The CUDA backend failed."""


class MetalError(BackendError):
    """The Metal backend failed."""


class MSLCompilationError(MetalError):
    """An MSL text does not compile."""

    def __init__(self, shader_name: str, error_message: Any) -> None:
        self.shader_name, self.error_message = shader_name, str(error_message)
        super().__init__(f"Failed to compile MSL shader '{shader_name}': {error_message}")


class ValidationError(PyDotComputeError):
    """Something is not as it should be."""
