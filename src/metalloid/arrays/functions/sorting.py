"""Sorting functions of the array API."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metalloid.arrays.array import Array, as_array
from metalloid.arrays.execution.calls import HostCall, call_nodes, host_call
from metalloid.arrays.ir.dtypes import bfloat16, int64, kind_of
from metalloid.arrays.ir.layout import Layout, is_contiguous
from metalloid.arrays.ir.node import Node, cast
from metalloid.arrays.ir.operands import axes_of
from metalloid.arrays.ir.primitives import Implementation, bind, implement
from metalloid.arrays.ir.views import full_slices, moved_axes, sliced
from metalloid.arrays.library import merge_sort, radix_sort
from metalloid.arrays.library import order_statistics as order_statistics_kernels
from metalloid.arrays.library.selection import largest_of_chunks
from metalloid.arrays.lowering.indexing import gathered, indices_along
from metalloid.arrays.lowering.sort_dispatch import by_kernels
from metalloid.runtime.devices.device import Device
from metalloid.runtime.launch.launches import Launch
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


def order_statistics(rows: Node, positions: Node, setting: str) -> Node:
    """Bind the primitive of quantiles: the elements of each row at positions of its sorted order.

    Parameters
    ----------
    rows : Node
    positions : Node
        Integers within the rows, with the same axes but the last one.
    """
    return bind("order_statistics", [rows, positions], (setting,), (rows.dtype, positions.shape))[0]


def _sort_by_merges(x: Node, axis: int, descending: bool, setting: str) -> Node:
    return merge_sort.sort_values(x, axis, descending)


def _argsort_by_merges(x: Node, axis: int, descending: bool, setting: str) -> Node:
    return merge_sort.sort_indices(x, axis, descending)


def _sort_by_digits(x: Node, axis: int, descending: bool, setting: str) -> Node:
    return radix_sort.sort_values(x, axis, descending)


def _argsort_by_digits(x: Node, axis: int, descending: bool, setting: str) -> Node:
    return radix_sort.sort_indices(x, axis, descending)


class HostSort(HostCall):
    """A sort by NumPy."""

    is_launched = True

    def as_launch(self, args: Sequence[Layout], device: Device) -> Launch | None:
        """See `HostCall.as_launch`."""
        (rows,), (axis, descending), sorts = args, self.parameters, device.libraries.sorts
        *outer, length = rows.shape
        is_plain = axis == len(outer) and not rows.offset and is_contiguous(rows)
        if sorts is None or not is_plain or 0 in rows.shape:
            return None
        return sorts.rows(self.results[0][0].name, math.prod(outer), length, descending)


def _sort_on_host(x: Node, axis: int, descending: bool, setting: str) -> Node:
    call = HostSort(_sort, (axis, descending), ((x.dtype, x.shape),))
    return call_nodes(call, [x])[0]


def _argsort_on_host(x: Node, axis: int, descending: bool, setting: str) -> Node:
    return host_call(_argsort, [x], (axis, descending), (int64, x.shape))[0]


def _top_k_by_kernels(rows: Node, k: int, setting: str) -> tuple[Node, ...]:
    count = rows.shape[-1]
    if count <= _SORTED_FOR_TOP_K or 4 * k >= count:
        return _largest(rows, _order_of_largest(rows, k))
    indices = None
    while indices is None or rows.shape[-1] > k:
        rows, indices = _largest(rows, largest_of_chunks(rows, k), indices)
    values, indices = _largest(rows, _order_of_largest(rows, k), indices)
    return values, cast(indices, int64)


def _order_of_largest(rows: Node, k: int) -> Node:
    """The indices of the first elements in descending order."""
    axis = len(rows.shape) - 1
    if merge_sort.is_fast(rows, axis, True) or not radix_sort.has_launches(rows, axis):
        return merge_sort.sort_indices(rows, axis, True, k)
    indices = radix_sort.sort_indices(rows, axis, True)
    return sliced(indices, [*full_slices(rows.shape[:-1]), (0, 1, k)])


def _largest(rows: Node, order: Node, indices: Node | None = None) -> tuple[Node, Node]:
    """Elements of rows, and their indices in the rows from which these were selected."""
    axes, along = list(range(len(rows.shape))), indices_along(order, len(rows.shape) - 1)
    return gathered(rows, axes, along), order if indices is None else gathered(indices, axes, along)


def _is_selected_by_kernels(rows: Node, positions: Node, setting: str) -> bool:
    is_supported = order_statistics_kernels.has_launches(rows, positions.shape[-1])
    return is_supported and setting != "host" and kind_of(rows.dtype) != "c"


def _selected_by_kernels(rows: Node, positions: Node, setting: str) -> Node:
    return order_statistics_kernels.elements_in_order(rows, positions)


def _selected_by_sorting(rows: Node, positions: Node, setting: str) -> Node:
    axis = len(rows.shape) - 1
    ordered = sorted_along(rows, axis, False, setting)
    return gathered(ordered, list(range(axis + 1)), indices_along(positions, axis))


def _top_k_on_host(rows: Node, k: int, setting: str) -> tuple[Node, ...]:
    shape = (*rows.shape[:-1], k)
    return host_call(_top_k, [rows], (k,), (rows.dtype, shape), (int64, shape))


def _is_by_kernels(name: str, has_launches: Callable[..., bool]) -> Callable[..., bool]:
    def is_applicable(x: Node, axis: int, descending: bool, setting: str) -> bool:
        is_supported = has_launches(x, axis, name == "argsort")
        return is_supported and by_kernels(name, x.dtype, x.device, x.shape[axis], setting, x.size)

    return is_applicable


def _is_top_k_by_kernels(rows: Node, k: int, setting: str) -> bool:
    is_supported = k > 0 and merge_sort.has_launches(rows)
    return is_supported and by_kernels("top_k", rows.dtype, rows.device, rows.shape[-1], setting)


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


def _implement(name: str, by_merges: Callable[..., Node], by_digits: Callable[..., Node],
               on_host: Callable[..., Node]) -> None:  # fmt: skip
    implement(
        name,
        Implementation(by_merges, _is_by_kernels(name, merge_sort.is_fast)),
        Implementation(
            by_digits, _is_by_kernels(name, lambda x, axis, _: radix_sort.has_launches(x, axis))
        ),
        Implementation(
            by_merges, _is_by_kernels(name, lambda x, axis, _: merge_sort.has_launches(x))
        ),
        on_host,
        is_structural=True,
    )


_implement("sort", _sort_by_merges, _sort_by_digits, _sort_on_host)
_implement("argsort", _argsort_by_merges, _argsort_by_digits, _argsort_on_host)
implement("top_k", Implementation(_top_k_by_kernels, _is_top_k_by_kernels), _top_k_on_host,
          is_structural=True)  # fmt: skip
implement("order_statistics", Implementation(_selected_by_kernels, _is_selected_by_kernels),
          _selected_by_sorting, is_structural=True)  # fmt: skip
