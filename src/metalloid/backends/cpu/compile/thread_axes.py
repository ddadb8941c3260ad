"""Axes of threads: the inst along which lanes lie, and the inst along which memory is contiguous.

Lanes lie along x, unless threadgroups are inst thread wide: then along y, or z.
"""

from __future__ import annotations

from metalloid.compiler.ir.cfg import Graph
from metalloid.compiler.ir.function import Function, Instruction, Value, gep_terms


def contiguous_axis(function: Function) -> str:
    """The axis along which most accesses of neighbouring threads are contiguous."""
    computed_by = {inst.result: inst for inst in function.instructions() if inst.result}
    accesses = [inst for inst in function.instructions() if inst.op in ("load", "store")]

    def count(axis: str) -> int:
        steps = _ThreadStrides({f"%{axis}", f"%grid_{axis}"}, computed_by)
        return sum(steps.of_address(inst.operands[-1]) == _bytes_of(inst) for inst in accesses)

    return max("xyz", key=count)


def _bytes_of(access: Instruction) -> int:
    return (access.type if access.op == "load" else access.operands[0].type).size


class _ThreadStrides:
    """Differences of values between neighbouring threads; None if unknown."""

    def __init__(self, positions: set[str], computed_by: dict[str, Instruction]) -> None:
        self._computed_by = computed_by
        self._known: dict[str, int | None] = dict.fromkeys(positions, 1)

    def of_address(self, address: Value) -> int | None:
        """Return the stride of a pointer, in bytes."""
        total: int | None = 0
        while (step := self._computed_by.get(address.name)) and step.op == "getelementptr":
            for index, size in gep_terms(step)[1]:
                grows = self.of(index)
                total = None if total is None or grows is None else total + grows * size
            address = step.operands[0]
        return total if self.of(address) == 0 else None

    def of(self, value: Value) -> int | None:
        """Return the stride of a number."""
        if value.name not in self._known:
            self._known[value.name] = None  # around a loop
            inst = self._computed_by.get(value.name)
            self._known[value.name] = self._computed(inst) if inst else 0
        return self._known[value.name]

    def _computed(self, inst: Instruction) -> int | None:
        if inst.op == "phi":
            return self.of(inst.operands[0])
        if not inst.operands:
            return 0 if inst.op == "alloca" else None
        grows = [self.of(value) for value in inst.operands]
        if any(step is None for step in grows):
            return None
        left, *others = (step or 0 for step in grows)
        if inst.op in ("zext", "sext", "trunc", "freeze"):
            return left
        if inst.op in ("add", "or"):
            return left + others[0]
        if inst.op == "sub":
            return left - others[0]
        factor = inst.operands[-1].integer
        if inst.op in ("mul", "shl") and factor is not None:
            return left * (factor if inst.op == "mul" else 1 << factor)
        return None if any(grows) else 0


def reads_in_loops(function: Function) -> bool:
    """Whether threads load in loops, from addresses that change."""
    graph = Graph(function)
    blocks = [function.blocks[name] for name in graph.order if graph.loop_of[name]]
    in_loops = {inst.result for block in blocks for inst in block.instructions()}
    loads = (inst for block in blocks for inst in block.body if inst.op == "load")
    return any(load.operands[0].name in in_loops for load in loads)
