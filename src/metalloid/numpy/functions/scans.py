"""Running sums, products and extremes, and differences, with NumPy's arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from metalloid.arrays.array import Array, as_array
from metalloid.arrays.functions import elementwise as ew
from metalloid.arrays.functions import scans, searching
from metalloid.arrays.functions.select import where
from metalloid.arrays.ir.dtypes import bool_
from metalloid.numpy.array import store
from metalloid.numpy.known_calls import structural_function


def _flat(a: Any, name: str, axis: int | None) -> tuple[Array, int]:
    x = as_array(a, name)
    return (x.ravel(), 0) if axis is None or not x.ndim else (x, axis)


def _vector(x: Any) -> Array:
    """An array of at least one axis."""
    array = as_array(x, "cumulative")
    return array if array.ndim else array.reshape(1)


def _stored(result: Array, out: Any, where: str) -> Any:
    """Store a result, which an array of truth values takes as well: it is computed in its type."""
    is_truth = out is not None and out.dtype == bool_
    return store(result, out, where, "unsafe" if is_truth else "same_kind")


@structural_function(1)
def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """Cumulative sum along an axis, or of the flattened array."""
    x, along = _flat(a, "cumsum", axis)
    return _stored(scans.cumulative_sum(x, along, dtype), out, "cumsum")


@structural_function(1)
def cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """Cumulative product along an axis, or of the flattened array."""
    x, along = _flat(a, "cumprod", axis)
    return _stored(scans.cumulative_prod(x, along, dtype), out, "cumprod")


@structural_function(1)
def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, out: Any = None,
                   include_initial: bool = False) -> Any:  # fmt: skip
    """Cumulative sum along an axis; see `metalloid.cumulative_sum`."""
    result = scans.cumulative_sum(_vector(x), axis, dtype, include_initial=include_initial)
    return _stored(result, out, "cumulative_sum")


@structural_function(1)
def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, out: Any = None,
                    include_initial: bool = False) -> Any:  # fmt: skip
    """Cumulative product along an axis; see `metalloid.cumulative_prod`."""
    result = scans.cumulative_prod(_vector(x), axis, dtype, include_initial=include_initial)
    return _stored(result, out, "cumulative_prod")


@structural_function(1)
def cummax(a: Any, axis: int = 0) -> Any:
    """Cumulative maximum, ``maximum.accumulate``."""
    return scans.cummax(a, axis)


@structural_function(1)
def cummin(a: Any, axis: int = 0) -> Any:
    """Cumulative minimum, ``minimum.accumulate``."""
    return scans.cummin(a, axis)


@structural_function(1)
def nancumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """Cumulative sum in which NaN counts as 0."""
    x = as_array(a, "nancumsum")
    return cumsum(where(ew.isnan(x), 0, x), axis, dtype, out)


@structural_function(1)
def nancumprod(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """Cumulative product in which NaN counts as 1."""
    x = as_array(a, "nancumprod")
    return cumprod(where(ew.isnan(x), 1, x), axis, dtype, out)


@structural_function(1)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = np._NoValue,
         append: Any = np._NoValue) -> Any:  # fmt: skip
    """Return the `n`-th differences of adjacent elements along an axis."""
    if n < 0:
        raise ValueError(f"[diff] the order must not be negative, got {n}.")
    before = None if prepend is np._NoValue or n == 0 else as_array(prepend, "diff")
    after = None if append is np._NoValue or n == 0 else as_array(append, "diff")
    return searching.diff(a, n, axis, before, after)


@structural_function(1)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of adjacent elements of the flattened array, between given numbers."""
    from metalloid.arrays.functions.manipulation import concat

    flat = as_array(ary, "ediff1d").ravel()
    given = [piece for piece in (to_begin, searching.diff(flat), to_end) if piece is not None]
    pieces = [as_array(piece, "ediff1d", flat.device).ravel() for piece in given]
    for name, piece in (("to_begin", to_begin), ("to_end", to_end)):
        if piece is not None and not np.can_cast(
            as_array(piece, "ediff1d").dtype, flat.dtype, "same_kind"
        ):
            raise TypeError(
                f"[ediff1d] dtype of `{name}` must be compatible with that of the array, "
                f"{flat.dtype}."
            )
    return concat([piece.astype(flat.dtype) for piece in pieces])
