"""erf and erfinv against SciPy and mpmath, in units in the last place."""

import re

import mpmath
import numpy as np
import pytest
import scipy.special

import metalloid as mtl
from metalloid.arrays.ops import OPS

RNG = np.random.default_rng(0)
WIDE = np.concatenate([
    RNG.normal(size=200_000) * 1.5, 10.0 ** RNG.uniform(-37, 1, 100_000),
    np.linspace(0.99, 1.01, 50_001),
])  # fmt: skip
WITHIN = np.concatenate([
    RNG.uniform(-1, 1, 200_000), 1 - 10.0 ** RNG.uniform(-7.2, 0, 100_000),
    10.0 ** RNG.uniform(-37, 0, 100_000),
])  # fmt: skip


def ulps(found, exact):
    """Distances in units in the last place of what was found."""
    spacing = np.spacing(np.abs(found)).astype(np.float64)
    return np.abs(np.asarray(found, np.float64) - exact) / spacing


@pytest.mark.parametrize(("name", "x"), [("erf", WIDE), ("erfinv", WITHIN)])
def test_floats(name, x):
    x = x.astype(np.float32)
    x = x[np.abs(x) != 1]
    found = np.asarray(getattr(mtl, name)(mtl.asarray(x)))
    exact = getattr(scipy.special, name)(x.astype(np.float64))
    assert ulps(found, exact).max() <= OPS[name].bound


@pytest.mark.parametrize(("name", "bound"), [("erf", 1), ("erfinv", 4)])
def test_doubles(name, bound):
    x = (WIDE if name == "erf" else WITHIN)[::997]
    if name == "erfinv":
        x = np.concatenate([x, 1 - 2.0 ** -np.arange(2, 54), 2.0 ** -np.arange(1, 54) - 1])
    found = np.asarray(getattr(mtl, name)(mtl.asarray(x)))
    with mpmath.workdps(40):
        for at, value in zip(x.tolist(), found, strict=True):
            exact = getattr(mpmath, name)(at)
            assert abs(mpmath.mpf(float(value)) - exact) <= bound * np.spacing(abs(value)), at


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_limits(dtype):
    x = mtl.asarray([-np.inf, -0.0, 0.0, np.inf, np.nan], dtype=dtype)
    np.testing.assert_array_equal(mtl.erf(x), [-1, -0.0, 0, 1, np.nan])
    assert np.signbit(np.asarray(mtl.erf(x)))[1]
    x = mtl.asarray([-1.5, -1, -0.0, 1, 2, np.nan], dtype=dtype)
    np.testing.assert_array_equal(mtl.erfinv(x), [np.nan, -np.inf, -0.0, np.inf, np.nan, np.nan])
    assert np.signbit(np.asarray(mtl.erfinv(x)))[2]


@pytest.mark.parametrize("name", ["sin", "tanh", "erf"])  # ours, an intrinsic, and a function of C
def test_functions_of_doubles_are_vector_code(name):
    x = np.linspace(-4, 4, 1000)
    y = getattr(mtl, name)(mtl.asarray(x))
    text = y.msl()
    (kernel_name,) = re.findall(r"kernel void (\w+)", text)
    kernel = mtl.library(text)[kernel_name]
    out = np.zeros(1000)
    kernel(x, out, bytes(8), threads=1000)  # the elements begin at 0
    if mtl.config.cpu_engine == "simd":
        assert kernel.engine.startswith("simd")
    assert np.array_equal(out, np.asarray(y))


@pytest.mark.parametrize(
    ("name", "exact", "within"),
    [("exp", mpmath.exp, 709), ("exp2", lambda x: mpmath.power(2, x), 1023),
     ("sin", mpmath.sin, 1e6), ("cos", mpmath.cos, 1e6), ("tan", mpmath.tan, 1e6)],
)  # fmt: skip
def test_doubles_are_within_their_bounds(name, exact, within):
    scales = 10.0 ** RNG.uniform(-6, 0, 3000)
    near_quarters = np.pi / 2 * np.arange(-1000, 1000)  # where the rest of the angle is tiny
    x = np.concatenate([RNG.uniform(-within, within, 3000) * scales, near_quarters, [0.0, -0.0]])
    x = x[np.abs(x) <= within]
    found = np.asarray(getattr(mtl, name)(mtl.asarray(x)))
    with mpmath.workprec(200):
        errors = [
            float(abs(mpmath.mpf(float(y)) - exact(mpmath.mpf(float(value)))) / np.spacing(abs(y)))
            for value, y in zip(x, found, strict=True)
        ]
    assert max(errors) <= {"exp": 0.85, "exp2": 0.85, "tan": 1.9}.get(name, 0.75)
    assert np.signbit(found[x == 0]).tolist() == np.signbit(getattr(np, name)(x[x == 0])).tolist()
