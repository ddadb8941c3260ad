"""Tolerances of results: units in the last place, and sums of rounding errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np

import metalloid as mtl

#: Sizes around those of simdgroups, vectors of four and threadgroups.
SIZES = (1, 2, 31, 32, 33, 127, 1000, 1024, 4096, 4097)

FLOAT, HALF, BFLOAT = (np.dtype(t) for t in (np.float32, np.float16, ml_dtypes.bfloat16))

#: The type's name in the drivers.
NAMES = {FLOAT: "float", HALF: "half", BFLOAT: "bfloat"}


class Unchecked(Exception):
    """An entry that its family has no oracle for; the text says why."""


@dataclass(frozen=True)
class Family:
    """Kernels that are launched alike and compared with the same oracle.

    Attributes
    ----------
    name : str
        As the table calls it: ``"softmax"``.
    files : tuple of str
        The ``.metal`` files it covers, relative to MLX's folder of kernels.
    check : callable
        ``check(library, name, rng)`` compiles the entry `name` of a file's library, runs it and
        compares; raises AssertionError where it disagrees and `Unchecked` where it cannot tell.
    covers : callable
        Which entries of the files are its own; all of them without.
    """

    name: str
    files: tuple[str, ...]
    check: Callable[[mtl.Library, str, np.random.Generator], None]
    covers: Callable[[str], bool] = lambda name: True


def roundoff(dtype) -> float:
    """Largest relative error of one correctly rounded operation."""
    return float(ml_dtypes.finfo(dtype).eps) / 2


def smallest(dtype) -> float:
    """Distance of the smallest numbers: what a rounding of a subnormal result may cost at most."""
    return float(ml_dtypes.finfo(dtype).smallest_subnormal)


def spacing(exact, dtype):
    """Distance of neighbouring numbers of `dtype` at `exact`."""
    info = ml_dtypes.finfo(dtype)
    with np.errstate(divide="ignore"):
        exponent = np.floor(np.log2(np.abs(exact)))
    return np.exp2(np.maximum(exponent, info.minexp) - info.nmant)


def assert_same(actual, expected):
    """Assert that two arrays hold the same numbers; NaN equals NaN."""
    if expected.dtype == BFLOAT:  # NumPy does not know where a bfloat is NaN
        assert actual.dtype == BFLOAT
        actual, expected = actual.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_array_equal(actual, expected)


def assert_ulps(actual, exact, ulps):
    """Assert that `actual` is within `ulps` units of its last place of `exact` (float64).

    NaN and infinity must be where the exact result, rounded to the type, has them.
    """
    with np.errstate(invalid="ignore"):
        assert_near(actual, exact, ulps * spacing(exact, actual.dtype))


def assert_near(actual, exact, error):
    """Assert that `actual` differs from `exact` (float64) by at most `error`, element by element.

    NaN and infinity must be where the exact result, rounded to the type, has them; a result within
    `error` of the largest number may overflow.
    """
    got = actual.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.asarray(exact).astype(actual.dtype).astype(np.float64)
        largest = float(ml_dtypes.finfo(actual.dtype).max)
        edge = np.isinf(got) & (np.abs(exact) + error > largest) & (np.sign(got) == np.sign(exact))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(rounded))
    finite = np.isfinite(rounded) & np.isfinite(got)
    special = ~finite & ~edge
    np.testing.assert_array_equal(got[special], rounded[special])
    distance = np.abs(got[finite] - exact[finite])
    allowed = np.broadcast_to(error, got.shape)[finite]
    wrong = ~(distance <= allowed)
    if wrong.any():
        worst = np.argmax(np.where(wrong, distance / np.maximum(allowed, 1e-300), 0))
        raise AssertionError(
            f"{got[finite][worst]!r} for {exact[finite][worst]!r}: an error of "
            f"{distance[worst]:.3g} where {allowed[worst]:.3g} is allowed"
        )


def assert_within(actual, exact, error):
    """Assert that `actual` differs from `exact` by at most `error`, element by element."""
    got = np.asarray(actual).astype(np.float64)
    finite = np.isfinite(exact)
    np.testing.assert_array_equal(got[~finite], exact[~finite])
    allowed = np.broadcast_to(error, exact.shape)[finite]
    excess = np.abs(got[finite] - exact[finite]) - allowed
    assert np.all(excess <= 0), f"{np.max(excess):.3g} more than the allowed {np.max(allowed):.3g}"


def sum_error(terms, additions, dtype=FLOAT, axis=-1):
    """Bound of the error of a sum in which each term passes through `additions` additions.

    The classical one, (additions) u / (1 - additions u) times the sum of the magnitudes, whatever
    the order of the additions (Higham, Accuracy and Stability of Numerical Algorithms, 4.2).
    """
    each = additions * roundoff(dtype)
    assert each < 0.5
    return each / (1 - each) * np.sum(np.abs(terms).astype(np.float64), axis=axis)


def ceildiv(a: int, b: int) -> int:
    return -(-a // b)


def strides_of(shape):
    """Strides of a contiguous array, in elements, as MLX passes them."""
    strides = np.ones(len(shape), np.int64)
    strides[:-1] = np.cumprod(np.array(shape, np.int64)[:0:-1])[::-1]
    return strides


def element_strides(array):
    """Strides of a view, in elements."""
    return np.array(array.strides, np.int64) // array.itemsize
