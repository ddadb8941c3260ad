"""Running sums and products, against NumPy."""

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
