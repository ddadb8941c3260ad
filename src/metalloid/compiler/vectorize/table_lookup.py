"""Small tables of constants, which a register or two hold: lanes pick from those.

One permutation takes the place of a gather, which fetches lane after lane.
"""

from __future__ import annotations

from metalloid.compiler.analysis.addresses import parts_of
from metalloid.compiler.analysis.target_builtins import MOST_LANES
from metalloid.compiler.ir.function import Instruction, Value
from metalloid.compiler.ir.types import I1, I32, Float, Integer, Type
from metalloid.compiler.vectorize.builder import Writer
from metalloid.compiler.vectorize.register_chunks import by_registers


def look_up(writer: Writer, instruction: Instruction) -> bool:
    """Write a load from such a table; False if it is none, or the processor cannot."""
    place = _place(writer, instruction.operands[0], instruction.type)
    if place is None or writer.mask_type != I1:
        return False
    table, count, index, first = place
    type, wide = instruction.type, writer.wide(I32)
    assert isinstance(type, Integer | Float)
    rows = _rows(writer, table, count, type.bits)
    index = _unmasked(writer, index, len(rows) * MOST_LANES - 1)
    indices = writer.vector(index)
    if index.type != I32:
        indices = writer.new(f"trunc {writer.wide(index.type)} {indices} to {wide}")
    if first:
        indices = writer.new(f"add {wide} {indices}, splat (i32 {first})")

    def picked(parts: list[str]) -> str:
        [part] = parts
        row = f"<{MOST_LANES} x i32>"
        if len(rows) == 1:
            given = [(row, rows[0]), (row, part)]
            return writer.call(row, "@llvm.x86.avx512.permvar.si.512", given)
        given = [(row, rows[0]), (row, part), (row, rows[1])]
        return writer.call(row, "@llvm.x86.avx512.vpermi2var.d.512", given)

    found = by_registers(writer, [indices], I32, MOST_LANES, picked)
    bits = writer.wide(Integer(type.bits))
    if type.bits < I32.bits:
        found = writer.new(f"trunc {wide} {found} to {bits}")
    if isinstance(type, Float):
        found = writer.new(f"bitcast {bits} {found} to {writer.wide(type)}")
    writer.set(instruction, vector=found)
    return True


def _place(writer: Writer, address: Value, type: Type) -> tuple[str, int, Value, int] | None:
    """Table of an address, its elements, an index in it, and what is to be added to that."""
    tables = writer.divergence.function.tables
    parts = parts_of(address, writer.made_here, lambda value: value.name in tables)
    if parts is None or len(parts[2]) != 1:
        return None
    base, distance, [(index, size)] = parts
    table = tables[base.name]
    if table.element != type or table.count > 2 * MOST_LANES:
        return None
    if not isinstance(type, Integer | Float) or type.bits not in (8, 16, 32) or size != type.size:
        return None
    if not isinstance(index.type, Integer) or index.type.bits < I32.bits or distance % size:
        return None
    return base.name, table.count, index, distance // size


def _unmasked(writer: Writer, index: Value, bits: int) -> Value:
    """What has the same `bits` as an index, at which alone a permutation looks."""
    while (made := writer.made_here(index)) is not None:
        operand = made.operands[0]
        if made.op == "and":
            mask = made.operands[1].integer
            if mask is None or mask & bits != bits:
                break
        elif made.op not in ("zext", "sext") or operand.type.size < I32.size:
            break
        index = operand
    return index


def _rows(writer: Writer, table: str, count: int, bits: int) -> list[str]:
    """The table, as numbers of 32 bits in one register or two."""
    narrow, wide = f"<{count} x i{bits}>", f"<{count} x i32>"
    all_ = writer.new(f"load {narrow}, ptr {table}, align 1")
    if bits < I32.bits:
        all_ = writer.new(f"zext {narrow} {all_} to {wide}")
    rows = []
    for first in range(0, count, MOST_LANES):
        places = range(first, first + MOST_LANES)
        mask = ", ".join(f"i32 {n if n < count else 'poison'}" for n in places)
        pair = f"{wide} {all_}, {wide} poison, <{MOST_LANES} x i32> <{mask}>"
        rows.append(writer.new(f"shufflevector {pair}"))
    return rows
