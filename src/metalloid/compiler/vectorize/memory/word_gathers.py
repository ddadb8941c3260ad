"""Gathers of words, and of numbers of 8 and 16 bits as gathers of words.

No processor gathers less than 32 bits. The aligned word that contains a smaller number is gathered
instead: readable memory does not end within such a word.
"""

from __future__ import annotations

from dataclasses import replace

from metalloid.compiler.ir.function import Instruction
from metalloid.compiler.ir.types import I1, I32, Integer, Type
from metalloid.compiler.vectorize.builder import Builder
from metalloid.compiler.vectorize.memory.window_gathers import (
    WORD_BYTES,
    NearAddresses,
    gather_near,
    near_addresses,
)


def gather(builder: Builder, instruction: Instruction) -> str | None:
    """The vector of a load of a word or less; None if another method is as good, or needed."""
    type, [address] = instruction.type, instruction.operands
    size, align = type.size, instruction.align or type.size
    near = near_addresses(builder, address) if size <= WORD_BYTES and type != I1 else None
    if size == WORD_BYTES:
        return None if near is None else _extract_bits(builder, gather_near(builder, near), type)
    if size > WORD_BYTES or type == I1 or align < size:
        return None  # a number in two words
    if near is not None and near.size == 1:
        words, shift = _words_near(builder, near)
    else:
        words, shift = _words_at(builder, builder.vector(address))
    wide = builder.wide(I32)
    bits = builder.new(f"shl {wide} {shift}, splat (i32 3)")
    return _extract_bits(builder, builder.new(f"lshr {wide} {words}, {bits}"), type)


def _words_near(builder: Builder, near: NearAddresses) -> tuple[str, str]:
    """The words that addresses lie in, and where in these, in bytes."""
    number = builder.new(f"ptrtoint ptr {near.base} to i32")
    unaligned = builder.new(f"and i32 {number}, {WORD_BYTES - 1}")
    long = builder.new(f"zext i32 {unaligned} to i64")
    back = builder.new(f"sub i64 0, {long}")
    base = builder.new(f"getelementptr i8, ptr {near.base}, i64 {back}")
    words = gather_near(builder, replace(near, base=base), unaligned)
    moved = builder.new(f"add {builder.wide(I32)} {near.index}, {builder.splat(unaligned, I32)}")
    return words, _within_word(builder, moved)


def _words_at(builder: Builder, addresses: str) -> tuple[str, str]:
    """The same for any addresses."""
    width, wide = builder.width, builder.wide(I32)
    pointers, longs = f"<{width} x ptr>", f"<{width} x i64>"
    aligned = builder.call(
        pointers, f"@llvm.ptrmask.v{width}p0.v{width}i64",
        [(pointers, addresses), (longs, f"splat (i64 -{WORD_BYTES})")],
    )  # fmt: skip
    words = builder.call(
        wide,
        f"@llvm.masked.gather.v{width}i32.v{width}p0",
        [
            (f"{pointers} align {WORD_BYTES}", aligned),
            (builder.wide(I1), builder.active()),
            (wide, "poison"),
        ],
    )
    return words, _within_word(builder, builder.new(f"ptrtoint {pointers} {addresses} to {wide}"))


def _within_word(builder: Builder, numbers: str) -> str:
    return builder.new(f"and {builder.wide(I32)} {numbers}, splat (i32 {WORD_BYTES - 1})")


def _extract_bits(builder: Builder, words: str, type: Type) -> str:
    """The lowest bytes of words as a number."""
    bits, narrow = builder.wide(I32), builder.wide(Integer(8 * type.size))
    low = words if type.size == WORD_BYTES else builder.new(f"trunc {bits} {words} to {narrow}")
    if isinstance(type, Integer):
        return low
    return builder.new(f"bitcast {narrow} {low} to {builder.wide(type)}")
