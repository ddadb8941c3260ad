"""Primitives that return their operands, and their rules."""

from __future__ import annotations

from collections.abc import Sequence

from metalloid.arrays.ir.layout import ViewOp
from metalloid.arrays.ir.node import VIEW, Node
from metalloid.arrays.ir.primitives import bind, implement
from metalloid.transforms.rules.registry import Rule, define_rule


def stopped(x: Node) -> Node:
    """The same values without a derivative."""
    return bind("stop_gradient", [x], (), (x.dtype, x.shape))[0]


def _batch(args: Sequence[Node], is_batched: object, params: object) -> list[Node]:
    return [stopped(args[0])]


implement("stop_gradient", lambda x: x)
define_rule("stop_gradient", Rule(None, _batch))


def barrier(x: Node) -> Node:
    """The same values, which are never merged with equal ones that are computed otherwise."""
    return bind("optimization_barrier", [x], (), (x.dtype, x.shape))[0]


def _view(x: Node) -> Node:
    """A view of the same shape: as a node it differs from its operand."""
    return Node(VIEW, ViewOp("reshape", x.shape), (x,), x.dtype, x.shape, x.device)


implement("optimization_barrier", _view)
define_rule(
    "optimization_barrier",
    Rule(
        tangents=lambda args, params, results, tangents: tangents,
        batch=lambda args, is_batched, params: [barrier(args[0])],
    ),
)
