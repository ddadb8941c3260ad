"""Gathers of words, and of numbers of 8 and 16 bits as gathers of words.

No processor gathers less than 32 bits. The word that a smaller number lies in, aligned as words
are, is gathered in its place: memory that may be read does not end within such a word.
"""

from __future__ import annotations

from dataclasses import replace

from metalloid.compiler.ir.function import Instruction
from metalloid.compiler.ir.types import I1, I32, Integer, Type
from metalloid.compiler.vectorize.builder import Writer
from metalloid.compiler.vectorize.memory.window_gathers import (
    WORD_BYTES,
    NearAddresses,
    gather_near,
    near_addresses,
)


def gather(writer: Writer, instruction: Instruction) -> str | None:
    """What a load of a word or less gives; None if another way is as good, or needed."""
    type, [address] = instruction.type, instruction.operands
    size, align = type.size, instruction.align or type.size
    near = near_addresses(writer, address) if size <= WORD_BYTES and type != I1 else None
    if size == WORD_BYTES:
        return None if near is None else _part_of(writer, gather_near(writer, near), type)
    if size > WORD_BYTES or type == I1 or align < size:
        return None  # a number in two words
    if near is not None and near.size == 1:
        words, place = _words_near(writer, near)
    else:
        words, place = _words_at(writer, writer.vector(address))
    wide = writer.wide(I32)
    bits = writer.new(f"shl {wide} {place}, splat (i32 3)")
    return _part_of(writer, writer.new(f"lshr {wide} {words}, {bits}"), type)


def _words_near(writer: Writer, near: NearAddresses) -> tuple[str, str]:
    """The words that addresses lie in, and where in these, in bytes."""
    number = writer.new(f"ptrtoint ptr {near.base} to i32")
    unaligned = writer.new(f"and i32 {number}, {WORD_BYTES - 1}")
    long = writer.new(f"zext i32 {unaligned} to i64")
    back = writer.new(f"sub i64 0, {long}")
    base = writer.new(f"getelementptr i8, ptr {near.base}, i64 {back}")
    words = gather_near(writer, replace(near, base=base), unaligned)
    moved = writer.new(f"add {writer.wide(I32)} {near.index}, {writer.splat(unaligned, I32)}")
    return words, _within_word(writer, moved)


def _words_at(writer: Writer, addresses: str) -> tuple[str, str]:
    """The same for any addresses."""
    width, wide = writer.width, writer.wide(I32)
    pointers, longs = f"<{width} x ptr>", f"<{width} x i64>"
    aligned = writer.call(
        pointers, f"@llvm.ptrmask.v{width}p0.v{width}i64",
        [(pointers, addresses), (longs, f"splat (i64 -{WORD_BYTES})")],
    )  # fmt: skip
    words = writer.call(
        wide,
        f"@llvm.masked.gather.v{width}i32.v{width}p0",
        [
            (f"{pointers} align {WORD_BYTES}", aligned),
            (writer.wide(I1), writer.active()),
            (wide, "poison"),
        ],
    )
    return words, _within_word(writer, writer.new(f"ptrtoint {pointers} {addresses} to {wide}"))


def _within_word(writer: Writer, numbers: str) -> str:
    return writer.new(f"and {writer.wide(I32)} {numbers}, splat (i32 {WORD_BYTES - 1})")


def _part_of(writer: Writer, words: str, type: Type) -> str:
    """The lowest bytes of words as a number."""
    bits, part = writer.wide(I32), writer.wide(Integer(8 * type.size))
    low = words if type.size == WORD_BYTES else writer.new(f"trunc {bits} {words} to {part}")
    if isinstance(type, Integer):
        return low
    return writer.new(f"bitcast {part} {low} to {writer.wide(type)}")
