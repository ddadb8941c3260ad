"""Sorting functions of the array API."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from metalloid.arrays.array import Array, as_array
from metalloid.arrays.execution.calls import host_call, launch_call
from metalloid.arrays.ir.dtypes import bfloat16, int64, uint32
from metalloid.arrays.ir.node import Node, cast, fresh
from metalloid.arrays.ir.operands import axes_of
from metalloid.arrays.ir.primitives import Implementation, bind, implement
from metalloid.arrays.ir.views import full_slices, moved_axes, sliced
from metalloid.arrays.library import radix_sort
from metalloid.arrays.library.merge_sort import has_launches, sort_indices, sort_values
from metalloid.arrays.library.sort import sorted_rows, top_k_rows
from metalloid.arrays.lowering.indexing import gathered, indices_along
from metalloid.arrays.lowering.sort_dispatch import by_kernels
from metalloid.settings import settings

#: Longer rows are searched for the largest elements before these are sorted.
_SORTED_FOR_TOP_K = 2**14


def sort(
    x: Any, /, axis: int | None = -1, *, descending: bool = False, stable: bool = True
) -> Array:
    """Sort elements along an axis, or the flattened array if it is None; NaN is the largest.

    Equal elements are interchangeable: zeros of both signs may be in any order.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.sort(mtl.asarray([3, 1, 2]), descending=True)
    array([3, 2, 1], dtype=int64)
    """
    x, along = _operand(x, "sort", axis)
    return Array(sorted_along(x._node, along, descending, settings.sorting))


def argsort(x: Any, /, axis: int | None = -1, *, descending: bool = False,
            stable: bool = True) -> Array:  # fmt: skip
    """Return the indices that sort elements along an axis; equal elements keep their order.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.argsort(mtl.asarray([3.0, 1.0, 3.0]), descending=True)
    array([0, 2, 1], dtype=int64)
    """
    x, along = _operand(x, "argsort", axis)
    return Array(order_along(x._node, along, descending, settings.sorting))


def top_k(x: Any, k: int, /, axis: int = -1) -> tuple[Array, Array]:
    """Return the `k` largest elements along an axis in descending order, and their indices.

    Of equal elements the first are chosen.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.top_k(mtl.asarray([3, 1, 2]), 2)
    (array([3, 2], dtype=int64), array([0, 2], dtype=int64))
    """
    x, along = _operand(x, "top_k", axis)
    if k < 0:
        raise ValueError(f"[top_k] k must not be negative, got {k}.")
    rows = moved_axes(x._node, along, -1)
    results = largest_of_rows(rows, min(k, x.shape[along]), settings.sorting)
    values, indices = (moved_axes(result, -1, along) for result in results)
    return Array(values), Array(indices)


def _operand(x: Any, where: str, axis: int | None) -> tuple[Array, int]:
    """An array and the axis to sort along; flattened if the axis is None."""
    array = as_array(x, where)
    if axis is None:
        array, axis = array.ravel(), 0
    (along,) = axes_of(where, axis, array.ndim)
    return array, along


def sorted_along(x: Node, axis: int, descending: bool, setting: str) -> Node:
    """Bind the primitive of `sort`; the setting is that of the time of the call."""
    return bind("sort", [x], (axis, descending, setting), (x.dtype, x.shape))[0]


def order_along(x: Node, axis: int, descending: bool, setting: str) -> Node:
    """Bind the primitive of `argsort`."""
    return bind("argsort", [x], (axis, descending, setting), (int64, x.shape))[0]


def largest_of_rows(rows: Node, k: int, setting: str) -> tuple[Node, ...]:
    """Bind the primitive of `top_k`, of the last axis."""
    shape = (*rows.shape[:-1], k)
    return bind("top_k", [rows], (k, setting), (rows.dtype, shape), (int64, shape))


def _sort_by_merges(x: Node, axis: int, descending: bool, setting: str) -> Node:
    return sort_values(x, axis, descending)


def _argsort_by_merges(x: Node, axis: int, descending: bool, setting: str) -> Node:
    return sort_indices(x, axis, descending)


def _top_k_by_merges(rows: Node, k: int, setting: str) -> tuple[Node, ...]:
    return _largest(rows, sort_indices(rows, len(rows.shape) - 1, True, k))


def _sort_by_digits(x: Node, axis: int, descending: bool, setting: str) -> Node:
    return radix_sort.sort_values(x, axis, descending)


def _argsort_by_digits(x: Node, axis: int, descending: bool, setting: str) -> Node:
    return radix_sort.sort_indices(x, axis, descending)


def _top_k_by_digits(rows: Node, k: int, setting: str) -> tuple[Node, ...]:
    indices = radix_sort.sort_indices(rows, len(rows.shape) - 1, True)
    return _largest(rows, sliced(indices, [*full_slices(rows.shape[:-1]), (0, 1, k)]))


def _largest(rows: Node, indices: Node) -> tuple[Node, Node]:
    """Elements of rows, and their indices."""
    axis = len(rows.shape) - 1
    return gathered(rows, list(range(axis + 1)), indices_along(indices, axis)), indices


def _sort_by_kernels(x: Node, axis: int, descending: bool, setting: str) -> Node:
    return _by_kernels(x, axis, descending, with_indices=False)[0]


def _sort_on_host(x: Node, axis: int, descending: bool, setting: str) -> Node:
    return host_call(_sort, [x], (axis, descending), (x.dtype, x.shape))[0]


def _argsort_by_kernels(x: Node, axis: int, descending: bool, setting: str) -> Node:
    return _by_kernels(x, axis, descending, with_indices=True)[1]


def _argsort_on_host(x: Node, axis: int, descending: bool, setting: str) -> Node:
    return host_call(_argsort, [x], (axis, descending), (int64, x.shape))[0]


def _by_kernels(x: Node, axis: int, descending: bool, with_indices: bool) -> tuple[Node, ...]:
    """Sort by kernels: the elements, and their indices if required."""
    rows = moved_axes(x, axis, -1)
    result_types = ((x.dtype, rows.shape), (uint32, rows.shape))[: 1 + with_indices]
    by_rows = launch_call(sorted_rows, [rows], (descending, with_indices), *result_types)
    results = [moved_axes(result, -1, axis) for result in by_rows]
    return (*results[:1], *(cast(indices, int64) for indices in results[1:]))


def _top_k_by_kernels(rows: Node, k: int, setting: str) -> tuple[Node, ...]:
    shape = (*rows.shape[:-1], k)
    if not math.prod(shape):
        return fresh(rows.dtype, shape, rows.device), fresh(int64, shape, rows.device)
    values, indices = launch_call(top_k_rows, [rows], (k,), (rows.dtype, shape), (uint32, shape))
    return values, cast(indices, int64)


def _top_k_on_host(rows: Node, k: int, setting: str) -> tuple[Node, ...]:
    shape = (*rows.shape[:-1], k)
    return host_call(_top_k, [rows], (k,), (rows.dtype, shape), (int64, shape))


def _is_by_kernels(name: str) -> Callable[..., bool]:
    def is_applicable(x: Node, *params: Any) -> bool:
        count = x.shape[-1 if name == "top_k" else params[0]]
        return by_kernels(name, x.dtype, x.device, count, params[-1])

    return is_applicable


def _is_by_merges(name: str) -> Callable[..., bool]:
    def is_applicable(x: Node, *params: Any) -> bool:
        is_supported = has_launches(x, params[0], name == "argsort")
        return is_supported and by_kernels(name, x.dtype, x.device, x.shape[params[0]], params[-1])

    return is_applicable


def _is_by_digits(name: str) -> Callable[..., bool]:
    def is_applicable(x: Node, *params: Any) -> bool:
        is_supported = radix_sort.has_launches(x, params[0])
        return is_supported and by_kernels(name, x.dtype, x.device, x.shape[params[0]], params[-1])

    return is_applicable


def _is_top_k_by_merges(rows: Node, k: int, setting: str) -> bool:
    return has_launches(rows, len(rows.shape) - 1, True) and _is_sorted_for_top_k(rows, k, setting)


def _is_top_k_by_digits(rows: Node, k: int, setting: str) -> bool:
    is_supported = radix_sort.has_launches(rows, len(rows.shape) - 1)
    return is_supported and _is_sorted_for_top_k(rows, k, setting)


def _is_sorted_for_top_k(rows: Node, k: int, setting: str) -> bool:
    """Whether to sort rows, instead of selecting the largest elements first."""
    count = rows.shape[-1]
    is_short = count <= _SORTED_FOR_TOP_K or 4 * k >= count
    return k > 0 and is_short and by_kernels("top_k", rows.dtype, rows.device, count, setting)


def comparable(x: np.ndarray) -> np.ndarray:
    """Convert to a type that NumPy sorts with NaN last: it does not for bfloat16."""
    return x.astype(np.float32) if x.dtype == bfloat16 else x


def _sort(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    # Equal numbers are interchangeable. NumPy's stable sort is faster for single bytes.
    result = np.sort(comparable(x), axis=axis, stable=x.dtype.itemsize == 1)
    return np.flip(result, axis) if descending else result


def _argsort(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    x = comparable(x)
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    reversed_order = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    indices: np.ndarray = x.shape[axis] - 1 - np.flip(reversed_order, axis)
    return indices


def _top_k(x: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    indices = _argsort(x, -1, True)[..., :k]
    return np.take_along_axis(x, indices, -1), indices


implement("sort", Implementation(_sort_by_merges, _is_by_merges("sort")),
          Implementation(_sort_by_digits, _is_by_digits("sort")),
          Implementation(_sort_by_kernels, _is_by_kernels("sort")), _sort_on_host)  # fmt: skip
implement("argsort", Implementation(_argsort_by_merges, _is_by_merges("argsort")),
          Implementation(_argsort_by_digits, _is_by_digits("argsort")),
          Implementation(_argsort_by_kernels, _is_by_kernels("argsort")),
          _argsort_on_host)  # fmt: skip
implement("top_k", Implementation(_top_k_by_merges, _is_top_k_by_merges),
          Implementation(_top_k_by_digits, _is_top_k_by_digits),
          Implementation(_top_k_by_kernels, _is_by_kernels("top_k")), _top_k_on_host)  # fmt: skip
