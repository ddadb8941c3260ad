"""Sorting, searching and sets, with NumPy's arguments."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from metalloid.arrays.array import Array, as_array, as_arrays
from metalloid.arrays.execution.calls import host_call
from metalloid.arrays.functions import elementwise as ew
from metalloid.arrays.functions import searching, sets, sorting
from metalloid.arrays.functions.creation import asarray, full, zeros
from metalloid.arrays.functions.manipulation import concat, moveaxis, stack
from metalloid.arrays.functions.select import where as select
from metalloid.arrays.interop.numpy_functions import call_on_host
from metalloid.arrays.ir.dtypes import bfloat16, default_float, int64, kind_of, promote
from metalloid.arrays.ir.node import TRACED, Node, broadcast
from metalloid.arrays.ir.operands import axes_of
from metalloid.arrays.ir.primitives import bind, implement
from metalloid.arrays.library.order_statistics import LONG_ROW, MAX_TARGETS
from metalloid.arrays.library.partition import partitioned
from metalloid.kernels.operands import MAX_ELEMENTS
from metalloid.numpy import complex_order
from metalloid.numpy.array import numpy_function
from metalloid.numpy.functions.scans import cumsum
from metalloid.numpy.known_calls import structural_function
from metalloid.settings import settings


@structural_function(1)
def sort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, *,
         stable: Any = None) -> Array:  # fmt: skip
    """Sort elements along an axis; NaN is the largest."""
    x = as_array(a, "sort")
    if kind_of(x.dtype) == "c":
        x, axis = (x.ravel(), 0) if axis is None else (x, axis)
        return searching.take_along_axis(x, complex_order.order(x, axis), axis)
    return sorting.sort(x, axis)


@structural_function(1)
def argsort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, *,
            stable: Any = None) -> Array:  # fmt: skip
    """Indices that sort elements along an axis; equal elements keep their order."""
    x = as_array(a, "argsort")
    x = x if x.ndim else x.reshape(1)
    if kind_of(x.dtype) == "c":
        return complex_order.order(*(x.ravel(), 0) if axis is None else (x, axis))
    return sorting.argsort(x, axis)


@structural_function(1)
def sort_complex(a: Any) -> Array:
    """Sort by real parts, then by imaginary parts; the result is complex."""
    x = as_array(a, "sort_complex")
    if kind_of(x.dtype) != "c":  # NumPy's rule differs from that of promotion
        is_short = kind_of(x.dtype) in "iu" and x.dtype.itemsize <= 2
        wide = np.complex64 if is_short else promote(default_float(), np.dtype(np.complex64))
        return sort(x).astype(wide)
    return sort(x)


@structural_function(1)
def partition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None
              ) -> Array:  # fmt: skip
    """Reorder elements so that the `kth` is the one of the sorted array, between others."""
    x = as_array(a, "partition")
    x, axis = (x.ravel(), 0) if axis is None else (x, axes_of("partition", axis, x.ndim)[0])
    positions = _positions(kth, x, axis)
    if not _is_selected(x, axis, positions):
        by_host = _by_host(x, axis, positions, False)
        return sort(x, axis) if by_host is None else by_host
    return _partitioned(x, axis, positions, False)


@structural_function(1)
def argpartition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect",
                 order: Any = None) -> Array:  # fmt: skip
    """Indices of a `partition`."""
    x = as_array(a, "argpartition")
    x = x if x.ndim else x.reshape(1)
    x, axis = (x.ravel(), 0) if axis is None else (x, axes_of("argpartition", axis, x.ndim)[0])
    positions = _positions(kth, x, axis)
    if not _is_selected(x, axis, positions):
        by_host = _by_host(x, axis, positions, True)
        return argsort(x, axis) if by_host is None else by_host
    return _partitioned(x, axis, positions, True)


def _is_selected(x: Array, axis: int, positions: np.ndarray) -> bool:
    """Whether elements are moved between a few of them, which are selected."""
    is_long = x.ndim > 0 and x.shape[axis] >= LONG_ROW and x.size <= MAX_ELEMENTS
    is_supported = kind_of(x.dtype) in "iuf" and settings.sorting != "host"
    return is_long and is_supported and 0 < positions.size <= MAX_TARGETS and not (
        x._node.flags & TRACED
    )  # fmt: skip


def _partitioned(x: Array, axis: int, positions: np.ndarray, with_indices: bool) -> Array:
    """Elements along an axis, or their indices, between the ones at `positions` if sorted."""
    rows = moveaxis(x, axis, -1)
    requested = asarray(positions, device=x.device)
    targets = broadcast(requested._node, (*rows.shape[:-1], positions.size))
    pivots = sorting.order_statistics(rows._node, targets, settings.sorting)
    return moveaxis(Array(partitioned(rows._node, pivots, with_indices)), -1, axis)


def _by_host(x: Array, axis: int, positions: np.ndarray, with_indices: bool) -> Array | None:
    """A partition of a few elements by NumPy, which selects them with AVX-512; None of others."""
    is_short = x.size <= LONG_ROW and positions.size and x.device.memory != "own"
    is_supported = kind_of(x.dtype) in "iuf" and x.dtype != bfloat16
    if not is_short or not is_supported or x._node.flags & TRACED or settings.sorting == "kernels":
        return None
    params = tuple(positions.tolist()), axis, with_indices
    return Array(
        *bind("partition", [x._node], params, (int64 if with_indices else x.dtype, x.shape))
    )


def _partitioned_by_numpy(x: Node, *params: Any) -> Node:
    *_, with_indices = params
    return host_call(_partition, [x], params, (int64 if with_indices else x.dtype, x.shape))[0]


def _partition(x: np.ndarray, kth: tuple[int, ...], axis: int, with_indices: bool) -> np.ndarray:
    return np.argpartition(x, kth, axis) if with_indices else np.partition(x, kth, axis)


implement("partition", _partitioned_by_numpy, is_structural=True)


def _positions(kth: Any, x: Array, axis: int) -> np.ndarray:
    """The different positions that `kth` names, ascending."""
    extent = x.shape[axis] if x.ndim else 1
    positions = np.atleast_1d(np.asarray(kth)).ravel()
    if extent and ((positions < -extent) | (positions >= extent)).any():
        raise ValueError(f"[partition] kth={kth} is out of range for {extent} elements.")
    return np.unique(positions % max(extent, 1))


@structural_function(1)
def lexsort(keys: Any, axis: int = -1) -> Array:
    """Indices that sort by several keys, of which the last is the most important.

    Examples
    --------
    >>> import metalloid.numpy as np
    >>> np.lexsort(([2, 1, 3], [1, 1, 0]))
    array([2, 1, 0])
    """
    operands = as_arrays("lexsort", *keys)
    if not operands:
        raise TypeError("[lexsort] expected at least one key.")
    if operands[0].ndim == 0:
        return zeros((), int64)
    indices = sorting.argsort(operands[0], axis)
    for key in operands[1:]:
        ordered = searching.take_along_axis(key, indices, axis)
        indices = searching.take_along_axis(indices, sorting.argsort(ordered, axis), axis)
    return indices


@structural_function(2)
def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Array:
    """Indices at which values would be inserted into a sorted array."""
    return searching.searchsorted(a, v, side, sorter)


@numpy_function
def digitize(x: Any, bins: Any, right: bool = False) -> Array:
    """Indices of the bins of values.

    Parameters
    ----------
    bins : array
        Edges, ascending or descending.
    right : bool
        Whether bins include their right edge instead of the left one.
    """
    values, edges = as_arrays("digitize", x, bins)
    if kind_of(values.dtype) == "c":
        raise TypeError("[digitize] complex numbers have no order.")
    # One copy of a few edges takes less time than launches that look at them, and two answers.
    is_copied = edges.device.memory != "own" or edges.size <= _MAX_COPIED
    checked: Any = np.asarray(edges) if is_copied else edges
    is_descending = edges.size > 1 and bool(_is_after(checked[0], checked[-1]))
    checked = checked[::-1] if is_descending else checked
    if edges.size > 1 and bool(_is_after(checked[:-1], checked[1:]).any()):
        raise ValueError("[digitize] bins must be monotonically increasing or decreasing.")
    if is_descending:
        return edges.size - searching.searchsorted(
            edges[::-1], values, "left" if right else "right"
        )
    return searching.searchsorted(edges, values, "left" if right else "right")


#: Maximum edges of `digitize` that are copied from a device of its own memory.
_MAX_COPIED = 512


def _is_after(a: Any, b: Any) -> Any:
    """Whether elements follow others in sorted order, in which NaN is the last."""
    return (a > b) | ((a != a) & (b == b)) if kind_of(a.dtype) == "f" else a > b


# -- sets

#: Subarrays of more elements are compared on the host: each element is the key of a sort.
_MAX_KEYS = 16


@numpy_function
def unique(ar: Any, return_index: bool = False, return_inverse: bool = False,
           return_counts: bool = False, axis: int | None = None, *, equal_nan: bool = True,
           sorted: bool = True) -> Any:  # fmt: skip
    """Sorted distinct elements.

    Parameters
    ----------
    return_index, return_inverse, return_counts : bool
        Whether to return the index of the first of each, the indices that reconstruct the array,
        and the numbers of elements as well.
    axis : int, optional
        Compare the subarrays along an axis; those of many elements on the host.
    equal_nan : bool
        Whether all NaN are one element.
    """
    x = as_array(ar, "unique")
    flags = (True, return_index, return_inverse, return_counts)
    if axis is not None:
        (along,) = axes_of("unique", axis, x.ndim)
        axis = axis if x.ndim > 1 else None
    if axis is not None:
        rows = moveaxis(x, along, 0)
        width = rows.size // max(rows.shape[0], 1)
        if not 0 < width <= _MAX_KEYS or kind_of(x.dtype) == "c":
            return call_on_host(np.unique, (x, *flags[1:], axis), {"equal_nan": equal_nan})
        keys = rows.reshape(rows.shape[0], width)
        order = lexsort(tuple(keys[:, k] for k in range(width - 1, -1, -1)))
        index, inverse, counts = _runs(keys[order], order)
        values = moveaxis(searching.take(rows, index, axis=0), 0, along)
    elif kind_of(x.dtype) == "c":
        flat = x.ravel()
        order = complex_order.order(flat, 0)
        ordered = flat[order]
        if equal_nan:
            ordered = select(ew.isnan(ordered), 0, ordered)
        keys = stack(
            [ordered.real, ordered.imag, ew.isnan(flat[order]).astype(ordered.real.dtype)], -1
        )
        index, inverse, counts = _runs(keys, order)
        values, inverse = flat[index], inverse.reshape(x.shape)
    elif return_index or return_inverse:
        values, index, inverse, counts = sets.unique_all(x)
    elif return_counts:
        values, counts = sets.unique_counts(x)
        index = inverse = counts
    else:
        values = index = inverse = counts = sets.unique_values(x)
    has_nan = equal_nan and axis is None and kind_of(x.dtype) == "f" and values.size > 1
    if has_nan and math.isnan(values[-2]):
        number = int(ew.isnan(values).astype(int64).sum())
        last = values.size - number  # they are at the end
        counts = concat([counts[:last], counts[last:].sum().reshape(1)])
        values, index = values[: last + 1], index[: last + 1]
        inverse = ew.minimum(inverse, last)
    results = tuple(itertools.compress((values, index, inverse, counts), flags))
    return results[0] if len(results) == 1 else results


def _runs(keys: Array, order: Array) -> tuple[Array, Array, Array]:
    """First index, inverse and counts of the runs of equal rows among sorted rows.

    `order` has the index of each row before they were sorted.
    """
    changes = (keys[1:] != keys[:-1]).any(-1)
    is_first = concat([full((min(keys.shape[0], 1),), True, device=keys.device), changes])
    starts = searching.nonzero(is_first)[0]
    ends = concat([starts[1:], full((min(starts.size, 1),), keys.shape[0], device=keys.device)])
    inverse = zeros(order.shape, int64, device=keys.device)
    inverse = inverse.at[order].set(cumsum(is_first.astype(int64)) - 1)
    return order[starts], inverse, ends - starts


@numpy_function
def unique_all(x: Any) -> Any:
    """Distinct elements, first indices, inverse, and counts; see `metalloid.unique_all`."""
    return sets.unique_all(x)


@numpy_function
def unique_counts(x: Any) -> Any:
    """Distinct elements and their counts."""
    return sets.unique_counts(x)


@numpy_function
def unique_inverse(x: Any) -> Any:
    """Distinct elements, and the indices that reconstruct the array."""
    return sets.unique_inverse(x)


@numpy_function
def unique_values(x: Any) -> Any:
    """Distinct elements."""
    return sets.unique_values(x)


@structural_function(2)
def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *,
         kind: Any = None) -> Array:  # fmt: skip
    """Whether each element occurs in another array."""
    x, y = as_arrays("isin", element, test_elements)
    return sets.isin(x, y, invert=invert)


def _two_sets(where: str, a: Any, b: Any) -> tuple[Array, Array]:
    x, y = (unique(operand) for operand in as_arrays(where, a, b))
    return x, y


@numpy_function
def union1d(ar1: Any, ar2: Any) -> Array:
    """Sorted elements of either array."""
    x, y = as_arrays("union1d", ar1, ar2)
    return unique(concat([x.ravel(), y.ravel()]))  # type: ignore[no-any-return]


@numpy_function
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False
                ) -> Any:  # fmt: skip
    """Sorted elements of both arrays.

    Parameters
    ----------
    return_indices : bool
        Whether to return the first indices of them in both arrays.
    """
    first, second = (x.ravel() for x in as_arrays("intersect1d", ar1, ar2))
    if not return_indices:
        x, y = (first, second) if assume_unique else _two_sets("intersect1d", first, second)
        ordered = sort(concat([x, y]))
        return ordered[:-1][ordered[1:] == ordered[:-1]]
    x, x_index = unique(first, return_index=True)
    y, y_index = unique(second, return_index=True)
    in_x, in_y = sets.isin(x, y), sets.isin(y, x)
    return x[in_x].astype(promote(x.dtype, y.dtype)), x_index[in_x], y_index[in_y]


@numpy_function
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Array:
    """Sorted elements of the first array that are not in the second."""
    x, y = as_arrays("setdiff1d", ar1, ar2)
    x = x.ravel() if assume_unique else unique(x)
    return x[sets.isin(x, y, invert=True)]


@numpy_function
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Array:
    """Sorted elements that are in one of two arrays only."""
    x, y = as_arrays("setxor1d", ar1, ar2) if assume_unique else _two_sets("setxor1d", ar1, ar2)
    ordered = sort(concat([x.ravel(), y.ravel()]))
    if not ordered.size:
        return ordered
    limit = full((1,), True, device=ordered.device)
    changes = concat([limit, ordered[1:] != ordered[:-1], limit])
    return ordered[ew.logical_and(changes[1:], changes[:-1])]
