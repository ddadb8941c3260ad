"""What edges carry: each phi is a variable that its edges write and its block reads."""

from __future__ import annotations

from metalloid.compiler.ir.function import Block, Instruction, Value
from metalloid.compiler.vectorize.builder import Writer, quoted


def read(writer: Writer, phi: Instruction) -> None:
    """Begin a block with what the lanes were given on their way."""
    shape = writer.own_shape(phi.value)
    scalar = vector = ""
    if not shape.is_varying:
        scalar = writer.new(f"load {phi.type}, ptr {_slot(writer, phi, '')}, align 64")
    if shape.is_varying or phi.result in writer.vectors_wanted:
        wide = writer.wide(phi.type)
        vector = writer.new(f"load {wide}, ptr {_slot(writer, phi, 'v')}, align 64")
    writer.set(phi, scalar, vector)


def give(writer: Writer, block: Block, origin: str, lanes: str | None, plain: bool) -> None:
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
        shape = writer.own_shape(phi.value)
        type = phi.type
        if not shape.is_varying:
            slot, new = _slot(writer, phi, ""), writer.scalar(value)
            if not plain:
                assert lanes is not None
                any_lane = any_lane or writer.any(lanes)
                old = writer.new(f"load {type}, ptr {slot}, align 64")
                new = writer.new(f"select i1 {any_lane}, {type} {new}, {type} {old}")
            writer.emit(f"store {type} {new}, ptr {slot}, align 64")
        if shape.is_varying or phi.result in writer.vectors_wanted:
            _give_lanes(writer, phi, value, lanes, plain)


def _give_lanes(
    writer: Writer, phi: Instruction, value: Value, lanes: str | None, plain: bool
) -> None:
    wide = writer.wide(phi.type)
    slot, new = _slot(writer, phi, "v"), writer.vector(value)
    if not plain:
        old = writer.new(f"load {wide}, ptr {slot}, align 64")
        new = writer.blend(writer.mask_as_bits(lanes) or "", new, old, phi.type)
    writer.emit(f"store {wide} {new}, ptr {slot}, align 64")


def _slot(writer: Writer, phi: Instruction, kind: str) -> str:
    type = writer.wide(phi.type) if kind else str(phi.type)
    return writer.slot(quoted(f"phi{kind}", phi.result), type)
