"""Copies of more bytes than a gather takes at a time, and fills, each lane its own."""

from __future__ import annotations

from collections.abc import Callable

from metalloid.compiler.ir.function import Instruction
from metalloid.compiler.ir.types import I1, I8
from metalloid.compiler.vectorize.atomics import operations
from metalloid.compiler.vectorize.builder import Builder
from metalloid.compiler.vectorize.memory.lane_addresses import lane_by_lane

#: Lanes whose values are in registers before the first of them is stored.
_AT_A_TIME = 16
#: Bytes of a lane that are loaded before they are stored.
_MAX_IN_REGISTERS = 64


def _copy(builder: Builder, instruction: Instruction) -> None:
    source, size, target = instruction.operands
    is_fill = instruction.op == "fill"
    nbytes = size.integer
    shapes = [builder.shape(value) for value in (source, target)]
    if all(shape.is_uniform for shape in (*shapes, builder.shape(size))):
        _move(builder, nbytes, is_fill, *map(builder.scalar, instruction.operands))
    elif builder.mask is not None or nbytes is None:
        _copy_in_turn(builder, instruction)
    elif shapes[1].stride == nbytes and (
        shapes[0].is_uniform if is_fill else shapes[0].stride == nbytes
    ):
        total = nbytes * builder.width
        _move(builder, total, is_fill, builder.scalar(source), str(total), builder.scalar(target))
    elif is_fill or nbytes > _MAX_IN_REGISTERS:
        _copy_in_turn(builder, instruction)
    else:
        sources, targets = (lane_by_lane(builder, address) for address in (source, target))
        for first in range(0, builder.width, _AT_A_TIME):
            lanes = range(first, min(first + _AT_A_TIME, builder.width))
            values = [_load(builder, nbytes, sources(lane)) for lane in lanes]
            for lane, value in zip(lanes, values, strict=True):
                _store(builder, nbytes, value, targets(lane))


def _move(
    builder: Builder, nbytes: int | None, is_fill: bool, source: str, size: str, target: str
) -> None:
    if is_fill:
        given = [("ptr", target), ("i8", source), ("i64", size), ("i1", "false")]
        builder.call("void", "@llvm.memset.p0.i64", given)
    elif nbytes is None or nbytes > _MAX_IN_REGISTERS * builder.width:
        given = [("ptr", target), ("ptr", source), ("i64", size), ("i1", "false")]
        builder.call("void", "@llvm.memmove.p0.p0.i64", given)
    else:
        _store(builder, nbytes, _load(builder, nbytes, source), target)


def _load(builder: Builder, size: int, address: str) -> str:
    return builder.new(f"load <{size} x {I8}>, ptr {address}, align 1")


def _store(builder: Builder, size: int, value: str, address: str) -> None:
    builder.emit(f"store <{size} x {I8}> {value}, ptr {address}, align 1")


def _copy_in_turn(builder: Builder, instruction: Instruction) -> None:
    """By the active lanes only, one after the other."""
    nbytes, is_fill = instruction.operands[1].integer, instruction.op == "fill"

    def one(given: list[str]) -> str:
        _move(builder, nbytes, is_fill, *given)
        return "true"

    operations.in_turn(builder, instruction.operands, I1, one)


#: By opcode.
HANDLERS: dict[str, Callable[[Builder, Instruction], None]] = {
    "copy": _copy,
    "fill": _copy,
}
