"""compat.pydotcompute: classes, methods, errors and states as the original names them."""

import dataclasses
import inspect
from typing import Any

import numpy as np
import pytest

import metalloid as mtl
from metalloid.compat.pydotcompute import exceptions
from metalloid.compat.pydotcompute.backends import metal
from metalloid.compat.pydotcompute.backends.base import (
    Backend,
    BackendArray,
    BackendType,
    KernelExecutionResult,
)
from metalloid.compat.pydotcompute.backends.cpu import CPUBackend
from metalloid.compat.pydotcompute.backends.metal import MetalBackend
from metalloid.compat.pydotcompute.core.accelerator import Accelerator, DeviceProperties, DeviceType
from metalloid.compat.pydotcompute.core.unified_buffer import BufferState, UnifiedBuffer

#: Every error with its base, and the arguments that become its attributes.
ERRORS = {
    "KernelError": ("PyDotComputeError", None), "MessageError": ("PyDotComputeError", None),
    "QueueError": ("PyDotComputeError", None), "BufferError": ("PyDotComputeError", None),
    "BackendError": ("PyDotComputeError", None), "CompilationError": ("PyDotComputeError", None),
    "ValidationError": ("PyDotComputeError", None), "CUDAError": ("BackendError", None),
    "MetalError": ("BackendError", None),
    "KernelNotFoundError": ("KernelError", {"kernel_id": "k", "available": ["a", "b"]}),
    "KernelStateError": (
        "KernelError", {"kernel_id": "k", "current_state": "idle", "operation": "stop"}
    ),
    "KernelAlreadyExistsError": ("KernelError", {"kernel_id": "k"}),
    "MessageSerializationError": ("MessageError", {"message_type": int, "cause": OSError("x")}),
    "MessageDeserializationError": ("MessageError", {"message_type": int, "cause": OSError("x")}),
    "QueueFullError": ("QueueError", {"kernel_id": "k", "queue_size": 4}),
    "QueueTimeoutError": ("QueueError", {"kernel_id": "k", "timeout": 1.5, "operation": "put"}),
    "BufferNotAllocatedError": ("BufferError", {}),
    "BufferSyncError": ("BufferError", {"direction": "host->metal", "cause": OSError("x")}),
    "BackendNotAvailableError": ("BackendError", {"backend_name": "Metal", "reason": "none"}),
    "MSLCompilationError": ("MetalError", {"shader_name": "s", "error_message": "no"}),
    "KernelCompilationError": ("CompilationError", {"kernel_name": "k", "cause": OSError("x")}),
    "InvalidConfigurationError": (
        "ValidationError", {"parameter": "p", "value": 3, "reason": "odd"}
    ),
    "TypeValidationError": (
        "ValidationError", {"expected": int, "actual": str, "context": "the count"}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    base, attributes = ERRORS[name]
    kind = getattr(exceptions, name)
    assert kind.__bases__ == (getattr(exceptions, base),)
    if attributes is None:
        assert str(kind("text")) == "text"
        return
    assert list(inspect.signature(kind).parameters) == list(attributes)
    error = kind(*attributes.values())
    assert {key: getattr(error, key) for key in attributes} == attributes
    for value in attributes.values():
        words = value if isinstance(value, list) else [getattr(value, "__name__", value)]
        assert all(str(word) in str(error) for word in words)


def test_no_other_errors():
    members = vars(exceptions).items()
    ours = {name for name, value in members if inspect.isclass(value) and value is not Any}
    assert ours == {"PyDotComputeError", *ERRORS}


def parameters(method):
    return [
        (p.name, p.kind.name) if p.kind.name.startswith(("KEYWORD", "VAR")) else p.name
        for p in inspect.signature(method).parameters.values()
        if p.name != "self"
    ]


METHODS = {
    "allocate": ["shape", "dtype"], "allocate_zeros": ["shape", "dtype"], "free": ["array"],
    "copy_to_device": ["host_array"], "copy_to_host": ["device_array"], "synchronize": [],
    "execute_kernel": [
        "kernel", "grid_size", "block_size", ("args", "VAR_POSITIONAL"), ("kwargs", "VAR_KEYWORD"),
    ],
    "compile_kernel": ["func", "signature"],
}  # fmt: skip


@pytest.mark.parametrize("kind", [MetalBackend, CPUBackend])
def test_methods_of_backends(kind):
    assert issubclass(kind, Backend)
    for name, expected in METHODS.items():
        assert parameters(getattr(kind, name)) == expected
    backend = kind()
    assert (backend.is_available, backend.device_count) == (True, 1)
    assert type(backend.is_available) is bool


def test_the_backend_of_the_document():
    assert inspect.signature(MetalBackend).parameters["device_id"].default == 0
    assert MetalBackend(3).device_id == 3
    assert set(MetalBackend().get_memory_info()) == {
        "allocated", "buffer_count", "cache_memory", "peak_memory",
    }  # fmt: skip
    assert metal._check_metal_available() is True
    assert [state.name for state in metal.MetalBufferState] == ["ALLOCATED", "FREED", "IN_USE"]
    assert [field.name for field in dataclasses.fields(metal.MetalBufferInfo)] == [
        "array_id", "size", "shape", "dtype", "state", "created_at", "last_accessed",
    ]  # fmt: skip
    assert {kind.name: kind.value for kind in BackendType} == {"CPU": 1, "CUDA": 2, "METAL": 3}
    result = KernelExecutionResult(True, 1.5)
    assert (result.success, result.execution_time_ms, result.error) == (True, 1.5, None)


def test_bad_input_of_backends():
    backend = MetalBackend()
    with pytest.raises(AttributeError):
        backend.copy_to_device([1.0])
    assert backend.copy_to_device(np.ones(2, np.complex64)).dtype == np.complex64
    assert backend.allocate(5, np.float32).shape == (5,)
    with pytest.raises(exceptions.MetalError, match="Failed to allocate Metal memory: "):
        backend.allocate((-1,), np.float32)
    failed = backend.execute_kernel(lambda x: x + None, (1,), (1,), np.ones(1))
    assert (failed.success, type(failed.error)) == (False, TypeError)
    assert failed.execution_time_ms >= 0
    kernel = backend.compile_kernel("kernel void kernel_main(device float* x) {}")
    failed = backend.execute_kernel(kernel, (1,), (1,), "text")
    assert isinstance(failed.error, mtl.ArgumentError)


def test_arrays_free_what_they_own():
    backend = MetalBackend()
    for owns_data, left in ((True, 0), (False, 1)):
        data = backend.allocate((2,), np.float32)
        array = BackendArray(data, backend, owns_data=owns_data)
        assert array.data is data
        assert array.backend is backend
        array.synchronize()
        del array
        assert backend.get_memory_info()["buffer_count"] == left


def test_the_unified_buffer():
    assert parameters(UnifiedBuffer) == ["shape", "dtype", ("pinned", "KEYWORD_ONLY")]
    assert parameters(UnifiedBuffer.allocate) == [
        ("host", "KEYWORD_ONLY"), ("device", "KEYWORD_ONLY"),
    ]  # fmt: skip
    assert {state.name: state.value for state in BufferState} == {
        "UNINITIALIZED": 1, "HOST_ONLY": 2, "DEVICE_ONLY": 3, "SYNCHRONIZED": 4, "HOST_DIRTY": 5,
        "DEVICE_DIRTY": 6,
    }  # fmt: skip
    buffer = UnifiedBuffer(4, pinned=True)
    assert (buffer.shape, buffer.dtype, buffer.size, buffer.nbytes) == ((4,), np.float32, 4, 16)
    assert buffer.allocate() is buffer.zeros() is buffer.fill(2) is buffer
    assert type(buffer.host) is np.ndarray
    assert isinstance(buffer.metal, mtl.Array)
    assert inspect.iscoroutinefunction(buffer.ensure_on_device)
    assert inspect.iscoroutinefunction(buffer.ensure_on_host)
    with pytest.raises(IndexError):
        len(UnifiedBuffer(()))


def test_the_accelerator():
    assert {kind.name for kind in DeviceType} == {"CPU", "CUDA", "METAL"}
    device = Accelerator().get_device()
    assert [field.name for field in dataclasses.fields(DeviceProperties)] == [
        "device_id", "device_type", "name", "compute_capability", "total_memory",
        "multiprocessor_count", "max_threads_per_block", "max_block_dims", "max_grid_dims",
        "warp_size", "is_available",
    ]  # fmt: skip
    with pytest.raises(dataclasses.FrozenInstanceError):
        device.name = "other"
    assert dataclasses.replace(device, compute_capability=(8, 6)).compute_capability_str == "8.6"
