"""Distances between addresses, in bytes."""

from __future__ import annotations

from collections.abc import Callable

from metalloid.compiler.ir.function import Instruction, Value, gep_terms


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
            variable += [(index.name, size) for index, size in terms]
        address = step.operands[0]


def underlying_object(address: Value, computed_by: dict[str, Instruction]) -> str | None:
    """The pointer that an address is computed from; None if it may be one of several."""
    while (inst := computed_by.get(address.name)) and inst.op in (
        "getelementptr",
        "bitcast",
    ):
        address = inst.operands[0]
    return None if inst is not None and inst.op in ("phi", "select") else address.name
