"""A graph in topological order, with equal nodes merged, and the key of its structure.

Graphs with the same key differ only in the values of constants, the buffers and offsets of leaves
and the parameters of calls: they share a plan.
"""

from __future__ import annotations

import operator
from itertools import chain
from typing import Any

from metalloid.arrays.ir.node import CONSTANT, CUSTOM_CALL, ELEMENTWISE, Node
from metalloid.arrays.ir.ops import Op
from metalloid.arrays.ir.primitives import lower

_by_topological_id = operator.attrgetter("topological_id")  # operands have smaller ids


def leaf_identity(node: Node) -> Any:
    """The value that is equal for nodes without operands that are merged."""
    if node.kind is CONSTANT:
        # 0 == -0 == False, and NaN != NaN: such constants are not merged.
        return (CONSTANT, node.dtype, node.data) if node.data else node
    return node.kind, node.dtype, node.shape, node.data, id(node.memory)


class LinearizedGraph:
    """The nodes that `roots` depend on, operands first. Equal nodes are merged.

    Primitives are lowered before.

    Leaves and constants come first, in the order of the traversal, so that the key does not depend
    on when they were created.

    Attributes
    ----------
    nodes : list of Node
    roots : list of int
    leaves, numbers : list of Node
        The nodes whose values each launch passes, in the order of `nodes`.
    recomputed : list of int
        Nodes that an earlier evaluation computed without saving them.
    key : tuple
        Each node and the indices of its operands, flattened.
    """

    __slots__ = (
        "_args",
        "_entries",
        "_index_of",
        "_known",
        "key",
        "leaves",
        "nodes",
        "numbers",
        "recomputed",
        "roots",
    )  # fmt: skip

    def __init__(self, roots: list[Node]) -> None:
        lower(roots)
        self.nodes: list[Node] = []
        self.leaves: list[Node] = []
        self.numbers: list[Node] = []
        self.recomputed: list[int] = []
        self._entries: list[tuple[Any, ...]] = []
        self._known: dict[Any, int] = {}
        self._index_of: dict[Node, int] = {}
        expressions: list[Node] = []
        pending = list(dict.fromkeys(roots))
        reached = set(pending)
        for node in pending:  # grows while it is traversed
            args = node.args
            if not args:
                self._add_leaf(node)
                continue
            expressions.append(node)
            for arg in args:
                if arg not in reached:
                    reached.add(arg)
                    pending.append(arg)
        expressions.sort(key=_by_topological_id)
        self._add(expressions)
        self.roots = [self._index_of[root] for root in roots]
        del self._known, self._index_of  # `_run` counts references to nodes
        self._args: list[tuple[int, ...]] | None = None
        self.key = (*self.roots, *chain.from_iterable(self._entries), *self.recomputed)

    def _add_leaf(self, node: Node) -> None:
        kind, dtype = node.kind, node.dtype
        index = len(self.nodes)
        known = self._known.setdefault(leaf_identity(node), index)
        self._index_of[node] = known
        if known == index:
            self.nodes.append(node)
            layout = () if kind is CONSTANT else (node.shape, node.data[0])
            self._entries.append((kind, dtype, *layout))
            (self.numbers if kind is CONSTANT else self.leaves).append(node)

    def _add(self, expressions: list[Node]) -> None:
        # Optimised: this dominates the cost of small evaluations.
        nodes, entries, known, index_of = self.nodes, self._entries, self._known, self._index_of
        index_at, find = index_of.__getitem__, known.setdefault
        index = len(nodes)
        entry: tuple[Any, ...]
        identity: tuple[Any, ...]
        for node in expressions:
            if node.kind is ELEMENTWISE:
                args = node.args
                if len(args) == 2:
                    a, b = args
                    entry = identity = (node.data, node.dtype, index_of[a], index_of[b])
                else:
                    entry = identity = (node.data, node.dtype, *map(index_at, args))
            else:
                indices = tuple(map(index_at, node.args))
                entry = identity = (node.kind, node.data, node.dtype, node.shape, indices)
                # Plans do not depend on the parameters of calls, unless they launch them.
                if node.kind is CUSTOM_CALL and not node.data.is_launched:
                    entry = (CUSTOM_CALL, node.data.results, *entry[2:])
            earlier = find(identity, index)
            index_of[node] = earlier
            if earlier == index:
                nodes.append(node)
                entries.append(entry)
                if node.inlined:
                    self.recomputed.append(index)
                index += 1

    @property
    def args(self) -> list[tuple[int, ...]]:
        """Indices of the operands, by node."""
        if self._args is None:  # only the planner asks
            self._args = [
                entry[2:] if isinstance(entry[0], Op) else entry[4] if len(entry) == 5 else ()
                for entry in self._entries
            ]
        return self._args
