"""Cumulative sums, products, maxima and minima, against NumPy."""

import numpy as np
import pytest

import metalloid as mtl

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "float32", "float64",
                                   "complex64"])  # fmt: skip
@pytest.mark.sample(1, per="dtype")
def test_sums_and_products(dtype, axis):
    x = (RNG.random((7, 300)) * 4 + 0.5).astype(dtype)
    own = mtl.asarray(x)
    wide = np.complex128 if "complex" in dtype else np.float64 if "float" in dtype else None
    got, exact = mtl.cumulative_sum(own, axis=axis), np.cumsum(x, axis=axis, dtype=wide)
    assert got.dtype == (np.dtype(dtype) if wide else exact.dtype)
    np.testing.assert_allclose(np.asarray(got), exact, rtol=1e-3 if dtype == "float16" else 2e-6)
    few = own[:, :5] if axis else own[:5]
    exact = np.cumprod(x[:, :5] if axis else x[:5], axis=axis, dtype=wide)
    got = np.asarray(mtl.cumulative_prod(few, axis=axis))
    np.testing.assert_allclose(got, exact, rtol=1e-3 if dtype == "float16" else 1e-6)


def test_integers_wrap():
    x = mtl.asarray(np.full(3, 2**62, np.int64))
    assert mtl.cumulative_sum(x).tolist() == [2**62, -(2**63), 3 * 2**62 - 2**64]


def test_with_what_it_starts_from():
    assert mtl.cumulative_sum(mtl.asarray([1, 2]), include_initial=True).tolist() == [0, 1, 3]
    assert mtl.cumulative_prod(mtl.asarray([3, 2]), include_initial=True).tolist() == [1, 3, 6]


@pytest.mark.parametrize("n", [10_000, 2**20 + 7])
def test_the_error_grows_slowly(n):
    x = RNG.random(n, np.float32)
    exact = np.cumsum(x, dtype=np.float64)
    got = np.asarray(mtl.cumulative_sum(mtl.asarray(x)))
    assert (abs(got - exact) <= 2 * np.log2(n) * 2**-24 * exact).all()


def test_an_axis_is_needed():
    with pytest.raises(ValueError, match=r"\[cumulative_sum\] an array of shape \(2, 2\) requires"):
        mtl.cumulative_sum(mtl.zeros((2, 2)))


FUNCTIONS = {
    "cumulative_sum": np.add,
    "cumulative_prod": np.multiply,
    "cummax": np.maximum,
    "cummin": np.minimum,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("shape", "axis"), [
    ((40_000,), 0), ((3, 20_001), 1), ((5, 70, 3), 1), ((2, 9, 100), 1), ((4, 100, 33), 0),
])  # fmt: skip
@pytest.mark.sample(2)
def test_chunks_rows_and_columns(name, shape, axis):
    """Rows of several chunks, columns of threads, and axes that are moved to the end."""
    x = RNG.integers(-9, 9, shape).astype(np.int32)
    dtype = {} if name in ("cummax", "cummin") else {"dtype": mtl.int32}
    got = np.asarray(getattr(mtl, name)(mtl.asarray(x), axis=axis, **dtype))
    np.testing.assert_array_equal(got, FUNCTIONS[name].accumulate(x, axis=axis, dtype=np.int32))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.sample(1, per="dtype")
def test_extremes(name, dtype):
    x = RNG.standard_normal((3, 77))
    x = x > 0 if dtype == "bool" else (x * 20).astype(dtype)
    got = getattr(mtl, name)(mtl.asarray(x), axis=1)
    np.testing.assert_array_equal(np.asarray(got), FUNCTIONS[name].accumulate(x, axis=1))
    assert got.dtype == x.dtype


def test_extremes_of_infinities_and_nan():
    x = np.array([-np.inf, 1, np.nan, np.inf], np.float32)
    for name in ("cummax", "cummin"):
        got = np.asarray(getattr(mtl, name)(mtl.asarray(x)))
        np.testing.assert_array_equal(got, FUNCTIONS[name].accumulate(x))


@pytest.mark.parametrize(("dtype", "shape", "axis"), [
    ("complex64", (2, 20_001), 1), ("complex128", (3, 70, 33), 1), ("complex128", (1,), 0),
])  # fmt: skip
def test_complex_numbers(dtype, shape, axis):
    """Chunks of rows, columns, views."""
    x = np.exp(1j * RNG.standard_normal(shape)).astype(dtype)
    own = mtl.asarray(x)[..., ::-1]
    results = mtl.cumulative_sum(own, axis=axis), mtl.cumulative_prod(own, axis=axis)
    assert "host" not in mtl.explain(*results)
    for got, function in zip(results, (np.cumsum, np.cumprod), strict=True):
        exact = function(x[..., ::-1], axis=axis, dtype=np.complex128)
        near = {"rtol": 1e-6, "atol": 1e-3} if x.itemsize == 8 else {"atol": 1e-12}
        np.testing.assert_allclose(np.asarray(got), exact, **near)


def test_complex_numbers_have_no_extremes():
    with pytest.raises(TypeError, match=r"\[cummax\] complex numbers have no order, got complex64"):
        mtl.cummax(mtl.ones(3, dtype=mtl.complex64))


def test_views_are_scanned():
    x = RNG.random((30, 200), np.float32)
    own = mtl.asarray(x)
    views = [(own[::2, 3:], x[::2, 3:]), (own.T, x.T), (own[:, ::-1] * 2, x[:, ::-1] * 2)]
    for view, wide in views:
        got = np.asarray(mtl.cumulative_sum(view, axis=1))
        np.testing.assert_allclose(got, np.cumsum(wide, axis=1, dtype=np.float64), rtol=1e-6)


def test_infinities_and_nan():
    x = np.array([1, np.inf, 2, -1, np.nan, 3], np.float32)
    np.testing.assert_array_equal(np.asarray(mtl.cumulative_sum(mtl.asarray(x))), np.cumsum(x))
    both = np.array([1, np.inf, -np.inf, 2], np.float32)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(
            np.asarray(mtl.cumulative_sum(mtl.asarray(both))), np.cumsum(both)
        )


def test_a_scan_is_launched_with_the_kernels_around_it():
    report = mtl.explain(mtl.exp(mtl.cumulative_sum(mtl.ones(100, device="cpu") * 2)))
    assert report.count("kernel void") == 3
    assert "a function of its own" not in report
