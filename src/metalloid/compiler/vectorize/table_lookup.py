"""Small tables of constants, which a register or two hold: lanes pick from those.

One permutation replaces a gather, which fetches lane after lane.
"""

from __future__ import annotations

from metalloid.compiler.analysis.addresses import decompose_address
from metalloid.compiler.analysis.target_builtins import MAX_LANES
from metalloid.compiler.ir.function import Instruction, Value
from metalloid.compiler.ir.types import I1, I32, Float, Integer, Type
from metalloid.compiler.vectorize.builder import Builder
from metalloid.compiler.vectorize.register_chunks import by_registers


def look_up(builder: Builder, instruction: Instruction) -> bool:
    """Write a load from such a table; False if it is none, or the processor cannot."""
    lookup = _table_of(builder, instruction.operands[0], instruction.type)
    if lookup is None or builder.mask_type != I1:
        return False
    table, count, index, first = lookup
    type, wide = instruction.type, builder.wide(I32)
    assert isinstance(type, Integer | Float)
    rows = _rows(builder, table, count, type.bits)
    index = _unmasked(builder, index, len(rows) * MAX_LANES - 1)
    indices = builder.vector(index)
    if index.type != I32:
        indices = builder.new(f"trunc {builder.wide(index.type)} {indices} to {wide}")
    if first:
        indices = builder.new(f"add {wide} {indices}, splat (i32 {first})")

    def picked(chunks: list[str]) -> str:
        [chunk] = chunks
        row = f"<{MAX_LANES} x i32>"
        if len(rows) == 1:
            given = [(row, rows[0]), (row, chunk)]
            return builder.call(row, "@llvm.x86.avx512.permvar.si.512", given)
        given = [(row, rows[0]), (row, chunk), (row, rows[1])]
        return builder.call(row, "@llvm.x86.avx512.vpermi2var.d.512", given)

    result = by_registers(builder, [indices], I32, MAX_LANES, picked)
    bits = builder.wide(Integer(type.bits))
    if type.bits < I32.bits:
        result = builder.new(f"trunc {wide} {result} to {bits}")
    if isinstance(type, Float):
        result = builder.new(f"bitcast {bits} {result} to {builder.wide(type)}")
    builder.set(instruction, vector=result)
    return True


def _table_of(builder: Builder, address: Value, type: Type) -> tuple[str, int, Value, int] | None:
    """Table of an address, its elements, an index in it, and what is to be added to that."""
    tables = builder.divergence.function.tables
    decomposed = decompose_address(
        address, builder.instruction_here, lambda value: value.name in tables
    )
    if decomposed is None or len(decomposed[2]) != 1:
        return None
    base, distance, [(index, size)] = decomposed
    table = tables[base.name]
    if table.element != type or table.count > 2 * MAX_LANES:
        return None
    if not isinstance(type, Integer | Float) or type.bits not in (8, 16, 32) or size != type.size:
        return None
    if not isinstance(index.type, Integer) or index.type.bits < I32.bits or distance % size:
        return None
    return base.name, table.count, index, distance // size


def _unmasked(builder: Builder, index: Value, bits: int) -> Value:
    """A value with the same low `bits` as an index, the only ones that a permutation reads."""
    while (inst := builder.instruction_here(index)) is not None:
        operand = inst.operands[0]
        if inst.op == "and":
            mask = inst.operands[1].integer
            if mask is None or mask & bits != bits:
                break
        elif inst.op not in ("zext", "sext") or operand.type.size < I32.size:
            break
        index = operand
    return index


def _rows(builder: Builder, table: str, count: int, bits: int) -> list[str]:
    """The table, as numbers of 32 bits in one register or two."""
    narrow, wide = f"<{count} x i{bits}>", f"<{count} x i32>"
    all_ = builder.new(f"load {narrow}, ptr {table}, align 1")
    if bits < I32.bits:
        all_ = builder.new(f"zext {narrow} {all_} to {wide}")
    rows = []
    for first in range(0, count, MAX_LANES):
        positions = range(first, first + MAX_LANES)
        mask = ", ".join(f"i32 {n if n < count else 'poison'}" for n in positions)
        pair = f"{wide} {all_}, {wide} poison, <{MAX_LANES} x i32> <{mask}>"
        rows.append(builder.new(f"shufflevector {pair}"))
    return rows
