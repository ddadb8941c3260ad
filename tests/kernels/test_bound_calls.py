"""Calls like an earlier one, whose launch is known: results and errors stay the same."""

import gc
import pickle
import sys

import numpy as np
import pytest

import metalloid as mtl
from metalloid.arrays.interop import numpy_protocols
from metalloid.arrays.ir import native
from metalloid.kernels.bound_calls import BoundCalls

pytestmark = pytest.mark.needs("the CPU")

X = np.arange(12, dtype=np.float32).reshape(3, 4)
SIZES = {"grid": (12, 1, 1), "threadgroup": (4, 1, 1), "output_shapes": [(3, 4)],
         "output_dtypes": [np.float32]}  # fmt: skip


@pytest.fixture
def twice():
    source = "uint i = thread_position_in_grid.x; y[i] = 2 * x[i];"
    return mtl.metal_kernel("twice", ["x"], ["y"], source)


@pytest.fixture
def scaled():
    return mtl.ElementwiseKernel("T x, float a", "T y, T z", "y = a * x; z = -x", "scaled")


def evaluated(values):
    x = mtl.asarray(values) + 0
    mtl.eval(x)
    return x


#: Inputs with values that the call before has not had.
INPUTS = {
    "an array": evaluated,
    "a pending one": lambda values: mtl.asarray(values) * 1,
    "an imported one": lambda values: mtl.asarray(values, copy=False),
    "a transposed one": lambda values: evaluated(values.T.copy()).T,
    "a slice": lambda values: evaluated(np.concatenate([values, values]))[3:],
    "a NumPy array": np.copy,
}


@pytest.mark.parametrize("name", INPUTS)
def test_results(name, twice, scaled):
    for k in range(4):
        values = X + k
        x = INPUTS[name](values) if k else evaluated(values)
        (y,) = twice(inputs=[x], **SIZES)
        np.testing.assert_array_equal(np.asarray(y), 2 * values)
        a, b = scaled(x, 0.5 + k)
        np.testing.assert_array_equal(np.asarray(a), np.float32(0.5 + k) * values)
        np.testing.assert_array_equal(np.asarray(b), -values)
        assert isinstance(a, np.ndarray) == isinstance(y, np.ndarray) == isinstance(x, np.ndarray)


def test_results_without_native_functions(twice, scaled, monkeypatch):
    monkeypatch.setattr(native, "new_node", lambda *values: None)
    monkeypatch.setattr(numpy_protocols, "_fresh_array", lambda: None)
    test_results("an array", twice, scaled)


def test_results_are_new_memory(twice, scaled):
    x = evaluated(X)
    results = [twice(inputs=[x], **SIZES)[0] for _ in range(3)]
    results += [scaled(x, 2.0)[0] for _ in range(3)]
    mtl.eval(results)
    results[0][0, 0] = results[3][0, 0] = 100
    for untouched in (results[1], results[2], results[4], results[5]):
        np.testing.assert_array_equal(np.asarray(untouched), 2 * X)


def test_other_types_and_sizes(twice):
    for dtype in (np.float32, np.int32, np.float16):
        for shape in ((12,), (3, 4), (2, 6)):
            for _ in range(2):
                sizes = SIZES | {"output_shapes": [shape], "output_dtypes": [dtype]}
                (y,) = twice(inputs=[evaluated(X.astype(dtype))], **sizes)
                assert (y.dtype, y.shape) == (dtype, shape)
                assert np.asarray(y).ravel().tolist() == (2 * X).ravel().tolist()


@pytest.mark.parametrize(
    "options",
    [{"grid": (12.0, 1, 1)}, {"output_dtypes": [float]}, {"output_dtypes": np.float32},
     {"output_shapes": [(3, 4), (3, 4)]}, {"output_shapes": (3, 4)},     {"threadgroup": (4.0, 1, 1)}, {"template": [("T", [])]}],
)  # fmt: skip
def test_errors_after_good_calls(options, twice):
    for x in (X, evaluated(X)):
        for _ in range(2):
            mtl.eval(twice(inputs=[x], **SIZES))
        with pytest.raises(mtl.ArgumentError):
            mtl.eval(twice(inputs=[x], **SIZES | options))


def test_a_kernel_runs_when_its_result_is_needed(twice):
    for _ in range(2):
        mtl.eval(twice(inputs=[evaluated(X)], **SIZES))
    x = evaluated(X)
    (y,) = twice(inputs=[x], **SIZES)
    x[0, 0] = 5
    np.testing.assert_array_equal(np.asarray(y), 2 * X)
    broken = mtl.metal_kernel("broken", ["x"], ["y"], "y[0] = undeclared;")
    (z,) = broken(inputs=[x], **SIZES)
    with pytest.raises(mtl.CompileError):
        mtl.eval(z)


def test_two_results_of_one_call():
    source = "uint i = thread_position_in_grid.x; y[i] = x[i] + 1; z[i] = x[i] - 1;"
    kernel = mtl.metal_kernel("both", ["x"], ["y", "z"], source)
    sizes = SIZES | {"output_shapes": [(3, 4)] * 2, "output_dtypes": [np.float32] * 2}
    for k in range(3):
        y, z = kernel(inputs=[evaluated(X + k)], **sizes)
        if k == 1:
            mtl.eval(y, z)
        np.testing.assert_array_equal(np.asarray(z), X + k - 1)
        np.testing.assert_array_equal(np.asarray(y), X + k + 1)


def test_a_pickled_kernel_has_no_calls(scaled):
    scaled(X, 2.0)
    copy = pickle.loads(pickle.dumps(scaled))
    assert isinstance(copy._bound, BoundCalls)
    assert not copy._bound._calls
    np.testing.assert_array_equal(copy(X, 2.0)[0], 2 * X)


def test_many_calls_leak_nothing(twice, scaled):
    x = evaluated(X)

    def work(count):
        for _ in range(count):
            mtl.eval(twice(inputs=[x], **SIZES), scaled(x, 2.0))
        gc.collect()
        counted = x._node, x._node.memory, x.dtype, None
        return [sys.getrefcount(each) for each in counted], sys.getallocatedblocks()

    references, blocks = work(50)
    later_references, later_blocks = work(3000)
    assert all(abs(a - b) < 50 for a, b in zip(later_references, references, strict=True))
    assert later_blocks < blocks + 500
