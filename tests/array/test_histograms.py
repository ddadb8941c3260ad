"""Counts, by kernels and by NumPy, against NumPy's."""

import numpy as np
import pytest

import metalloid as mtl


@pytest.fixture(autouse=True, params=["kernels", "host"])
def counting(request):
    with mtl.config.scope(sorting=request.param):
        yield


def numbers(dtype, count):
    return (np.random.default_rng(count).standard_normal(count) * 50).astype(dtype)


@pytest.mark.parametrize("dtype", ["uint8", pytest.param("int64", marks=pytest.mark.slow)])
@pytest.mark.parametrize("minlength", [pytest.param(0, marks=pytest.mark.slow), 5000])
def test_bincount(dtype, minlength):
    for count in (0, 1, 1000, 70_000):
        x = np.random.default_rng(1).integers(0, 100, count).astype(dtype)
        counts = mtl.bincount(mtl.asarray(x), minlength=minlength)
        exact = np.bincount(x, minlength=minlength)
        assert counts.dtype == exact.dtype
        np.testing.assert_array_equal(np.asarray(counts), exact)


def test_bincount_with_weights():
    x, weights = np.array([1, 0, 4, 1]), np.array([0.5, 2.0, -1.0, 0.25], np.float32)
    sums = mtl.bincount(mtl.asarray(x)[::-1], weights=weights[::-1])
    assert sums.dtype == np.float32
    assert sums.tolist() == [2.0, 0.75, 0.0, 0.0, -1.0]
    assert mtl.bincount(mtl.asarray(x), weights * 1j).tolist()[1] == 0.75j


def test_bincount_refuses():
    with pytest.raises(TypeError, match=r"\[bincount\] expected integers, got float32. Use hist"):
        mtl.bincount(mtl.zeros(3))
    with pytest.raises(ValueError, match=r"\[bincount\] expected non-negative integers, got -2"):
        mtl.bincount(mtl.asarray([1, -2]))
    with pytest.raises(ValueError, match=r"\[bincount\] expected one axis, got shape \(2, 2\)"):
        mtl.bincount(mtl.zeros((2, 2), dtype=mtl.int8))
    with pytest.raises(ValueError, match=r"\[bincount\] got 2 weights for 1 elements"):
        mtl.bincount(mtl.asarray([1]), weights=[1.0, 2.0])


OPTIONS = [
    {}, {"range": (-20, 31.5)}, {"bins": 17, "range": (2, 2)}, {"bins": [-1.5, 0, 0, 2, 40]},
    {"bins": np.array([-3, 5, 9])}, {"bins": 257}, {"bins": 5000},
]  # fmt: skip


def check_histogram(dtype, options):
    for count in (0, 1, 7, 1000, 70_000):
        x = numbers(dtype, count)
        floats = x.astype(np.float32) if dtype == "int16" else x
        exact, edges = np.histogram(floats, **options)
        counts, own_edges = mtl.histogram(mtl.asarray(x), **options)
        assert counts.dtype == exact.dtype
        np.testing.assert_array_equal(np.asarray(own_edges), edges)
        np.testing.assert_array_equal(np.asarray(counts), exact)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.sample(1)
def test_histogram(options):
    check_histogram("float32", options)


def test_histograms_of_other_types():
    check_histogram("float16", {})  # more bins are too narrow for halves, and NumPy refuses them
    check_histogram("int16", {"bins": [-1.5, 0, 0, 2, 40]})


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", ["float64", "int16"])
def test_all_histograms(dtype, options):
    check_histogram(dtype, options)


def test_of_an_image_with_weights_and_density():
    x, weights = numbers("float32", 600).reshape(20, 30), numbers("float64", 600).reshape(20, 30)
    counts, _ = mtl.histogram(mtl.asarray(x).T, 7, weights=mtl.asarray(weights).T)
    np.testing.assert_allclose(np.asarray(counts), np.histogram(x, 7, weights=weights)[0], 1e-12)
    counts, _ = mtl.histogram(mtl.asarray(x), 7, density=True)
    np.testing.assert_allclose(np.asarray(counts), np.histogram(x, 7, density=True)[0], 1e-6)


def test_what_falls_nowhere():
    x = mtl.asarray([np.nan, 1.0, 2.0, np.inf, -np.inf])
    assert mtl.histogram(x, 2, range=(1, 2))[0].tolist() == [1, 1]
    assert mtl.histogram(x, [0.0, 1.0, 2.0])[0].tolist() == [0, 2]
    assert mtl.histogram(x, 3)[0].tolist() == [0, 0, 0]


def test_histogram_refuses():
    x = mtl.zeros(3)
    with pytest.raises(ValueError, match=r"\[histogram\] bins must be at least 1, got 0"):
        mtl.histogram(x, 0)
    with pytest.raises(
        ValueError, match=r"\[histogram\] the edges of bins must ascend, got \[1, 0\]"
    ):
        mtl.histogram(x, [1, 0])
    with pytest.raises(
        ValueError, match=r"\[histogram\] expected at least two edges, got shape \(1"
    ):
        mtl.histogram(x, [1.0])
    with pytest.raises(ValueError, match=r"\[histogram\] range must be finite and ascending"):
        mtl.histogram(x, 3, range=(1, 0))
    with pytest.raises(TypeError, match=r"\[histogram\] complex numbers have no order"):
        mtl.histogram(mtl.zeros(3, dtype=mtl.complex64))
