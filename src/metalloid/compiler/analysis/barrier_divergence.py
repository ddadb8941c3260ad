"""Branches that must be uniform, because a barrier follows on one of their edges.

If one edge always reaches a barrier and the other does not reach the same one first, lanes that
diverge there never reconverge at it: a launch with strict barriers fails. So the code assumes a
uniform branch, without masks, and reports a fault at once if the branch diverges.
"""

from __future__ import annotations

from metalloid.compiler.analysis.barriers import barrier_blocks
from metalloid.compiler.ir.cfg import EXIT, Graph
from metalloid.compiler.ir.function import Function


def must_be_uniform(function: Function, graph: Graph) -> dict[str, tuple[int, str]]:
    """Such branches by block: which side comes to a barrier, and the block that has it.

    Not those whose other side comes to a barrier that this one never meets: then the fault is that
    threads wait at different barriers, which is more than the state of a simdgroup can say.
    """
    names = barrier_blocks(function)
    if not names:
        return {}
    barriers, end = graph.bits(names), graph.bits([EXIT])
    ends = names | {EXIT}
    # The barriers that paths come to first; the exit among them, if one has none.
    first = graph.ahead({name: graph.bits([name]) for name in ends}, ends)
    forbidden = {}
    for name in graph.order:
        labels = function.blocks[name].end.labels
        if len(labels) != 2:
            continue
        for edge, (label, other) in enumerate((labels, labels[::-1])):
            here, there = first[label], first[other]
            others = graph.reach[other] & ~graph.reach[label]
            if here and not here & (end | there) and not barriers & others:
                forbidden[name] = edge, graph.order[(here & -here).bit_length() - 1]
                break
    return forbidden
