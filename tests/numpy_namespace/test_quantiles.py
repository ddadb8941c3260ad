"""Quantiles of long rows, which are selected without sorting, against NumPy."""

import numpy as np
import pytest

import metalloid as mtl
import metalloid.numpy as own
from metalloid.arrays.array import Array
from metalloid.arrays.functions.sorting import order_statistics
from metalloid.arrays.library import order_statistics as launches
from metalloid.arrays.library.order_statistics import LONG_ROW

COUNT = LONG_ROW + 1001


def elements(dtype, shape):
    rng = np.random.default_rng(0)
    if np.dtype(dtype).kind != "f":
        return rng.integers(0, 2**63, shape).astype(dtype)
    x = rng.standard_normal(shape).astype(dtype)
    for step, value in ((97, np.nan), (31, -np.inf), (29, np.inf), (5, 0.0), (15, -0.0)):
        x.ravel()[::step] = value
    return x


def check_positions(dtype):
    x = elements(dtype, (2, COUNT))
    positions = np.array([[0, COUNT - 1, 5, 5], [COUNT // 2, COUNT // 2 + 1, 9, COUNT // 5]])
    operands = mtl.asarray(x)._node, mtl.asarray(positions)._node
    selected = np.asarray(Array(order_statistics(*operands, "kernels")))
    np.testing.assert_array_equal(selected, np.take_along_axis(np.sort(x, -1), positions, -1))


def test_positions():
    check_positions("float32")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "int32", "uint64", "float64"])
def test_positions_of_types(dtype):
    check_positions(dtype)


@pytest.mark.slow
def test_threadgroups_of_simt_devices(monkeypatch):
    """Eight simdgroups share the counters; here on the CPU."""
    selection = launches._Selection
    monkeypatch.setattr(launches, "_Selection", lambda *sizes: selection(*sizes[:-1], True))
    check_positions("float32")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "int64"])
@pytest.mark.parametrize("shape", [(COUNT,), (3, COUNT), (5, 7)])
def test_methods(dtype, shape):
    x = elements(dtype, shape) if dtype == "int64" else np.random.default_rng(0).random(shape)
    for method in ("linear", "lower", "higher", "midpoint", "nearest", "hazen", "weibull"):
        for q in (0.3, [0.1, 0.9], [0, 0.25, 0.5, 0.75, 1], np.linspace(0, 1, 30)):
            expected = np.quantile(x, q, axis=-1, method=method)
            result = own.quantile(own.asarray(x), q, axis=-1, method=method)
            assert result.dtype == expected.dtype
            np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:All-NaN")
def test_nan():
    x = np.random.default_rng(0).random((3, COUNT))
    x[0, 7], x[1] = np.nan, np.nan
    for name in ("quantile", "nanquantile"):
        expected = getattr(np, name)(x, [0.2, 0.9], axis=-1)
        result = getattr(own, name)(own.asarray(x), [0.2, 0.9], axis=-1)
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-12)


@pytest.mark.slow
def test_transforms():
    x = np.random.default_rng(0).random((3, COUNT))
    gradient = np.asarray(mtl.grad(own.median)(mtl.asarray(x[0])))
    np.testing.assert_array_equal(np.flatnonzero(gradient), [np.argsort(x[0])[COUNT // 2]])
    batch = mtl.vmap(lambda row: own.quantile(row, 0.3))(mtl.asarray(x))
    np.testing.assert_allclose(np.asarray(batch), np.quantile(x, 0.3, axis=-1))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "int32"])
@pytest.mark.parametrize("kth", [0, -1, COUNT // 2, [5, COUNT - 20, 100], [1, 2, 3, 4, 5], (7, 7)])
def test_partitions(dtype, kth):
    x = elements(dtype, COUNT)
    ordered = np.sort(x)
    indices = np.asarray(own.argpartition(own.array(x), kth))
    values = np.asarray(own.partition(own.array(x), kth))
    np.testing.assert_array_equal(np.sort(indices), np.arange(COUNT))
    np.testing.assert_array_equal(x[indices], values)
    for k in np.atleast_1d(kth) % COUNT:
        assert np.array_equal(values[k], ordered[k], equal_nan=True)
        np.testing.assert_array_equal(np.sort(values[:k]), ordered[:k])
