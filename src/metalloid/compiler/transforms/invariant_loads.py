"""Loads that give the same value throughout a call, or whenever they are executed."""

from __future__ import annotations

from collections.abc import Collection

from metalloid.compiler.ir.function import Function, Instruction


def mark_invariant_loads(
    function: Function, read_only: Collection[str], flag: str, any_offset: bool = False
) -> None:
    """Mark loads of read-only memory.

    Parameters
    ----------
    function : Function
    read_only : collection of str
        Pointers to it.
    flag : str
        ``"invariant"``: nothing ever writes to it, so LLVM may move a load anywhere.
        ``"call_invariant"``: nothing does during a call of the function. A driver that writes to it
        before the call, as to a threadgroup's position, may become part of the same function: then
        LLVM would move a load that is invariant before the store.
    any_offset : bool
        Whether all that the pointers lead to is read-only, not only what is at constant offsets.
    """
    addresses = set(read_only)
    instructions = list(function.instructions())
    while more := {
        i.result for i in instructions
        if i.result not in addresses and _is_address_inside(i, addresses, any_offset)
    }:  # fmt: skip
        addresses |= more
    for i in instructions:
        is_plain = i.op == "load" and not i.ordering and "volatile" not in i.flags
        if is_plain and i.operands[0].name in addresses and flag not in i.flags:
            i.flags = (*i.flags, flag)


def _is_address_inside(i: Instruction, addresses: Collection[str], any_offset: bool) -> bool:
    """Whether an instruction computes an address from one of these."""
    if i.op not in ("getelementptr", "addrspacecast") or i.operands[0].name not in addresses:
        return False
    return any_offset or all(value.is_constant for value in i.operands[1:])
