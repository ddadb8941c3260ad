"""Operations that each thread computes, counted in its code."""

from __future__ import annotations

from metalloid.compiler.ir.cfg import Graph
from metalloid.compiler.ir.function import Instruction
from metalloid.compiler.ir.parser import flatten_address_spaces, parse_function

_PLAIN = ("fadd", "fsub", "fmul")
_FUSED = ("@llvm.fma.", "@llvm.fmuladd.")


def operations(ir: str, name: str = "mtl_thread") -> int:
    """Additions and multiplications that every thread does; a fused one is two.

    Instructions that take numbers apart or put them together are not counted, nor are comparisons.
    """
    function = parse_function(flatten_address_spaces(ir), name)
    graph = Graph(function)
    [block] = (each for each in graph.order if function.blocks[each].end.op == "ret")
    total = 0
    while True:
        total += sum(map(_count, function.blocks[block].body))
        if block == graph.entry:
            return total
        block = graph.dominator[block]


def _count(instruction: Instruction) -> int:
    if instruction.op == "call":
        return 2 * instruction.callee.startswith(_FUSED)
    return instruction.op in _PLAIN
