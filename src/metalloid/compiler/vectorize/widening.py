"""Which values are used where they are not in registers, and in which form."""

from __future__ import annotations

from metalloid.compiler.ir.function import Instruction, Value
from metalloid.compiler.vectorize.builder import Builder
from metalloid.compiler.vectorize.control_flow.linearize import Linearizer


def find_widened_values(builder: Builder, linearizer: Linearizer) -> None:
    """Tell the writer which values are used where they are not in registers."""
    divergence = builder.divergence
    _find_required_vectors(builder)
    builder.uses.update(v.name for i in divergence.function.instructions() for v in i.operands)
    for name, block in divergence.function.blocks.items():
        for instruction in (*block.body, block.end):
            for value in instruction.operands:
                at_end = instruction is block.end and name in linearizer.dispatched
                _note_use(builder, value, name, at_end)
        for phi in block.phis:
            for value, predecessor in zip(phi.operands, phi.labels, strict=True):
                _note_use(builder, value, predecessor, predecessor in linearizer.dispatched)


def _note_use(builder: Builder, value: Value, block: str, through_copies: bool) -> None:
    if value.is_constant:
        return
    home = builder.divergence.home(value)
    if not home or (home == block and not through_copies):
        return
    if builder.divergence.leaves_loop(value, block):
        builder.leaving.add(value.name)
    else:
        builder.live_out.add(value.name)


def _find_required_vectors(builder: Builder) -> None:
    """Which inexact values are used as more than addresses."""
    divergence, required = builder.divergence, builder.required_vectors
    todo: list[str] = []

    def want(value: Value) -> None:
        shape = divergence.shapes.get(value.name)
        known = shape is not None and shape.offsets is not None and not shape.exact
        if known and value.name not in required:
            required.add(value.name)
            todo.append(value.name)

    for name, block in divergence.function.blocks.items():
        for instruction in block.instructions():
            for value in instruction.operands:
                if not _serves_as_address(builder, instruction, value, name):
                    want(value)
    while todo:
        inst = builder.computed_by.get(todo.pop())
        for value in inst.operands if inst else ():
            want(value)


def _serves_as_address(builder: Builder, user: Instruction, value: Value, block: str) -> bool:
    """Whether `user` is content with an inexact value."""
    divergence = builder.divergence
    if user.op in ("load", "store") and value is user.operands[-1]:
        shape = divergence.shape(value, block)
        type = user.type if user.op == "load" else user.operands[0].type
        return shape.stride == type.size or user in builder.groups
    return bool(user.result) and divergence.shapes[user.result].offsets is not None
