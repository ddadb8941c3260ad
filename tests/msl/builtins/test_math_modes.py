"""The fast and the precise math functions: qualified by their namespace, and by math mode.

The fast ones promise less, on smaller domains (tables of the specification, "Math Functions with
Fast Math"); some are defined by a formula there, whose error follows from that of its parts.
"""

import numpy as np
import pytest
from judges import unit
from math_oracles import EXACT, ONE_OPERAND, powr
from sheets import Row, Sheet

FLOAT = np.dtype(np.float32)
ULP = 2.0**-23
PI = float(np.float32(np.pi))


def ulps(a, exact):
    return unit(exact, FLOAT)


def exp_error(a, exact):
    return (3 + np.floor(np.abs(2 * a))) * unit(exact, FLOAT)


def log_error(a, exact):
    return np.where((a >= 0.5) & (a <= 2.0), 2.0**-21, 3 * unit(exact, FLOAT))


def sine_error(a, exact):
    return 2.0**-13


def tangent_error(a, exact):
    """The error of sin / cos, from the errors of both."""
    cosine = 1.0 / np.sqrt(1.0 + exact**2)
    return 2.0**-13 * (1.0 + np.abs(exact)) / (cosine - 2.0**-13)


def hyperbolic_error(a, exact):
    """The error of (e^a -+ e^-a) / 2: each exponential has its own."""
    return np.cosh(a) * (4 + np.floor(np.abs(2 * a))) * ULP


def tanh_error(a, exact):
    """The error of (t - 1/t) / (t + 1/t), t = e^a: both terms have that of the exponentials."""
    return 4 * (4 + np.floor(np.abs(2 * a))) * ULP


def inverse_hyperbolic_error(a, exact):
    """The error of a logarithm whose argument has three roundings, with slope 1 at most."""
    return 2.0**-21 + 4 * ULP * (1 + np.abs(exact))


def times(count):
    return lambda a, exact: count * unit(exact, FLOAT)


def evenly(low, high):
    return lambda rng: np.concatenate([rng.uniform(low, high, 3000), [low, high]])


def normal_numbers(rng):
    return np.concatenate([2.0 ** rng.uniform(-126, 127.99, 3000), rng.uniform(0.4, 2.5, 1000)])


#: Domain, error, and functions with their oracles where they are not those of the precise ones.
FAST = {
    "exp": (evenly(-86.9, 88.7), exp_error, ["exp"]),
    "exp2": (evenly(-125.4, 127.9), exp_error, ["exp2"]),
    "exp10": (evenly(-37.7, 38.5), exp_error, ["exp10"]),
    "log": (normal_numbers, log_error, ["log", "log2", "log10"]),
    "sin": (evenly(-PI, PI), sine_error, ["sin", "cos"]),
    "sinpi": (evenly(-1.0, 1.0), sine_error, ["sinpi", "cospi"]),
    "tan": (evenly(-1.4, 1.4), tangent_error, ["tan"]),
    "tanpi": (evenly(-0.45, 0.45), tangent_error, ["tanpi"]),
    "asin": (evenly(-1.0, 1.0), times(5), ["asin", "acos"]),
    "atan": (evenly(-50.0, 50.0), times(5), ["atan"]),
    "sinh": (evenly(-40.0, 40.0), hyperbolic_error, ["sinh", "cosh"]),
    "tanh": (evenly(-8.0, 8.0), tanh_error, ["tanh"]),
    "asinh": (evenly(-100.0, 100.0), inverse_hyperbolic_error, ["asinh"]),
    "acosh": (evenly(1.5, 100.0), inverse_hyperbolic_error, ["acosh"]),
    "atanh": (evenly(-0.9, 0.9), inverse_hyperbolic_error, ["atanh"]),
    "rsqrt": (normal_numbers, times(2), ["rsqrt"]),
    "sqrt": (normal_numbers, times(5), ["sqrt"]),  # a rsqrt(a)
}  # fmt: skip
ORACLES = {name: oracle for name, (oracle, _) in ONE_OPERAND.items()} | EXACT


def in_double(oracle):
    return lambda a: oracle(a.astype(np.float64))


def error_of(error, oracle):
    def bound(a):
        wide = a.astype(np.float64)
        return np.broadcast_to(error(wide, oracle(wide)), a.shape)

    return bound


def fast_sheet(group, prefix, math_mode="safe"):
    domain, error, names = FAST[group]
    rows = [
        Row("float", f"{prefix}{name}(a)", in_double(ORACLES[name]), error_of(error, ORACLES[name]))
        for name in names
    ]
    label = f"{math_mode}-{prefix.removesuffix('::')}-{group}"
    return Sheet(
        label, {"a": "float"}, lambda rng: {"a": domain(rng).astype(FLOAT)}, rows, math_mode
    )


def logarithm_error(a):
    """The error of log2, relative to 1, as far as the base goes from 1."""
    return np.maximum(2.0**-21, 3 * unit(np.log2(a), FLOAT))


def fast_power_error(a, b):
    """The error of exp2(b log2(a))."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    product = b * np.log2(a)
    exponent_error = np.abs(b) * logarithm_error(a) + np.abs(product) * ULP / 2
    return a**b * (np.log(2) * exponent_error * 1.01 + (3 + np.floor(np.abs(2 * product))) * ULP)


def pairs(rng):
    """Positive bases, exponents, and a dividend whose quotient is not near a whole number."""
    a, b = rng.uniform(0.1, 10.0, 3000), rng.uniform(-8.0, 8.0, 3000)
    divisor = rng.uniform(1.0, 4.0, 3000)
    dividend = divisor * (rng.integers(0, 8, 3000) + rng.uniform(0.1, 0.9, 3000))
    return {"a": a.astype(FLOAT), "b": b.astype(FLOAT), "d": dividend.astype(FLOAT), "e": divisor.astype(FLOAT)}  # fmt: skip


def double2(oracle):
    return lambda a, b: oracle(a.astype(np.float64), b.astype(np.float64))


def ulps_of(count, oracle):
    return lambda a, b: count * unit(oracle(a.astype(np.float64), b.astype(np.float64)), FLOAT)


def fast_pair_sheet(prefix, math_mode="safe"):
    rows = [
        Row("float", f"{prefix}pow(a, b)", double2(np.power), fast_power_error),
        Row("float", f"{prefix}powr(a, b)", double2(powr), fast_power_error),
        Row("float", f"{prefix}divide(b, a)", double2(lambda a, b: b / a), ulps_of(2.5, lambda a, b: b / a)),
        Row("float", f"{prefix}atan2(b, a)", double2(lambda a, b: np.arctan2(b, a)), ulps_of(8, lambda a, b: np.arctan2(b, a))),
        Row("float", f"{prefix}atan2(a, b)", double2(np.arctan2), ulps_of(8, np.arctan2)),
        Row("float", f"{prefix}fmod(d, e)", lambda d, e: np.fmod(d.astype(float), e), lambda d, e: np.abs(d.astype(float)) * 4 * ULP),
    ]  # fmt: skip
    inputs = dict.fromkeys("abde", "float")
    return Sheet(f"{math_mode}-{prefix.removesuffix('::')}-pairs", inputs, pairs, rows, math_mode)


def around_one(rng):
    return {
        "a": np.concatenate([rng.uniform(-1, 1, 2000), rng.uniform(-80, 80, 2000)]).astype(FLOAT)
    }


def precise_sheets(prefix, math_mode):
    """All functions within their precise bounds, four to a kernel."""
    rows = [
        Row("float", f"{prefix}{name}(a)", in_double(oracle), bound)
        for name, (oracle, bound) in ONE_OPERAND.items()
    ] + [Row("float", f"{prefix}{name}(a)", in_double(oracle)) for name, oracle in EXACT.items()]
    return [
        Sheet(
            f"{math_mode}-{prefix}-{start}",
            {"a": "float"},
            around_one,
            rows[start : start + 5],
            math_mode,
        )
        for start in range(0, len(rows), 5)
    ]


def vectors(rng):
    return {"a": rng.uniform(-3.0, 3.0, (1000, 3)).astype(FLOAT)}


QUALIFIED_VECTORS = Sheet(
    "qualified-vectors",
    {"a": "float3"},
    vectors,
    [
        Row("float3", "fast::sin(a)", in_double(np.sin), error_of(sine_error, np.sin)),
        Row("float3", "metal::precise::sin(a)", in_double(np.sin), 4.0),
        Row("float3", "metal::fast::exp(a)", in_double(np.exp), error_of(exp_error, np.exp)),
        Row("half3", "fast::exp(half3(a))", lambda a: np.exp(a.astype(np.float16).astype(float)), 0.75),
        Row("float3", "float3 c; y = fast::sincos(a, c);", in_double(np.sin), error_of(sine_error, np.sin)),
        Row("float3", "float3 c; metal::fast::sincos(a, c); y = c;", in_double(np.cos), error_of(sine_error, np.cos)),
        Row("float3", "float3 c; metal::precise::sincos(a, c); y = c;", in_double(np.cos), 4.0),
    ],
)  # fmt: skip

SHEETS = [
    *(fast_sheet(group, "fast::") for group in FAST),
    *(fast_sheet(group, "", "fast") for group in list(FAST)[::3]),  # the same functions
    *(fast_pair_sheet(prefix, mode) for prefix, mode in (("fast::", "safe"), ("", "fast"))),
    *precise_sheets("precise::", "fast"),
    *precise_sheets("", "relaxed"),
    QUALIFIED_VECTORS,
]


@pytest.mark.parametrize("sheet", SHEETS, ids=str)
@pytest.mark.sample(6)
def test_math_modes(sheet, kernel):
    sheet.check(kernel)


def macro_sheet(mode):
    text = "y = 0;\n#ifdef __FAST_MATH__\ny = 1;\n#endif\n"
    rows = [Row("int", text, lambda a: np.full(a.shape, mode == "fast"))]
    return Sheet(f"macro-{mode}", {"a": "float"}, around_one, rows, mode)


@pytest.mark.parametrize("sheet", [macro_sheet(m) for m in ("safe", "relaxed", "fast")], ids=str)
def test_the_macro_of_fast_math(sheet, kernel):
    sheet.check(kernel)
