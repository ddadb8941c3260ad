"""Memory of a GPU that other libraries have, and ours for them: on a GPU that is not one.

The device is the CPU with the manners of a card, so that its addresses can be looked at. What
libraries really do is in tests/backends/test_cuda_exchange.py, which expects a GPU.
"""

import ctypes
import gc
import sys
import types
import weakref
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.cuda.runtime.exchange import DEFAULT_STREAM, CudaExchange
from metalloid.runtime.devices import registry
from metalloid.runtime.interop.dlpack import make_capsule, read_capsule
from metalloid.runtime.interop.strided import Imported

sys.path.insert(0, str(Path(__file__).parent.parent))
from own_memory_device import OwnMemoryDevice

OURS, THEIRS = 77, 1234  # streams


class Exchange(CudaExchange):
    """Records which stream waits for which."""

    dlpack_device, stream_handle = (2, 0), OURS

    def __init__(self, device):
        self._device, self.orders = device, []

    def number_of_device(self, address):
        return 0

    def follow(self, stream):
        self.orders.append(("we follow", stream))

    def hand_over(self, stream):
        self._device.synchronize()
        self.orders.append(("follows us", stream))


class Gpu(OwnMemoryDevice):
    name = "cuda:0"

    def __init__(self):
        super().__init__()
        self.exchange = Exchange(self)

    def _check(self, address, nbytes):
        pass  # others' memory is not in an allocation


@pytest.fixture
def gpu(monkeypatch):
    device = Gpu()
    opened = {**registry._open, "cuda:0": device, registry._DEFAULT: mtl.Device("cpu")}
    monkeypatch.setattr(registry, "_open", opened)
    with mtl.config.scope(device="cpu"):
        yield device


class Theirs:
    """An array of a library that has its memory on a GPU."""

    def __init__(self, array, number=0):
        self.memory, self.number = array, number
        self.asked = []

    def __dlpack_device__(self):
        return (2, self.number)


class ByDlpack(Theirs):
    def __dlpack__(self, *, stream=None):
        self.asked.append(stream)
        array = self.memory
        return make_capsule(
            self, array.ctypes.data, array.dtype, array.shape, array.strides, (2, self.number)
        )


class ByInterface(Theirs):
    def __init__(self, array, **more):
        super().__init__(array)
        self.more = more

    @property
    def __cuda_array_interface__(self):
        array = self.memory
        return {
            "version": 3,
            "shape": array.shape,
            "strides": None if array.flags.c_contiguous else array.strides,
            "typestr": array.dtype.str,
            "data": (array.ctypes.data, not array.flags.writeable),
            "stream": THEIRS,
        } | self.more


TEXT = """
#include <metal_stdlib>
using namespace metal;
kernel void add(device float* x, device const float* y, uint i [[thread_position_in_grid]])
{ x[i] += y[i]; }
kernel void grey(texture2d<float, access::read_write> image, uint2 i [[thread_position_in_grid]])
{ image.write(image.read(i) * 2, i); }
"""


def numbers(count=6):
    return np.arange(count, dtype=np.float32)


def test_kernels_work_in_place_and_in_turn(gpu):
    lib = mtl.library(TEXT, device=gpu)
    x, y = ByInterface(numbers()), ByDlpack(numbers())
    lib.add(x, y, threads=6)
    assert x.memory.tolist() == [0, 2, 4, 6, 8, 10]
    assert y.asked == [OURS]  # their stream lets ours wait
    assert gpu.exchange.orders == [("we follow", THEIRS), ("follows us", THEIRS)]


def test_on_the_default_stream_nobody_has_to_be_told(gpu):
    lib = mtl.library(TEXT, device=gpu)
    for version in ({"stream": DEFAULT_STREAM}, {"stream": None}, {"version": 2, "stream": None}):
        x = ByInterface(numbers(), **version)
        lib.add(x, x, threads=6)
        gpu.synchronize()
        assert x.memory.tolist() == [0, 2, 4, 6, 8, 10]
    assert gpu.exchange.orders == []


def test_torch_is_asked_for_its_stream(gpu, monkeypatch):
    lib = mtl.library(TEXT, device=gpu)
    current = types.SimpleNamespace(cuda_stream=0)
    cuda = types.SimpleNamespace(current_stream=lambda _: current)
    torch = types.SimpleNamespace(cuda=cuda, Tensor=type("Tensor", (ByDlpack,), {"device": 0}))
    monkeypatch.setitem(sys.modules, "torch", torch)
    x = torch.Tensor(numbers())
    lib.add(x, x, threads=6)
    assert set(x.asked) == {-1}
    assert gpu.exchange.orders == []
    current.cuda_stream = THEIRS
    lib.add(x, x, threads=6)
    assert set(x.asked) == {-1, OURS}
    assert set(gpu.exchange.orders) == {("follows us", THEIRS)}
    gpu.synchronize()
    assert x.memory.tolist() == [0, 4, 8, 12, 16, 20]


def test_a_launch_on_arguments_without_a_stream_has_ended(gpu):
    lib = mtl.library(TEXT, device=gpu)
    x = ByDlpack(numbers())
    assert lib.add(x, x, threads=6).done


@pytest.mark.parametrize("kind", [ByInterface, ByDlpack])
def test_what_does_not_fit_is_refused(gpu, kind):
    lib = mtl.library(TEXT, device=gpu)
    x = mtl.Buffer(numbers(), device=gpu)
    for theirs, why in (
        (kind(np.zeros(6, np.int32)), "its elements are not float32"),
        (kind(np.zeros((6, 2), np.float32)[:, 0]), "the array is not contiguous"),
    ):
        with pytest.raises(mtl.ArgumentError, match=why):
            lib.add(x, theirs, threads=6)
    frozen = numbers()
    frozen.flags.writeable = False
    if kind is ByInterface:
        with pytest.raises(mtl.ArgumentError, match="may write to it and the array is read-only"):
            lib.add(ByInterface(frozen), x, threads=6)
        with pytest.raises(mtl.ArgumentError, match="has a mask"):
            lib.add(ByInterface(numbers(), mask=1), x, threads=6)


def test_another_gpu_is_named(gpu):
    lib = mtl.library(TEXT, device=gpu)
    x = ByDlpack(numbers(), number=99)
    with pytest.raises(mtl.ArgumentError, match=r"the ByDlpack is on GPU 99"):
        lib.add(x, x, threads=6)
    with pytest.raises(BufferError, match="the ByDlpack is on GPU 99"):
        mtl.from_dlpack(x)


def test_on_the_cpu_the_gpu_is_named():
    lib = mtl.library(TEXT, device="cpu")
    x = ByDlpack(numbers())
    with pytest.raises(mtl.ArgumentError, match="the ByDlpack is not in host memory but on cuda:0"):
        lib.add(x, x, threads=6)


def test_textures_and_metal_kernels(gpu):
    lib = mtl.library(TEXT, device=gpu)
    image = ByInterface(numbers(24).reshape(2, 3, 4))
    lib.grey(image, threads=(3, 2))
    assert image.memory.ravel().tolist() == [2 * n for n in range(24)]
    kernel = mtl.metal_kernel("twice", ["x"], ["y"], "uint i = thread_position_in_grid.x; "
                              "y[i] = x[i] * x_shape[0];")  # fmt: skip
    (y,) = kernel(inputs=[ByDlpack(numbers())], grid=6, output_shapes=[(6,)],
                  output_dtypes=[np.float32], device=gpu)  # fmt: skip
    assert y.tolist() == [0, 6, 12, 18, 24, 30]


def test_builders(gpu):
    multiply = mtl.ElementwiseKernel("T x, T y", "T z", "z = x * y", "multiply_theirs")
    x, y = ByDlpack(numbers()), ByInterface(numbers())
    with mtl.config.scope(device="cuda:0"):
        z = multiply(x, y)
        assert isinstance(z, mtl.Buffer)
        assert z.device is gpu
        assert np.asarray(z).tolist() == [0, 1, 4, 9, 16, 25]
        assert multiply(x, 2, y) is y
        gpu.synchronize()
    assert y.memory.tolist() == [0, 2, 4, 6, 8, 10]
    with (
        mtl.config.scope(device="cuda:0"),
        pytest.raises(mtl.ArgumentError, match=r"'x' is .*, which is not contiguous"),
    ):
        multiply(ByInterface(numbers()[::2]), 2)


# -- arrays


@pytest.mark.parametrize("kind", [ByInterface, ByDlpack])
def test_arrays_share_or_copy(gpu, kind):
    theirs = kind(numbers(24).reshape(2, 3, 4)[:, ::2, ::-2])
    expected = theirs.memory * 2
    shared = [mtl.from_dlpack(theirs), mtl.asarray(theirs, copy=False, device=gpu)]
    copied = [mtl.asarray(theirs), mtl.from_dlpack(theirs, copy=True)]
    assert all(x.device is gpu for x in (*shared, *copied))
    doubled = [x * 2 for x in (*shared, *copied)]
    mtl.eval(doubled)
    theirs.memory[...] = 1
    for x in doubled:
        np.testing.assert_array_equal(np.asarray(x), expected)
    assert {float(x.sum()) for x in shared} == {8}
    assert {float(x.sum()) for x in copied} == {expected.sum() / 2}


def test_arrays_go_where_they_are_asked_to(gpu):
    theirs = ByDlpack(numbers())
    there = mtl.asarray(theirs, device="cpu", dtype=mtl.int32)
    assert there.device is mtl.Device("cpu")
    assert there.tolist() == [0, 1, 2, 3, 4, 5]
    for options in ({"device": "cpu"}, {"dtype": mtl.int32}):
        with pytest.raises(ValueError, match="requires a copy"):
            mtl.asarray(theirs, copy=False, **options)


def test_the_memory_of_others_lives_as_long_as_the_array(gpu):
    theirs = ByDlpack(numbers())
    seen = weakref.ref(theirs)
    view = mtl.from_dlpack(theirs)[2:]
    del theirs
    gc.collect()
    assert view.tolist() == [2, 3, 4, 5]
    del view
    gc.collect()
    assert seen() is None


def test_a_launch_gives_the_memory_of_others_back_when_it_has_ended(gpu):
    lib = mtl.library(TEXT, device=gpu)
    theirs = ByInterface(numbers())
    seen = weakref.ref(theirs)
    gc.disable()
    try:
        event = lib.add(theirs, theirs, threads=6)
        event.wait()
        del theirs, event
        assert seen() is None
    finally:
        gc.enable()


# -- ours for others


def consumed(capsule):
    """The values that a consumer would see, and the tensor."""
    tensor = read_capsule(capsule, None)
    raw = ctypes.string_at(tensor.address, tensor.reach[1])
    return np.frombuffer(raw, tensor.dtype).reshape(tensor.shape), tensor


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.int8, np.uint64, np.bool_, np.complex64, "bfloat16"]
)
def test_buffers_say_where_and_what_they_are(gpu, dtype):
    array = np.arange(6).reshape(2, 3).astype(np.dtype(getattr(ml_dtypes, str(dtype), dtype)))
    buffer = mtl.Buffer(array, device=gpu)
    assert buffer.__dlpack_device__() == (2, 0)
    seen, tensor = consumed(buffer.__dlpack__(stream=THEIRS))
    assert tensor.address == buffer.address
    assert seen.dtype == array.dtype
    np.testing.assert_array_equal(seen, array)
    assert gpu.exchange.orders == [("follows us", THEIRS)]
    interface = buffer.__cuda_array_interface__
    assert interface["data"] == (buffer.address, False)
    assert (interface["shape"], interface["strides"]) == ((2, 3), None)
    assert interface["stream"] == OURS
    assert np.dtype(interface["typestr"]).itemsize == array.itemsize


def test_other_libraries_take_such_capsules():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    owner = ByDlpack(numbers(6).reshape(2, 3).astype(ml_dtypes.bfloat16))
    seen, array = weakref.ref(owner), owner.memory
    capsule = make_capsule(owner, array.ctypes.data, array.dtype, (3, 2), (2, 6), (1, 0))
    del owner, array
    tensor = torch.from_dlpack(capsule)
    assert tensor.dtype is torch.bfloat16
    assert tensor.tolist() == [[0, 3], [1, 4], [2, 5]]
    del capsule
    gc.collect()
    assert seen() is not None
    del tensor
    gc.collect()
    assert seen() is None


def test_streams_that_consumers_name(gpu):
    buffer = mtl.Buffer(numbers(), device=gpu)
    buffer.__dlpack__()
    buffer.__dlpack__(stream=2)
    buffer.__dlpack__(stream=-1)
    assert gpu.exchange.orders == [("follows us", DEFAULT_STREAM), ("follows us", 2)]
    with pytest.raises(ValueError, match="stream 0 is ambiguous"):
        buffer.__dlpack__(stream=0)


def test_a_capsule_retains_the_memory(gpu):
    x = mtl.asarray(numbers(1000), device=gpu) + 1
    capsule = x.__dlpack__(max_version=(1, 0))
    memory = weakref.ref(x._node.memory)
    del x
    gc.collect()
    others = [mtl.asarray(np.zeros(1000, np.float32), device=gpu) + k for k in range(5)]
    mtl.eval(others)
    seen, _ = consumed(capsule)
    np.testing.assert_array_equal(seen, numbers(1000) + 1)
    del capsule, _
    gc.collect()
    assert memory() is None


def test_the_interface_of_an_array_retains_its_memory(gpu):
    x = mtl.asarray(numbers(), device=gpu) * 2
    address, _ = x.__cuda_array_interface__["data"]
    x[0] = 100  # a new value elsewhere
    others = [mtl.asarray(np.zeros(6, np.float32), device=gpu) + k for k in range(5)]
    mtl.eval(x, others)
    assert np.frombuffer(ctypes.string_at(address, 24), np.float32).tolist() == [0, 2, 4, 6, 8, 10]
    memory = weakref.ref(x._node.memory)
    del x
    gc.collect()
    assert memory() is None


def test_arrays_say_their_strides(gpu):
    x = mtl.asarray(numbers(12).reshape(3, 4), device=gpu)
    tensor = read_capsule(x[1:, ::-2].T.__dlpack__(max_version=(1, 0)), x)
    assert (tensor.shape, tensor.strides) == ((2, 2), (-8, 16))
    assert ctypes.c_float.from_address(tensor.address).value == 7
    assert read_capsule(x.__dlpack__(copy=True), x).address != tensor.address
    assert np.from_dlpack(x, device="cpu").tolist() == numbers(12).reshape(3, 4).tolist()
    with pytest.raises(BufferError, match="takes a copy"):
        x.__dlpack__(dl_device=(1, 0), copy=False)


def test_consumers_cannot_change_arrays_of_a_gpu(gpu):
    x = mtl.asarray(numbers(), device=gpu)
    address = x.__cuda_array_interface__["data"][0]
    shared = read_capsule(x.__dlpack__(max_version=(1, 0)), x)
    assert (shared.address, shared.read_only) == (address, True)
    # An unversioned capsule cannot say that.
    for options in ({}, {"copy": True, "max_version": (1, 0)}):
        copied = read_capsule(x.__dlpack__(**options), x)
        assert (copied.address == address, copied.read_only) == (False, False)
    writeable = read_capsule(x.__dlpack__(copy=False), x)
    assert not writeable.read_only  # x has moved, as the capsules before share its memory
    assert writeable.address != address
    assert read_capsule(x.__dlpack__(copy=False), x).address == writeable.address


def test_expressions_on_memory_of_others_retain_their_values(gpu):
    theirs = ByDlpack(numbers())
    x = mtl.from_dlpack(theirs)
    doubled, view = x * 2, x[1:]
    x[0] = 100
    theirs.memory[...] = 7
    assert doubled.tolist() == [0, 2, 4, 6, 8, 10]
    assert view.tolist() == [7] * 5
    assert x.tolist() == [100, 1, 2, 3, 4, 5]


def test_a_launch_does_not_write_to_the_memory_of_others_through_an_array(gpu):
    lib = mtl.library(TEXT, device=gpu)
    theirs = ByDlpack(numbers())
    x = mtl.from_dlpack(theirs)
    lib.add(x, mtl.asarray(numbers(), device=gpu), threads=6)
    assert x.tolist() == [0, 2, 4, 6, 8, 10]
    assert theirs.memory.tolist() == [0, 1, 2, 3, 4, 5]


def test_only_gpus_of_nvidia_have_the_interface():
    for value in (mtl.Buffer(4, device="cpu"), mtl.asarray([1], device="cpu")):
        assert not hasattr(value, "__cuda_array_interface__")
        assert value.__dlpack_device__() == (1, 0)
    assert np.from_dlpack(mtl.Buffer(numbers(), device="cpu")).tolist() == [0, 1, 2, 3, 4, 5]


def test_python_and_others_write_to_a_buffer_in_turn(gpu):
    lib = mtl.library(TEXT, device=gpu)
    x, y = (mtl.Buffer(numbers(), device=gpu) for _ in range(2))
    theirs = np.frombuffer((ctypes.c_char * 24).from_address(x.address), np.float32)
    np.asarray(x)[0] = 5  # before anybody has it
    x.__dlpack__(stream=-1)
    assert theirs[0] == 5
    theirs[1] = 6  # without notice
    assert np.asarray(x).tolist() == [5, 6, 2, 3, 4, 5]
    held = np.asarray(x)
    theirs[2] = 7
    lib.add(x, y, threads=6).wait()  # Python has looked, and written nothing
    assert theirs.tolist() == [5, 7, 9, 6, 8, 10]
    assert np.asarray(x).tolist() == theirs.tolist() == held.tolist()
    held[0] = 1
    lib.add(x, y, threads=6).wait()
    assert theirs.tolist() == [1, 8, 11, 9, 12, 15]


def test_contiguity():
    def memory(shape, strides):
        return Imported(4096, np.dtype(np.float32), shape, strides, None)

    assert memory((2, 3), (12, 4)).is_contiguous
    assert memory((2, 1), (4, 999)).is_contiguous
    assert memory((0, 3), (8, 8)).is_contiguous
    assert not memory((2, 3), (4, 8)).is_contiguous
    assert memory((2, 3), (-12, 4)).reach == (12, 12)
    assert memory((), None).reach == (0, 4)
