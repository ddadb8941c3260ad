"""The fusion frontier of a node: the values it is computed from element by element."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import NamedTuple

from metalloid.arrays.ir.layout import Layout, ViewOp, apply_view, contiguous_view
from metalloid.arrays.ir.linearize import LinearizedGraph
from metalloid.arrays.ir.node import CONSTANT, ELEMENTWISE, VIEW


class FrontierValue(NamedTuple):
    """A node that is no elementwise operation, view or constant, or that is materialized.

    Attributes
    ----------
    node : int
        Its index.
    moves : tuple of ViewOp
        From it to the node that the traversal started at, in this order.
    layout : Layout or None
        Its layout after these views if it is contiguous; None if strides cannot express them.
    """

    node: int
    moves: tuple[ViewOp, ...]
    layout: Layout | None


def fusion_frontier(
    graph: LinearizedGraph, index: int, materialized: Container[int]
) -> Iterator[FrontierValue]:
    """The values a node is computed from element by element, once for each order of elements."""
    pending: list[tuple[int, tuple[ViewOp, ...]]] = [(index, ())]
    seen = set()
    while pending:
        at, moves = pending.pop()
        node = graph.nodes[at]
        if node.kind is CONSTANT:
            continue
        layout = contiguous_view(node.shape, moves)
        visit = at, layout or moves
        if visit in seen:
            continue
        seen.add(visit)
        if node.kind is ELEMENTWISE and at not in materialized:
            pending += [(arg, moves) for arg in graph.args[at]]
        elif node.kind is VIEW and at not in materialized:
            pending.append((graph.args[at][0], (node.data, *moves)))
        else:
            yield FrontierValue(at, moves, layout)


def before_reshapes(
    graph: LinearizedGraph, index: int, region: Layout, materialized: Container[int]
) -> tuple[int, Layout]:
    """The node of which a node is a reshape, and a region of memory for it in that shape.

    Values that it is computed from may have strides along its own axes only.
    """
    while index not in materialized and graph.nodes[index].kind is VIEW:
        (base,) = graph.args[index]
        if graph.nodes[index].data.kind != "reshape":
            break
        own = apply_view(region, ViewOp("reshape", graph.nodes[base].shape))
        if own is None:
            break
        index, region = base, own
    return index, region
