"""Searching functions of the array API."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from metalloid.arrays.array import Array, as_array, as_arrays
from metalloid.arrays.execution.calls import host_call
from metalloid.arrays.functions.sorting import comparable
from metalloid.arrays.interop.dlpack import unshared
from metalloid.arrays.ir.dtypes import bool_, int64, kind_of, promote
from metalloid.arrays.ir.node import Node, broadcast, cast
from metalloid.arrays.ir.operands import axes_of, binary_operands, is_number
from metalloid.arrays.ir.primitives import Implementation, bind, implement
from metalloid.arrays.ir.views import concatenated, full_slices, sliced
from metalloid.arrays.library.searching import has_launches, insertion_indices
from metalloid.arrays.lowering.indexing import (
    checked_index,
    gathered,
    indices_along,
    nonzero_indices,
)
from metalloid.arrays.lowering.reductions import Axis, summed
from metalloid.arrays.lowering.sort_dispatch import by_kernels
from metalloid.settings import settings


def argmax(x: Any, /, axis: int | None = None, keepdims: bool = False) -> Array:
    """Return the index of the first largest element; NaN is the largest.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.argmax(mtl.asarray([1, 5, 5]))
    array(1, dtype=int64)
    """
    return as_array(x, "argmax").argmax(axis, keepdims)


def argmin(x: Any, /, axis: int | None = None, keepdims: bool = False) -> Array:
    """Return the index of the first smallest element; see `argmax`."""
    return as_array(x, "argmin").argmin(axis, keepdims)


def nonzero(x: Any, /) -> tuple[Array, ...]:
    """Return the indices of the nonzero elements, one array per axis. `x` is evaluated.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.nonzero(mtl.asarray([0, 3, 0, 4]))
    (array([1, 3], dtype=int64),)
    """
    x = as_array(x, "nonzero")
    if x.ndim == 0:
        raise ValueError("[nonzero] expected at least one axis.")
    return tuple(Array(index) for index in nonzero_indices(cast(x._node, bool_)))


def count_nonzero(x: Any, /, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """Count the nonzero elements."""
    x = as_array(x, "count_nonzero")
    return Array(summed(cast(x._node, bool_), "sum", axis, int64, keepdims))


def searchsorted(x1: Any, x2: Any, /, side: str = "left", sorter: Any = None) -> Array:
    """Return the indices at which elements of `x2` would be inserted into the sorted `x1`.

    Parameters
    ----------
    side : "left" or "right"
        Whether to insert before or after equal elements.
    sorter : Array, optional
        Indices that sort `x1`, if it is not sorted.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.searchsorted(mtl.asarray([1, 2, 2, 3]), mtl.asarray([2, 9]), side="right")
    array([3, 4], dtype=int64)
    """
    if side not in ("left", "right"):
        raise ValueError(f"[searchsorted] side must be 'left' or 'right', got {side!r}.")
    x1, x2 = as_arrays("searchsorted", x1, _in_type_of(x1, x2))
    if x1.ndim != 1:
        raise ValueError(f"[searchsorted] x1 must have one axis, got shape {x1.shape}.")
    sorted_values, values = binary_operands("searchsorted", x1, x2)
    dtype = promote(sorted_values.dtype, values.dtype)
    if sorter is not None:
        sorted_values = gathered(
            sorted_values,
            [0],
            [checked_index(as_array(sorter, "searchsorted", x1.device)._node, x1.shape[0], 0)],
        )
    sorted_values, values = cast(sorted_values, dtype), cast(values, dtype)
    return Array(insertion_points(sorted_values, values, side, settings.sorting))


def _in_type_of(x1: Any, x2: Any) -> Any:
    """An integer of Python in the type of an array of integers, if that can hold it."""
    is_integer = isinstance(x2, int) and isinstance(x1, Array) and kind_of(x1.dtype) in "iu"
    limits = np.iinfo(x1.dtype) if is_integer else None
    return x1.dtype.type(x2) if limits and limits.min <= x2 <= limits.max else x2


def insertion_points(x1: Node, x2: Node, side: str, setting: str) -> Node:
    """Bind the primitive of `searchsorted`, of operands of one type."""
    return bind("searchsorted", [x1, x2], (side, setting), (int64, x2.shape))[0]


def _is_by_kernels(x1: Node, x2: Node, side: str, setting: str) -> bool:
    is_supported = has_launches(x1, x2)
    return is_supported and by_kernels("searchsorted", x2.dtype, x2.device, x2.size, setting)


def _search_by_kernels(x1: Node, x2: Node, side: str, setting: str) -> Node:
    return insertion_indices(x1, x2, side == "right")


def _search_on_host(x1: Node, x2: Node, side: str, setting: str) -> Node:
    return host_call(_searchsorted, [x1, x2], (side,), (int64, x2.shape))[0]


implement("searchsorted", Implementation(_search_by_kernels, _is_by_kernels), _search_on_host,
          is_structural=True)  # fmt: skip


def _searchsorted(x1: np.ndarray, x2: np.ndarray, side: Any) -> np.ndarray:
    return np.asarray(np.searchsorted(comparable(x1), comparable(x2), side))


def take(x: Any, indices: Any, /, axis: int | None = None) -> Array:
    """Return the elements of the flattened array, or the subarrays along an axis, at indices.

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
    array, index = as_arrays("take", x, indices)
    if axis is None:
        array, axis = array.ravel(), 0
    (along,) = axes_of("take", axis, array.ndim)
    return array[(slice(None),) * along + (index,)].copy()


def take_along_axis(x: Any, indices: Any, /, axis: int = -1) -> Array:
    """Return elements along an axis, at indices that vary along the other axes."""
    array, index = as_arrays("take_along_axis", x, indices)
    (along,) = axes_of("take_along_axis", axis, array.ndim)
    shape = tuple(index.shape[k] if k == along else n for k, n in enumerate(array.shape))
    return array[tuple(map(Array, indices_along(broadcast(index._node, shape), along)))]


def elements_at(x: Array, indices: Array) -> Array:
    """Return the elements of a vector at indices that are valid; they are not checked."""
    return Array(gathered(x._node, [0], [indices._node]))


def elements_along(node: Node, indices: Node, axis: int) -> Node:
    """Elements along an axis, as `take_along_axis`, at indices that are not checked."""
    return gathered(node, list(range(len(node.shape))), indices_along(indices, axis))


def diff(x: Any, /, n: int = 1, axis: int = -1, prepend: Any = None,
         append: Any = None) -> Array:  # fmt: skip
    """Return the `n`-th differences of neighbouring elements along an axis.

    Parameters
    ----------
    prepend, append : Array or number, optional
        Elements before and after `x`. A number precedes or follows every row.
    """
    given = [operand for operand in (prepend, x, append) if operand is not None]
    operands = as_arrays("diff", *given)
    x = operands[prepend is not None]
    (along,) = axes_of("diff", axis, x.ndim)
    edge = tuple(1 if k == along else extent for k, extent in enumerate(x.shape))
    arrays = [e for e, own in zip(operands, given, strict=True) if not is_number(own)]
    dtype = functools.reduce(promote, (e.dtype for e in arrays))
    nodes = [cast(e._node, dtype) for e in operands]
    nodes = [node if node.shape else broadcast(node, edge) for node in nodes]
    for node in nodes:
        if tuple(1 if k == along else n for k, n in enumerate(node.shape)) != edge:
            raise ValueError(
                f"[diff] elements of shape {node.shape} do not fit {x.shape} along axis {along}."
            )
    node = concatenated(nodes, along) if len(nodes) > 1 else nodes[0]
    for _ in range(n):
        extent = node.shape[along]
        left, right = full_slices(node.shape), full_slices(node.shape)
        left[along] = (0, 1, max(extent - 1, 0))
        right[along] = (min(1, extent), 1, max(extent - 1, 0))
        high, low = Array(sliced(node, right)), Array(sliced(node, left))
        node = (high != low)._node if kind_of(node.dtype) == "b" else (high - low)._node
    return Array(unshared(node))
