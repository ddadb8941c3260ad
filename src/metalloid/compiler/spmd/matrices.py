"""Products of simdgroup matrices."""

from __future__ import annotations

from metalloid.compiler.llvm.ir import Instruction, Value
from metalloid.compiler.llvm.types import FLOAT, I64
from metalloid.compiler.spmd.lanes import WIDTH
from metalloid.compiler.spmd.permute import active_or
from metalloid.compiler.spmd.writer import Writer


def multiply(writer: Writer, instruction: Instruction) -> str:
    """Product of two 8 x 8 matrices, two neighbours of a row in each lane (Apple's layout)."""
    left, right = (_floats(writer, operand) for operand in instruction.operands)
    places = [(_row(lane), _column(lane) + j) for lane in range(WIDTH) for j in range(2)]
    at = {place: number for number, place in enumerate(places)}
    total = ""
    wide = f"<{2 * WIDTH} x {FLOAT}>"
    for k in range(8):
        a = _pick(writer, left, [at[row, k] for row, _ in places])
        b = _pick(writer, right, [at[k, column] for _, column in places])
        product = writer.new(f"fmul {wide} {a}, {b}")
        start = total or "zeroinitializer"
        total = writer.new(f"fadd {wide} {start}, {product}")
    return writer.new(f"bitcast {wide} {total} to {writer.wide(I64)}")


def _floats(writer: Writer, operand: Value) -> str:
    """All numbers of a matrix as one vector; zeros where a lane takes no part."""
    words = active_or(writer, writer.vector(operand), "0", I64)
    return writer.new(f"bitcast {writer.wide(I64)} {words} to <{2 * WIDTH} x {FLOAT}>")


def _pick(writer: Writer, matrix: str, sources: list[int]) -> str:
    wide = f"<{2 * WIDTH} x {FLOAT}>"
    mask = ", ".join(f"i32 {source}" for source in sources)
    return writer.new(f"shufflevector {wide} {matrix}, {wide} poison, <{2 * WIDTH} x i32> <{mask}>")


def _row(lane: int) -> int:
    return (lane // 4 & 4) + lane // 2 % 4


def _column(lane: int) -> int:
    return (lane // 4 & 2) * 2 + lane % 2 * 2
