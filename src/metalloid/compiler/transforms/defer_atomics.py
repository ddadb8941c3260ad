"""Atomic updates that nobody looks at, collected until their place changes or the call ends.

A locked instruction takes 20 cycles, and some hundred where processors take the line from each
other. But what kernels count or sum they most often add at their end, at one place for all threads
or at one for each thread of a threadgroup: the threadgroups of a call come to the same places. So
each such instruction has a *collector*, which knows the place where it was last and what belongs
there (`accumulators`).

Relaxed operations have no order among threads (MSL specification, 6.15), so nobody can tell when
they are done, but the thread itself: it must not come to other memory of the device afterwards.
"""

from __future__ import annotations

from metalloid.compiler.analysis.addresses import underlying_object
from metalloid.compiler.analysis.atomicrmw_ops import BOTH
from metalloid.compiler.ir.cfg import Graph
from metalloid.compiler.ir.function import Function, Instruction, Value
from metalloid.compiler.ir.instruction_parser import ONE_THREAD
from metalloid.compiler.ir.types import POINTER, Integer

#: So many instructions of a kernel have collectors.
_MOST = 8
_FLAG = "collected by "
_ACCESSES = ("load", "store", "copy", "atomicrmw", "cmpxchg")


def defer_atomics(function: Function, threadgroup_memory: Value) -> None:
    """Mark the updates that may be collected, by their number as a flag.

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
        if access.reads_the_same or ONE_THREAD in access.detail:
            return False
        for place in (value for value in access.operands if value.type is POINTER):
            origin = underlying_object(place, computed_by)
            made = computed_by.get(origin or "")
            if origin != threadgroup_memory.name and (made is None or made.op != "alloca"):
                return True
        return False

    accesses = [one for one in instructions if one.op in _ACCESSES and is_of_the_device(one)]
    updates = [one for one in accesses if one.op == "atomicrmw"]
    if len({one.detail for one in updates}) != 1 or any(one.result in used for one in updates):
        return
    if any(one.op == "fence" for one in instructions) or any(
        one.op == "cmpxchg" or (one.op == "load" and one.detail) for one in accesses
    ):
        return  # threads tell each other something
    operation, ordering = updates[0].detail.split(" ", 1)
    if operation not in BOTH or not ordering.startswith("monotonic"):
        return
    updating = {id(one) for one in updates if isinstance(one.type, Integer)}
    others = {id(one) for one in accesses if one.op != "atomicrmw"}
    graph = Graph(function)
    ahead = graph.ahead(
        {
            name: int(any(id(one) in others for one in function.blocks[name].body))
            for name in graph.order
        }
    )
    count = 0
    for name in graph.order:
        is_last = not any(ahead[following] for following in graph.successors[name])
        for one in reversed(function.blocks[name].body):
            is_last = is_last and id(one) not in others
            if is_last and id(one) in updating and count < _MOST:
                one.flags = (*one.flags, f"{_FLAG}{count}")
                count += 1


def deferred_number(instruction: Instruction) -> int | None:
    """The number that `defer_atomics` gave to an update; None if it is not to be collected."""
    return next((int(f.removeprefix(_FLAG)) for f in instruction.flags if _FLAG in f), None)
