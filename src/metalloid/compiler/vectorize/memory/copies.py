"""Copies of more bytes than a gather takes at a time, and fills, each lane its own."""

from __future__ import annotations

from collections.abc import Callable

from metalloid.compiler.ir.function import Instruction
from metalloid.compiler.ir.types import I1, I8
from metalloid.compiler.transforms.lower_memcpy import FILL
from metalloid.compiler.vectorize.atomics import operations
from metalloid.compiler.vectorize.builder import Writer
from metalloid.compiler.vectorize.memory.lane_addresses import lane_by_lane

#: Lanes whose values are in registers before the first of them is stored.
_AT_A_TIME = 16
#: Bytes of a lane that are loaded before they are stored.
_MOST_IN_REGISTERS = 64


def _copy(writer: Writer, instruction: Instruction) -> None:
    source, size, target = instruction.operands
    is_fill = instruction.detail == FILL
    nbytes = size.integer
    shapes = [writer.shape(value) for value in (source, target)]
    if all(shape.is_uniform for shape in (*shapes, writer.shape(size))):
        _move(writer, nbytes, is_fill, *map(writer.scalar, instruction.operands))
    elif writer.mask is not None or nbytes is None:
        _copy_in_turn(writer, instruction)
    elif shapes[1].stride == nbytes and (
        shapes[0].is_uniform if is_fill else shapes[0].stride == nbytes
    ):
        total = nbytes * writer.width
        _move(writer, total, is_fill, writer.scalar(source), str(total), writer.scalar(target))
    elif is_fill or nbytes > _MOST_IN_REGISTERS:
        _copy_in_turn(writer, instruction)
    else:
        sources, targets = (lane_by_lane(writer, address) for address in (source, target))
        for first in range(0, writer.width, _AT_A_TIME):
            lanes = range(first, min(first + _AT_A_TIME, writer.width))
            values = [_load(writer, nbytes, sources(lane)) for lane in lanes]
            for lane, value in zip(lanes, values, strict=True):
                _store(writer, nbytes, value, targets(lane))


def _move(
    writer: Writer, nbytes: int | None, is_fill: bool, source: str, size: str, target: str
) -> None:
    if is_fill:
        given = [("ptr", target), ("i8", source), ("i64", size), ("i1", "false")]
        writer.call("void", "@llvm.memset.p0.i64", given)
    elif nbytes is None or nbytes > _MOST_IN_REGISTERS * writer.width:
        given = [("ptr", target), ("ptr", source), ("i64", size), ("i1", "false")]
        writer.call("void", "@llvm.memmove.p0.p0.i64", given)
    else:
        _store(writer, nbytes, _load(writer, nbytes, source), target)


def _load(writer: Writer, size: int, address: str) -> str:
    return writer.new(f"load <{size} x {I8}>, ptr {address}, align 1")


def _store(writer: Writer, size: int, value: str, address: str) -> None:
    writer.emit(f"store <{size} x {I8}> {value}, ptr {address}, align 1")


def _copy_in_turn(writer: Writer, instruction: Instruction) -> None:
    """By the active lanes only, one after the other."""
    nbytes, is_fill = instruction.operands[1].integer, instruction.detail == FILL

    def one(given: list[str]) -> str:
        _move(writer, nbytes, is_fill, *given)
        return "true"

    operations.in_turn(writer, instruction.operands, I1, one)


#: By opcode.
HANDLERS: dict[str, Callable[[Writer, Instruction], None]] = {"copy": _copy}
