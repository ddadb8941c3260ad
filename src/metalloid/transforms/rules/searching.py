"""Rules of searches and counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.functions.creation import full, zeros
from metalloid.arrays.functions.elementwise import equal, minimum, not_equal
from metalloid.arrays.functions.histograms import counts_of, weighted_counts_of
from metalloid.arrays.functions.searching import elements_along, elements_at, insertion_points
from metalloid.arrays.functions.select import where
from metalloid.arrays.functions.sorting import sorted_along
from metalloid.arrays.ir.dtypes import bool_, int64, kind_of, uint8
from metalloid.arrays.ir.index_checks import checked
from metalloid.arrays.ir.node import Node, iota, reshape
from metalloid.arrays.ir.primitives import bind
from metalloid.transforms.rules.registry import Rule, define_rule, stacks
from metalloid.transforms.tangents import index_error, zeros_like

Nodes = Sequence["Node | None"]


def _searchsorted_batch(
    args: Sequence[Node], is_batched: Sequence[bool], params: Any
) -> list[Node]:
    side, setting = params
    if not is_batched[0]:
        return [insertion_points(args[0], args[1], side, setting)]
    rows, values = stacks(args, is_batched)
    return [reshape(_insertion_points_of_rows(rows, _rows(values), side), values.shape)]


def _rows(stack: Node) -> Node:
    """One row for each element of the batch."""
    size = stack.shape[0]
    return reshape(stack, (size, stack.size // size if size else 0))


def _insertion_points_of_rows(rows: Node, values: Node, side: str) -> Node:
    """Search in several sorted rows at once, by bisection; each row has its own values."""
    length = rows.shape[1]
    low = zeros(values.shape, dtype=int64, device=values.device)
    high = low + length
    for _ in range(length.bit_length()):
        middle = (low + high) // 2
        at = minimum(middle, length - 1)
        element = Array(elements_along(rows, at._node, 1))
        if side == "left":
            is_after = _is_less(element, Array(values))
        else:
            is_after = ~_is_less(Array(values), element)
        is_open = low < high
        low = where(is_open & is_after, middle + 1, low)
        high = where(is_open & ~is_after, middle, high)
    return low._node


def _is_less(a: Array, b: Array) -> Array:
    """The order of sorts: NaN is the largest, and real parts of complex numbers count first."""
    if kind_of(a.dtype) == "c":
        is_equal = ~_is_less(a.real, b.real) & ~_is_less(b.real, a.real)
        return _is_less(a.real, b.real) | (is_equal & _is_less(a.imag, b.imag))
    if a.dtype == bool_:
        a, b = a.astype(uint8), b.astype(uint8)
    return (a < b) | ((b != b) & (a == a))


def _isin_batch(args: Sequence[Node], is_batched: Sequence[bool], params: Any) -> list[Node]:
    if not is_batched[1]:
        return [bind("isin", args, params, (bool_, args[0].shape))[0]]
    invert, setting = params
    values, rows = stacks(args, is_batched)
    if not rows.size:
        return [full(values.shape, invert, device=values.device)._node]
    ordered, flat = sorted_along(rows, 1, False, setting), _rows(values)
    positions = Array(_insertion_points_of_rows(ordered, flat, "left"))
    at = minimum(positions, rows.shape[1] - 1)._node
    nearest = Array(elements_along(ordered, at, 1))
    result = (not_equal if invert else equal)(nearest, Array(flat))
    return [reshape(result._node, values.shape)]


def _numbered(indices: Node, count: int) -> Node:
    """Indices of all rows as indices of one result: those of a row follow those before it.

    Indices from `count` on are not counted; here they are those after the last row.
    """
    size, rows = indices.shape[0], Array(indices)
    first = Array(iota(indices.shape, 0, indices.device)) * count
    return where(rows < count, rows + first, size * count).ravel()._node


def _checked_index_tangents(args: Sequence[Node], params: Any, results: Any,
                            tangents: Nodes) -> Nodes:  # fmt: skip
    raise index_error("index")


def _checked_index_batch(args: Sequence[Node], is_batched: Sequence[bool],
                         params: Any) -> list[Node]:  # fmt: skip
    (index,), (check,) = args, params
    return [checked(index, check)]


def _bincount_batch(args: Sequence[Node], is_batched: Sequence[bool], params: Any) -> list[Node]:
    (indices,), (count, setting) = args, params
    size = indices.shape[0]
    counts = counts_of(_numbered(indices, count), size * count, setting)
    return [reshape(counts, (size, count))]


def _weighted_tangents(args: Sequence[Node], params: Any, results: Any, tangents: Nodes) -> Nodes:
    tangent = tangents[1]
    return [None if tangent is None else weighted_counts_of(args[0], tangent, *params)]


def _weighted_transpose(cotangents: Nodes, args: Nodes, params: Any) -> Nodes:
    (cotangent,), (indices, _), (count,) = cotangents, args, params
    assert cotangent is not None
    assert indices is not None
    if not count:
        return [None, zeros_like(cotangent, indices.shape)]
    numbers = Array(indices)
    own = elements_at(Array(cotangent), minimum(numbers, count - 1))
    return [None, where(numbers < count, own, 0)._node]


def _weighted_batch(args: Sequence[Node], is_batched: Sequence[bool], params: Any) -> list[Node]:
    (count,) = params
    indices, weights = stacks(args, is_batched)
    size = indices.shape[0]
    flat = reshape(weights, (weights.size,))
    counts = weighted_counts_of(_numbered(indices, count), flat, size * count)
    return [reshape(counts, (size, count))]


define_rule("checked_index", Rule(_checked_index_tangents, batch=_checked_index_batch))
define_rule("searchsorted", Rule(None, _searchsorted_batch))
define_rule("isin", Rule(None, _isin_batch))
define_rule("bincount", Rule(None, _bincount_batch))
define_rule("weighted_bincount", Rule(_weighted_tangents, _weighted_batch, _weighted_transpose))
