"""A graph in a row: the nodes below some roots, each once, and the key of its structure.

Two graphs with the same key differ in their numbers and in where their leaves lie, and in nothing
else: the plan for one serves the other.
"""

from __future__ import annotations

import operator
from typing import Any

from metalloid.arrays.node import COUNT, MAP, MEMORY, NUMBER, Node

_by_age = operator.attrgetter("serial")  # arguments are older


class Graph:
    """The nodes below `roots`, arguments first. Equal nodes are one.

    Attributes
    ----------
    nodes : list of Node
    args : list of tuple of int
        By number: the place in `nodes`.
    roots : list of int
    leaves, numbers : list of Node
        Those that a launch is given anew every time, in the order of `nodes`.
    again : list of int
        What an earlier evaluation has computed without keeping it.
    key : tuple
    """

    __slots__ = ("again", "args", "key", "leaves", "nodes", "numbers", "roots")

    def __init__(self, roots: list[Node]) -> None:
        nodes: list[Node] = []
        places_of_args: list[tuple[int, ...]] = []
        self.leaves: list[Node] = []
        self.numbers: list[Node] = []
        self.again: list[int] = []
        parts: list[Any] = []
        known: dict[Any, int] = {}
        place_of: dict[Node, int] = {}
        reached = set(roots)
        pending = list(reached)
        while pending:
            args = pending.pop().args
            for arg in args:
                if arg not in reached:
                    reached.add(arg)
                    pending.append(arg)
        for node in sorted(reached, key=_by_age):
            places = tuple([place_of[arg] for arg in node.args])
            kind = node.kind
            if kind is MAP:
                part: Any = (node.data, node.dtype, places)
                identity = part
            elif kind is MEMORY or kind is COUNT:
                part = (kind, node.dtype, node.shape, node.data[0])
                identity = (part, node.data[1], id(node.memory))
            elif kind is NUMBER:
                part = node.dtype
                # 0 equals -0 and False, and NaN not even itself.
                identity = (kind, part, node.data) if node.data else (kind, id(node))
            else:
                identity = part = (kind, node.data, node.dtype, node.shape, places)
            place = known.get(identity)
            if place is None:
                place = known[identity] = len(nodes)
                nodes.append(node)
                places_of_args.append(places)
                parts.append(part)
                if kind is MEMORY or kind is COUNT:
                    self.leaves.append(node)
                elif kind is NUMBER:
                    self.numbers.append(node)
                if node.inlined:
                    self.again.append(place)
            place_of[node] = place
        self.nodes, self.args = nodes, places_of_args
        self.roots = [place_of[root] for root in roots]
        self.key = (tuple(self.roots), tuple(parts), tuple(self.again))
