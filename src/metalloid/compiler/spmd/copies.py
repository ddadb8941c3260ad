"""Copies of more bytes than a gather takes at a time, each lane its own."""

from __future__ import annotations

from collections.abc import Callable

from metalloid.compiler.llvm.ir import Instruction
from metalloid.compiler.llvm.types import I1, I8
from metalloid.compiler.spmd import atomics
from metalloid.compiler.spmd.lane_addresses import lane_by_lane
from metalloid.compiler.spmd.writer import Writer

#: Lanes whose values are in registers before the first of them is stored.
_AT_A_TIME = 16


def _copy(writer: Writer, instruction: Instruction) -> None:
    source, target = instruction.operands
    size = instruction.source.size
    shapes = [writer.shape(address) for address in instruction.operands]
    if all(shape.is_uniform for shape in shapes):
        _move(writer, size, writer.scalar(source), writer.scalar(target))
    elif writer.mask is not None:
        _copy_in_turn(writer, instruction)
    elif all(shape.stride == size for shape in shapes):
        _move(writer, size * writer.width, writer.scalar(source), writer.scalar(target))
    else:
        sources, targets = (lane_by_lane(writer, address) for address in instruction.operands)
        for first in range(0, writer.width, _AT_A_TIME):
            lanes = range(first, min(first + _AT_A_TIME, writer.width))
            values = [_load(writer, size, sources(lane)) for lane in lanes]
            for lane, value in zip(lanes, values, strict=True):
                _store(writer, size, value, targets(lane))


def _move(writer: Writer, size: int, source: str, target: str) -> None:
    _store(writer, size, _load(writer, size, source), target)


def _load(writer: Writer, size: int, address: str) -> str:
    return writer.new(f"load <{size} x {I8}>, ptr {address}, align 1")


def _store(writer: Writer, size: int, value: str, address: str) -> None:
    writer.emit(f"store <{size} x {I8}> {value}, ptr {address}, align 1")


def _copy_in_turn(writer: Writer, instruction: Instruction) -> None:
    """By the active lanes only, one after the other."""

    def one(given: list[str]) -> str:
        _move(writer, instruction.source.size, *given)
        return "true"

    atomics.in_turn(writer, instruction.operands, I1, one)


#: By opcode.
HANDLERS: dict[str, Callable[[Writer, Instruction], None]] = {"copy": _copy}
