"""Copies of blocks of a function."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from metalloid.compiler.ir.function import Block, Function, Instruction, Value


def clone(
    function: Function, names: Collection[str], suffix: str
) -> tuple[dict[str, str], Callable[[Value], Value]]:
    """Add a copy of some blocks, which go on among themselves and leave to where these leave to.

    Returns
    -------
    blocks : dict of str
        Names of the copies.
    copy_of : callable
        What the copies compute in place of a value.
    """
    blocks = function.blocks
    new = {name: f"{name}{suffix}" for name in blocks if name in names}
    values = {
        one.result: f"{one.result}{suffix}"
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
