"""What edges carry: each phi is a variable that its edges write and its block reads."""

from __future__ import annotations

from metalloid.compiler.ir.function import Block, Instruction, Value
from metalloid.compiler.vectorize.builder import Builder, quoted


def read(builder: Builder, phi: Instruction) -> None:
    """Begin a block with what the lanes were given on their way."""
    shape = builder.own_shape(phi.value)
    scalar = vector = ""
    if not shape.is_varying:
        scalar = builder.new(f"load {phi.type}, ptr {_slot(builder, phi, '')}, align 64")
    if shape.is_varying or phi.result in builder.vectors_wanted:
        wide = builder.wide(phi.type)
        vector = builder.new(f"load {wide}, ptr {_slot(builder, phi, 'v')}, align 64")
    builder.set(phi, scalar, vector)


def give(builder: Builder, block: Block, origin: str, lanes: str | None, plain: bool) -> None:
    """Let lanes that come from `origin` find their values in `block`.

    Parameters
    ----------
    lanes : str or None
        The mask of those that come; None for all.
    plain : bool
        Whether none can have come before, whose values would have to stay.
    """
    any_lane = ""
    for phi in block.phis:
        value = phi.operands[phi.labels.index(origin)]
        shape = builder.own_shape(phi.value)
        type = phi.type
        if not shape.is_varying:
            slot, new = _slot(builder, phi, ""), builder.scalar(value)
            if not plain:
                assert lanes is not None
                any_lane = any_lane or builder.any(lanes)
                old = builder.new(f"load {type}, ptr {slot}, align 64")
                new = builder.new(f"select i1 {any_lane}, {type} {new}, {type} {old}")
            builder.emit(f"store {type} {new}, ptr {slot}, align 64")
        if shape.is_varying or phi.result in builder.vectors_wanted:
            _give_lanes(builder, phi, value, lanes, plain)


def _give_lanes(
    builder: Builder, phi: Instruction, value: Value, lanes: str | None, plain: bool
) -> None:
    wide = builder.wide(phi.type)
    slot, new = _slot(builder, phi, "v"), builder.vector(value)
    if not plain:
        old = builder.new(f"load {wide}, ptr {slot}, align 64")
        new = builder.blend(builder.mask_as_bits(lanes) or "", new, old, phi.type)
    builder.emit(f"store {wide} {new}, ptr {slot}, align 64")


def _slot(builder: Builder, phi: Instruction, kind: str) -> str:
    type = builder.wide(phi.type) if kind else str(phi.type)
    return builder.slot(quoted(f"phi{kind}", phi.result), type)
