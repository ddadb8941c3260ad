"""Diagonals and triangles of matrices by their indices, with NumPy's arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metalloid.arrays.array import Array, as_array
from metalloid.arrays.functions import elementwise as ew
from metalloid.arrays.functions import searching
from metalloid.arrays.functions.creation import full
from metalloid.arrays.functions.evenly_spaced import arange
from metalloid.arrays.functions.manipulation import broadcast_to, concat
from metalloid.arrays.ir.dtypes import default_float, float32, int32, int64
from metalloid.numpy.array import numpy_function
from metalloid.numpy.functions.indexing import repeated
from metalloid.numpy.known_calls import structural_function, structural_update

#: Numbers of so many elements, times 8, are integers of 32 bits.
_SMALL = 2**28


@structural_function(0)
def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Indices of the main diagonal."""
    return (arange(n),) * ndim


@numpy_function
def diag_indices_from(arr: Any) -> tuple[Array, ...]:
    """Indices of the main diagonal of an array."""
    x = as_array(arr, "diag_indices_from")
    if x.ndim < 2 or len(set(x.shape)) > 1:
        raise ValueError(f"[diag_indices_from] expected equal extents, got shape {x.shape}.")
    return diag_indices(x.shape[0], x.ndim)


@structural_function(0)
def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, ...]:
    """Indices of the lower triangle of a matrix."""
    return _lower_triangle(n, k, n if m is None else m)


@structural_function(0)
def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, ...]:
    """Indices of the upper triangle of a matrix."""
    columns = n if m is None else m
    rows, along = _lower_triangle(
        n, columns - n - k, columns
    )  # of the matrix turned by 180 degrees
    return n - 1 - rows[::-1], columns - 1 - along[::-1]


def _lower_triangle(rows: int, k: int, columns: int) -> tuple[Array, Array]:
    """Indices up to the `k`-th diagonal, from their numbers: no matrix is stored."""
    rows, columns = max(rows, 0), max(columns, 0)
    first = min(max(-k, 0), rows)  # rows before are empty
    shortest = max(k, 0) + 1
    last = max(min(rows, columns - k), first)  # rows from there on are full
    before = shortest * (shortest - 1) // 2
    count = sum(range(shortest, shortest + last - first))
    is_small = before + count < _SMALL
    integer, floats = (int32, float32) if is_small else (int64, default_float())
    number = arange(before, before + count, dtype=integer)
    # Rounding moves the root across at most one integer.
    row = ((ew.sqrt((8 * number + 1).astype(floats)) - 1) * 0.5).astype(integer)
    row = row - (row * (row + 1) > 2 * number).astype(integer)
    row = row + ((row + 1) * (row + 2) <= 2 * number).astype(integer)
    along = number - (row * (row + 1) >> 1)
    row, along = (row + (first - shortest + 1)).astype(int64), along.astype(int64)
    full_rows = arange(last, rows)[:, None]
    shape = (rows - last, columns)
    return (concat([row, broadcast_to(full_rows, shape).ravel()]),
            concat([along, broadcast_to(arange(columns), shape).ravel()]))  # fmt: skip


@numpy_function
def tril_indices_from(arr: Any, k: int = 0) -> tuple[Array, ...]:
    """Indices of the lower triangle of a matrix."""
    rows, columns = as_array(arr, "tril_indices_from").shape
    return tril_indices(rows, k, columns)


@numpy_function
def triu_indices_from(arr: Any, k: int = 0) -> tuple[Array, ...]:
    """Indices of the upper triangle of a matrix."""
    rows, columns = as_array(arr, "triu_indices_from").shape
    return triu_indices(rows, k, columns)


@numpy_function
def mask_indices(n: int, mask_func: Callable[..., Any], k: Any = 0) -> tuple[Array, ...]:
    """Indices of the elements that a function such as `triu` leaves."""
    return searching.nonzero(as_array(mask_func(full((n, n), 1), k), "mask_indices"))


@structural_update(2)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> Any:
    """Set the main diagonal."""
    x = as_array(a, "fill_diagonal")
    if x.ndim < 2:
        raise ValueError(f"[fill_diagonal] the array must be at least 2-d, got shape {x.shape}.")
    if x.ndim > 2 and len(set(x.shape)) > 1:
        raise ValueError(f"[fill_diagonal] all axes must be of equal length, got shape {x.shape}.")
    if x.ndim == 2:
        step, stop = x.shape[1] + 1, x.size if wrap else min(x.size, x.shape[1] * x.shape[1])
    else:
        step, stop = 1 + int(np.cumprod(x.shape[:-1]).sum()), x.size
    values = as_array(val, "fill_diagonal", x.device).ravel().astype(x.dtype)
    flat = Array(x.ravel()._node)
    flat[:stop:step] = repeated(values, -(-stop // step))
    return flat
