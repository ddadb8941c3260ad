"""Rules of matrix products and scans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.functions.evenly_spaced import arange
from metalloid.arrays.functions.scans import cummax, cumulative_prod, cumulative_sum
from metalloid.arrays.functions.searching import take_along_axis
from metalloid.arrays.functions.select import where
from metalloid.arrays.ir.node import Node
from metalloid.arrays.ir.primitives import bind
from metalloid.arrays.ir.views import flipped
from metalloid.arrays.lowering.matmul import stacked_product
from metalloid.transforms.rules.registry import Rule, define_rule, stacks
from metalloid.transforms.tangents import added, conjugate

Nodes = Sequence["Node | None"]


def _matmul_tangents(args: Sequence[Node], params: Any, results: Any, tangents: Nodes) -> Nodes:
    (a, b), (da, db) = args, tangents
    left = None if da is None else stacked_product(da, b, params)
    right = None if db is None else stacked_product(a, db, params)
    return [added([left, right])]


def _matmul_transpose(cotangents: Nodes, args: Nodes, params: Any) -> Nodes:
    (ct,), (a, b) = cotangents, args
    assert ct is not None
    left = None if b is None else stacked_product(ct, conjugate(Array(b).mT)._node, params)
    right = None if a is None else stacked_product(conjugate(Array(a).mT)._node, ct, params)
    return [left, right]


def _matmul_batch(args: Sequence[Node], is_batched: Sequence[bool], params: Any) -> list[Node]:
    a, b = stacks(args, is_batched)
    return [stacked_product(a, b, params)]


define_rule("matmul", Rule(_matmul_tangents, _matmul_batch, _matmul_transpose))


def _scan(x: Node, name: str, axis: int) -> Node:
    return bind("scan", [x], (name, axis), (x.dtype, x.shape))[0]


def _scan_tangents(args: Sequence[Node], params: Any, results: Any, tangents: Nodes) -> Nodes:
    (x,), (tangent,), (name, axis) = args, tangents, params
    if tangent is None:
        return [None]
    if name == "cumulative_sum":
        return [_scan(tangent, name, axis)]
    if name in ("cummax", "cummin"):
        return [_at_extremes(Array(x), Array(results[0]), Array(tangent), axis)._node]
    # Up to the first zero factors are divided by; after it, all others are multiplied with the
    # tangent of the zero.
    values, along = Array(x), Array(tangent)
    is_zero = values == 0
    is_first = is_zero & (cumulative_sum(is_zero, axis=axis) == 1)
    ratios = where(is_zero, 0, along) / where(is_zero, 1, values)
    before = cumulative_sum(ratios, axis=axis) * Array(results[0])
    others = cumulative_prod(where(is_first, 1, values), axis=axis)
    after = cumulative_sum(where(is_first, along, 0), axis=axis) * others
    return [(before + after)._node]


def _at_extremes(x: Array, extremes: Array, tangent: Array, axis: int) -> Array:
    """Tangents of the elements that cumulative extremes are equal to; the latest, as in MLX."""
    indices = arange(x.shape[axis], device=x.device).reshape(-1, *(1 for _ in x.shape[axis + 1 :]))
    is_extreme = (x == extremes) | (x != x)
    return take_along_axis(tangent, cummax(where(is_extreme, indices, 0), axis=axis), axis=axis)


def _scan_transpose(cotangents: Nodes, args: Nodes, params: Any) -> Nodes:
    (ct,), (name, axis) = cotangents, params
    assert ct is not None
    return [flipped(_scan(flipped(ct, (axis,)), name, axis), (axis,))]


def _scan_batch(args: Sequence[Node], is_batched: Sequence[bool], params: Any) -> list[Node]:
    name, axis = params
    return [_scan(args[0], name, axis + 1)]


define_rule("scan", Rule(_scan_tangents, _scan_batch, _scan_transpose))
