"""PHI demotion: each phi is a variable that its edges write and its block reads."""

from __future__ import annotations

from metalloid.compiler.ir.function import Block, Instruction, Value
from metalloid.compiler.vectorize.builder import Builder
from metalloid.compiler.vectorize.slots import Slot, SlotKind


def read(builder: Builder, phi: Instruction) -> None:
    """Load the value that the lanes' edges stored."""
    shape = builder.own_shape(phi.value)
    scalar = vector = ""
    if not shape.is_varying:
        scalar = builder.load_slot(_slot(builder, phi))
    if shape.is_varying or phi.result in builder.required_vectors:
        vector = builder.load_slot(_vector_slot(builder, phi))
    builder.set(phi, scalar, vector)


def give(builder: Builder, block: Block, predecessor: str, lanes: str | None, plain: bool) -> None:
    """Let lanes that come from `predecessor` find their values in `block`.

    Parameters
    ----------
    lanes : str or None
        The mask of those that come; None for all.
    plain : bool
        Whether none can have come before, whose values would have to stay.
    """
    any_lane = ""
    for phi in block.phis:
        value = phi.operands[phi.labels.index(predecessor)]
        shape = builder.own_shape(phi.value)
        type = phi.type
        if not shape.is_varying:
            slot, new = _slot(builder, phi), builder.scalar(value)
            if not plain:
                assert lanes is not None
                any_lane = any_lane or builder.any(lanes)
                old = builder.load_slot(slot)
                new = builder.new(f"select i1 {any_lane}, {type} {new}, {type} {old}")
            builder.store_slot(new, slot)
        if shape.is_varying or phi.result in builder.required_vectors:
            _give_lanes(builder, phi, value, lanes, plain)


def _give_lanes(
    builder: Builder, phi: Instruction, value: Value, lanes: str | None, plain: bool
) -> None:
    slot, new = _vector_slot(builder, phi), builder.vector(value)
    if not plain:
        old = builder.load_slot(slot)
        new = builder.blend(builder.mask_as_bits(lanes) or "", new, old, phi.type)
    builder.store_slot(new, slot)


def _slot(builder: Builder, phi: Instruction) -> Slot:
    return builder.slot(SlotKind.PHI, phi.result, str(phi.type))


def _vector_slot(builder: Builder, phi: Instruction) -> Slot:
    return builder.slot(SlotKind.PHI_VECTOR, phi.result, builder.wide(phi.type))
