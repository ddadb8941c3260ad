"""Copies of expressions with other operands: how traced expressions get their values."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.node import (
    ABSTRACT,
    CHECKED,
    CUSTOM_CALL,
    GET_TUPLE_ITEM,
    HAS_PRIMITIVES,
    MATMUL,
    PRIMITIVE,
    TRACED,
    TRACER,
    VIEW,
    Node,
    move,
)

_by_topological_id = operator.attrgetter("topological_id")


def traced_nodes(
    roots: Iterable[Node], operands: Callable[[Node], Sequence[Node]] | None = None
) -> list[Node]:
    """All nodes that depend on tracers, and the tracers, operands first.

    Parameters
    ----------
    operands : callable, optional
        The operands of a node that count.
    """
    pending = [root for root in dict.fromkeys(roots) if root.flags & TRACED]
    reached = set(pending)
    for node in pending:  # grows while it is traversed
        for arg in node.args if operands is None else operands(node):
            if arg.flags & TRACED and arg not in reached:
                reached.add(arg)
                pending.append(arg)
    pending.sort(key=_by_topological_id)
    return pending


def with_args(node: Node, args: tuple[Node, ...]) -> Node:
    """The same operation on other operands."""
    return with_sizes(node, args, node.data, node.shape)


def with_sizes(node: Node, args: tuple[Node, ...], data: Any, shape: Ints) -> Node:
    """The same operation on other operands, with data and a shape for their sizes."""
    kind = node.kind
    if kind is VIEW:
        return move(args[0], data)
    if kind is CUSTOM_CALL or kind is MATMUL:
        data = data.copy()
    copy = Node(kind, data, args, node.dtype, shape, node.device)
    if kind is PRIMITIVE:
        copy.flags |= HAS_PRIMITIVES | node.flags & CHECKED
    elif kind is MATMUL:
        data.add_result(copy, 0)
    elif kind is GET_TUPLE_ITEM and args[0].kind is CUSTOM_CALL:
        args[0].data.add_result(copy, data)
    return copy


def is_traced(node: Node) -> bool:
    """Whether a node depends on a tracer of a transform that has not ended.

    A function may keep an array that it computed. When its transform has ended, the tracers below
    have values; this then clears the flags.
    """
    if not node.flags & TRACED:
        return False
    nodes = traced_nodes([node])
    if any(each.kind is TRACER for each in nodes):
        return True
    for each in nodes:
        each.flags &= ~(TRACED | ABSTRACT)
    return False


def concrete(roots: Sequence[Node]) -> list[Node]:
    """Expressions of the same values that depend on no tracer.

    Raises
    ------
    TraceError
        If a tracer has no value.
    """
    values: dict[Node, Node] = {}
    for node in traced_nodes(roots):
        if node.kind is not TRACER:
            args = tuple(values.get(arg, arg) for arg in node.args)
            values[node] = with_args(node, args)
        elif node.args:  # the operand of a tracer is its value
            (value,) = node.args
            values[node] = values.get(value, value)
        else:
            raise node.data.has_no_value()
    return [values.get(root, root) for root in roots]
