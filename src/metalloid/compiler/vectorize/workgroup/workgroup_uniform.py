"""Workgroup-uniform values and barriers.

Loop counters, sizes and addresses that come from the arguments alone are the same for every thread
of a threadgroup, as long as its control flow is uniform. Such values are stored once for all
simdgroups across a barrier, instead of in the frame of each; and if all simdgroups always reach the
same barrier, that need not be checked.
"""

from __future__ import annotations

from collections.abc import Set

from metalloid.compiler.analysis.barriers import barrier_blocks
from metalloid.compiler.analysis.block_order import block_order
from metalloid.compiler.analysis.divergence import analyse
from metalloid.compiler.analysis.shapes import VARYING, uniform
from metalloid.compiler.ir.cfg import Graph
from metalloid.compiler.ir.function import Function, Value
from metalloid.compiler.vectorize.builder import SCALAR_BYTES
from metalloid.compiler.vectorize.slots import Slot, SlotKind
from metalloid.compiler.vectorize.workgroup.live_across_barriers import LiveAcrossBarriers


def workgroup_uniform_values(
    function: Function, graph: Graph, parameters: Set[str]
) -> list[Value] | None:
    """Uniform values that are needed after barriers; None if simdgroups may diverge.

    Parameters
    ----------
    function, graph : Function, Graph
        In canonical form.
    parameters : set of str
        Those that are the same for the whole threadgroup.
    """
    shapes = {p.name: uniform(1) if p.name in parameters else VARYING for p in function.parameters}
    # Whether all threads are together is asked as of the lanes of a simdgroup.
    divergence = analyse(function, graph, 1, shapes, all_masked=False, of_threadgroup=True)
    if divergence.masked & barrier_blocks(function):
        return None
    crossing = LiveAcrossBarriers(function, graph, block_order(graph))
    return [
        instruction.value
        for name in graph.order
        for instruction in (*function.blocks[name].phis, *function.blocks[name].body)
        if name not in divergence.masked
        and instruction.result
        and divergence.shapes[instruction.result].is_uniform
        and instruction.type.size <= SCALAR_BYTES
        and crossing.is_crossed(Slot.of(SlotKind.SCALAR, instruction.result))
    ]
