"""Loads that give the same value throughout a call."""

from __future__ import annotations

from metalloid.compiler.ir.function import Function


def mark_invariant_loads(function: Function, read_only: set[str]) -> None:
    """Mark loads of memory at `read_only` addresses, and at known distances from them.

    Not as LLVM's invariant ones: the driver writes a threadgroup's position before it calls the
    function, and once that is inlined such a load could be moved before the store.
    """
    addresses = set(read_only)
    for instruction in function.instructions():
        operands = instruction.operands
        has_known_address = bool(operands) and operands[0].name in addresses
        if instruction.op == "getelementptr" and has_known_address:
            if all(v.is_constant for v in operands[1:]):
                addresses.add(instruction.result)
        elif instruction.op == "load" and has_known_address and not instruction.ordering:
            instruction.flags = (*instruction.flags, "call_invariant")
