"""Branches at which lanes may not part, because a barrier waits behind one of their sides.

Where one side comes to a barrier for certain and the other does not come to the same one first,
lanes that part there never meet at it: a launch with strict barriers fails. So the code goes on as
if they had agreed, without masks, and where they have not it says so at once.
"""

from __future__ import annotations

from metalloid.compiler.llvm.cfg import Graph
from metalloid.compiler.llvm.ir import Function
from metalloid.compiler.spmd.canonical import EXIT
from metalloid.compiler.spmd.regions import is_barrier


def forbidden_partings(function: Function, graph: Graph) -> dict[str, tuple[int, str]]:
    """Such branches by block: which side comes to a barrier, and the block that has it.

    Not those whose other side comes to a barrier that this one never meets: then the fault is that
    threads wait at different barriers, which is more than the state of a simdgroup can say.
    """
    barriers = {name for name, block in function.blocks.items() if any(map(is_barrier, block.body))}
    found = {}
    for name in graph.order if barriers else ():
        labels = function.blocks[name].end.labels
        if len(labels) != 2:
            continue
        firsts = [_first_met(graph, label, barriers) for label in labels]
        for side in (0, 1):
            here, there = firsts[side], firsts[1 - side]
            others = graph.reachable([labels[1 - side]]) - graph.reachable([labels[side]])
            if here and EXIT not in here and not here & there and not barriers & others:
                found[name] = side, min(here, key=graph.number.__getitem__)
                break
    return found


def _first_met(graph: Graph, start: str, barriers: set[str]) -> set[str]:
    """The barriers that paths from `start` come to first; the exit among them, if one has none."""
    found: set[str] = set()
    seen: set[str] = set()
    todo = [start]
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in barriers or name == EXIT:
            found.add(name)
        else:
            todo += graph.successors[name]
    return found
