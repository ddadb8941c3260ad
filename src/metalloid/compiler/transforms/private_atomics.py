"""Atomic accesses to memory that one thread of the operating system uses become plain ones."""

from __future__ import annotations

from metalloid.compiler.ir.function import Function, Instruction
from metalloid.compiler.ir.opcodes import ONE_THREAD


def is_private(instruction: Instruction) -> bool:
    """Whether it is an atomic access to what no other thread of the operating system can see."""
    return ONE_THREAD in instruction.ordering


def demote_private_atomics(function: Function) -> None:
    """Loads and stores of what one thread of the operating system uses need not be atomic."""
    for instruction in function.instructions():
        if instruction.op in ("load", "store") and is_private(instruction):
            instruction.ordering = ""
