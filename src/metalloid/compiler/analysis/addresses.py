"""Distances between addresses, in bytes."""

from __future__ import annotations

from collections.abc import Callable

from metalloid.compiler.ir.function import Instruction, Value, gep_terms
from metalloid.compiler.ir.types import I64


def decompose_address(
    address: Value,
    inst: Callable[[Value], Instruction | None],
    is_base: Callable[[Value], bool],
) -> tuple[Value, int, list[tuple[Value, int]]] | None:
    """The base that an address is reached from by ``getelementptr``, and what these add.

    Parameters
    ----------
    address : Value
    inst : callable
        The instruction that computes a value, as far as it may be looked at.
    is_base : callable
        Whether to stop at a value.
    """
    distance, variable = 0, []
    while not is_base(address):
        step = inst(address)
        if step is None or step.op != "getelementptr":
            return None
        constant, factors = gep_terms(step)
        distance += constant
        variable += factors
        address = step.operands[0]
    return address, distance, variable


#: An address by what it is computed from: a pointer, and indices with what each is multiplied by.
Root = tuple[str, tuple[tuple[str, int], ...]]


def root_of(address: Value, computed_by: dict[str, Instruction]) -> tuple[Root, int]:
    """The address that `address` is at a constant distance from, and the distance."""
    distance = 0
    variable: list[tuple[str, int]] = []
    while True:
        step = computed_by.get(address.name)
        if step is None or step.op not in ("getelementptr", "bitcast"):
            return (address.name, tuple(sorted(variable))), distance
        if step.op == "getelementptr":
            constant, terms = gep_terms(step)
            distance += constant
            for index, size in terms:
                name, more = _without_constant(index, computed_by)
                distance += more * size
                variable.append((name, size))
        address = step.operands[0]


def _without_constant(index: Value, computed_by: dict[str, Instruction]) -> tuple[str, int]:
    """Split an index into the value that constants are added to, and their sum."""
    distance = 0
    while index.type == I64 and (step := computed_by.get(index.name)) is not None:
        is_sum = step.op == "add" or (step.op == "or" and "disjoint" in step.flags)
        constant = step.operands[1].integer if is_sum else None
        if constant is None:
            break
        distance += constant
        index = step.operands[0]
    return index.name, distance


def underlying_object(address: Value, computed_by: dict[str, Instruction]) -> str | None:
    """The pointer that an address is computed from; None if it may be one of several."""
    while (inst := computed_by.get(address.name)) and inst.op in (
        "getelementptr",
        "bitcast",
    ):
        address = inst.operands[0]
    return None if inst is not None and inst.op in ("phi", "select") else address.name
