"""Threadgroup barriers in a function."""

from __future__ import annotations

from metalloid.compiler.analysis.simdgroup_functions import BARRIER
from metalloid.compiler.ir.function import Function, Instruction


def is_barrier(instruction: Instruction) -> bool:
    """Whether it is a threadgroup barrier."""
    return instruction.op == "call" and instruction.callee == BARRIER


def barrier_blocks(function: Function) -> set[str]:
    """The blocks that end by a barrier."""
    return {name for name, block in function.blocks.items() if any(map(is_barrier, block.body))}
