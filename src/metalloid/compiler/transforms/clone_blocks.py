"""Copies of blocks of a function."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Block, Function, Instruction, Value


def clone(
    function: Function, names: Collection[str], suffix: str, fresh: FreshNames | None = None
) -> tuple[dict[str, str], Callable[[Value], Value]]:
    """Add a copy of some blocks, which go on among themselves and leave to where these leave to.

    Parameters
    ----------
    function : Function
    names : collection of str
        The blocks.
    suffix : str
        Of the names of the copies.
    fresh : FreshNames, optional
        Where others take names from as well.

    Returns
    -------
    blocks : dict of str
        Names of the copies.
    copy_of : callable
        What the copies compute in place of a value.
    """
    blocks = function.blocks
    fresh = fresh or FreshNames(function)
    new = {name: fresh(f"{name}{suffix}") for name in blocks if name in names}
    values = {
        one.result: fresh(f"{one.result}{suffix}")
        for name in new
        for one in blocks[name].instructions()
        if one.result
    }

    def copy_of(value: Value) -> Value:
        return Value(value.type, values.get(value.name, value.name))

    def copied(one: Instruction) -> Instruction:
        return replace(
            one,
            result=values.get(one.result, ""),
            operands=[copy_of(value) for value in one.operands],
            labels=[new.get(label, label) for label in one.labels],
        )

    for name, own in new.items():
        block = blocks[name]
        blocks[own] = Block(
            own, [*map(copied, block.phis)], [*map(copied, block.body)], copied(block.end)
        )
    return new, copy_of
