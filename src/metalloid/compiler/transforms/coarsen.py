"""Several rows of threads at a time: what they share is loaded once.

A thread of a naive product of matrices loads two numbers to multiply and add them. Threads below
each other load the same number of the second matrix, and their sums do not wait for each other. So
where that is profitable, one thread does the work of several rows (`interleave_threads`).

So it is with additions to a worker's own copy of a buffer: what rows add to the same elements is
summed first, and what lanes add to one element is summed for several rows at a time.
"""

from __future__ import annotations

from collections.abc import Set

from metalloid.compiler.analysis.target_builtins import is_lanewise
from metalloid.compiler.ir.cfg import Graph
from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Function
from metalloid.compiler.ir.opcodes import ONE_THREAD
from metalloid.compiler.transforms.interleave_threads import (
    MergedThreads,
    diverges,
    interleave_threads,
)

#: Instructions of a function that is worth it.
_LONG = 160
_WRITES = ("store", "copy", "fill", "atomicrmw")
_NOT_BY_ROWS = ("alloca", "cmpxchg", "fence", "switch")
#: Rows of a function that adds to copies of buffers: the totals of so many fill a register.
_ROWS_OF_SUMS = 4


def coarsen(
    function: Function, along: Set[str], across: Set[str], index: str, max_carried: int
) -> int:
    """Let each thread do the work of several, if profitable; return how many.

    Parameters
    ----------
    function : Function
        Of one thread, without barriers.
    along : set of str
        Parameters that grow by one from row to row; those of the first row will be given.
    across : set of str
        Parameters by which lanes differ.
    index : str
        Parameter that is a thread's index in its threadgroup: what uses it is left as it is.
    max_carried : int
        Numbers of each lane that loops may carry on, of all rows.
    """
    instructions = list(function.instructions())
    if len(instructions) > _LONG or any(
        v.name == index for one in instructions for v in one.operands
    ):
        return 1
    graph = Graph(function)
    by_row, by_lane = (_computed_from(function, names) for names in (along, across))
    if not _can_be_joined(function, graph, by_row):
        return 1
    rows = _rows(function, graph, by_row, by_lane, max_carried)
    if rows > 1:
        indices = {value.name: value for value in function.parameters if value.name in along}
        threads = MergedThreads(
            rows, by_row, lambda i: any(value.name in by_row for value in i.operands), indices
        )
        interleave_threads(function, threads, FreshNames(function))
    return max(rows, 1)


def _computed_from(function: Function, names: Set[str]) -> set[str]:
    """The values that depend on `names`, and `names`."""
    dependent, before = set(names), 0
    while len(dependent) > before:  # once more for what comes around a loop
        before = len(dependent)
        for one in function.instructions():
            if one.result and any(value.name in dependent for value in one.operands):
                dependent.add(one.result)
    return dependent


def _can_be_joined(function: Function, graph: Graph, by_row: Set[str]) -> bool:
    """Whether one flow of control can serve several rows, but for where it has stored nothing."""
    for one in function.instructions():
        if one.op in _NOT_BY_ROWS or (one.op == "call" and not is_lanewise(one.callee)):
            return False
        if one.op == "atomicrmw" and not (
            ONE_THREAD in one.ordering and any(value.name in by_row for value in one.operands)
        ):
            return False
    later_stores = 0
    for name in graph.order:
        if any(one.op in _WRITES for one in function.blocks[name].body):
            later_stores |= graph.reach[name]
    return not any(
        graph.loop_of[name] or later_stores >> graph.number[name] & 1
        for name in graph.order
        if diverges(function.blocks[name], by_row)
    )


def _rows(
    function: Function, graph: Graph, by_row: Set[str], by_lane: Set[str], max_carried: int
) -> int:
    """The number of rows that are profitable: 1 if they share no loads in loops."""
    blocks = [function.blocks[name] for name in graph.order if graph.loop_of[name]]
    shared = (
        one.op == "load" and one.operands[0].name not in by_row and one.operands[0].name in by_lane
        for block in blocks
        for one in block.body
    )
    carried = [phi for block in blocks for phi in block.phis if phi.result in by_row & by_lane]
    if not any(shared):
        return 1
    adds = any(one.op == "atomicrmw" for block in blocks for one in block.body)
    if not carried:
        return _ROWS_OF_SUMS if adds else 1
    rows = max_carried // len(carried)
    return min(rows, _ROWS_OF_SUMS) if adds else rows
