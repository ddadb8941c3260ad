"""Insertion and removal of subarrays, with NumPy's arguments."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from metalloid.arrays.array import Array, as_array
from metalloid.arrays.functions import manipulation as base
from metalloid.arrays.functions.creation import asarray
from metalloid.arrays.functions.searching import take
from metalloid.arrays.ir.operands import axes_of
from metalloid.numpy.known_calls import structural_function

#: So many indices are the limits of slices, which are copied; more are those of a gather.
_FEW = 16


def _positions(obj: Any, extent: int, where: str) -> np.ndarray:
    """The indices that a slice, an index or a mask selects; masks to insert have any length."""
    if isinstance(obj, slice):
        return np.arange(extent)[obj]
    positions = np.asarray(obj)
    if positions.dtype == bool:
        if positions.ndim != 1 or (where == "delete" and positions.size != extent):
            raise ValueError(f"[{where}] the mask has shape {positions.shape}, not ({extent},).")
        return np.flatnonzero(positions)
    if positions.size == 0:
        positions = positions.astype(np.intp)
    return positions


def _from_start(positions: np.ndarray, extent: int, last: int, where: str, obj: Any
                ) -> np.ndarray:  # fmt: skip
    """Indices that are not negative; an error for those out of range."""
    if ((positions < -extent) | (positions > last)).any():
        raise IndexError(f"[{where}] {obj} is out of range for {extent} elements.")
    return np.where(positions < 0, positions + extent, positions)


def _between(x: Array, axis: int, starts: list[int], ends: list[int]) -> list[Array]:
    """The slices before, between and after some indices along an axis."""
    pairs = zip([0, *starts], [*ends, x.shape[axis]], strict=True)
    return [x[(slice(None),) * axis + (slice(first, end),)] for first, end in pairs]


def _joined(pieces: list[Array], axis: int) -> Array:
    return base.concat([piece for piece in pieces if piece.shape[axis]] or pieces[:1], axis)


@structural_function(1)
def delete(arr: Any, obj: Any, axis: int | None = None) -> Array:
    """Return an array without some subarrays along an axis."""
    x = as_array(arr, "delete")
    x, along = (x.ravel(), 0) if axis is None else (x, axes_of("delete", axis, x.ndim)[0])
    extent = x.shape[along]
    positions = _positions(obj, extent, "delete")
    if 0 < positions.size <= _FEW:
        ends = np.unique(_from_start(positions, extent, extent - 1, "delete", obj)).tolist()
        return _joined(_between(x, along, [e + 1 for e in ends], ends), along)
    removed = np.delete(np.arange(extent), positions)
    return take(x, asarray(removed, device=x.device), along)


@structural_function(1)
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Array:
    """Insert values before indices along an axis.

    Examples
    --------
    >>> import metalloid.numpy as np
    >>> np.insert([1, 2, 3], 1, [7, 8])
    array([1, 7, 8, 2, 3])
    """
    x = as_array(arr, "insert")
    x, along = (x.ravel(), 0) if axis is None else (x, axes_of("insert", axis, x.ndim)[0])
    extent = x.shape[along]
    positions = _positions(obj, extent, "insert")
    new = as_array(values, "insert", x.device).astype(x.dtype)
    is_single = positions.ndim == 0 and not isinstance(obj, slice)
    new = new.reshape((1,) * (x.ndim - new.ndim) + new.shape)
    if is_single and axis is not None:
        new = base.moveaxis(new, 0, along) if as_array(values, "insert").ndim else new
    count = new.shape[along] if positions.size == 1 else positions.size
    positions = (
        np.broadcast_to(positions.reshape(-1), (count,)) if positions.size == 1 else positions
    )
    positions = _from_start(positions, extent, extent, "insert", obj)
    shape = tuple(count if k == along else n for k, n in enumerate(x.shape))
    new = base.broadcast_to(new, shape)
    order = np.argsort(positions, kind="stable")
    if is_single or 0 < count <= _FEW:
        ends = np.unique(positions).tolist()
        inserted = [new]
        if len(ends) > 1:
            before = [[k for k in order.tolist() if positions[k] == end] for end in ends]
            inserted = [new[(slice(None),) * along + (which,)] for which in before]
        given = _between(x, along, ends, ends)
        pairs = itertools.zip_longest(given, inserted)
        return _joined([piece for pair in pairs for piece in pair if piece is not None], along)
    targets = np.empty(count, np.int64)
    targets[order] = positions[order] + np.arange(count)
    source = np.empty(extent + count, np.int64)
    is_new = np.zeros(extent + count, bool)
    is_new[targets] = True
    source[targets] = extent + np.arange(count)
    source[~is_new] = np.arange(extent)
    joined = base.concat([x, new], along)
    return take(joined, asarray(source, device=x.device), along)
