"""Parameters of a kernel through whose pointers it writes, although some may be declared const."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from metalloid.compiler.ir.function import Function, Instruction, Value, gep_terms
from metalloid.compiler.ir.types import Unsupported

_WORD_BYTES = 8
_STEPS = ("getelementptr", "bitcast", "addrspacecast", "inttoptr", "ptrtoint", "freeze")
#: The operand that is the address written to.
_WRITES = {"store": 1, "atomicrmw": 0, "cmpxchg": 0}
_FILLS = ("@llvm.memcpy.", "@llvm.memmove.", "@llvm.memset.")


def parameters_written(function: Function) -> frozenset[int]:
    """Positions of the parameters of a kernel for GPUs through whose pointers it writes.

    Pointers that it loads from memory other than the words of its launch are not followed.

    Parameters
    ----------
    function : Function
        The entry, whose first parameter points to the words.
    """
    computed_by = {i.result: i for i in function.instructions() if i.result}
    words = function.parameters[0].name
    written = {
        position
        for i in function.instructions()
        for load in _loads_of_pointers(_address_written(i), computed_by)
        if (position := _word(load.operands[0], words, computed_by)) is not None
    }
    return frozenset(written)


def _address_written(i: Instruction) -> Value | None:
    if i.op in _WRITES:
        return i.operands[_WRITES[i.op]]
    return i.operands[0] if i.op == "call" and i.callee.startswith(_FILLS) else None


def _loads_of_pointers(
    address: Value | None, computed_by: Mapping[str, Instruction]
) -> Iterator[Instruction]:
    """The loads of the pointers that an address may be computed from."""
    todo, seen = [address] if address is not None else [], set[str]()
    while todo:
        step = computed_by.get(todo.pop().name)
        if step is None or step.result in seen:
            continue
        seen.add(step.result)
        if step.op == "load":
            yield step
        elif step.op in _STEPS:
            todo.append(step.operands[0])
        elif step.op == "phi":
            todo += step.operands
        elif step.op == "select":
            todo += step.operands[1:]


def _word(address: Value, words: str, computed_by: Mapping[str, Instruction]) -> int | None:
    """The number of the word at an address; None if it is not one of the launch."""
    distance = 0
    while address.name != words:
        step = computed_by.get(address.name)
        if step is None or step.op not in _STEPS:
            return None
        if step.op == "getelementptr":
            try:
                constant, variable = gep_terms(step)
            except Unsupported:
                return None
            if variable:
                return None
            distance += constant
        address = step.operands[0]
    return distance // _WORD_BYTES
