"""Distributions against SciPy's, with fixed keys: Kolmogorov-Smirnov, chi-square, moments."""

import numpy as np
import pytest
from scipy import stats

import metalloid as mtl

COUNT = 2**18
FLOATS = [mtl.float32, mtl.float64]
#: Such a p-value or a smaller one comes once in a thousand keys; the keys are fixed.
UNLIKELY = 1e-3


def key(n=0):
    return mtl.random.fold_in(mtl.random.key(2026), n)


CONTINUOUS = {
    "uniform": (lambda d: mtl.random.uniform(-2, 5, COUNT, d, key(1)), stats.uniform(-2, 7)),
    "normal": (lambda d: mtl.random.normal(COUNT, d, 3, 2, key(2)), stats.norm(3, 2)),
    "exponential": (lambda d: mtl.random.exponential(COUNT, d, 0.5, key(3)), stats.expon(0, 0.5)),
    "gumbel": (lambda d: mtl.random.gumbel(COUNT, d, -1, 3, key(4)), stats.gumbel_r(-1, 3)),
    "laplace": (lambda d: mtl.random.laplace(COUNT, d, 1, 2, key(5)), stats.laplace(1, 2)),
    "truncated": (
        lambda d: mtl.random.truncated_normal(-0.5, 2, COUNT, d, key(6)),
        stats.truncnorm(-0.5, 2),
    ),
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.sample(3)
def test_the_distribution(name, dtype):
    draw, exact = CONTINUOUS[name]
    x = np.asarray(draw(dtype), np.float64)
    assert stats.kstest(x, exact.cdf).pvalue > UNLIKELY
    # Moments: within five standard errors, of which the exact distribution knows the size.
    mean, variance, _, excess = (float(m) for m in exact.stats("mvsk"))
    assert abs(x.mean() - mean) < 5 * np.sqrt(variance / COUNT)
    assert abs(x.var() - variance) < 5 * variance * np.sqrt((excess + 2) / COUNT)
    # The tails, of which Kolmogorov and Smirnov see little.
    for quantile in (1e-4, 1 - 1e-4):
        expected = COUNT * min(quantile, 1 - quantile)
        edge = exact.ppf(quantile)
        beyond = (x < edge).sum() if quantile < 0.5 else (x > edge).sum()
        assert abs(beyond - expected) < 5 * np.sqrt(expected)


def test_adjacent_numbers_are_independent():
    x = np.asarray(mtl.random.uniform(shape=COUNT, key=key()), np.float64) - 0.5
    for lag in (1, 2, 3, 31, 32, 1024):
        assert abs((x[lag:] * x[:-lag]).mean() * 12) < 5 / np.sqrt(COUNT)
    cells = np.histogram2d(x[::2], x[1::2], 32)[0]
    assert stats.chisquare(cells.ravel()).pvalue > UNLIKELY


@pytest.mark.parametrize(
    ("dtype", "digits"), [("float16", 11), ("bfloat16", 8), ("float32", 24), ("float64", 53)]
)
def test_unit_numbers_have_all_digits(dtype, digits):
    x = mtl.random.uniform(shape=COUNT, dtype=dtype, key=key()).astype(mtl.float64)
    steps = np.asarray(x) * 2.0**digits
    np.testing.assert_array_equal(steps, np.floor(steps))
    assert np.any(steps % 2 == 1)
    assert steps.min() >= 0
    assert steps.max() < 2.0**digits


def test_uniform_is_the_upper_bits():
    source = np.asarray(mtl.random.bits(1000, key=key()))
    x = mtl.random.uniform(shape=1000, key=key())
    np.testing.assert_array_equal(x, (source >> 8) * np.float32(2**-24))


def test_the_end_of_a_range_does_not_belong_to_it():
    high = np.nextafter(np.float32(1), np.float32(2))
    x = np.asarray(mtl.random.uniform(1.0, float(high), 1000, key=key()))
    assert np.all(x == 1)
    x = np.asarray(mtl.random.uniform(2.0**24, 2.0**24 + 2, 1000, key=key()))
    assert set(x) == {2.0**24}
    x = np.asarray(mtl.random.truncated_normal(4.0, 4.5, 10000, key=key()))
    assert x.min() > 4
    assert x.max() < 4.5


def test_parameters_may_be_arrays():
    low = mtl.asarray([[0.0], [10.0]])
    x = np.asarray(mtl.random.uniform(low, low + 1, (2, 500), key=key()))
    assert np.all((x >= [[0], [10]]) & (x < [[1], [11]]))
    loc = mtl.asarray([0.0, 1000.0])
    x = np.asarray(mtl.random.normal((4000, 2), loc=loc, scale=mtl.asarray([1.0, 5.0]), key=key()))
    np.testing.assert_allclose(x.mean(0), [0, 1000], atol=5 * 5 / np.sqrt(4000))
    assert mtl.random.exponential(scale=loc, key=key()).shape == (2,)
    with pytest.raises(ValueError, match=r"of shape \[\(2,\)\] do not broadcast to \(1,\)"):
        mtl.random.normal(1, loc=loc)


@pytest.mark.parametrize("p", [0.0, 0.003, 0.5, 0.9, 1.0])
def test_bernoulli(p):
    hits = int(mtl.random.bernoulli(p, COUNT, key(7)).sum())
    assert stats.binomtest(hits, COUNT, p).pvalue > UNLIKELY
    assert mtl.random.bernoulli(p).dtype == np.bool_


def test_bernoulli_of_an_array():
    p = mtl.asarray([0.0, 1.0])
    np.testing.assert_array_equal(mtl.random.bernoulli(p, (50, 2)), [[False, True]] * 50)


FAMILIES = ["uniform", "normal", "exponential", "gumbel", "laplace"]


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((), "float32"), ((0,), "float32"), ((2, 0, 3), "float64"), ((2, 3, 4), "float16"),
     ((3,), "bfloat16"), ((3, 1), "float64")],
)  # fmt: skip
@pytest.mark.sample(2)
def test_types_and_shapes(shape, dtype):
    for name in FAMILIES:
        x = getattr(mtl.random, name)(shape=shape, dtype=dtype, key=key())
        assert (x.shape, x.dtype) == (shape, mtl.asarray(0, dtype=dtype).dtype)
        assert np.all(np.isfinite(np.asarray(x, np.float64)))


def test_short_floats_are_rounded_once():
    wide = np.asarray(mtl.random.normal(1000, key=key()))
    np.testing.assert_array_equal(mtl.random.normal(1000, "float16", key=key()), wide.astype("f2"))


@pytest.mark.parametrize("name", FAMILIES)
def test_types_are_checked(name):
    with pytest.raises(TypeError, match=rf"\[random.{name}\] expected a float type, got int32"):
        getattr(mtl.random, name)(shape=3, dtype=mtl.int32)
