"""Forward mode: the tangents of an expression.

Tangents are expressions of the tangents of the inputs, in which they are linear.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from metalloid.arrays.array import Array
from metalloid.arrays.functions.scans import cumulative_prod
from metalloid.arrays.ir.dtypes import kind_of
from metalloid.arrays.ir.node import (
    CUSTOM_CALL,
    ELEMENTWISE,
    GATHER,
    GET_TUPLE_ITEM,
    PRIMITIVE,
    REDUCE,
    SCATTER_SLICES,
    TRACER,
    VIEW,
    Node,
    broadcast,
    move,
    permute,
    reduce,
    reshape,
)
from metalloid.arrays.ir.substitute import traced_nodes
from metalloid.arrays.ir.views import flipped
from metalloid.transforms import elementwise
from metalloid.transforms.rules.kernels import tangents_of_call
from metalloid.transforms.rules.registry import operands_of_tangents, rule_of
from metalloid.transforms.tangents import added, index_error, zeros_like

Tangents = Sequence[Node | None]


def push_forward(roots: Sequence[Node], tangents: dict[Node, Node]) -> list[Node | None]:
    """Tangents of expressions; None for zero.

    Parameters
    ----------
    tangents : dict
        Of the inputs. It also gets those of all nodes in between.

    Raises
    ------
    CompileError
        If a kernel that depends on an input is not differentiated.
    """
    results: dict[Node, Tangents] = {}  # of primitives
    for node in traced_nodes(roots, operands_of_tangents):
        if node in tangents:
            continue
        if node.kind is GET_TUPLE_ITEM:
            (primitive,) = node.args
            tangent = results[primitive][node.data] if primitive in results else None
        else:
            below = [tangents.get(arg) for arg in node.args]
            if not any(below):
                continue
            if node.kind is CUSTOM_CALL:
                results[node] = tangents_of_call(node, below)
                continue
            if node.kind is PRIMITIVE:
                results[node] = _of_primitive(node, below)
                if len(results[node]) > 1:
                    continue
                (tangent,) = results[node]
            else:
                tangent = _of_node(node, below)
        if tangent is not None:
            tangents[node] = tangent
    return [tangents.get(root) for root in roots]


def _of_primitive(node: Node, below: Tangents) -> Tangents:
    rule = rule_of(node.data.name)
    count = len(node.data.results)
    if rule.tangents is None:
        return [None] * count
    if count == 1:
        results: tuple[Node, ...] = (node,)
    else:
        results = tuple(
            Node(GET_TUPLE_ITEM, k, (node,), dtype, shape, node.device)
            for k, (dtype, shape) in enumerate(node.data.results)
        )
    return rule.tangents(node.args, node.data.params, results, below)


def _of_node(node: Node, below: Tangents) -> Node | None:
    """The tangent of a node, at least one of whose operands has one."""
    kind, first = node.kind, below[0]
    if kind is ELEMENTWISE:
        if kind_of(node.dtype) in "iu":
            # Integers have no derivative, but those computed from an argument are marked, so that
            # they are refused as indices.
            pairs = zip(below, node.args, strict=True)
            is_marked = any(t is not None and kind_of(arg.dtype) in "iu" for t, arg in pairs)
            return zeros_like(node) if is_marked else None
        return added(
            [
                elementwise.tangent(node.data, k, node.args, node, tangent)
                for k, tangent in enumerate(below)
                if tangent is not None
            ]
        )
    if kind is TRACER:  # of a transform inside
        return first
    if kind is SCATTER_SLICES:
        tangents = tuple(t or zeros_like(arg) for t, arg in zip(below, node.args, strict=True))
        return Node(kind, node.data, tangents, node.dtype, node.shape, node.device)
    if kind is GATHER and any(below[1:]):
        raise index_error("gather")
    assert first is not None
    if kind is VIEW:
        return move(first, node.data)
    if kind is GATHER:
        args = (first, *node.args[1:])
        return Node(kind, node.data, args, node.dtype, node.shape, node.device)
    if kind is REDUCE:
        return _of_reduction(node, first)
    raise AssertionError(node)


def _of_reduction(node: Node, tangent: Node) -> Node | None:
    name, axes = node.data
    (arg,) = node.args
    if name == "sum":
        return reduce(tangent, name, axes)
    if name in (
        "max",
        "min",
        "nanmax",
        "nanmin",
    ):  # equal extremes share the tangent, as in MLX and JAX
        is_extreme = (Array(arg) == Array(broadcast(node, arg.shape))).astype(node.dtype)
        count = reduce(is_extreme._node, "sum", axes)
        total = reduce((Array(tangent) * is_extreme)._node, "sum", axes)
        return (Array(total) / Array(count))._node
    if name == "prod":
        return _of_product(arg, axes, tangent)
    return None


def _of_product(arg: Node, axes: tuple[int, ...], tangent: Node) -> Node:
    """Tangents times the products of all other factors, which need no division by a factor."""
    rank = len(arg.shape)
    order = (*(k for k in range(rank) if k not in axes), *axes)
    outer = tuple(arg.shape[k] for k in order[: rank - len(axes)])
    rows = (*outer, math.prod(arg.shape[k] for k in axes))
    factors = reshape(permute(arg, order), rows)
    last = (len(outer),)
    before, after = _exclusive(factors), flipped(_exclusive(flipped(factors, last)), last)
    terms = Array(reshape(permute(tangent, order), rows)) * Array(before) * Array(after)
    total = reduce(terms._node, "sum", last)
    return reshape(total, tuple(1 if k in axes else n for k, n in enumerate(arg.shape)))


def _exclusive(rows: Node) -> Node:
    """Products of all factors before each along the last axis."""
    scanned = cumulative_prod(Array(rows), axis=-1, include_initial=True)
    return scanned[..., :-1]._node
