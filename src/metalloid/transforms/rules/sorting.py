"""Rules of sorts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metalloid.arrays.functions.searching import elements_along
from metalloid.arrays.functions.sorting import (
    largest_of_rows,
    order_along,
    order_statistics,
    sorted_along,
)
from metalloid.arrays.ir.node import Node, broadcast
from metalloid.transforms.rules.registry import Rule, define_rule

Nodes = Sequence["Node | None"]


def _sort_tangents(args: Sequence[Node], params: Any, results: Any, tangents: Nodes) -> Nodes:
    (x,), (tangent,), (axis, *_) = args, tangents, params
    if tangent is None:
        return [None]
    return [elements_along(tangent, order_along(x, *params), axis)]


def _top_k_tangents(args: Sequence[Node], params: Any, results: Any, tangents: Nodes) -> Nodes:
    (tangent,), (_, indices) = tangents, results
    if tangent is None:
        return [None, None]
    return [elements_along(tangent, indices, len(indices.shape) - 1), None]


def _order_statistics_tangents(
    args: Sequence[Node], params: Any, results: Any, tangents: Nodes
) -> Nodes:
    (rows, positions), (tangent, _), (setting,) = args, tangents, params
    if tangent is None:
        return [None]
    axis = len(rows.shape) - 1
    order = elements_along(order_along(rows, axis, False, setting), positions, axis)
    return [elements_along(tangent, order, axis)]


def _order_statistics_batch(
    args: Sequence[Node], is_batched: Sequence[bool], params: Any
) -> list[Node]:
    rows, positions = args
    if not is_batched[0]:
        rows = broadcast(rows, (positions.shape[0], *rows.shape))
    if not is_batched[1]:
        positions = broadcast(positions, (rows.shape[0], *positions.shape))
    return [order_statistics(rows, positions, *params)]


def _sort_batch(args: Sequence[Node], is_batched: Sequence[bool], params: Any) -> list[Node]:
    axis, *rest = params
    return [sorted_along(args[0], axis + 1, *rest)]


def _argsort_batch(args: Sequence[Node], is_batched: Sequence[bool], params: Any) -> list[Node]:
    axis, *rest = params
    return [order_along(args[0], axis + 1, *rest)]


def _top_k_batch(args: Sequence[Node], is_batched: Sequence[bool], params: Any) -> Sequence[Node]:
    return largest_of_rows(args[0], *params)


define_rule("sort", Rule(_sort_tangents, _sort_batch))
define_rule("argsort", Rule(None, _argsort_batch))
define_rule("top_k", Rule(_top_k_tangents, _top_k_batch))
define_rule("order_statistics", Rule(_order_statistics_tangents, _order_statistics_batch))
