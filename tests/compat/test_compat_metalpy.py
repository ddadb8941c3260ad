"""`compat.metalpy` operation by operation against NumPy in float64, within MetalPy's own tolerances."""

from array import array

import numpy as np
import pytest
from metalpy_operations import OPERATIONS, RNG, X

import metalloid as mtl
from metalloid.compat.metalpy import MetalArray, MetalPy


@pytest.fixture(scope="module")
def gpu():
    return MetalPy()


def given(gpu, x):
    return gpu.array(x.reshape(-1).tolist())


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(gpu, name):
    arrays, more, exact = OPERATIONS[name]
    result = getattr(gpu, name)(*(given(gpu, x) for x in arrays), **more)
    expected = exact(*(x.astype(np.float64) for x in arrays), **more)
    if isinstance(result, MetalArray):
        assert result.typecode == "f"
        result, expected = result.to_list(), np.asarray(expected).reshape(-1)
    # Sums that cancel keep the error of what they are of.
    atol = 1e-6 * (float(np.abs(expected).max()) if name.endswith("_sum") else 1)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=atol)


def test_gather(gpu):
    index = MetalArray(gpu.device, array("I", [5, 0, 999]))
    assert gpu.gather(given(gpu, X), index).to_list() == X[[5, 0, 999]].tolist()


def test_there_are_46_operations_and_51_kernels(gpu):
    assert len(OPERATIONS) + 1 == 46
    assert len(gpu.library) == 51


@pytest.mark.parametrize("length", [1, 2, 255, 256, 257, 100_003])
@pytest.mark.sample(1)
def test_reductions_of_any_length(gpu, length):
    x = RNG.integers(-1000, 1000, length).astype(np.float32)
    a = given(gpu, x)
    assert (gpu.sum(a), gpu.max(a), gpu.min(a)) == (x.sum(), x.max(), x.min())
    index, value = gpu.argmax(a)
    assert value == x.max() == x[index]


def test_where_it_is_not_numpy(gpu):
    assert gpu.argmax(gpu.array([1, 5, 5, 1])) == (2, 5.0)  # the first that the tree meets
    assert gpu.argmax(gpu.array([float("-inf")] * 3)) == (0, float("-inf"))
    assert gpu.round(gpu.array([0.5, 2.5, -0.5])).to_list() == [1.0, 3.0, -1.0]
    assert gpu.max(gpu.array([1.0, float("nan"), 2.0])) == 2.0
    assert gpu.softplus(gpu.array([100.0])).to_list() == [float("inf")]


def test_arrays(gpu):
    assert gpu.array([1, 2]).to_array() == array("f", [1, 2])
    integers = gpu.array(array("I", [1, 2**32 - 1]))
    assert (integers.typecode, integers.length, integers.to_list()) == ("I", 2, [1, 2**32 - 1])
    view = MetalArray(gpu.device, None, length=1, buffer=integers.buffer, typecode="I")
    assert view.to_list() == [1]
    assert gpu.add(gpu.array([]), gpu.array([])).to_list() == []


def test_as_in_the_readme(gpu, capsys):
    a, b = gpu.array([1.0, 2.0, 3.0, 4.0]), gpu.array([5.0, 6.0, 7.0, 8.0])
    assert gpu.add(a, b).to_list() == [6.0, 8.0, 10.0, 12.0]
    relu = gpu.relu(gpu.array([-2.0, -1.0, 0.0, 1.0, 2.0]))
    assert relu.to_list() == [0.0, 0.0, 0.0, 1.0, 2.0]
    assert (gpu.max(a), gpu.sum(a)) == (4.0, 10.0)
    MetalPy()
    assert capsys.readouterr().out.startswith("Using GPU: ")


def test_launchers_take_kernels_by_name(gpu):
    a = gpu.array([1.0, 4.0])
    assert gpu.launcher_1("sqrt_kernel", [a]).to_list() == [1.0, 2.0]
    assert gpu.launcher_9("matmul_kernel", a, a, 1, 1, 2).to_list() == [17.0]
    assert {"sqrt_kernel", "matmul_kernel"} <= set(gpu.kernel_cache)
    with pytest.raises(ValueError, match="Kernel function 'nothing' not found in Metal library"):
        gpu.launcher_12("nothing", "nothing", a)


ERRORS = {
    "a list": (lambda g, a: g.add(a, [1.0]), TypeError, "add() expects MetalArray inputs"),
    "lengths": (lambda g, a: g.add(a, g.array([1.0])), ValueError, "must have equal length"),
    "numpy": (lambda g, a: g.array(np.ones(3)), TypeError, "MetalArray expects list"),
    "typecode": (lambda g, a: g.array(array("d", [1])), TypeError, "only supports array('f')"),
    "nested": (lambda g, a: g.array([[1.0]]), TypeError, ""),
    "no number": (lambda g, a: g.pow(a, np.float32(2)), TypeError, "expects a number"),
    "empty": (lambda g, a: g.sum(g.array([])), ValueError, "cannot reduce an empty array (N=0)"),
    "sizes": (lambda g, a: g.row_sum(a, 3, 3), ValueError, "expects 9 elements of A, got 4"),
    "bounds": (lambda g, a: g.slice(a, 2, 9), ValueError, "bounds 2:9 are not within 4"),
    "bound": (lambda g, a: g.slice(a, 0.0, 1), TypeError, "expects integer bounds"),
    "indices": (lambda g, a: g.gather(a, a), TypeError, "indices of typecode 'I'"),
    "index": (lambda g, a: g.gather(a, g.array(array("I", [4]))), IndexError, "4 is not within 4"),
    "nothing to repeat": (lambda g, a: g.broadcast_add(a, g.array([])), ValueError, "empty"),
    "library": (lambda g, a: MetalPy("no.metallib"), RuntimeError, "Failed to load library"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(gpu, case):
    action, kind, text = ERRORS[case]
    with pytest.raises(kind) as caught:
        action(gpu, gpu.array([1.0, 2.0, 3.0, 4.0]))
    assert text in str(caught.value)


def test_its_kernels_are_portable():
    path = mtl.__path__[0] + "/compat/metalpy/metal_kernels.metal"
    assert len(mtl.library(path=path, portable=True)) == 51
