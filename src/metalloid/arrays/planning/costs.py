"""Cost model: values that are cheaper to materialize than to recompute."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping

from metalloid.arrays.ir.linearize import LinearizedGraph
from metalloid.arrays.ir.node import CONSTANT, ELEMENTWISE, MATMUL, REDUCE, VIEW
from metalloid.arrays.ir.ops import CAST

#: A value of this cost (`Op.cost`, in additions) is materialized rather than computed twice.
COSTLY = 16
#: Operands of a value from which on it may be stored only to save reads.
MIN_SAVED_READS = 3
#: Larger sets of operands are not followed further.
MAX_COUNTED_READS = 32

#: Maximum depth of elementwise expressions, in additions (`Op.cost`), and of chains of calls or
#: reductions. Deeper values are materialized, which bounds the size of kernels and the planner's
#: recursion.
MAX_EXPRESSION_DEPTH, MAX_CHAIN_DEPTH = 256, 12


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

    Values of reductions do not count: a kernel computes them once per row. But if another reduction
    runs along what they vary along, each of its rows would compute all of them.
    """
    costs: list[float] = []
    above: list[int] = []  # costs of operations after reductions
    candidates = []
    for index, node in enumerate(graph.nodes):
        args = graph.args[index]
        if node.kind is REDUCE:
            for base in _row_operands(graph, index):
                if costs[base] == math.inf and above[base] >= COSTLY:
                    candidates.append(base)
                    costs[base] = above[base] = 0
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
        is_map = node.kind in (ELEMENTWISE, VIEW)
        own = node.data.cost if node.kind is ELEMENTWISE else 0
        above.append(min(own + sum(above[arg] for arg in args), COSTLY) if is_map else 0)
    return candidates


def _row_operands(graph: LinearizedGraph, index: int) -> Iterator[int]:
    """Values that vary along the axes of a reduction, and that several of its rows share."""
    (arg,) = graph.args[index]
    if graph.nodes[arg].kind is not ELEMENTWISE:
        return
    _, axes = graph.nodes[index].data
    for operand in graph.args[arg]:
        node = graph.nodes[operand]
        if node.kind is not VIEW or node.data.kind != "broadcast":
            continue
        (base,) = graph.args[operand]
        missing = len(node.shape) - len(graph.nodes[base].shape)
        own = (1,) * missing + graph.nodes[base].shape
        if math.prod(own) < node.size and all(own[k] == node.shape[k] for k in axes):
            while graph.nodes[base].kind is VIEW:
                (base,) = graph.args[base]
            is_cast = graph.nodes[base].kind is ELEMENTWISE and graph.nodes[base].data is CAST
            yield graph.args[base][0] if is_cast else base


def read_repeatedly(
    graph: LinearizedGraph, kernels: Mapping[int, int], uses: Mapping[int, int],
    in_memory: Container[int],
) -> set[int]:  # fmt: skip
    """Values with several users that several kernels compute, where storing them saves reads.

    So are the sums in the residual stream of a network, where each layer adds to what all earlier
    layers have added: each kernel would read the results of all of them, and be another kernel.

    Parameters
    ----------
    kernels : mapping of int to int
        By node: the number of kernels that compute it.
    uses : mapping of int to int
        By node: the number of its users.
    in_memory : container of int
        Materialized nodes.
    """
    if max(kernels.values(), default=0) < 2:
        return set()
    reads: list[frozenset[int]] = []
    chosen = set()
    for index, node in enumerate(graph.nodes):
        own: frozenset[int] = frozenset((index,)) if node.kind is not CONSTANT else frozenset()
        if index not in in_memory and node.kind in (ELEMENTWISE, VIEW):
            below = frozenset().union(*(reads[arg] for arg in graph.args[index]))
            count = sum(graph.nodes[at].size >= node.size for at in below)
            # Each kernel reads all operands; or one reads them and writes a value that all read.
            saved = (kernels.get(index, 0) - 1) * (count - 1) - 2
            is_value = node.kind is ELEMENTWISE and uses[index] > 1
            if is_value and count >= MIN_SAVED_READS and saved > 0:
                (arg, *_) = graph.args[index]
                is_cast = node.data.name == "astype" and graph.nodes[arg].kind is ELEMENTWISE
                chosen.add(arg if is_cast else index)
            elif len(below) <= MAX_COUNTED_READS:
                own = below
        reads.append(own)
    return chosen


def deep_nodes(graph: LinearizedGraph) -> list[int]:
    """Nodes to materialize because their expressions are too deep, in topological order."""
    depths: list[tuple[int, int]] = []
    indices = []
    for index, node in enumerate(graph.nodes):
        below = [depths[arg] for arg in graph.args[index]]
        own = node.data.cost if node.kind is ELEMENTWISE else 0
        depth = max((d for d, _ in below), default=0) + own
        chain = max((c for _, c in below), default=0) + (node.kind not in (ELEMENTWISE, VIEW))
        if depth >= MAX_EXPRESSION_DEPTH or chain >= MAX_CHAIN_DEPTH:
            indices.append(index)
            depth = chain = 0
        depths.append((depth, chain))
    return indices
