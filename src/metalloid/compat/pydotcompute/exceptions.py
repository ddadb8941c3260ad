"""PyDotCompute's exceptions. Attributes have the names of the arguments."""

from __future__ import annotations

from typing import Any


class PyDotComputeError(Exception):
    """Base of all."""


class KernelError(PyDotComputeError):
    """Something about kernels."""


class KernelNotFoundError(KernelError):
    """There is no kernel of the name."""

    def __init__(self, kernel_id: str, available: list[str] | None = None) -> None:
        self.kernel_id, self.available = kernel_id, available or []
        known = f" There are: {', '.join(self.available)}." if self.available else ""
        super().__init__(f"Kernel '{kernel_id}' not found.{known}")


class KernelStateError(KernelError):
    """A kernel's state does not allow what was asked."""

    def __init__(self, kernel_id: str, current_state: str, operation: str) -> None:
        self.kernel_id, self.current_state, self.operation = kernel_id, current_state, operation
        super().__init__(f"Cannot {operation} kernel '{kernel_id}' from state '{current_state}'")


class KernelAlreadyExistsError(KernelError):
    """There is a kernel of the name already."""

    def __init__(self, kernel_id: str) -> None:
        self.kernel_id = kernel_id
        super().__init__(f"Kernel '{kernel_id}' is already registered")


class MessageError(PyDotComputeError):
    """Something about messages."""


class MessageSerializationError(MessageError):
    """A message cannot be written as bytes."""

    def __init__(self, message_type: type, cause: Exception) -> None:
        self.message_type, self.cause = message_type, cause
        super().__init__(f"Failed to serialize a '{message_type.__name__}': {cause}")


class MessageDeserializationError(MessageError):
    """A message cannot be read from bytes."""

    def __init__(self, message_type: type, cause: Exception) -> None:
        self.message_type, self.cause = message_type, cause
        super().__init__(f"Failed to deserialize a '{message_type.__name__}': {cause}")


class QueueError(PyDotComputeError):
    """Something about queues."""


class QueueFullError(QueueError):
    """A queue takes no more."""

    def __init__(self, kernel_id: str, queue_size: int) -> None:
        self.kernel_id, self.queue_size = kernel_id, queue_size
        super().__init__(f"The queue of kernel '{kernel_id}' is full (size: {queue_size})")


class QueueTimeoutError(QueueError):
    """A queue took too long."""

    def __init__(self, kernel_id: str, timeout: float, operation: str) -> None:
        self.kernel_id, self.timeout, self.operation = kernel_id, timeout, operation
        super().__init__(f"Timeout ({timeout} s) waiting to {operation} for kernel '{kernel_id}'")


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
    """An MSL source does not compile."""

    def __init__(self, shader_name: str, error_message: Any) -> None:
        self.shader_name, self.error_message = shader_name, str(error_message)
        super().__init__(f"Failed to compile MSL shader '{shader_name}': {error_message}")


class ValidationError(PyDotComputeError):
    """Something is not as it should be."""


class InvalidConfigurationError(ValidationError):
    """A setting has a value that it cannot have."""

    def __init__(self, parameter: str, value: object, reason: str) -> None:
        self.parameter, self.value, self.reason = parameter, value, reason
        super().__init__(f"Invalid configuration: {parameter}={value!r}: {reason}")


class TypeValidationError(ValidationError):
    """Something is of another type than it should be."""

    def __init__(self, expected: type, actual: type, context: str) -> None:
        self.expected, self.actual, self.context = expected, actual, context
        super().__init__(f"{context}: expected {expected.__name__}, got {actual.__name__}")
