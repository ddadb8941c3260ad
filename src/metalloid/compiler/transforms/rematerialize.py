"""Rematerialise cheap values after a barrier instead of spilling them.

A value that is needed after a barrier is spilled to the simdgroup's context frame, in memory. For
addresses and indices, which come from a thread's position and the kernel's arguments by a few
additions, it is cheaper to compute them again where they are needed: then they stay in registers,
and offsets become part of other instructions. (Contiguous values in the region builder of PoCL,
Jääskeläinen et al., IJPP 2015, section 4.7, and of hipSYCL.)
"""

from __future__ import annotations

import functools
from dataclasses import replace
from operator import or_

from metalloid.compiler.analysis.barriers import barrier_blocks
from metalloid.compiler.ir.cfg import Graph
from metalloid.compiler.ir.function import Function, Instruction, Value

_PURE = frozenset(
    (
        "getelementptr", "add", "sub", "mul", "shl", "lshr", "ashr", "and", "or", "xor", "zext",
        "sext", "trunc", "icmp", "select", "bitcast", "ptrtoint", "inttoptr",
    )
)  # fmt: skip
#: A value that takes more instructions is kept.
_MAX_INSTRUCTIONS = 12


def rematerialize(function: Function, graph: Graph, uniform: set[str]) -> None:
    """Give each block copies of the cheap values that would come to it across a barrier.

    Parameters
    ----------
    function : Function
        With barriers at the ends of blocks.
    graph : Graph
        Of it.
    uniform : set of str
        Parameters that all lanes have in common. A load of constant memory is cheap if its address
        depends on these alone.
    """
    barriers = barrier_blocks(function)
    if barriers:
        _Recomputing(function, graph, barriers, uniform).run()


class _Recomputing:
    def __init__(
        self, function: Function, graph: Graph, barriers: set[str], uniform: set[str]
    ) -> None:
        self._function, self._graph = function, graph
        self._uniform = set(uniform)
        # The blocks that are reachable from each block through a barrier.
        self._beyond = graph.ahead(
            {
                name: functools.reduce(or_, (graph.reach[s] for s in graph.successors[name]), 0)
                for name in barriers
            }
        )
        self._home: dict[str, str] = {}
        self._cheap: dict[str, Instruction] = {}
        self._cost: dict[str, int] = {}
        self._copies: dict[tuple[str, str], Value] = {}
        self._added: dict[str, list[Instruction]] = {name: [] for name in function.blocks}

    def run(self) -> None:
        self._find_cheap()
        blocks = self._function.blocks
        for block in blocks.values():
            for instruction in (*block.body, block.end):
                instruction.operands = [self._near(v, block.name) for v in instruction.operands]
            for phi in block.phis:
                phi.operands = [
                    self._near(value, predecessor)
                    for value, predecessor in zip(phi.operands, phi.labels, strict=True)
                ]
        for name, added in self._added.items():
            # At the beginning: what an edge carries is needed before the barrier at the end.
            blocks[name].body[:0] = added

    def _find_cheap(self) -> None:
        """Values that depend on constants and parameters alone, by a few steps."""
        known = {parameter.name for parameter in self._function.parameters}
        for name in self._graph.order:
            block = self._function.blocks[name]
            for instruction in (*block.phis, *block.body):
                self._home[instruction.result] = name
                operands = [v.name for v in instruction.operands if not v.is_constant]
                cost = 1 + sum(self._cost.get(o, 0) for o in operands)
                is_uniform = self._uniform.issuperset(operands)
                is_constant = instruction.reads_the_same and is_uniform
                if cost > _MAX_INSTRUCTIONS or not (instruction.op in _PURE or is_constant):
                    continue
                if known.issuperset(operands):
                    known.add(instruction.result)
                    # As it is now: its operands may become copies.
                    self._cheap[instruction.result] = replace(instruction)
                    self._cost[instruction.result] = cost
                    if is_uniform:
                        self._uniform.add(instruction.result)

    def _crosses(self, home: str, use: str) -> bool:
        """Whether a barrier may stand between the blocks."""
        return bool(self._beyond[home] >> self._graph.number[use] & 1)

    def _near(self, value: Value, block: str) -> Value:
        """`value`, or a copy of it in `block`."""
        original = self._cheap.get(value.name)
        if original is None or self._home[value.name] == block:
            return value
        key = value.name, block
        if key not in self._copies:
            if not self._crosses(self._home[value.name], block):
                return value
            operands = [self._near(operand, block) for operand in original.operands]
            name = f"%mtl.remat{len(self._copies)}"
            copy = replace(original, result=name, operands=operands)
            self._added[block].append(copy)
            self._copies[key] = copy.value
        return self._copies[key]
