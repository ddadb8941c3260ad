"""Which values are used where they are not in registers, and in which form."""

from __future__ import annotations

from metalloid.compiler.ir.function import Instruction, Value
from metalloid.compiler.vectorize.builder import Writer
from metalloid.compiler.vectorize.linearize import Linearised


def find_uses(writer: Writer, linearised: Linearised) -> None:
    """Tell the writer which values are used where they are not in registers."""
    divergence = writer.divergence
    _find_wanted_vectors(writer)
    writer.uses.update(v.name for i in divergence.function.instructions() for v in i.operands)
    for name, block in divergence.function.blocks.items():
        for instruction in (*block.body, block.end):
            for value in instruction.operands:
                at_end = instruction is block.end and name in linearised.dispatched
                _note_use(writer, value, name, at_end)
        for phi in block.phis:
            for value, origin in zip(phi.operands, phi.labels, strict=True):
                _note_use(writer, value, origin, origin in linearised.dispatched)


def _note_use(writer: Writer, value: Value, block: str, behind_copies: bool) -> None:
    if value.is_constant:
        return
    home = writer.divergence.home(value)
    if not home or (home == block and not behind_copies):
        return
    if writer.divergence.leaves_loop(value, block):
        writer.leaving.add(value.name)
    else:
        writer.outliving.add(value.name)


def _find_wanted_vectors(writer: Writer) -> None:
    """Which inexact values are used as more than addresses."""
    divergence, wanted = writer.divergence, writer.vectors_wanted
    todo: list[str] = []

    def want(value: Value) -> None:
        shape = divergence.shapes.get(value.name)
        known = shape is not None and shape.offsets is not None and not shape.exact
        if known and value.name not in wanted:
            wanted.add(value.name)
            todo.append(value.name)

    for name, block in divergence.function.blocks.items():
        for instruction in block.instructions():
            for value in instruction.operands:
                if not _serves_as_address(writer, instruction, value, name):
                    want(value)
    while todo:
        origin = writer.computed_by.get(todo.pop())
        for value in origin.operands if origin else ():
            want(value)


def _serves_as_address(writer: Writer, user: Instruction, value: Value, block: str) -> bool:
    """Whether `user` is content with an inexact value."""
    divergence = writer.divergence
    if user.op in ("load", "store") and value is user.operands[-1]:
        shape = divergence.shape(value, block)
        type = user.type if user.op == "load" else user.operands[0].type
        return shape.stride == type.size or id(user) in writer.groups
    return bool(user.result) and divergence.shapes[user.result].offsets is not None
