"""Special functions against SciPy and mpmath, in units in the last place."""

import mpmath
import numpy as np
import pytest
import scipy.special

import metalloid as mtl
from metalloid.arrays.ir.ops import OPS

RNG = np.random.default_rng(0)
WIDE = np.concatenate([
    RNG.normal(size=200_000) * 1.5, 10.0 ** RNG.uniform(-37, 1, 100_000),
    np.linspace(0.99, 1.01, 50_001),
])  # fmt: skip
WITHIN = np.concatenate([
    RNG.uniform(-1, 1, 200_000), 1 - 10.0 ** RNG.uniform(-7.2, 0, 100_000),
    10.0 ** RNG.uniform(-37, 0, 100_000),
])  # fmt: skip


def ulps(result, exact):
    """Distances in units in the last place of the result."""
    spacing = np.spacing(np.abs(result)).astype(np.float64)
    return np.abs(np.asarray(result, np.float64) - exact) / spacing


@pytest.mark.parametrize(
    ("name", "x"), [("erf", WIDE), ("erfinv", WITHIN), ("i0", WIDE * 20), ("i1", WIDE * 20)]
)
def test_floats(name, x):
    x = x.astype(np.float32)
    x = x[np.abs(x) != 1]
    result = np.asarray(getattr(mtl, name)(mtl.asarray(x)))
    exact = getattr(scipy.special, name)(x.astype(np.float64))
    is_finite = np.abs(exact) < np.finfo(np.float32).max
    np.testing.assert_array_equal(np.isinf(result), ~is_finite)
    result, exact = result[is_finite], exact[is_finite]
    assert ulps(result, exact).max() <= OPS[name].max_ulp


def test_erfinv_of_doubles():
    x = np.concatenate([WITHIN[::997], 1 - 2.0 ** -np.arange(2, 54), 2.0 ** -np.arange(1, 54) - 1])
    result = np.asarray(mtl.erfinv(mtl.asarray(x)))
    with mpmath.workdps(40):
        for at, value in zip(x.tolist(), result.tolist(), strict=True):
            assert abs(value - mpmath.erfinv(at)) <= 4 * np.spacing(abs(value)), at


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_limits(dtype):
    x = mtl.asarray([-np.inf, -0.0, 0.0, np.inf, np.nan], dtype=dtype)
    np.testing.assert_array_equal(mtl.erf(x), [-1, -0.0, 0, 1, np.nan])
    assert np.signbit(np.asarray(mtl.erf(x)))[1]
    x = mtl.asarray([-1.5, -1, -0.0, 1, 2, np.nan], dtype=dtype)
    np.testing.assert_array_equal(mtl.erfinv(x), [np.nan, -np.inf, -0.0, np.inf, np.nan, np.nan])
    assert np.signbit(np.asarray(mtl.erfinv(x)))[2]


@pytest.mark.parametrize("name", ["i0", "i1"])
def test_bessel_functions_of_doubles(name):
    x = np.concatenate([WIDE[:300] * 5, [-8.0, 7.999, 8.001, 79.9, 80.1, 690, 713]])
    result = np.asarray(getattr(mtl, name)(mtl.asarray(x)))
    with mpmath.workdps(40):
        for at, value in zip(x.tolist(), result.tolist(), strict=True):
            exact = mpmath.besseli(int(name[1]), at)
            assert abs(value - exact) <= OPS[name].max_ulp * np.spacing(abs(value)), at
