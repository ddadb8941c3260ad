"""Evenly spaced numbers are NumPy's to the last bit, whether NumPy or a kernel computes them."""

import numpy
import pytest

import metalloid.numpy as np

FEW, MANY = 5, 20_000  # MANY are computed by a kernel
TYPES = (None, "float16", "float32", "float64", "int8", "int32", "uint64", "complex64")


def same(x, y):
    """Whether all bits agree, but for those of a NaN, which differ between processors."""
    y = numpy.asarray(y)
    if x.dtype != y.dtype or not numpy.array_equal(x, y, equal_nan=True):
        return False
    numbers = ~numpy.isnan(x)
    return x[numbers].tobytes() == y[numbers].tobytes()


@pytest.mark.parametrize("size", [1, 2, FEW, MANY])
@pytest.mark.parametrize("step", [0.1, 0.3, 1.0, -0.75, 3, 1e13])
@pytest.mark.parametrize("start", [0, -0.0, 1.0, 0.7, -3.25, 123_457, 7.1e15])
def test_arange(start, step, size):
    stop = start + size * step
    low, high = min(start, stop), max(start, stop)
    for dtype in TYPES:
        if numpy.dtype(dtype).kind in "iu":
            limits = numpy.iinfo(dtype)
            if low < limits.min or high + abs(step) > limits.max:
                continue
        with numpy.errstate(all="ignore"):  # half precision may overflow
            expected = numpy.arange(start, stop, step, dtype)
        assert same(expected, np.arange(start, stop, step, dtype)), dtype


@pytest.mark.parametrize("size", [0, 1, 2, FEW, MANY])
@pytest.mark.parametrize("endpoint", [True, False])
def test_linspace(size, endpoint):
    for start, stop in ((0, 1), (0.1, -3.3), (2, 2), (1e-320, 3)):
        for dtype in (None, "float16", "float32", "int32"):
            expected = numpy.linspace(start, stop, size, endpoint, dtype=dtype)
            assert same(expected, np.linspace(start, stop, size, endpoint, dtype=dtype))


@pytest.mark.parametrize("size", [0, 1, 2, FEW, MANY])
@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("limits", [(1, 1000), (-5.0, -0.1), ([1.0, 2.0], 3.0), (1j, 2)])
def test_geometric_sequences(limits, endpoint, size):
    expected = numpy.geomspace(*limits, size, endpoint)
    result = numpy.asarray(np.geomspace(*limits, size, endpoint))
    assert result.dtype == expected.dtype
    numpy.testing.assert_allclose(result, expected, rtol=4e-15)
    if not numpy.iscomplexobj(expected):
        expected = numpy.logspace(*limits, size, endpoint, base=1.5)
        result = numpy.asarray(np.logspace(*limits, size, endpoint, base=1.5))
        numpy.testing.assert_allclose(result, expected, rtol=4e-15)
