"""Conversions between the bits of bfloats and floats, in integer arithmetic."""

from __future__ import annotations

from metalloid.compiler.ir.types import FLOAT, I16, I32
from metalloid.compiler.vectorize.builder import Builder


def extended(builder: Builder, bits: str, lanes: int) -> str:
    """Floats from the bits of as many bfloats."""
    integers = f"<{lanes} x {I32}>"
    wide = builder.new(f"zext <{lanes} x {I16}> {bits} to {integers}")
    upper = builder.new(f"shl {integers} {wide}, splat (i32 16)")
    return builder.new(f"bitcast {integers} {upper} to <{lanes} x {FLOAT}>")


def rounded(builder: Builder, floats: str) -> str:
    """Bits of the nearest bfloats, of two the even one; a NaN becomes a quiet one."""
    wide, integers = builder.wide(FLOAT), builder.wide(I32)
    number = builder.new(f"bitcast {wide} {floats} to {integers}")
    upper = builder.new(f"lshr {integers} {number}, splat (i32 16)")
    odd = builder.new(f"and {integers} {upper}, splat (i32 1)")
    biased = builder.new(f"add {integers} {number}, splat (i32 {0x7FFF})")
    raised = builder.new(f"add {integers} {biased}, {odd}")
    nearest = builder.new(f"lshr {integers} {raised}, splat (i32 16)")
    quiet = builder.new(f"or {integers} {upper}, splat (i32 {0x40})")
    is_nan = builder.new(f"fcmp uno {wide} {floats}, zeroinitializer")
    chosen = builder.blend(is_nan, quiet, nearest, I32)
    return builder.new(f"trunc {integers} {chosen} to {builder.wide(I16)}")
