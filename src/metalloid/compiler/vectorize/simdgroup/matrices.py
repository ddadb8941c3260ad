"""Code for the operations on matrices of `lower_matrix_products`."""

from __future__ import annotations

from collections.abc import Callable

from metalloid.compiler.analysis.simdgroup_functions import WIDTH
from metalloid.compiler.ir.function import Instruction, Value
from metalloid.compiler.ir.matrix_type import MATRIX, PAIR, ROWS, Matrix, column_of, row_of
from metalloid.compiler.ir.types import FLOAT, I16
from metalloid.compiler.vectorize.bf16 import extended
from metalloid.compiler.vectorize.builder import Builder
from metalloid.compiler.vectorize.permute import active_or, cut, joined, shuffled
from metalloid.compiler.vectorize.slots import SlotKind

_COUNT = ROWS * ROWS
_ALL = f"<{_COUNT} x {FLOAT}>"


def _to_matrix(builder: Builder, instruction: Instruction) -> None:
    first, second = (
        active_or(builder, builder.vector(value), "0.0", FLOAT) for value in instruction.operands
    )
    lanes = {(row_of(lane), column_of(lane)): lane for lane in range(WIDTH)}
    sources = [
        lanes[row, column - column % 2] + column % 2 * WIDTH
        for row in range(ROWS)
        for column in range(ROWS)
    ]
    everything = shuffled(builder, builder.wide(FLOAT), first, second, sources)
    _set(builder, instruction, cut(builder, everything, _COUNT, ROWS, FLOAT))


def _of_matrix(builder: Builder, instruction: Instruction) -> None:
    [matrix] = instruction.operands
    [element] = instruction.indices
    sources = [row_of(lane) * ROWS + column_of(lane) + element for lane in range(WIDTH)]
    everything = builder.remembered(("everything", matrix.name))
    if everything is None:
        everything = joined(builder, _rows(builder, matrix), ROWS, FLOAT)
        builder.remember(("everything", matrix.name), everything)
    builder.set(instruction, vector=shuffled(builder, _ALL, everything, "poison", sources))


def _multiply(builder: Builder, instruction: Instruction) -> None:
    left, right, start = instruction.operands
    form = instruction.type
    slot = _in_memory(builder, left)
    rows, sums = _rows(builder, right), list(_rows(builder, start))
    if form is PAIR:
        _set(builder, instruction, _summed(builder, slot, rows, sums))
        return
    assert isinstance(form, Matrix)
    for k in range(ROWS):
        for row in range(ROWS):
            element = _repeated(builder, slot, row * ROWS + k)
            given = [(form.row, v) for v in (element, rows[k], sums[row])]
            sums[row] = builder.call(form.row, f"@llvm.fma.v{form.columns}f32", given)
    _set(builder, instruction, sums)


def _in_memory(builder: Builder, matrix: Value) -> str:
    """Where the elements of a first factor are."""
    slot = builder.remembered(("left", matrix.name))
    if slot is None:
        slot = builder.address_of(builder.slot(SlotKind.MATRIX, matrix.name, str(MATRIX)))
        for number, row in enumerate(_rows(builder, matrix)):
            row_address = builder.new(f"getelementptr {MATRIX.row}, ptr {slot}, i64 {number}")
            builder.emit(f"store {MATRIX.row} {row}, ptr {row_address}, align 32")
        # LLVM must not know what is there: it would take the elements out of registers.
        builder.emit(f'call void asm sideeffect "", "r,~{{memory}}"(ptr {slot})')
        builder.remember(("left", matrix.name), slot)
    return str(slot)


def _repeated(builder: Builder, slot: str, number: int) -> str:
    """One of the elements as a row of its own, from memory."""
    row_address = builder.new(f"getelementptr {FLOAT}, ptr {slot}, i64 {number}")
    one = builder.new(f"load <1 x {FLOAT}>, ptr {row_address}, align 4")
    return shuffled(builder, f"<1 x {FLOAT}>", one, "poison", [0] * ROWS)


def _summed(builder: Builder, slot: str, rows: list[str], sums: list[str]) -> list[str]:
    """The product for rows that fill a register of AVX-512, as the instructions themselves.

    They are what LLVM would choose, in a fraction of its time. Nor could it go on with all products
    at the same time, and have registers for none.
    """
    text = "\\0A".join(
        f"vfmadd231ps {4 * (row * ROWS + k)}($16){{1to16}}, ${ROWS + k}, ${row}"
        for k in range(ROWS)
        for row in range(ROWS)
    )
    constraints = ["=&v"] * ROWS + ["v"] * ROWS + ["r", *map(str, range(ROWS)), "~{memory}"]
    results = ", ".join([PAIR.row] * ROWS)
    given = ", ".join(
        [*(f"{PAIR.row} {v}" for v in rows), f"ptr {slot}", *(f"{PAIR.row} {v}" for v in sums)]
    )
    called = f'asm sideeffect "{text}", "{",".join(constraints)}"({given})'
    all_rows = builder.new(f"call {{ {results} }} {called}")
    return [builder.new(f"extractvalue {{ {results} }} {all_rows}, {row}") for row in range(ROWS)]


def _join(builder: Builder, instruction: Instruction) -> None:
    """Rows of two matrices side by side."""
    pairs = zip(*(_rows(builder, matrix) for matrix in instruction.operands), strict=True)
    both = list(range(PAIR.columns))
    rows = [shuffled(builder, MATRIX.row, low, high, both) for low, high in pairs]
    _set(builder, instruction, rows)


def _half(builder: Builder, instruction: Instruction) -> None:
    [pair] = instruction.operands
    start = instruction.indices[0] * ROWS
    columns = list(range(start, start + ROWS))
    rows = [shuffled(builder, PAIR.row, row, "poison", columns) for row in _rows(builder, pair)]
    _set(builder, instruction, rows)


def _load(builder: Builder, instruction: Instruction) -> None:
    """Eight contiguous rows; or eight columns, which then become rows."""
    [address] = instruction.operands
    element = instruction.source
    down, right = instruction.indices
    is_plain = right == element.size
    step = down if is_plain else right
    start = builder.scalar(address)
    rows = []
    for row in range(ROWS):
        row_address = (
            builder.new(f"getelementptr i8, ptr {start}, i64 {row * step}") if row else start
        )
        rows.append(
            builder.new(f"load <{ROWS} x {element}>, ptr {row_address}, align {instruction.align}")
        )
    if not is_plain:
        sources = [column * ROWS + row for row in range(ROWS) for column in range(ROWS)]
        type = f"<{_COUNT} x {element}>"
        columns = joined(builder, rows, ROWS, element)
        everything = shuffled(builder, type, columns, "poison", sources)
        rows = cut(builder, everything, _COUNT, ROWS, element)
    if element == I16:
        rows = [extended(builder, row, ROWS) for row in rows]
    elif element != FLOAT:
        rows = [builder.new(f"fpext <{ROWS} x {element}> {row} to {MATRIX.row}") for row in rows]
    _set(builder, instruction, rows)


# ---- rows ----------------------------------------------------------------------------------------


def _set(builder: Builder, instruction: Instruction, rows: list[str]) -> None:
    """Record a matrix."""
    form, matrix_value = instruction.type, "poison"
    assert isinstance(form, Matrix)
    for number, row in enumerate(rows):
        matrix_value = builder.new(f"insertvalue {form} {matrix_value}, {form.row} {row}, {number}")
    builder.set(instruction, scalar=matrix_value)
    builder.remember(("rows", instruction.result), rows)


def _rows(builder: Builder, matrix: Value) -> list[str]:
    """The rows of a matrix."""
    rows: list[str] | None = builder.remembered(("rows", matrix.name))
    if rows is None:
        matrix_value = builder.scalar(matrix)
        rows = [builder.new(f"extractvalue {matrix.type} {matrix_value}, {n}") for n in range(ROWS)]
        builder.remember(("rows", matrix.name), rows)
    return rows


#: By opcode.
HANDLERS: dict[str, Callable[[Builder, Instruction], None]] = {
    "to_matrix": _to_matrix,
    "of_matrix": _of_matrix,
    "multiply_matrices": _multiply,
    "load_matrix": _load,
    "join_matrices": _join,
    "half_of_pair": _half,
}
