"""NumPy's order of complex numbers: by real parts, then by imaginary parts; NaN is the largest."""

from __future__ import annotations

from collections.abc import Callable

from metalloid.arrays.array import Array
from metalloid.arrays.functions import elementwise as ew
from metalloid.arrays.functions import searching, statistical
from metalloid.arrays.functions.select import where
from metalloid.arrays.functions.sorting import argsort
from metalloid.arrays.ir.dtypes import int8


def is_nan(x: Array) -> Array:
    """Whether either part is NaN."""
    return ew.logical_or(ew.isnan(x.real), ew.isnan(x.imag))


def less(x: Array, y: Array) -> Array:
    """Whether numbers precede others; false for NaN."""
    return _precedes(x, y, ew.less(x.imag, y.imag))


def less_equal(x: Array, y: Array) -> Array:
    """Whether numbers precede others or are equal; false for NaN."""
    return _precedes(x, y, ew.less_equal(x.imag, y.imag))


def _precedes(x: Array, y: Array, for_equal_real_parts: Array) -> Array:
    has_nan = ew.logical_or(ew.isnan(x.imag), ew.isnan(y.imag))
    by_real_parts = ew.logical_and(ew.less(x.real, y.real), ew.logical_not(has_nan))
    equal = ew.logical_and(ew.equal(x.real, y.real), for_equal_real_parts)
    return ew.logical_or(by_real_parts, equal)


def _maximum(x: Array, y: Array) -> Array:
    return where(ew.logical_or(is_nan(x), less_equal(y, x)), x, y)


def _minimum(x: Array, y: Array) -> Array:
    return where(ew.logical_or(is_nan(x), less_equal(x, y)), x, y)


#: Functions of two complex arrays by the names of operations that have no kernels of them.
FUNCTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "less": less,
    "less_equal": less_equal,
    "greater": lambda x, y: less(y, x),
    "greater_equal": lambda x, y: less_equal(y, x),
    "maximum": _maximum,
    "minimum": _minimum,
}


def arg_extreme(x: Array, name: str) -> Array:
    """Index of the first largest ("max") or smallest ("min") number along the last axis."""
    extreme = getattr(statistical, name)
    candidates = is_nan(x)
    has_nan = statistical.any(candidates, -1, True)
    real = where(candidates, 0, x.real)
    candidates = where(has_nan, candidates, ew.equal(real, extreme(real, -1, True)))
    other = float("-inf") if name == "max" else float("inf")
    imaginary = where(candidates, x.imag, other)
    first = ew.equal(imaginary, extreme(imaginary, -1, True))
    is_it = ew.logical_and(candidates, ew.logical_or(has_nan, first))
    return searching.argmax(is_it.astype(int8), -1)


def order(x: Array, axis: int) -> Array:
    """Indices that sort numbers along an axis; equal ones keep their order."""
    nans = ew.isnan(x.real).astype(int8) * 2 + ew.isnan(x.imag).astype(int8)
    indices = argsort(x.imag, axis=axis)
    for key in (x.real, nans):
        ordered = searching.take_along_axis(key, indices, axis)
        indices = searching.take_along_axis(indices, argsort(ordered, axis=axis), axis)
    return indices
