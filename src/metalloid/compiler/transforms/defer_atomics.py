"""Atomic updates whose results are unused are marked, to be accumulated instead.

A locked instruction takes 20 cycles, and some hundred when processors compete for a cache line.
Kernels that count or sum mostly update at their end one address for all threads, or one for each
thread of a threadgroup, and all threadgroups of a call use the same addresses. So each such
instruction gets an accumulator (`vectorize.atomics.accumulators`), which is flushed when its
address changes and at the end of the call.

Relaxed operations have no order among threads (MSL specification, 6.15), so no other thread can
tell when they happen. The thread itself can: it must not access other device memory afterwards.
"""

from __future__ import annotations

from metalloid.compiler.analysis.addresses import underlying_object
from metalloid.compiler.analysis.atomicrmw_ops import BOTH
from metalloid.compiler.ir.cfg import Graph
from metalloid.compiler.ir.function import Function, Instruction, Value
from metalloid.compiler.ir.opcodes import ONE_THREAD
from metalloid.compiler.ir.types import POINTER, Integer

#: Instructions of a kernel that get accumulators.
_MAX_ACCUMULATORS = 8
_ACCESSES = ("load", "store", "copy", "fill", "atomicrmw", "cmpxchg")


def defer_atomics(function: Function, threadgroup_memory: Value) -> None:
    """Mark the updates that may be accumulated with the numbers of their accumulators.

    Parameters
    ----------
    function : Function
        Of one thread.
    threadgroup_memory : Value
        Where the memory is that no other threadgroup sees.
    """
    instructions = list(function.instructions())
    computed_by = {one.result: one for one in instructions if one.result}
    used = {value.name for one in instructions for value in one.operands}

    def is_of_the_device(access: Instruction) -> bool:
        if access.reads_the_same or ONE_THREAD in access.ordering:
            return False
        for pointer in (value for value in access.operands if value.type is POINTER):
            base = underlying_object(pointer, computed_by)
            inst = computed_by.get(base or "")
            if base != threadgroup_memory.name and (inst is None or inst.op != "alloca"):
                return True
        return False

    accesses = [one for one in instructions if one.op in _ACCESSES and is_of_the_device(one)]
    updates = [one for one in accesses if one.op == "atomicrmw"]
    if len({(one.operation, one.ordering) for one in updates}) != 1 or any(
        one.result in used for one in updates
    ):
        return
    if any(one.op == "fence" for one in instructions) or any(
        one.op == "cmpxchg" or (one.op == "load" and one.ordering) for one in accesses
    ):
        return  # threads tell each other something
    operation, ordering = updates[0].operation, updates[0].ordering
    if operation not in BOTH or not ordering.startswith("monotonic"):
        return
    updating = {one for one in updates if isinstance(one.type, Integer)}
    others = {one for one in accesses if one.op != "atomicrmw"}
    graph = Graph(function)
    ahead = graph.ahead(
        {
            name: int(any(one in others for one in function.blocks[name].body))
            for name in graph.order
        }
    )
    count = 0
    for name in graph.order:
        is_last = not any(ahead[following] for following in graph.successors[name])
        for one in reversed(function.blocks[name].body):
            is_last = is_last and one not in others
            if is_last and one in updating and count < _MAX_ACCUMULATORS:
                one.accumulator = count
                count += 1
