"""`compat.pydotcompute`: the seed document's examples, states of buffers, and MSL that really runs."""

import asyncio

import numpy as np
import pytest

import metalloid as mtl
from metalloid.compat.pydotcompute.backends import BackendArray, BackendType, CPUBackend
from metalloid.compat.pydotcompute.backends.cpu import matrix_multiply_cpu, vector_add_cpu
from metalloid.compat.pydotcompute.backends.metal import (
    MetalBackend,
    get_elementwise_kernel,
    get_matrix_multiply_kernel,
    get_vector_add_kernel,
)
from metalloid.compat.pydotcompute.core import Accelerator, BufferState, UnifiedBuffer
from metalloid.compat.pydotcompute.core.accelerator import (
    DeviceType,
    cuda_available,
    get_accelerator,
    metal_available,
)
from metalloid.compat.pydotcompute.exceptions import (
    BufferNotAllocatedError,
    BufferSyncError,
    MetalError,
    MSLCompilationError,
    PyDotComputeError,
)

MSL = """
kernel void saxpy(device float* y, device const float* x, constant float& a,
                  uint i [[thread_position_in_grid]]) { y[i] += a * x[i]; }
kernel void kernel_main(device float* y, uint i [[thread_position_in_grid]],
                        uint size [[threads_per_threadgroup]]) { y[i] = size; }
"""


@pytest.fixture
def backend():
    return MetalBackend()


def test_basic_computation(backend):
    a = backend.copy_to_device(np.array([1, 2, 3], dtype=np.float32))
    b = backend.copy_to_device(np.array([4, 5, 6], dtype=np.float32))
    c = mtl.add(a, b)
    mtl.eval(c)
    assert backend.copy_to_host(c).tolist() == [5, 7, 9]


def test_kernels_that_are_there(backend, rng):
    a = backend.copy_to_device(np.array([1, 4, 9], dtype=np.float32))
    assert get_vector_add_kernel()(a, a).tolist() == [2, 8, 18]
    assert get_elementwise_kernel("sqrt")(a).tolist() == [1, 2, 3]
    assert get_elementwise_kernel("nothing") is None
    names = [
        "add",
        "sub",
        "mul",
        "div",
        "sqrt",
        "exp",
        "log",
        "sin",
        "cos",
        "abs",
        "square",
        "negative",
    ]
    assert all(map(get_elementwise_kernel, names))
    x = rng.normal(size=(100, 100)).astype(np.float32)
    product = get_matrix_multiply_kernel()(*map(backend.copy_to_device, (x, x)))
    np.testing.assert_allclose(product.numpy(), x.astype(np.float64) @ x, atol=1e-4)


def test_functions_are_compiled(backend):
    def gaussian_kernel(x):
        return mtl.exp(mtl.negative(mtl.square(x)))

    compiled = backend.compile_kernel(gaussian_kernel)
    assert backend.compile_kernel(gaussian_kernel) is compiled
    x = np.linspace(-3, 3, 100).astype(np.float32)
    exact = np.exp(-(x.astype(np.float64) ** 2))
    np.testing.assert_allclose(backend.copy_to_host(compiled(x)), exact, rtol=1e-6)


def test_execution_is_timed_and_returns_its_output(backend):
    x = np.arange(1, 101, dtype=np.float32)
    result = backend.execute_kernel(
        lambda a: mtl.sqrt(a * a), (1,), (1,), backend.copy_to_device(x)
    )
    assert result.success
    assert result.error is None
    assert result.execution_time_ms > 0
    assert result.output.tolist() == x.tolist()
    failed = backend.execute_kernel(lambda: 1 / 0, (1,), (1,))
    assert not failed.success
    assert isinstance(failed.error, ZeroDivisionError)


def test_texts_are_compiled(backend):
    saxpy = backend.compile_kernel(MSL, "saxpy")
    y = saxpy(np.ones(5, np.float32), np.arange(5, dtype=np.float32), 2)
    assert y.tolist() == [1, 3, 5, 7, 9]
    default = backend.compile_kernel(MSL)
    result = backend.execute_kernel(default, (3,), (4,), np.zeros(12, np.float32))
    assert result.output.tolist() == [4] * 12
    with pytest.raises(MSLCompilationError, match="'flout'") as caught:
        backend.compile_kernel("kernel void kernel_main(device flout* x) {}")
    assert caught.value.shader_name == "kernel_main"
    with pytest.raises(MSLCompilationError, match="unknown kernel 'other'"):
        backend.compile_kernel(MSL, "other")


def test_allocations_are_registered(backend):
    arrays = [backend.allocate((10, 4), np.float32) for _ in range(3)]
    info = backend.get_memory_info()
    assert (info["allocated"], info["buffer_count"]) == (3 * 160, 3)
    assert info["peak_memory"] >= 480
    for array in arrays:
        backend.free(array)
        backend.free(array)
    assert backend.get_memory_info()["buffer_count"] == 0
    assert arrays[0].tolist() == [[0] * 4] * 10
    backend.clear_cache()
    assert backend.get_memory_info()["cache_memory"] == 0
    with pytest.raises(MetalError, match="Failed to allocate"):
        backend.allocate((2,), "U3")


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8", "uint64", "bool"])
def test_types(backend, dtype):
    x = np.ones(3, dtype)
    stored = "float32" if dtype == "float64" else dtype
    assert backend.copy_to_device(x).dtype == backend.allocate(3, dtype).dtype == stored


def test_what_a_backend_says(backend):
    assert (backend.backend_type, backend.is_available) == (BackendType.METAL, True)
    assert (backend.device_count, backend.device_id) == (1, 0)
    assert repr(backend).startswith("MetalBackend(device=0, available=True, buffers=0, cache=")
    backend.synchronize()
    array = BackendArray(backend.allocate((2, 3), np.float32), backend)
    assert (array.shape, array.dtype, array.nbytes) == ((2, 3), np.float32, 24)
    assert array.to_host().tolist() == [[0] * 3] * 2


def test_numpy_as_a_backend():
    cpu, indices = CPUBackend(), []
    out = vector_add_cpu(np.ones(3), cpu.allocate_zeros(3, np.float32))
    assert cpu.copy_to_host(cpu.copy_to_device(out)).tolist() == [1, 1, 1]
    assert matrix_multiply_cpu(np.eye(2), np.eye(2)).tolist() == np.eye(2).tolist()
    assert repr(cpu) == "CPUBackend(available=True)"
    cpu.parallel_for(0, 3, indices.append)
    assert indices == [0, 1, 2]
    assert cpu.execute_kernel(cpu.compile_kernel(max), (1,), (1,), 3, 4).output == 4


# -- unified buffers


def test_a_buffer_as_in_the_document():
    buffer = UnifiedBuffer((1000,), dtype=np.float32)
    assert repr(buffer) == (
        "UnifiedBuffer(shape=(1000,), dtype=float32, state=UNINITIALIZED, cuda=False, metal=True)"
    )
    buffer.allocate()
    buffer.host[:] = np.arange(1000)
    buffer.mark_host_dirty()
    assert float(mtl.sum(buffer.metal)) == 499500
    assert buffer.state is BufferState.SYNCHRONIZED


def test_what_a_kernel_writes_is_seen_on_the_host():
    buffer = UnifiedBuffer(4).zeros()
    lib = mtl.library(MSL)
    lib.kernel_main(buffer.metal, threads=4, group_size=2)
    buffer.mark_metal_dirty()
    assert buffer.state is BufferState.DEVICE_DIRTY
    assert buffer.host.tolist() == [2] * 4
    assert buffer.state is BufferState.SYNCHRONIZED


def test_states_of_a_buffer():
    buffer = UnifiedBuffer((2, 3), np.float64)
    assert (buffer.size, buffer.nbytes, len(buffer), buffer.is_allocated) == (6, 48, 2, False)
    for access in (lambda: buffer.host, lambda: buffer.metal, buffer.mark_host_dirty,
                   buffer.mark_metal_dirty, buffer.synchronize):  # fmt: skip
        with pytest.raises(BufferNotAllocatedError, match="Call allocate"):
            access()
    assert buffer.allocate(host=False).state is BufferState.HOST_ONLY
    assert buffer.fill(7).state is BufferState.HOST_DIRTY
    assert buffer.metal.dtype == np.float32
    buffer[0, 0] = 5
    assert (buffer.state, buffer[0, 0]) == (BufferState.HOST_DIRTY, 5)
    buffer.synchronize()
    assert buffer.state is BufferState.SYNCHRONIZED
    asyncio.run(buffer.ensure_on_device())
    asyncio.run(buffer.ensure_on_host())
    assert buffer.device is buffer.host
    out = np.empty((2, 3))
    buffer.copy_to(out)
    assert out[0].tolist() == [5, 7, 7]
    with pytest.raises(ValueError, match="Shape mismatch"):
        buffer.copy_from(np.ones(3))
    buffer.free()
    assert buffer.state is BufferState.UNINITIALIZED
    with pytest.raises(BufferSyncError, match="host->metal"):
        _ = UnifiedBuffer(2, "U3").allocate().metal


def test_the_list_of_devices():
    accelerator = get_accelerator()
    assert accelerator is Accelerator()
    assert (metal_available(), cuda_available(), accelerator.device_count) == (True, False, 1)
    device = accelerator.get_device(0)
    assert device.device_type is DeviceType.METAL
    assert (device.warp_size, device.max_threads_per_block) == (32, 1024)
    assert device.total_memory_gb == device.total_memory / 2**30
    assert device.compute_capability_str == "N/A"
    accelerator.set_device(0)
    assert accelerator.current_device == device
    assert repr(accelerator).startswith("Accelerator(devices=1, cuda_available=False, metal_av")
    for wrong in (lambda: accelerator.set_device(3), lambda: accelerator.get_device(-1)):
        with pytest.raises(ValueError, match="Invalid device ID"):
            wrong()
    accelerator.synchronize()
    assert set(accelerator.get_memory_info()) == {
        "free", "total", "used", "cache_memory", "peak_memory"
    }  # fmt: skip
    assert issubclass(MSLCompilationError, MetalError)
    assert issubclass(MetalError, PyDotComputeError)
