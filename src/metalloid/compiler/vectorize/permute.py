"""Building blocks of simdgroup functions: moving values between lanes."""

from __future__ import annotations

from collections.abc import Sequence

from metalloid.compiler.analysis.simdgroup_functions import WIDTH
from metalloid.compiler.analysis.target_builtins import MAX_LANES
from metalloid.compiler.ir.types import I1, I16, I32, Float, Integer, Type
from metalloid.compiler.vectorize.builder import Builder
from metalloid.compiler.vectorize.slots import SlotKind


def shuffled(
    builder: Builder, type: str, first: str, second: str, sources: Sequence[int | str]
) -> str:
    """Elements of two vectors, of which the second one's count on from the first's."""
    mask = ", ".join(f"i32 {source}" for source in sources)
    return builder.new(
        f"shufflevector {type} {first}, {type} {second}, <{len(sources)} x i32> <{mask}>"
    )


def joined(builder: Builder, vectors: Sequence[str], lanes: int, type: Type) -> str:
    """Concatenate vectors of so many lanes; their number is a power of two."""
    while len(vectors) > 1:
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        wide, everything = f"<{lanes} x {type}>", range(2 * lanes)
        vectors = [shuffled(builder, wide, *pair, everything) for pair in pairs]
        lanes *= 2
    return vectors[0]


def cut(builder: Builder, vector: str, total: int, lanes: int, type: Type) -> list[str]:
    """The opposite."""
    wide = f"<{total} x {type}>"
    return [
        shuffled(builder, wide, vector, "poison", range(start, start + lanes))
        for start in range(0, total, lanes)
    ]


def permute(builder: Builder, vector: str, type: Type, sources: Sequence[int]) -> str:
    """Each lane's value of `vector` from the lane that `sources` names."""
    return shuffled(builder, builder.wide(type), vector, "poison", sources)


def where(builder: Builder, lanes: list[bool], yes: str, no: str, type: Type) -> str:
    """`yes` in the given lanes, `no` in the others."""
    bits = "<" + ", ".join(f"i1 {str(lane).lower()}" for lane in lanes) + ">"
    return builder.blend(bits, yes, no, type)


def active_or(builder: Builder, vector: str, neutral: str, type: Type) -> str:
    """`vector`, with `neutral` in place of inactive lanes."""
    bits = builder.mask_as_bits()
    if bits is None:
        return vector
    return builder.blend(bits, vector, f"splat ({type} {neutral})", type)


def active_number(builder: Builder) -> str:
    """The active lanes as a scalar of 32 bits."""
    bits = builder.mask_as_bits()
    if bits is None:
        return "-1"
    number = builder.bits_as_integer(bits)
    if builder.width == WIDTH:
        return number
    return builder.new(f"zext i{builder.width} {number} to i{WIDTH}")


def is_active(builder: Builder, lanes: str) -> str:
    """Whether the lane that each lane names takes part."""
    wide = builder.wide(I32)
    everywhere = builder.splat(active_number(builder), I32)
    within = builder.new(f"and {wide} {lanes}, splat (i32 {WIDTH - 1})")
    shifted = builder.new(f"lshr {wide} {everywhere}, {within}")
    return builder.new(f"trunc {wide} {shifted} to {builder.wide(I1)}")


def read_lanes(builder: Builder, vector: str, type: Type, lanes: str) -> str:
    """For each lane the value of another: by permutations of registers, or through memory."""
    is_avx512 = builder.mask_type == I1 and builder.width == 2 * MAX_LANES
    if is_avx512 and isinstance(type, Integer | Float) and type.bits in (16, 32):
        return _permuted(builder, vector, type, lanes)
    wide = builder.wide(type)
    slot = builder.address_of(builder.slot(SlotKind.EXCHANGE, f"%{type}", wide))
    builder.emit(f"store {wide} {vector}, ptr {slot}, align 64")
    within = builder.new(f"and {builder.wide(I32)} {lanes}, splat (i32 {builder.width - 1})")
    addresses = builder.new(f"getelementptr {type}, ptr {slot}, {builder.wide(I32)} {within}")
    suffix = f"f{type.bits}" if isinstance(type, Float) else str(type)
    return builder.call(
        wide,
        f"@llvm.masked.gather.v{builder.width}{suffix}.v{builder.width}p0",
        [
            (f"<{builder.width} x ptr> align {type.size}", addresses),
            (builder.wide(I1), "splat (i1 true)"),
            (wide, "poison"),
        ],
    )


def _permuted(builder: Builder, vector: str, type: Integer | Float, lanes: str) -> str:
    """The same where one register holds all lanes, or two do: AVX-512 reads from both."""
    bits, wide = Integer(type.bits), builder.wide(Integer(type.bits))
    if isinstance(type, Float):
        vector = builder.new(f"bitcast {builder.wide(type)} {vector} to {wide}")
    if bits == I16:
        index = builder.new(f"trunc {builder.wide(I32)} {lanes} to {wide}")
        given = [(wide, vector), (wide, index)]
        result = builder.call(wide, "@llvm.x86.avx512.permvar.hi.512", given)
    else:
        row = f"<{MAX_LANES} x i32>"
        low, high = cut(builder, vector, builder.width, MAX_LANES, I32)
        picked = [
            builder.call(
                row, "@llvm.x86.avx512.vpermi2var.d.512", [(row, low), (row, index), (row, high)]
            )
            for index in cut(builder, lanes, builder.width, MAX_LANES, I32)
        ]
        result = joined(builder, picked, MAX_LANES, I32)
    if isinstance(type, Float):
        result = builder.new(f"bitcast {wide} {result} to {builder.wide(type)}")
    return result
