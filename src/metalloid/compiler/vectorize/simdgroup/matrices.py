"""Code for the operations on matrices of `find_products`."""

from __future__ import annotations

from collections.abc import Callable

from metalloid.compiler.analysis.simdgroup_functions import WIDTH
from metalloid.compiler.ir.function import Instruction, Value
from metalloid.compiler.ir.matrix_type import MATRIX, PAIR, SIDE, Matrix, column_of, row_of
from metalloid.compiler.ir.types import FLOAT, I16
from metalloid.compiler.vectorize.bf16 import extended
from metalloid.compiler.vectorize.builder import Writer, quoted
from metalloid.compiler.vectorize.permute import active_or, cut, joined, shuffled

_COUNT = SIDE * SIDE
_ALL = f"<{_COUNT} x {FLOAT}>"


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
    everything = shuffled(writer, writer.wide(FLOAT), first, second, sources)
    _set(writer, instruction, cut(writer, everything, _COUNT, SIDE, FLOAT))


def _of_matrix(writer: Writer, instruction: Instruction) -> None:
    [matrix] = instruction.operands
    element = int(instruction.detail)
    sources = [row_of(lane) * SIDE + column_of(lane) + element for lane in range(WIDTH)]
    everything = writer.remembered(("everything", matrix.name))
    if everything is None:
        everything = joined(writer, _rows(writer, matrix), SIDE, FLOAT)
        writer.remember(("everything", matrix.name), everything)
    writer.set(instruction, vector=shuffled(writer, _ALL, everything, "poison", sources))


def _multiply(writer: Writer, instruction: Instruction) -> None:
    left, right, start = instruction.operands
    form = instruction.type
    slot = _in_memory(writer, left)
    rows, sums = _rows(writer, right), list(_rows(writer, start))
    if form is PAIR:
        _set(writer, instruction, _summed(writer, slot, rows, sums))
        return
    assert isinstance(form, Matrix)
    for k in range(SIDE):
        for row in range(SIDE):
            element = _repeated(writer, slot, row * SIDE + k)
            given = [(form.row, v) for v in (element, rows[k], sums[row])]
            sums[row] = writer.call(form.row, f"@llvm.fma.v{form.columns}f32", given)
    _set(writer, instruction, sums)


def _in_memory(writer: Writer, matrix: Value) -> str:
    """Where the elements of a first factor are."""
    slot = writer.remembered(("left", matrix.name))
    if slot is None:
        slot = writer.slot(quoted("left", matrix.name), str(MATRIX))
        for number, row in enumerate(_rows(writer, matrix)):
            place = writer.new(f"getelementptr {MATRIX.row}, ptr {slot}, i64 {number}")
            writer.emit(f"store {MATRIX.row} {row}, ptr {place}, align 32")
        # LLVM must not know what is there: it would take the elements out of registers.
        writer.emit(f'call void asm sideeffect "", "r,~{{memory}}"(ptr {slot})')
        writer.remember(("left", matrix.name), slot)
    return str(slot)


def _repeated(writer: Writer, slot: str, number: int) -> str:
    """One of the elements as a row of its own, from memory."""
    place = writer.new(f"getelementptr {FLOAT}, ptr {slot}, i64 {number}")
    one = writer.new(f"load <1 x {FLOAT}>, ptr {place}, align 4")
    return shuffled(writer, f"<1 x {FLOAT}>", one, "poison", [0] * SIDE)


def _summed(writer: Writer, slot: str, rows: list[str], sums: list[str]) -> list[str]:
    """The product for rows that fill a register of AVX-512, as the instructions themselves.

    They are what LLVM would choose, in a fraction of its time. Nor could it go on with all products
    at the same time, and have registers for none.
    """
    text = "\\0A".join(
        f"vfmadd231ps {4 * (row * SIDE + k)}($16){{1to16}}, ${SIDE + k}, ${row}"
        for k in range(SIDE)
        for row in range(SIDE)
    )
    constraints = ["=&v"] * SIDE + ["v"] * SIDE + ["r", *map(str, range(SIDE)), "~{memory}"]
    results = ", ".join([PAIR.row] * SIDE)
    given = ", ".join(
        [*(f"{PAIR.row} {v}" for v in rows), f"ptr {slot}", *(f"{PAIR.row} {v}" for v in sums)]
    )
    called = f'asm sideeffect "{text}", "{",".join(constraints)}"({given})'
    all_rows = writer.new(f"call {{ {results} }} {called}")
    return [writer.new(f"extractvalue {{ {results} }} {all_rows}, {row}") for row in range(SIDE)]


def _join(writer: Writer, instruction: Instruction) -> None:
    """Rows of two matrices side by side."""
    pairs = zip(*(_rows(writer, matrix) for matrix in instruction.operands), strict=True)
    both = list(range(PAIR.columns))
    rows = [shuffled(writer, MATRIX.row, low, high, both) for low, high in pairs]
    _set(writer, instruction, rows)


def _half(writer: Writer, instruction: Instruction) -> None:
    [pair] = instruction.operands
    start = int(instruction.detail) * SIDE
    columns = list(range(start, start + SIDE))
    rows = [shuffled(writer, PAIR.row, row, "poison", columns) for row in _rows(writer, pair)]
    _set(writer, instruction, rows)


def _load(writer: Writer, instruction: Instruction) -> None:
    """Eight rows, one behind the other; or eight columns, which then become rows."""
    [address] = instruction.operands
    element = instruction.source
    down, right = map(int, instruction.detail.split(","))
    is_plain = right == element.size
    step = down if is_plain else right
    start = writer.scalar(address)
    parts = []
    for row in range(SIDE):
        place = writer.new(f"getelementptr i8, ptr {start}, i64 {row * step}") if row else start
        parts.append(
            writer.new(f"load <{SIDE} x {element}>, ptr {place}, align {instruction.align}")
        )
    if not is_plain:
        sources = [column * SIDE + row for row in range(SIDE) for column in range(SIDE)]
        type = f"<{_COUNT} x {element}>"
        columns = joined(writer, parts, SIDE, element)
        everything = shuffled(writer, type, columns, "poison", sources)
        parts = cut(writer, everything, _COUNT, SIDE, element)
    if element == I16:
        parts = [extended(writer, part, SIDE) for part in parts]
    elif element != FLOAT:
        parts = [writer.new(f"fpext <{SIDE} x {element}> {part} to {MATRIX.row}") for part in parts]
    _set(writer, instruction, parts)


# ---- rows ----------------------------------------------------------------------------------------


def _set(writer: Writer, instruction: Instruction, rows: list[str]) -> None:
    """Record a matrix."""
    form, whole = instruction.type, "poison"
    assert isinstance(form, Matrix)
    for number, row in enumerate(rows):
        whole = writer.new(f"insertvalue {form} {whole}, {form.row} {row}, {number}")
    writer.set(instruction, scalar=whole)
    writer.remember(("rows", instruction.result), rows)


def _rows(writer: Writer, matrix: Value) -> list[str]:
    """The rows of a matrix."""
    rows: list[str] | None = writer.remembered(("rows", matrix.name))
    if rows is None:
        whole = writer.scalar(matrix)
        rows = [writer.new(f"extractvalue {matrix.type} {whole}, {n}") for n in range(SIDE)]
        writer.remember(("rows", matrix.name), rows)
    return rows


#: By opcode.
HANDLERS: dict[str, Callable[[Writer, Instruction], None]] = {
    "to_matrix": _to_matrix,
    "of_matrix": _of_matrix,
    "multiply_matrices": _multiply,
    "load_matrix": _load,
    "join_matrices": _join,
    "half_of_pair": _half,
}
