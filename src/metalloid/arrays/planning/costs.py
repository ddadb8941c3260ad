"""Cost model: values that are cheaper to materialize than to recompute."""

from __future__ import annotations

import math
from collections.abc import Container

from metalloid.arrays.ir.linearize import LinearizedGraph
from metalloid.arrays.ir.node import ELEMENTWISE, MATMUL, REDUCE, VIEW

#: A value of this cost (`Op.cost`, in additions) is materialized rather than computed twice.
COSTLY = 16


def highest_costly(graph: LinearizedGraph, indices: set[int]) -> set[int]:
    """Costly nodes of a set; of those that depend on each other, only the last."""
    if not indices:
        return indices
    costs: list[int] = []
    for index, node in enumerate(graph.nodes):
        is_sum = node.kind is REDUCE or node.kind is MATMUL
        own = node.data.cost if node.kind is ELEMENTWISE else COSTLY if is_sum else 0
        costs.append(own + sum(costs[arg] for arg in graph.args[index] if arg in indices))
    costly = {index for index in indices if costs[index] >= COSTLY}
    below: set[int] = set()
    for index in sorted(indices, reverse=True):
        if index in costly or index in below:
            below.update(graph.args[index])
    return costly - below


def recompute_candidates(graph: LinearizedGraph, pinned: Container[int]) -> list[int]:
    """Costly nodes that are broadcast, in topological order, except those that are `pinned`.

    Values of reductions do not count: a kernel computes them once per row.
    """
    costs: list[float] = []
    candidates = []
    for index, node in enumerate(graph.nodes):
        args = graph.args[index]
        if node.kind is VIEW and node.data.kind == "broadcast":
            (base,) = args
            if COSTLY <= costs[base] < math.inf and node.size > graph.nodes[base].size:
                candidates.append(base)
                costs[base] = 0
        if node.kind is REDUCE:
            cost: float = math.inf
        elif node.kind in (ELEMENTWISE, VIEW) and index not in pinned:
            own = node.data.cost if node.kind is ELEMENTWISE else 0
            cost = own + sum(costs[arg] for arg in args)
            cost = cost if cost == math.inf else min(cost, COSTLY)
        else:
            cost = 0
        costs.append(cost)
    return candidates
