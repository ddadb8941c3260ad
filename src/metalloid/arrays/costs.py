"""What is worth keeping rather than computing again."""

from __future__ import annotations

import math
from collections.abc import Container

from metalloid.arrays.graph import Graph
from metalloid.arrays.node import MAP, MOVE, PRODUCT, REDUCE

#: Costly enough to be kept rather than computed twice, in additions (`Op.cost`).
COSTLY = 16


def highest_costly(graph: Graph, places: set[int]) -> set[int]:
    """Costly nodes among some; of those above each other, the highest."""
    if not places:
        return places
    costs: list[int] = []
    for place, node in enumerate(graph.nodes):
        is_sum = node.kind is REDUCE or node.kind is PRODUCT
        own = node.data.cost if node.kind is MAP else COSTLY if is_sum else 0
        costs.append(own + sum(costs[arg] for arg in graph.args[place] if arg in places))
    costly = {place for place in places if costs[place] >= COSTLY}
    below: set[int] = set()
    for place in sorted(places, reverse=True):
        if place in costly or place in below:
            below.update(graph.args[place])
    return costly - below


def repeated(graph: Graph, kept: Container[int]) -> list[int]:
    """Costly nodes that are broadcast, lowest first, beside those that are `kept` anyway.

    Not what is computed of reductions: a kernel has them once for each row.
    """
    costs: list[float] = []
    found = []
    for place, node in enumerate(graph.nodes):
        args = graph.args[place]
        if node.kind is MOVE and node.data.kind == "broadcast":
            (base,) = args
            if COSTLY <= costs[base] < math.inf and node.size > graph.nodes[base].size:
                found.append(base)
                costs[base] = 0
        if node.kind is REDUCE:
            cost: float = math.inf
        elif node.kind in (MAP, MOVE) and place not in kept:
            own = node.data.cost if node.kind is MAP else 0
            cost = own + sum(costs[arg] for arg in args)
            cost = cost if cost == math.inf else min(cost, COSTLY)
        else:
            cost = 0
        costs.append(cost)
    return found
