"""From a node down to what it is made of element by element."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import NamedTuple

from metalloid.arrays.graph import Graph
from metalloid.arrays.layout import Layout, Movement, contiguous, moved_through
from metalloid.arrays.node import MAP, MOVE, NUMBER


class End(NamedTuple):
    """A node that is no map, movement or number, or lies in memory already.

    Attributes
    ----------
    place : int
    moves : tuple of Movement
        Between it and where the walk began, the lowest first.
    layout : Layout or None
        Of its elements after those, as if they lay behind each other; None if strides cannot say.
    """

    place: int
    moves: tuple[Movement, ...]
    layout: Layout | None


def ends_below(graph: Graph, place: int, stored: Container[int]) -> Iterator[End]:
    """Where the ways down from a node end, each end once for every order of its elements."""
    pending: list[tuple[int, tuple[Movement, ...]]] = [(place, ())]
    seen = set()
    while pending:
        at, moves = pending.pop()
        node = graph.nodes[at]
        if node.kind is NUMBER:
            continue
        layout = moved_through(contiguous(node.shape), moves)
        visit = at, layout or moves
        if visit in seen:
            continue
        seen.add(visit)
        if node.kind is MAP and at not in stored:
            pending += [(arg, moves) for arg in graph.args[at]]
        elif node.kind is MOVE and at not in stored:
            pending.append((graph.args[at][0], (node.data, *moves)))
        else:
            yield End(at, moves, layout)
