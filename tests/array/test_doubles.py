"""Functions of 64-bit floats against mpmath, in units in the last place, and bit for bit."""

import math

import hypothesis
import mpmath
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import metalloid as mtl
from metalloid.arrays.ir.ops import OPS
from metalloid.arrays.metal import metal_source

#: The largest errors that we know of, rounded up.
BOUNDS = {
    "exp": 0.8, "exp2": 0.8, "expm1": 1.5, "log": 0.9, "log2": 0.51, "log10": 0.51,
    "log1p": 0.51, "pow": 1, "sin": 0.8, "cos": 0.8, "tan": 1, "asin": 0.8, "acos": 0.75,
    "atan": 0.6, "atan2": 0.75, "hypot": 0.75, "sinh": 0.8, "cosh": 0.7, "tanh": 0.7,
    "asinh": 1.1, "acosh": 0.55, "atanh": 0.65, "erf": 0.9,
}  # fmt: skip
_EXACT = {
    "exp2": lambda x: mpmath.power(2, x),
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "log10": lambda x: mpmath.log(x) / mpmath.log(10),
    "pow": mpmath.power,
}
_ODD = {"expm1", "log1p", "sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh"}
_LARGEST = mpmath.mpf(np.finfo(np.float64).max)
SPECIAL = np.array(
    [0, 1, 0.5, 2, 3, 5e-324, 2.0**-1022, 1e-300, 1e300, 1.5, 710, 745.5, np.inf, np.nan]
)
SPECIAL = np.concatenate([SPECIAL, -SPECIAL])


def _within_domain(name, args):
    """Whether mpmath has a finite real result."""
    x = args[0]
    if not all(math.isfinite(arg) for arg in args):
        return False
    limits = {
        "log": x > 0, "log2": x > 0, "log10": x > 0, "log1p": x > -1, "acosh": x >= 1,
        "asin": abs(x) <= 1, "acos": abs(x) <= 1, "atanh": abs(x) < 1,
        "pow": x > 0 or (x < 0 and args[-1] == int(args[-1])),
        "atan2": x != 0 or args[-1] > 0,
    }  # fmt: skip
    return limits.get(name, True)


def _exact(name, args):
    if name in _ODD and abs(args[0]) < 1e-30:
        return mpmath.mpf(args[0])  # mpmath would take some 2000 bits
    if name in ("exp", "exp2", "expm1", "sinh", "cosh") and abs(args[0]) > 1100:
        args = [math.copysign(1100, args[0])]
    if abs(args[0]) > {"tanh": 100, "erf": 10}.get(name, math.inf):
        return mpmath.mpf(math.copysign(1, args[0]))
    if name == "pow":
        power = args[1] * math.log2(abs(args[0]))
        if abs(power) > 1200:
            sign = -1 if args[0] < 0 and args[1] % 2 else 1
            return sign * mpmath.mpf(2) ** math.copysign(1200, power)
    return (_EXACT.get(name) or getattr(mpmath, name))(*map(mpmath.mpf, args))


def error(name, result, args):
    """In units in the last place; what rounds to infinity is the largest number, and one more."""
    exact = _exact(name, args)
    if math.isinf(result):
        return 0.0 if abs(exact) > _LARGEST else math.inf
    return float(abs(mpmath.mpf(result) - exact) / math.ulp(result))


def check(name, *args):
    args = np.broadcast_arrays(*args)
    result = np.asarray(getattr(mtl, name)(*map(mtl.asarray, args)))
    with np.errstate(all="ignore"):
        numpys = getattr(np, OPS[name].reference or name)(*args) if name != "erf" else None
    worst, at = 0.0, ()
    with mpmath.workprec(250):
        for k, of in enumerate(zip(*(arg.tolist() for arg in args), strict=True)):
            value = float(result[k])
            if _within_domain(name, of):
                assert not math.isnan(value), (name, of)
                worst, at = max((worst, at), (error(name, value, of), of))
            elif numpys is not None:
                np.testing.assert_equal(value, float(numpys[k]), err_msg=f"{name}{of}")
    assert worst <= BOUNDS[name], f"{name}{at} is off by {worst} ulp"
    if numpys is not None:
        zero = (result == 0) & (numpys == 0)
        np.testing.assert_array_equal(np.signbit(result[zero]), np.signbit(numpys[zero]))


def _operands(name, rng, count):
    """Numbers of each size, numbers where a function does most, and special ones."""
    sizes = 2.0 ** rng.uniform(-1074, 1024, count)
    near_one = 1 + rng.choice([-1, 1], count) * 2.0 ** rng.uniform(-53, -1, count)
    moderate = rng.normal(0, 1, count) * rng.choice([1, 10, 300], count)
    quarters = np.pi / 2 * rng.integers(1, 10**6, count)
    values = np.concatenate([sizes, near_one, moderate, quarters, 2.0 ** rng.uniform(-5, 5, count)])
    values *= rng.choice([-1, 1], len(values))
    if OPS[name].operands == 1:
        return (np.concatenate([values, SPECIAL]),)
    pairs = rng.choice(values, (2, len(values)))
    if name == "pow":  # results that are numbers
        powers = rng.uniform(-1100, 1100, len(values)) / np.log2(np.abs(values))
        pairs = np.concatenate([pairs[:, ::5], [np.abs(values), powers]], axis=1)
    across = np.repeat(SPECIAL, len(SPECIAL)), np.tile(SPECIAL, len(SPECIAL))
    return tuple(np.concatenate(each) for each in zip(pairs, across, strict=True))


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.sample(3)
def test_bounds(name, rng):
    check(name, *_operands(name, rng, 150))


@pytest.mark.slow
@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_of_many(name, rng):
    check(name, *_operands(name, rng, 10_000))


@hypothesis.settings(max_examples=40)
@hypothesis.given(
    st.sampled_from(sorted(BOUNDS)), hnp.arrays(np.uint64, (2, 16), elements=st.integers(0, 2**64 - 1))
)  # fmt: skip
def test_any_bits(name, bits):
    check(name, *bits.view(np.float64)[: OPS[name].operands])


def test_huge_angles_near_quarters():
    # Of all doubles the nearest to a multiple of pi/2, and other powers of two with hard rests.
    hard = np.array([6381956970095103 * 2.0**797, 2.0**1023, np.finfo(float).max, 2.0**30, 1e22])
    for name in ("sin", "cos", "tan"):
        check(name, np.concatenate([hard, -hard, np.nextafter(hard, 0)]))


_BIT_BY_BIT = """#include <metal_stdlib>
using namespace metal;
%s
kernel void all(device const double *x [[buffer(0)]], device const double *y [[buffer(1)]],
                device const int *n [[buffer(2)]], device double *out [[buffer(3)]],
                device int *powers [[buffer(4)]], uint i [[thread_position_in_grid]]) {
  out[3 * i] = fmod(x[i], y[i]);
  out[3 * i + 1] = nextafter(x[i], y[i]);
  out[3 * i + 2] = ldexp(x[i], n[i]);
  powers[i] = ilogb(x[i]);
}
"""


def _power(x):
    if math.isfinite(x) and x:
        return math.frexp(x)[1] - 1
    return 2**31 - 1 if math.isinf(x) else -(2**31)


def test_exact_functions(rng):
    bits = rng.integers(0, 2**64, (2, 3000), np.uint64).view(np.float64)
    near = bits[0] * rng.uniform(-1, 1, bits.shape[1])  # quotients of any size
    x = np.concatenate([*bits, bits[0], np.repeat(SPECIAL, len(SPECIAL))])
    y = np.concatenate([*bits[::-1], near, np.tile(SPECIAL, len(SPECIAL))])
    n = (rng.integers(-60, 60, len(x)) * rng.choice([1, 40], len(x))).astype(np.int32)
    n[::7] -= 1000  # to numbers below the normal ones
    text = metal_source("doubles/arithmetic")
    out, powers = np.empty((len(x), 3)), np.empty(len(x), np.int32)
    mtl.library(_BIT_BY_BIT % text)["all"](x, y, n, out, powers, threads=len(x))
    with np.errstate(all="ignore"):
        expected = np.stack([np.fmod(x, y), np.nextafter(x, y), np.ldexp(x, n)], axis=1)
    np.testing.assert_array_equal(out, expected)
    defined = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(out[defined]), np.signbit(expected[defined]))
    np.testing.assert_array_equal(powers, [_power(value) for value in x.tolist()])
