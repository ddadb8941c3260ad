"""Limits of the distance of a result from the exact one, and which results are farther."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
from msl_types import BFLOAT, DTYPES

#: None: equal, zeros with their signs. `SAME_VALUE`: equal. A float: units in the last place.
#: A function of the inputs: the absolute error of each element.
Bound = float | str | Callable | np.ndarray | None

SAME_VALUE = "same value"

#: Correctly rounded, as far as a double can tell.
ROUNDED = 0.5 + 2.0**-28


def is_floating(dtype) -> bool:
    return dtype.kind == "f" or dtype == BFLOAT


def roundoff(dtype) -> float:
    """Largest relative error of one correctly rounded operation."""
    return float(ml_dtypes.finfo(dtype).eps) / 2


def smallest(dtype) -> float:
    return float(ml_dtypes.finfo(dtype).smallest_subnormal)


def unit(exact, dtype):
    """Distance of neighbouring numbers of `dtype` at `exact` (float64)."""
    info = ml_dtypes.finfo(dtype)
    exponent = np.frexp(np.where(np.isfinite(exact), exact, 0.0))[1] - 1
    exponent = np.where(exact == 0, info.minexp, exponent)
    return np.ldexp(1.0, np.clip(exponent, info.minexp, info.maxexp - 1) - info.nmant)


def rounded(exact, dtype):
    """`exact` (float64) as the nearest number of `dtype`, ties to even, in one rounding."""
    exact = np.asarray(exact, np.float64)
    with np.errstate(all="ignore"):
        step = unit(exact, dtype)
        nearest = np.copysign(np.rint(exact / step) * step, exact)
        largest = float(ml_dtypes.finfo(dtype).max)
        return np.where(np.abs(nearest) > largest, np.copysign(np.inf, exact), nearest).astype(
            dtype
        )


def narrow_bound(float_ulps: float, type_: str) -> float:
    """Bound for a function that has `float_ulps` in float and is rounded once to `type_`."""
    if type_ == "float":
        return float_ulps
    lost = ml_dtypes.finfo(np.float32).nmant - ml_dtypes.finfo(DTYPES[type_]).nmant
    return 0.5 + float_ulps * 2.0**-lost


def wrong_elements(actual, expected, bound: Bound):
    """Where `actual` is farther from `expected` than `bound` allows."""
    if not is_floating(actual.dtype):
        return actual != expected
    if bound is None or isinstance(bound, str):
        return ~_same(actual, rounded(expected, actual.dtype), signs=bound is None)
    if isinstance(bound, np.ndarray):
        return _outside(actual, expected, bound)
    return _outside(actual, expected, bound * unit(expected, actual.dtype))


def _same(actual, expected, signs: bool):
    actual, expected = actual.astype(np.float64), expected.astype(np.float64)
    equal = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    if signs:
        equal &= np.isnan(expected) | (np.signbit(actual) == np.signbit(expected))
    return equal


def _outside(actual, exact, error):
    """Infinity counts as the power of two after the largest number, where it is not exact."""
    info = ml_dtypes.finfo(actual.dtype)
    actual = actual.astype(np.float64)
    special = ~np.isfinite(exact)
    overflow = 2.0**info.maxexp
    distance = np.abs(np.clip(actual, -overflow, overflow) - np.clip(exact, -overflow, overflow))
    return np.where(special, ~_same(actual, exact, signs=False), ~(distance <= error))
