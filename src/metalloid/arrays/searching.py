"""Searching, sorting and set functions of the array API."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from metalloid.arrays.array_object import Array
from metalloid.arrays.build import axes_of, from_numpy, to_node
from metalloid.arrays.calls import host_call, to_host
from metalloid.arrays.evaluate import evaluate
from metalloid.arrays.indexing import gathered, places_of
from metalloid.arrays.movement import concatenated, sliced, whole
from metalloid.arrays.node import broadcast, cast, count
from metalloid.arrays.statistics_nodes import Axis, summed
from metalloid.arrays.types import bool_, int64, kind_of, promote


def argmax(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """The place of the first of the largest, along an axis or in the flat array; NaN is largest.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.argmax(mtl.asarray([1, 5, 5]))
    array(1, dtype=int64)
    """
    return x.argmax(axis, keepdims)


def argmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """The place of the first of the smallest, along an axis or in the flat array."""
    return x.argmin(axis, keepdims)


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """Places of the elements that are not zero, an array for each axis. `x` is evaluated.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.nonzero(mtl.asarray([0, 3, 0, 4]))
    (array([1, 3], dtype=int64),)
    """
    if x.ndim == 0:
        raise ValueError("[nonzero] wants at least one axis.")
    return tuple(Array(index) for index in places_of(cast(x._node, bool_)))


def count_nonzero(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """How many elements are not zero."""
    return Array(summed(cast(x._node, bool_), "sum", axis, int64, keepdims))


def searchsorted(
    x1: Array, x2: Any, /, *, side: str = "left", sorter: Array | None = None
) -> Array:
    """Where elements of `x2` would go in the sorted `x1`.

    Parameters
    ----------
    side : "left" or "right"
        Before or behind equal ones.
    """
    if side not in ("left", "right"):
        raise ValueError(f"[searchsorted] side is 'left' or 'right', got {side!r}.")
    keys = x1._node if sorter is None else gathered(x1._node, [0], [sorter._node])
    values = to_node(x2, "searchsorted", device=x1.device)
    (found,) = host_call(np.searchsorted, [keys, values], (side,), (int64, values.shape))
    return Array(found)


def sort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The elements in order along an axis; NaN counts as the largest.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.sort(mtl.asarray([3, 1, 2]), descending=True)
    array([3, 2, 1], dtype=int64)
    """
    (along,) = axes_of("sort", axis, x.ndim)
    (found,) = host_call(_sort, [x._node], (along, descending), (x.dtype, x.shape))
    return Array(found)


def argsort(x: Array, /, *, axis: int = -1, descending: bool = False,
            stable: bool = True) -> Array:  # fmt: skip
    """The places of the elements in order along an axis; equal ones as they stand."""
    (along,) = axes_of("argsort", axis, x.ndim)
    (found,) = host_call(_argsort, [x._node], (along, descending), (int64, x.shape))
    return Array(found)


def _sort(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    result = np.sort(x, axis=axis)  # equal numbers are the same
    return np.flip(result, axis) if descending else result


def _argsort(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    turned = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    places: np.ndarray = x.shape[axis] - 1 - np.flip(turned, axis)
    return places


def top_k(x: Array, k: int, /, *, axis: int = -1) -> tuple[Array, Array]:
    """The `k` largest elements along an axis, the largest first, and their places."""
    places = argsort(x, axis=axis, descending=True)
    (along,) = axes_of("top_k", axis, x.ndim)
    numbers = whole(x.shape)
    numbers[along] = (0, 1, min(k, x.shape[along]))
    index = Array(sliced(places._node, numbers))
    return take_along_axis(x, index, axis=axis), index


def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
    """Elements, or subarrays along an axis, at indices.

    Raises
    ------
    IndexError
        If an index is out of range.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.take(mtl.asarray([10, 20, 30]), mtl.asarray([2, 0]))
    array([30, 10], dtype=int64)
    """
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"[take] an array of shape {x.shape} wants an axis.")
        axis = 0
    (along,) = axes_of("take", axis, x.ndim)
    return x[(slice(None),) * along + (indices,)]


def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    """Elements at indices along an axis, with indices of their own for every other place."""
    (along,) = axes_of("take_along_axis", axis, x.ndim)
    shape = tuple(indices.shape[k] if k == along else n for k, n in enumerate(x.shape))
    key = tuple(
        Array(broadcast(indices._node, shape)) if k == along else Array(count(shape, k, x.device))
        for k in range(x.ndim)
    )
    return x[key]


# -- sets


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: Array
    inverse_indices: Array


def unique_all(x: Array, /) -> UniqueAll:
    """Values that occur, sorted, where first, how to put `x` together again, and how often.

    Every NaN is a value of its own. `x` is evaluated: the result's shape depends on it.
    """
    evaluate([x._node])
    values, indices, inverse, counts = np.unique(
        to_host(x._node), return_index=True, return_inverse=True, return_counts=True,
        equal_nan=False,
    )  # fmt: skip
    inverse = inverse.reshape(x.shape)
    parts = (values, indices, inverse, counts)
    return UniqueAll(*(Array(from_numpy(part, x.device, copy=False)) for part in parts))


def unique_counts(x: Array, /) -> UniqueCounts:
    """Values that occur, and how often."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Array, /) -> UniqueInverse:
    """Values that occur, and where each element of `x` is among them."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Array, /) -> Array:
    """Values that occur, sorted.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.unique_values(mtl.asarray([2, 1, 2]))
    array([1, 2], dtype=int64)
    """
    return unique_all(x).values


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Array:
    """Whether each element of `x1` occurs in `x2`."""
    first, second = to_node(x1, "isin"), to_node(x2, "isin")
    together = promote(first.dtype, second.dtype)
    first, second = cast(first, together), cast(second, together)
    (found,) = host_call(_isin, [first, second], (invert,), (bool_, first.shape))
    return Array(found)


def _isin(x1: np.ndarray, x2: np.ndarray, invert: bool) -> np.ndarray:
    return np.isin(x1, x2, invert=invert)


def diff(x: Array, /, *, axis: int = -1, n: int = 1, prepend: Array | None = None,
         append: Array | None = None) -> Array:  # fmt: skip
    """Differences of neighbours along an axis, `n` times."""
    (along,) = axes_of("diff", axis, x.ndim)
    parts = [part for part in (prepend, x, append) if part is not None]
    node = concatenated([part._node for part in parts], along) if len(parts) > 1 else x._node
    for _ in range(n):
        extent = node.shape[along]
        left, right = whole(node.shape), whole(node.shape)
        left[along] = (0, 1, max(extent - 1, 0))
        right[along] = (min(1, extent), 1, max(extent - 1, 0))
        high, low = Array(sliced(node, right)), Array(sliced(node, left))
        node = (high != low)._node if kind_of(node.dtype) == "b" else (high - low)._node
    return Array(node)
