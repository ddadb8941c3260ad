"""Exact values of the math functions, computed in float64 or by the definition of the function."""

import ml_dtypes
import numpy as np
from judges import ROUNDED

SMALLEST_INT, LARGEST_INT = -(2**31), 2**31 - 1


def sinpi(a):
    """By reduction to a quarter turn, where the argument of sin is small."""
    rest = a - 2.0 * np.rint(a / 2.0)
    rest = np.where(np.abs(rest) > 0.5, np.copysign(1.0, rest) - rest, rest)
    return np.where(np.isfinite(a), np.sin(np.pi * rest), np.nan)


def cospi(a):
    return sinpi(0.5 - np.abs(a - 2.0 * np.rint(a / 2.0)))


def powr(a, b):
    undefined = np.isnan(a) | np.isnan(b) | (a < 0) | ((a == 0) | np.isinf(a)) & (b == 0)
    return np.where(undefined | (a == 1) & np.isinf(b), np.nan, np.power(np.abs(a), b))


def half_away(a):
    return np.copysign(np.floor(np.abs(a) + 0.5), a)


def fraction(a):
    """Below one even where the difference rounds to one."""
    exact = a.astype(np.float64) - np.floor(a.astype(np.float64))
    below_one = 1.0 - float(ml_dtypes.finfo(a.dtype).epsneg)
    return np.where(
        np.isinf(exact) | np.isinf(a.astype(np.float64)), 0.0, np.minimum(exact, below_one)
    )


def integer_exponent(a):
    exponent = np.frexp(a)[1] - 1
    exponent = np.where(np.isinf(a), LARGEST_INT, exponent)
    return np.where(np.isnan(a) | (a == 0), SMALLEST_INT, exponent)


def exponent_of(a):
    return np.where(np.isfinite(a), np.frexp(a)[1], 0)


def positive_difference(a, b):
    return np.where(a <= b, 0.0, a - b)


def scaled(a, b):
    return np.ldexp(a.astype(np.float64), b)


def next_after(a, b):
    """C's nextafter: among equals, zeros of either sign too, it is the second."""
    return np.where(a == b, b, np.nextafter(a, b))


ONE_OPERAND = {
    "exp": (np.exp, 4), "exp2": (np.exp2, 4), "exp10": (lambda a: np.power(10.0, a), 4),
    "log": (np.log, 4), "log2": (np.log2, 4), "log10": (np.log10, 4),
    "sin": (np.sin, 4), "cos": (np.cos, 4), "tan": (np.tan, 6),
    "sinpi": (sinpi, 4), "cospi": (cospi, 4), "tanpi": (lambda a: sinpi(a) / cospi(a), 6),
    "asin": (np.arcsin, 4), "acos": (np.arccos, 4), "atan": (np.arctan, 5),
    "sinh": (np.sinh, 4), "cosh": (np.cosh, 4), "tanh": (np.tanh, 5),
    "asinh": (np.arcsinh, 4), "acosh": (np.arccosh, 4), "atanh": (np.arctanh, 5),
    "rsqrt": (lambda a: 1.0 / np.sqrt(a), ROUNDED),
}  # fmt: skip
EXACT = {
    "sqrt": np.sqrt, "ceil": np.ceil, "floor": np.floor, "trunc": np.trunc, "rint": np.rint,
    "round": half_away, "fabs": np.abs, "abs": np.abs,
}  # fmt: skip
