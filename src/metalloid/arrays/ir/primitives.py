"""Primitives: operations that stay in the graph as what was asked, until they are evaluated.

A function of the library builds one node for a sort, a scan or a product. Transforms read it, with
one rule per primitive. Evaluation replaces it by the nodes of an implementation, which is chosen
from one table per primitive by the device, the size and the settings.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from metalloid.arrays.ir.dtypes import DType
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.node import (
    GET_TUPLE_ITEM,
    HAS_PRIMITIVES,
    PRIMITIVE,
    TUPLE,
    Node,
    expression,
)

#: Builds the nodes of the results from the operands and the parameters.
Build = Callable[..., "Node | tuple[Node, ...]"]


class Primitive(NamedTuple):
    """An operation of the library.

    Attributes
    ----------
    name : str
    params : tuple
        Parameters, as its implementations and rules take them after the operands.
    results : tuple of (dtype, shape)
    """

    name: str
    params: tuple[Any, ...]
    results: tuple[tuple[DType, Ints], ...]


@dataclass(frozen=True)
class Implementation:
    """A method to compute a primitive.

    Attributes
    ----------
    build : callable
        From the operands and the parameters to the node or nodes of the results.
    is_applicable : callable, optional
        Whether it supports the operands and parameters, and is the one to use for them.
    """

    build: Build
    is_applicable: Callable[..., bool] | None = None


#: Operands and parameters of primitives with the flag `CHECKED`, by the nodes that were lowered.
lowered: WeakKeyDictionary[Node, tuple[Node, tuple[Any, ...]]] = WeakKeyDictionary()
#: Names of primitives whose nodes depend on nothing but the structure of their operands, so that
#: an evaluation can find its plan before they are lowered.
structural: set[str] = set()
_implementations: dict[str, tuple[Implementation, ...]] = {}


def implement(name: str, *table: Implementation | Build, is_structural: bool = False) -> None:
    """State the implementations of a primitive; the first applicable one is used.

    The last one is used for all other operands.

    Parameters
    ----------
    is_structural : bool
        Whether neither values nor settings influence the choice and the nodes.
    """
    if is_structural:
        structural.add(name)
    rows = [row if isinstance(row, Implementation) else Implementation(row) for row in table]
    assert rows[-1].is_applicable is None, name
    _implementations[name] = tuple(rows)


def bind(name: str, args: Sequence[Node], params: tuple[Any, ...],
         *results: tuple[DType, Ints]) -> tuple[Node, ...]:  # fmt: skip
    """Nodes of the results of a primitive.

    A single result is the node of the primitive itself.
    """
    node = bound(Primitive(name, params, results), tuple(args))
    if len(results) == 1:
        return (node,)
    return tuple(
        Node(GET_TUPLE_ITEM, k, (node,), dtype, shape, node.device)
        for k, (dtype, shape) in enumerate(results)
    )


def bound(primitive: Primitive, args: tuple[Node, ...]) -> Node:
    """The node of a primitive."""
    node = expression(PRIMITIVE, primitive, args, *primitive.results[0], args[0].device)
    node.flags |= HAS_PRIMITIVES
    return node


_by_topological_id = operator.attrgetter("topological_id")


def lower(roots: Sequence[Node]) -> None:
    """Replace all primitives that `roots` depend on by nodes of their implementations.

    The nodes are changed in place, so that all references to them share the result.
    """
    for root in roots:
        if root.flags & HAS_PRIMITIVES:
            break
    else:
        return
    pending = [root for root in roots if root.flags & HAS_PRIMITIVES]
    reached = set(pending)
    for node in pending:  # grows while it is traversed
        for arg in node.args:
            if arg.flags & HAS_PRIMITIVES and arg not in reached:
                reached.add(arg)
                pending.append(arg)
    for node in sorted(pending, key=_by_topological_id):
        _lower_node(node)


def _lower_node(node: Node) -> None:
    """Lower a node whose operands are lowered."""
    if node.kind is PRIMITIVE:
        primitive = node.data
        if primitive.name == "checked_index":
            lowered[node] = node.args[0], primitive.params
        built = _implementation(node)(*node.args, *primitive.params)
        results = built if isinstance(built, tuple) else (built,)
        _renumber(results, node)  # first: nodes of nested primitives are numbered before these
        lower(results)
        if len(results) == 1:
            inlined = node.inlined
            node.become(results[0])
            node.inlined |= inlined
            return
        node.become_tuple(results)
        return
    elif node.kind is GET_TUPLE_ITEM and node.args[0].kind is TUPLE:
        node.become(node.args[0].args[node.data])
        return
    flags = 0
    for arg in node.args:
        flags |= arg.flags
    node.flags = flags


def _implementation(node: Node) -> Build:
    *special, last = _implementations[node.data.name]
    for row in special:
        if row.is_applicable is None or row.is_applicable(*node.args, *node.data.params):
            return row.build
    return last.build


def _renumber(results: Sequence[Node], node: Node) -> None:
    """Order the new nodes of an implementation before the node that they replace.

    They get fractions: `node` has a larger id than its operands, and a smaller one than its users.
    """
    built: list[Node] = []
    reached, pending = set(node.args), list(results)
    while pending:
        new = pending.pop()
        if new not in reached:
            reached.add(new)
            built.append(new)
            pending += new.args
    built = [new for new in built if new.topological_id > node.topological_id]
    built.sort(key=_by_topological_id)
    last = max((arg.topological_id for arg in node.args), default=node.topological_id - 1)
    step = (node.topological_id - last) / (len(built) + 1)
    for k, new in enumerate(built, 1):
        new.topological_id = last + k * step
