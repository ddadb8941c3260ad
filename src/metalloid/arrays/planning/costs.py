"""What is worth keeping rather than computing again."""

from __future__ import annotations

import math
from collections.abc import Container

from metalloid.arrays.ir.linearize import LinearizedGraph
from metalloid.arrays.ir.node import ELEMENTWISE, MATMUL, REDUCE, VIEW

#: Costly enough to be kept rather than computed twice, in additions (`Op.cost`).
COSTLY = 16


def highest_costly(graph: LinearizedGraph, indices: set[int]) -> set[int]:
    """Costly nodes among some; of those above each other, the highest."""
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


def recompute_candidates(graph: LinearizedGraph, outer: Container[int]) -> list[int]:
    """Costly nodes that are broadcast, lowest first, beside those that are `outer` anyway.

    Not what is computed of reductions: a kernel has them once for each row.
    """
    costs: list[float] = []
    found = []
    for index, node in enumerate(graph.nodes):
        args = graph.args[index]
        if node.kind is VIEW and node.data.kind == "broadcast":
            (base,) = args
            if COSTLY <= costs[base] < math.inf and node.size > graph.nodes[base].size:
                found.append(base)
                costs[base] = 0
        if node.kind is REDUCE:
            cost: float = math.inf
        elif node.kind in (ELEMENTWISE, VIEW) and index not in outer:
            own = node.data.cost if node.kind is ELEMENTWISE else 0
            cost = own + sum(costs[arg] for arg in args)
            cost = cost if cost == math.inf else min(cost, COSTLY)
        else:
            cost = 0
        costs.append(cost)
    return found
