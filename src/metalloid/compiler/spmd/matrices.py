"""simdgroup_matrix: 8 x 8 floats that the lanes of a simdgroup hold together.

A thread has two neighbours of a row (Apple's layout). Together they are one value of the simdgroup,
the rows one behind the other: `MATRIX`, which is uniform. `find_products` rewrites the code of a
thread in these terms, with operations of its own:

- ``to_matrix``: the matrix whose elements the lanes hold, inactive lanes zeros
- ``of_matrix``: the lane's first or second element
- ``multiply_matrices``: a b + c
- ``load_matrix``: rows from memory, each without gaps

A product is eight fused multiplications and additions of 64 numbers: a column of the first factor,
each element eight times, with a row of the second, as often. `whole_matrices` removes the changes
of form between one operation and the next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from metalloid.compiler.llvm.ir import Function, Instruction, Value
from metalloid.compiler.llvm.types import FLOAT, I64, Struct, Type, Vector
from metalloid.compiler.spmd.lanes import MULTIPLY, WIDTH
from metalloid.compiler.spmd.permute import active_or
from metalloid.compiler.spmd.writer import Writer

SIDE = 8
_COUNT = SIDE * SIDE


@dataclass(frozen=True)
class Matrix(Type):
    """A matrix of floats, row by row."""

    def __str__(self) -> str:
        return f"<{_COUNT} x {FLOAT}>"


MATRIX = Matrix()


def row_of(lane: int) -> int:
    """The row of a lane's elements."""
    return (lane // 4 & 4) + lane // 2 % 4


def column_of(lane: int) -> int:
    """The column of its first element."""
    return (lane // 4 & 2) * 2 + lane % 2 * 2


# ---- finding products ----------------------------------------------------------------------------


def find_products(function: Function) -> None:
    """Write the products of `function` in terms of matrices."""
    for block in function.blocks.values():
        if not any(i.detail == MULTIPLY for i in block.body):
            continue
        body: list[Instruction] = []
        parts: dict[str, Value] = {}  # products whose elements are extracted one by one
        for instruction in block.body:
            if instruction.detail == MULTIPLY:
                product = _product(instruction, body)
                if isinstance(instruction.type, Vector):
                    body += _as_vector(instruction, product)
                else:
                    parts[instruction.result] = product
            elif instruction.op == "extractvalue" and instruction.operands[0].name in parts:
                product = parts[instruction.operands[0].name]
                body.append(of_matrix(instruction.result, product, int(instruction.detail)))
            else:
                body.append(instruction)
        block.body = body


def _product(call: Instruction, body: list[Instruction]) -> Value:
    matrices = []
    for name, start in (("left", 0), ("right", 2), ("start", 4)):
        elements = call.operands[start : start + 2]
        body.append(Instruction("to_matrix", f"{call.result}.{name}", MATRIX, elements))
        matrices.append(body[-1].value)
    body.append(Instruction("multiply_matrices", f"{call.result}.matrix", MATRIX, matrices))
    return body[-1].value


def _as_vector(call: Instruction, product: Value) -> list[Instruction]:
    """The elements as a vector of two, which is how x86-64 returns two floats."""
    first, second = (of_matrix(f"{call.result}.{n}", product, n) for n in (0, 1))
    half = Instruction(
        "insertelement", f"{call.result}.half", call.type,
        [Value(call.type, "poison"), first.value, Value(I64, "0")],
    )  # fmt: skip
    operands = [half.value, second.value, Value(I64, "1")]
    return [first, second, half, Instruction("insertelement", call.result, call.type, operands)]


def of_matrix(name: str, matrix: Value, element: int) -> Instruction:
    """The instruction that gives each lane one of its elements."""
    return Instruction("of_matrix", name, FLOAT, [matrix], detail=str(element))


# ---- writing -------------------------------------------------------------------------------------


def _to_matrix(writer: Writer, instruction: Instruction) -> None:
    first, second = (
        active_or(writer, writer.vector(value), "0.0", FLOAT) for value in instruction.operands
    )
    lanes = {(row_of(lane), column_of(lane)): lane for lane in range(WIDTH)}
    sources = [
        lanes[row, column - column % 2] + column % 2 * WIDTH
        for row in range(SIDE)
        for column in range(SIDE)
    ]
    wide = writer.wide(FLOAT)
    writer.set(instruction, scalar=_shuffle(writer, wide, first, second, sources))


def _of_matrix(writer: Writer, instruction: Instruction) -> None:
    [matrix] = instruction.operands
    element = int(instruction.detail)
    sources = [row_of(lane) * SIDE + column_of(lane) + element for lane in range(WIDTH)]
    rows = writer.scalar(matrix)
    writer.set(instruction, vector=_shuffle(writer, str(MATRIX), rows, "poison", sources))


def _multiply(writer: Writer, instruction: Instruction) -> None:
    left, right, total = map(writer.scalar, instruction.operands)
    for k in range(SIDE):
        column = _picked(writer, left, "column", k, [i // SIDE * SIDE + k for i in range(_COUNT)])
        row = _picked(writer, right, "row", k, [k * SIDE + i % SIDE for i in range(_COUNT)])
        given = [(str(MATRIX), value) for value in (column, row, total)]
        total = writer.call(str(MATRIX), f"@llvm.fma.v{_COUNT}f32", given)
    writer.set(instruction, scalar=total)


def _picked(writer: Writer, matrix: str, what: str, k: int, sources: list[int]) -> str:
    """A column or row, repeated; a block makes it once."""
    key = (matrix, what, k)
    known = writer.remembered(key)
    if known is None:
        known = _shuffle(writer, str(MATRIX), matrix, "poison", sources)
        writer.remember(key, known)
    return known


def _load(writer: Writer, instruction: Instruction) -> None:
    """Eight rows, one behind the other."""
    [address] = instruction.operands
    element, step = instruction.source, int(instruction.detail)
    start = writer.scalar(address)
    parts = []
    for row in range(SIDE):
        place = writer.new(f"getelementptr i8, ptr {start}, i64 {row * step}") if row else start
        align = instruction.align or element.size
        parts.append(writer.new(f"load <{SIDE} x {element}>, ptr {place}, align {align}"))
    length = SIDE
    while len(parts) > 1:
        type, everything = f"<{length} x {element}>", list(range(2 * length))
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [_shuffle(writer, type, low, high, everything) for low, high in pairs]
        length *= 2
    [rows] = parts
    if element != FLOAT:
        rows = writer.new(f"fpext <{_COUNT} x {element}> {rows} to {MATRIX}")
    writer.set(instruction, scalar=rows)


def _shuffle(writer: Writer, type: str, first: str, second: str, sources: list[int]) -> str:
    mask = ", ".join(f"i32 {source}" for source in sources)
    return writer.new(
        f"shufflevector {type} {first}, {type} {second}, <{len(sources)} x i32> <{mask}>"
    )


#: By opcode.
HANDLERS: dict[str, Callable[[Writer, Instruction], None]] = {
    "to_matrix": _to_matrix,
    "of_matrix": _of_matrix,
    "multiply_matrices": _multiply,
    "load_matrix": _load,
}
