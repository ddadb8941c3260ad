"""Conversions between the bits of bfloats and floats, in integer arithmetic."""

from __future__ import annotations

from metalloid.compiler.ir.types import FLOAT, I16, I32
from metalloid.compiler.vectorize.builder import Writer


def extended(writer: Writer, bits: str, lanes: int) -> str:
    """Floats from the bits of as many bfloats."""
    integers = f"<{lanes} x {I32}>"
    wide = writer.new(f"zext <{lanes} x {I16}> {bits} to {integers}")
    upper = writer.new(f"shl {integers} {wide}, splat (i32 16)")
    return writer.new(f"bitcast {integers} {upper} to <{lanes} x {FLOAT}>")


def rounded(writer: Writer, floats: str) -> str:
    """Bits of the nearest bfloats, of two the even one; a NaN becomes a quiet one."""
    wide, integers = writer.wide(FLOAT), writer.wide(I32)
    number = writer.new(f"bitcast {wide} {floats} to {integers}")
    upper = writer.new(f"lshr {integers} {number}, splat (i32 16)")
    odd = writer.new(f"and {integers} {upper}, splat (i32 1)")
    most = writer.new(f"add {integers} {number}, splat (i32 {0x7FFF})")
    raised = writer.new(f"add {integers} {most}, {odd}")
    nearest = writer.new(f"lshr {integers} {raised}, splat (i32 16)")
    quiet = writer.new(f"or {integers} {upper}, splat (i32 {0x40})")
    is_nan = writer.new(f"fcmp uno {wide} {floats}, zeroinitializer")
    chosen = writer.blend(is_nan, quiet, nearest, I32)
    return writer.new(f"trunc {integers} {chosen} to {writer.wide(I16)}")
