"""A graph in a row: the nodes below some roots, each once, and the key of its structure.

Two graphs with the same key differ in their numbers and in where their leaves lie, and in nothing
else: the plan for one serves the other.
"""

from __future__ import annotations

from typing import Any

from metalloid.array.node import COUNT, MAP, MEMORY, NUMBER, Node


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
        self.nodes: list[Node] = []
        self.args: list[tuple[int, ...]] = []
        self.leaves: list[Node] = []
        self.numbers: list[Node] = []
        self.again: list[int] = []
        known: dict[Any, int] = {}
        of_node: dict[int, int] = {}
        # Depth first without recursion: expressions may be thousands of operations deep.
        pending = list(reversed(roots))
        while pending:
            node = pending[-1]
            if id(node) in of_node:
                pending.pop()
                continue
            args = node.args
            missing = [arg for arg in args if id(arg) not in of_node]
            if missing:
                pending.extend(reversed(missing))
                continue
            pending.pop()
            places = tuple([of_node[id(arg)] for arg in args])
            key = _identity(node, places)
            place = known.get(key)
            if place is None:
                place = known[key] = len(self.nodes)
                self.nodes.append(node)
                self.args.append(places)
            of_node[id(node)] = place
        self.roots = [of_node[id(root)] for root in roots]
        parts: list[Any] = [tuple(self.roots)]
        for place, (node, places) in enumerate(zip(self.nodes, self.args, strict=True)):
            kind = node.kind
            if node.inlined:
                self.again.append(place)
            if kind is MAP:
                parts.append((node.data, node.dtype, places))
            elif kind is MEMORY or kind is COUNT:
                self.leaves.append(node)
                parts.append((kind, node.dtype, node.shape, node.data[0]))
            elif kind is NUMBER:
                self.numbers.append(node)
                parts.append(node.dtype)
            else:
                parts.append((kind, node.data, node.dtype, node.shape, places))
        if self.again:
            parts.append(tuple(self.again))
        self.key = tuple(parts)


def _identity(node: Node, places: tuple[int, ...]) -> Any:
    """What two nodes have in common if one can stand for the other."""
    kind = node.kind
    if kind is MAP:
        return node.data, node.dtype, places
    if kind is MEMORY or kind is COUNT:
        return kind, id(node.memory), node.dtype, node.shape, node.data
    if kind is NUMBER:
        # 0 equals -0 and False, and NaN not even itself.
        return (kind, node.dtype, node.data) if node.data else id(node)
    return kind, node.data, places, node.shape, node.dtype
