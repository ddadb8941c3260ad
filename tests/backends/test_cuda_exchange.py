"""torch's tensors, CuPy's arrays and ours on one GPU: nothing is copied, and everything in turn.

Wants a GPU, cuda-bindings, torch with CUDA and CuPy; METALLOID_REQUIRE=cuda lets it fail without.
"""

import gc
import os

import numpy as np
import pytest

import metalloid as mtl
from metalloid.compat.torch import compile_shader

TEXT = """
#include <metal_stdlib>
using namespace metal;
kernel void add(device float* x, device const float* y, uint i [[thread_position_in_grid]])
{ x[i] += y[i]; }
kernel void add_halves(device half* x, device const half* y, uint i [[thread_position_in_grid]])
{ x[i] += y[i]; }
kernel void add_bfloats(device bfloat* x, device const bfloat* y,
                        uint i [[thread_position_in_grid]]) { x[i] += y[i]; }
kernel void add_longs(device long* x, device const long* y, uint i [[thread_position_in_grid]])
{ x[i] += y[i]; }
kernel void late(device float* x, constant uint& steps, uint i [[thread_position_in_grid]])
{ uint a = i;
  for (uint k = 0; k < steps; k++) { a = a * 1664525u + (a >> 3) + k; }
  x[i] = a == 7 ? 8 : 1; }
"""
MANY, STEPS = 4096, 2_000_000  # some ten milliseconds
SLEEP = 50_000_000  # cycles of torch's, as long


def absent(error):
    """Skip, naming what is missing such that METALLOID_REQUIRE=cuda recognises it."""
    pytest.skip(f"cuda: {error}")


@pytest.fixture(scope="module")
def gpu():
    try:
        return mtl.Device("cuda")
    except mtl.DeviceUnavailable as error:
        absent(error)


@pytest.fixture(scope="module")
def lib(gpu):
    return mtl.library(TEXT, device=gpu)


@pytest.fixture(scope="module")
def torch(gpu):
    try:
        import torch
    except ImportError as error:
        absent(error)
    if not torch.cuda.is_available():
        absent("torch finds no GPU")
    return torch


@pytest.fixture(scope="module")
def cupy(gpu):
    try:
        import cupy
    except ImportError as error:
        absent(error)
    return cupy


class Torch:
    """The operations of the tests on torch's tensors."""

    #: Whether it asks for capsules of DLPack 1, which can say that an array is read-only.
    asks_for_versions = True

    def __init__(self, torch):
        self.torch = torch

    def make(self, array):
        return self.torch.tensor(np.asarray(array), device="cuda")

    def address(self, tensor):
        return tensor.data_ptr()

    def values(self, tensor):
        return tensor.cpu().numpy()

    def take(self, value):
        return self.torch.from_dlpack(value)

    def take_interface(self, value):
        return self.torch.as_tensor(value, device="cuda")

    def stream(self):
        return self.torch.cuda.stream(self.torch.cuda.Stream())

    def late_ones(self, tensor):
        self.torch.cuda._sleep(SLEEP)
        tensor.fill_(1)


class Cupy(Torch):
    """And with CuPy's arrays."""

    @property
    def asks_for_versions(self):
        return int(self.torch.__version__.partition(".")[0]) >= 14

    def make(self, array):
        return self.torch.asarray(array)

    def address(self, array):
        return array.data.ptr

    def values(self, array):
        return self.torch.asnumpy(array)

    def take_interface(self, value):
        return self.torch.asarray(value)

    def stream(self):
        self.streams = [*getattr(self, "streams", []), self.torch.cuda.Stream(non_blocking=True)]
        return self.streams[-1]

    def late_ones(self, array):
        wait = self.torch.RawKernel(
            'extern "C" __global__ void wait(long long cycles) '
            "{ long long start = clock64(); while (clock64() - start < cycles) {} }",
            "wait",
        )
        wait((1,), (1,), (np.int64(SLEEP),))
        array.fill(1)


@pytest.fixture(params=["torch", "cupy"])
def theirs(request):
    module = request.getfixturevalue(request.param)
    return {"torch": Torch, "cupy": Cupy}[request.param](module)


def numbers(count=6, dtype=np.float32):
    return np.arange(count).astype(dtype)


# -- theirs for us


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("add", np.float32), ("add_halves", np.float16), ("add_longs", np.int64)],
)
def test_kernels_work_in_place(lib, theirs, name, dtype):
    x, y = theirs.make(numbers(1000, dtype)), theirs.make(numbers(1000, dtype))
    lib[name](x, y, threads=1000)
    np.testing.assert_array_equal(theirs.values(x), 2 * numbers(1000, dtype))
    np.testing.assert_array_equal(theirs.values(y), numbers(1000, dtype))


def test_kernels_of_bfloats(lib, torch):
    x = torch.arange(100, device="cuda").to(torch.bfloat16)
    lib.add_bfloats(x, x.clone(), threads=100)
    assert torch.equal(x.float().cpu(), torch.arange(100.0) * 2)


def test_buffers_numbers_and_memory_of_the_host_with_them(gpu, lib, theirs):
    x, host = theirs.make(np.zeros(6, np.float32)), numbers()
    lib.add(x, mtl.Buffer(numbers(), device=gpu), threads=6)
    lib.add(x, host, threads=6)
    lib.add(host, x, threads=6)
    assert theirs.values(x).tolist() == [0, 2, 4, 6, 8, 10]
    assert host.tolist() == [0, 3, 6, 9, 12, 15]


def test_arrays_share_their_memory(gpu, theirs):
    x = theirs.make(numbers(24).reshape(2, 3, 4))
    shared, without_copy = mtl.from_dlpack(x), mtl.asarray(x, copy=False)
    copied = mtl.asarray(x)
    assert shared.device is without_copy.device is copied.device is gpu
    assert shared.__cuda_array_interface__["data"][0] == theirs.address(x)
    transposed = mtl.from_dlpack(x.T if isinstance(theirs, Cupy) else x.permute(2, 1, 0))
    assert transposed.shape == (4, 3, 2)
    np.testing.assert_array_equal(np.asarray(transposed + 0), theirs.values(x).T)
    x[...] = 1
    assert float(shared.sum()) == float(without_copy.sum()) == float((transposed * 1).sum()) == 24
    assert float(copied.sum()) == np.arange(24).sum()


def test_arrays_elsewhere(theirs):
    x = theirs.make(numbers())
    assert mtl.asarray(x, device="cpu", dtype=mtl.int32).tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="requires a copy"):
        mtl.asarray(x, device="cpu", copy=False)


def test_the_memory_of_others_lives_as_long_as_the_array(theirs):
    x = theirs.make(np.full(1_000_000, 3, np.float32))
    array = mtl.from_dlpack(x)[1:]
    del x
    gc.collect()
    others = [theirs.make(np.zeros(1_000_000, np.float32)) for _ in range(20)]
    assert float(array.min()) == 3
    del others


def test_metal_kernels_and_negative_strides(gpu, cupy):
    kernel = mtl.metal_kernel(
        "twice", ["x"], ["y"], "uint i = thread_position_in_grid.x; y[i] = x[i] * x_shape[0];"
    )
    options = {"grid": 6, "output_shapes": [(6,)], "output_dtypes": [np.float32], "device": gpu}
    (y,) = kernel(inputs=[cupy.arange(6, dtype=np.float32)], **options)
    assert y.tolist() == [0, 6, 12, 18, 24, 30]
    assert mtl.from_dlpack(cupy.arange(6)[::-2]).tolist() == [5, 3, 1]


# -- ours for them


def test_buffers_are_taken_as_they_lie(gpu, theirs):
    buffer = mtl.Buffer(numbers(24).reshape(4, 6), device=gpu)
    for take in (theirs.take, theirs.take_interface):
        view = take(buffer)
        assert theirs.address(view) == buffer.address
        np.testing.assert_array_equal(theirs.values(view), numbers(24).reshape(4, 6))
    view[0, 0] = 50
    assert np.asarray(buffer)[0, 0] == 50
    np.asarray(buffer)[0, 1] = 60
    mtl.library(TEXT, device=gpu).add(buffer, buffer, threads=24)
    assert theirs.values(view)[0, :3].tolist() == [100, 120, 4]


def test_arrays_are_taken_as_they_lie(gpu, theirs):
    x = mtl.asarray(numbers(24).reshape(4, 6), device=gpu) * 2
    mtl.eval(x)
    for take in (theirs.take, theirs.take_interface):
        view = take(x[1:, ::2])
        if take == theirs.take_interface or theirs.asks_for_versions:  # others get a copy
            assert theirs.address(view) == x.__cuda_array_interface__["data"][0] + 24
        np.testing.assert_array_equal(theirs.values(view), numbers(24).reshape(4, 6)[1:, ::2] * 2)
    view = theirs.take(x)
    before = x + 0
    x[0, 0] = 9  # others see the memory: the name gets another
    assert theirs.values(view)[0, 0] == 0
    assert float(before[0, 0]) == 0


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float64", "complex64"])
def test_types_arrive(gpu, theirs, dtype):
    x = mtl.asarray(np.array([0, 1, 1]).astype(dtype), device=gpu)
    view = theirs.take(x)
    assert str(view.dtype).removeprefix("torch.") == dtype
    assert theirs.values(view).tolist() == [0, 1, 1]
    assert mtl.from_dlpack(view).dtype == x.dtype


def test_bfloats_arrive(gpu, torch):
    x = mtl.asarray(numbers(), device=gpu).astype(mtl.bfloat16)
    view = torch.from_dlpack(x)
    assert view.dtype is torch.bfloat16
    assert view.tolist() == [0, 1, 2, 3, 4, 5]
    assert mtl.from_dlpack(view).dtype == mtl.bfloat16


def test_our_memory_lives_as_long_as_its_exports(gpu, theirs):
    for take in (theirs.take, theirs.take_interface):
        x = mtl.asarray(np.full(100_000, 2, np.float32), device=gpu) + 1
        buffer = mtl.Buffer(np.full(100_000, 4, np.float32), device=gpu)
        views = take(x), take(buffer)
        del x, buffer
        gc.collect()
        others = [mtl.asarray(np.zeros(100_000, np.float32), device=gpu) + k for k in range(9)]
        mtl.eval(others)
        others += [mtl.Buffer(400_000, device=gpu) for _ in range(9)]
        for view, expected in zip(views, (3, 4), strict=True):
            assert set(theirs.values(view).tolist()) == {expected}
        del others


def test_memory_comes_back(gpu, torch):
    lib = mtl.library(TEXT, device=gpu)

    def round_():
        for _ in range(50):
            x = torch.ones(2**20, device="cuda")
            lib.add(x, x, threads=2**20)
            y = torch.from_dlpack(mtl.from_dlpack(x) * 2)
        return float(y.sum())

    assert round_() == 4 * 2**20
    gc.collect()
    gpu.synchronize()
    before = torch.cuda.memory_allocated()
    round_()
    gc.collect()
    assert torch.cuda.memory_allocated() <= before


# -- in turn


@pytest.mark.parametrize("own_stream", [False, True], ids=["default stream", "stream of its own"])
def test_a_kernel_waits_for_them_and_they_for_it(gpu, lib, theirs, own_stream):
    y = theirs.make(np.ones(MANY, np.float32))
    x = theirs.make(np.zeros(MANY, np.float32))
    lib.late(x, 1, threads=MANY).wait()  # compiled
    x[...] = 0
    gpu.synchronize()

    def work():
        theirs.late_ones(x)
        lib.add(x, y, threads=MANY, wait=False)  # waits for the ones
        first = x + 0  # waits for the kernel
        lib.late(x, STEPS, threads=MANY, wait=False)
        return first, x + 0

    if own_stream:
        with theirs.stream():
            first, second = work()
            values = theirs.values(first), theirs.values(second)
    else:
        values = tuple(map(theirs.values, work()))
    assert [set(v.tolist()) for v in values] == [{2}, {1}]


@pytest.mark.parametrize("own_stream", [False, True], ids=["default stream", "stream of its own"])
def test_the_import_of_a_buffer_waits_for_its_launches(gpu, lib, theirs, own_stream):
    def work(take):
        buffer = mtl.Buffer(np.zeros(MANY, np.float32), device=gpu)
        lib.late(buffer, STEPS, threads=MANY, wait=False)
        return theirs.values(take(buffer) + 0)

    for take in (theirs.take, theirs.take_interface):
        if own_stream and type(theirs) is Torch:
            take = theirs.take  # torch does not look at the interface's stream
        if own_stream:
            with theirs.stream():
                values = work(take)
        else:
            values = work(take)
        assert set(values.tolist()) == {1}


def test_we_read_what_they_have_written_to_ours(gpu, lib, theirs):
    buffer = mtl.Buffer(np.zeros(MANY, np.float32), device=gpu)
    view = theirs.take(buffer)
    theirs.late_ones(view)  # in the default stream
    lib.add(buffer, buffer, threads=MANY)
    assert set(np.asarray(buffer).tolist()) == {2}


# -- what does not fit


def test_errors(lib, torch, cupy):
    x = cupy.zeros(6, np.float32)
    with pytest.raises(mtl.ArgumentError, match="its elements are not float32"):
        lib.add(x, torch.zeros(6, dtype=torch.int32, device="cuda"), threads=6)
    with pytest.raises(mtl.ArgumentError, match="not contiguous"):
        lib.add(x, torch.zeros(6, 2, device="cuda")[:, 0], threads=6)
    with pytest.raises(mtl.ArgumentError, match="grad"):
        lib.add(x, torch.zeros(6, device="cuda", requires_grad=True), threads=6)
    on_cpu = mtl.library(TEXT, device="cpu")
    for value in (torch.zeros(6, device="cuda"), x):
        with pytest.raises(mtl.ArgumentError, match="not in host memory but on cuda:0"):
            on_cpu.add(value, value, threads=6)
    with pytest.raises((BufferError, RuntimeError, ValueError)):
        np.from_dlpack(mtl.Buffer(6, device="cuda"))
    with pytest.raises(ValueError, match="stream 0 is ambiguous"):
        mtl.Buffer(6, device="cuda").__dlpack__(stream=0)


# -- compat.torch


def test_shaders_on_tensors(torch):
    lib = compile_shader(TEXT)
    x, y = torch.zeros(8, device="cuda"), torch.arange(8.0, device="cuda")
    assert lib.add(x[4:], y) is None
    assert x.tolist() == [0, 0, 0, 0, 0, 1, 2, 3]
    lib.add(x, y.requires_grad_(), threads=8, group_size=4)
    assert x.tolist() == [0, 1, 2, 3, 4, 6, 8, 10]
    z = torch.ones(10, dtype=torch.bfloat16, device="cuda")
    lib.add_bfloats(z, z)
    assert z.tolist() == [2.0] * 10
    square = torch.zeros(4, 4, device="cuda")
    lib.add(square.t()[1:], y, threads=3)  # the memory as it lies
    assert square.view(-1).tolist() == [0, 0, 1, 2] + [0] * 12
    on_cpu = torch.zeros(4)
    lib.add(on_cpu, on_cpu + 1)
    assert on_cpu.tolist() == [1] * 4


def test_shaders_are_in_turn_on_any_stream(torch):
    lib = compile_shader(TEXT)
    with torch.cuda.stream(torch.cuda.Stream()):
        x, y = torch.zeros(MANY, device="cuda"), torch.ones(MANY, device="cuda")
        Torch(torch).late_ones(x)
        lib.add(x, y)
        lib.late(x.clone(), STEPS)
        assert set((x + 0).tolist()) == {2}


def test_shaders_report_errors_of_their_own(torch):
    headers = os.path.join(os.path.dirname(torch.__file__), "include", "c10", "metal", "error.h")
    if not os.path.exists(headers):
        absent(f"torch {torch.__version__} has no c10/metal/error.h")
    lib = compile_shader("""
    #include <c10/metal/error.h>
    kernel void check(device int* x, device c10::metal::ErrorMessages* errors,
                      uint i [[thread_position_in_grid]])
    { if (x[i] < 0) { TORCH_REPORT_ERROR(errors, "negative at ", long(i)); } }
    """)
    x = torch.arange(10, dtype=torch.int32, device="cuda")
    lib.check(x, error_buf_idx=1)
    with pytest.raises(RuntimeError, match="negative at 7"):
        lib.check(torch.where(x == 7, -1, x), error_buf_idx=1)
