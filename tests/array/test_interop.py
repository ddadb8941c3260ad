"""Arrays among others: NumPy, torch's protocol, pickle, and kernels of one's own in the graph."""

import gc
import pickle
import sys
import weakref

import numpy as np
import pytest

import metalloid as mtl
from metalloid.arrays.ir.linearize import LinearizedGraph
from metalloid.arrays.planning.plan import make_plan
from metalloid.backends.cpu.runtime.device import open_device


@pytest.fixture
def x():
    return mtl.arange(6, dtype=mtl.float32)


def test_numpy_functions_give_arrays(x):
    for result in (np.exp(x), np.ones(6, np.float32) + x, np.concatenate([x, x]), np.sum(x)):
        assert isinstance(result, mtl.Array)
    assert float(np.sum(x)) == 15
    assert float(np.add.reduce(x)) == 15
    np.testing.assert_array_equal(np.asarray(np.ones(6, np.float32) + x), np.arange(6) + 1)


@pytest.mark.needs("the process's memory")
def test_numpy_sees_the_same_memory_and_cannot_write(x):
    mtl.eval(x)
    shown = np.asarray(x)
    assert np.shares_memory(shown, np.asarray(x))
    with pytest.raises(ValueError, match="read-only"):
        shown[0] = 1


@pytest.mark.needs("the process's memory")
def test_dlpack_import_and_export(x):
    assert np.from_dlpack(x).tolist() == [0, 1, 2, 3, 4, 5]
    theirs = np.arange(3.0)
    own = mtl.from_dlpack(theirs)
    theirs[0] = 9
    assert float(own[0]) == 9


@pytest.mark.needs("the process's memory")
def test_asarray_copies_unless_told_not_to():
    theirs = np.arange(3, dtype=np.float32)
    copied, shared = mtl.asarray(theirs), mtl.asarray(theirs, copy=False)
    theirs[0] = 9
    assert float(copied[0]) == 0
    assert float(shared[0]) == 9
    with pytest.raises(ValueError, match="requires a copy"):
        mtl.asarray([1, 2], copy=False)


def test_pickle(x):
    assert np.asarray(pickle.loads(pickle.dumps(x * 2))).tolist() == [0, 2, 4, 6, 8, 10]


def test_conversions_to_python(x):
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert float(x[2]) == 2.0
    assert int(mtl.asarray(3)) == 3
    assert bool(x.sum() > 3)
    assert [float(v) for v in x] == x.tolist()
    assert f"{x.sum():.2f}" == "15.00"
    with pytest.raises(TypeError, match="only an array of one element"):
        bool(x)


def test_a_kernel_given_as_a_body_is_part_of_the_graph(x):
    kernel = mtl.metal_kernel(
        "twice", ["x"], ["y"], "uint i = thread_position_in_grid.x; y[i] = x[i] * 2;"
    )
    (y,) = kernel(inputs=[x + 1], grid=6, output_shapes=[(6,)], output_dtypes=[np.float32])
    assert isinstance(y, mtl.Array)
    graph = make_plan(LinearizedGraph([(y * 10)._node]))
    assert [type(step).__name__ for step in graph.steps] == [
        "FusedKernel", "CallStep", "FusedKernel"]  # fmt: skip
    assert (y * 10).tolist() == [20, 40, 60, 80, 100, 120]


def test_calls_with_other_memory_are_other_calls(x):
    kernel = mtl.metal_kernel(
        "add", ["x", "y"], ["z"], "uint i = thread_position_in_grid.x; z[i] = x[i] + y[i + 2000];"
    )
    first, second = (np.full(3000, value, np.float32) for value in (1, 2))
    options = {"grid": 6, "output_shapes": [(6,)], "output_dtypes": [np.float32]}
    (a,), (b,) = (kernel(inputs=[x, y], **options) for y in (first, second))
    first[:] = 100  # the kernel has not run yet, and sees what was there
    assert (a * 10 + b).tolist() == [12 + 11 * k for k in range(6)]


def test_calls_run_where_they_are_told(x):
    kernel = mtl.metal_kernel(
        "add", ["x", "y"], ["z"], "uint i = thread_position_in_grid.x; z[i] = x[i] + y[i];"
    )
    options = {"grid": 6, "output_shapes": [(6,)], "output_dtypes": [np.float32]}
    other = open_device(0)  # a second device, of the same kind
    (z,) = kernel(inputs=[x, np.ones(6, np.float32)], device=other, **options)
    assert z.device is other
    assert z.tolist() == [1, 2, 3, 4, 5, 6]
    (z,) = kernel(inputs=[np.ones(6, np.float32), x.to_device(other)], **options)
    assert z.device is other
    with pytest.raises(mtl.DeviceUnavailable, match="unknown kind of device 'abacus'"):
        kernel(inputs=[x, x], device="abacus", **options)


def test_a_plan_does_not_retain_arguments_of_calls(x):
    kernel = mtl.metal_kernel(
        "first", ["x", "y"], ["z"], "z[thread_position_in_grid.x] = x[0] + y[0];"
    )
    options = {"grid": 6, "output_shapes": [(6,)], "output_dtypes": [np.float32]}
    (z,) = kernel(inputs=[x, np.ones(1000, np.float32)], **options)
    call, memory = (weakref.ref(thing) for thing in (z._node.args[0].data, z._node.args[0].args[1]))
    assert z.tolist() == [1] * 6
    given = x + 1
    frequencies, operand = mtl.fft.fft(given), weakref.ref(given._node)
    mtl.eval(frequencies)
    del frequencies, given
    gc.collect()
    assert (call(), memory(), operand()) == (None, None, None)


def test_calls_of_one_structure_do_not_take_each_others_functions(x):
    for name in ("fft", "ifft", "fft"):
        got = getattr(mtl.fft, name)(x, norm="ortho")
        np.testing.assert_allclose(got, getattr(np.fft, name)(x, norm="ortho"), atol=2e-6)


def test_calls_that_do_not_fit_are_refused_at_once(x):
    kernel = mtl.metal_kernel("twice", ["x"], ["y"], "y[0] = x[0];")
    with pytest.raises(mtl.ArgumentError, match="output_shapes expects a list of 1"):
        kernel(inputs=[x], grid=1, output_shapes=[], output_dtypes=[np.float32])


def test_builders_return_arrays(x):
    multiply = mtl.ElementwiseKernel("T x, T y", "T z", "z = x * y", "multiply_elements")
    total = mtl.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
    y = multiply(x, x + 1)
    assert isinstance(y, mtl.Array)
    assert y.tolist() == [0, 2, 6, 12, 20, 30]
    assert float(total(x)) == 15


def test_kernels_write_into_memory_that_nobody_else_sees(x):
    library = mtl.library(
        "kernel void add_one(device float *x, uint i [[thread_position_in_grid]]) { x[i] += 1; }"
    )
    before, view = x + 0, x[1:]
    library.add_one(x, threads=6)
    assert x.tolist() == [1, 2, 3, 4, 5, 6]
    assert before.tolist() == [0, 1, 2, 3, 4, 5]
    assert view.tolist() == [1, 2, 3, 4, 5]


def test_kernels_read_copies_of_views_until_they_have_run():
    """No later argument of the launch may get the memory of such a copy."""
    lib = mtl.library("""
kernel void add(device const float *x, device const float *y, device float *z,
                uint i [[thread_position_in_grid]]) { z[i] = x[i] + y[i]; }""")
    base = np.arange(2048, dtype=np.float32)
    x, y = mtl.asarray(base)[::2], mtl.broadcast_to(mtl.asarray([0.5], dtype=mtl.float32), (1024,))
    z = mtl.zeros(1024, dtype=mtl.float32)
    shared = z + 0
    other = shared[:]
    lib.add(x, y, z, threads=1024)
    lib.add(y, x, shared, threads=1024)
    np.testing.assert_array_equal(z, base[::2] + 0.5)
    np.testing.assert_array_equal(shared, base[::2] + 0.5)
    np.testing.assert_array_equal(other, np.zeros(1024))


def test_kernels_check_the_type_of_arrays(x):
    library = mtl.library(
        "kernel void add_one(device int *x, uint i [[thread_position_in_grid]]) { x[i] += 1; }"
    )
    with pytest.raises(mtl.ArgumentError, match="its elements are not int32"):
        library.add_one(x, threads=6)


def test_array_is_the_function_that_users_of_numpy_and_mlx_know():
    assert mtl.array([1, 2]).tolist() == [1, 2]


def test_the_buffer_protocol():
    x = mtl.reshape(mtl.arange(6, dtype=mtl.int16), (2, 3))
    view = memoryview(x.T + 1)
    assert (view.format, view.shape, view.readonly) == ("h", (3, 2), True)
    assert view.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert bytes(mtl.asarray([1, 2], dtype=mtl.uint8)) == b"\x01\x02"


@pytest.mark.parametrize("asarray", [mtl.asarray, mtl.numpy.asarray])
@pytest.mark.parametrize("dtype", "?bBhHiIlLefdFD")
def test_buffers_are_what_numpy_exports(dtype, asarray):
    values = np.arange(24).reshape(2, 3, 4).astype(dtype)
    x = asarray(values)
    for view in (slice(None), (1,), (slice(None), slice(1, 3), slice(None, None, 2)), (1, 2, 3)):
        buffer, expected = memoryview(x[view]), memoryview(values[view])
        assert buffer.format == expected.format
        assert (buffer.shape, buffer.itemsize) == (expected.shape, expected.itemsize)
        assert (buffer.ndim, buffer.nbytes, buffer.readonly) == (
            expected.ndim,
            expected.nbytes,
            True,
        )
        np.testing.assert_array_equal(np.asarray(buffer), values[view], strict=True)


@pytest.mark.needs("the CPU")
@pytest.mark.parametrize("asarray", [mtl.asarray, mtl.numpy.asarray])
def test_numpy_reads_arrays_without_calls_of_python(asarray):
    x, called = asarray([1.0, 2.0]) + 1, []
    mtl.eval(x)
    sys.setprofile(lambda frame, event, arg: called.append(event))
    values = np.asarray(x)
    sys.setprofile(None)
    assert values.tolist() == [2, 3]
    assert "call" not in called


def test_buffers_hold_their_memory_and_not_the_array():
    x = mtl.arange(5, dtype=mtl.int32) + 1
    view = memoryview(x)
    x[:] = 7
    others = [mtl.arange(5, dtype=mtl.int32) * k for k in range(4)]
    mtl.eval(x, *others)
    del x, others
    assert view.tolist() == [1, 2, 3, 4, 5]


@pytest.mark.needs("the CPU")
def test_asarray_converts_arrays_to_float64():  # which NumPy's types call equal to None
    assert mtl.asarray(mtl.arange(3), np.float64).dtype == "float64"
    with pytest.raises(ValueError, match="int64 as float64 requires a copy"):
        mtl.asarray(mtl.arange(3), np.float64, copy=False)
