"""Shuffles of a simdgroup: each lane reads another."""

from __future__ import annotations

from collections.abc import Callable

from metalloid.compiler.analysis.simdgroup_functions import WIDTH
from metalloid.compiler.ir.function import Instruction
from metalloid.compiler.ir.types import I1, I16, I32, Type
from metalloid.compiler.vectorize.builder import Builder
from metalloid.compiler.vectorize.control_flow.failures import fail_where, thread_of
from metalloid.compiler.vectorize.permute import is_active, permute, read_lanes, where

#: Lane that each lane reads, from its index, its operand and the width; out of range its own.
SOURCES: dict[str, Callable[[int, int, int], int]] = {
    "shuffle": lambda self, operand, width: operand,
    "broadcast": lambda self, operand, width: operand,
    "shuffle_xor": lambda self, operand, width: self ^ operand,
    "shuffle_up": lambda self, operand, width: self - operand,
    "shuffle_down": lambda self, operand, width: self + operand,
    "shuffle_rotate_up": lambda self, operand, width: (self - operand) % width,
    "shuffle_rotate_down": lambda self, operand, width: (self + operand) % width,
}


def shuffle(builder: Builder, instruction: Instruction, width: int, name: str) -> None:
    """Write a shuffle or broadcast within segments of `width` lanes."""
    data, operand = instruction.operands
    type, number = data.type, operand.integer
    if number is not None:
        number &= 0xFFFF
        if name in ("shuffle", "broadcast") and number >= width:
            number = None  # fails, when it runs
    if number is None:
        _shuffle_by_value(builder, instruction, width, name)
        return
    sources = []
    for lane in range(builder.width):
        source = SOURCES[name](lane % width, number, width)
        sources.append(lane - lane % width + source if 0 <= source < width else lane)
    vector = builder.vector(data)
    missing = [source >= builder.width for source in sources]
    sources = [min(source, builder.width - 1) for source in sources]
    result = permute(builder, vector, type, sources)
    if any(missing):
        result = where(builder, missing, "zeroinitializer", result, type)
    active = builder.mask_as_bits()
    if active is not None:
        here = permute(builder, active, I1, sources)
        result = builder.blend(here, result, "zeroinitializer", type)
    if builder.own_shape(instruction.value).is_uniform:
        first = builder.new(f"extractelement {builder.wide(type)} {result}, i64 0")
        builder.set(instruction, scalar=first)
    else:
        builder.set(instruction, vector=result)


def _shuffle_by_value(builder: Builder, instruction: Instruction, width: int, name: str) -> None:
    """A shuffle whose lanes are known only when it runs."""
    data, operand = instruction.operands
    type, wide = data.type, builder.wide(I32)
    requested = builder.new(f"zext {builder.wide(I16)} {builder.vector(operand)} to {wide}")
    segment_lane = builder.constants(I32, (i % width for i in range(builder.width)))
    start = builder.constants(I32, (i - i % width for i in range(builder.width)))
    if name in ("shuffle", "broadcast"):
        source = requested
        bad = builder.new(f"icmp uge {wide} {requested}, splat (i32 {width})")
        _refuse(builder, bad, requested, "@__msl_lane_out_of_range")
    elif name == "shuffle_xor":
        source = builder.new(f"xor {wide} {segment_lane}, {requested}")
    else:
        step = "sub" if name.endswith("up") else "add"
        source = builder.new(f"{step} {wide} {segment_lane}, {requested}")
        if "rotate" in name:
            source = builder.new(f"and {wide} {source}, splat (i32 {width - 1})")
    inside = builder.new(f"icmp ult {wide} {source}, splat (i32 {width})")
    source = builder.new(f"add {wide} {start}, {source}")
    vector = builder.vector(data)
    moved = _read(builder, vector, type, source)
    result = builder.blend(inside, moved, vector, type)
    if builder.own_shape(instruction.value).is_uniform:
        first = builder.new(f"extractelement {builder.wide(type)} {result}, i64 0")
        builder.set(instruction, scalar=first)
    else:
        builder.set(instruction, vector=result)


def _read(builder: Builder, vector: str, type: Type, lanes: str) -> str:
    """For each lane the value of another; 0 of one that is inactive."""
    moved = read_lanes(builder, vector, type, lanes)
    if builder.width < WIDTH:
        is_lane = builder.new(f"icmp ult {builder.wide(I32)} {lanes}, splat (i32 {builder.width})")
        moved = builder.blend(is_lane, moved, "zeroinitializer", type)
    if builder.mask is None:
        return moved
    return builder.blend(is_active(builder, lanes), moved, "zeroinitializer", type)


def _refuse(builder: Builder, bad: str, wrong: str, failure: str) -> None:
    """End the launch where an active lane asks for what no simdgroup has."""

    def given(lane: str, number: str) -> list[tuple[str, str]]:
        value = builder.new(f"extractelement {builder.wide(I32)} {wrong}, i{builder.width} {lane}")
        return [("i32", value), ("i32", thread_of(builder, builder.first_index, lane))]

    fail_where(builder, bad, failure, given)


def shuffle_and_fill(builder: Builder, instruction: Instruction, width: int, up: bool) -> None:
    """Write a shuffle_and_fill within segments of `width` lanes."""
    data, filling, delta, modulo = instruction.operands
    type, wide, number = data.type, builder.wide(I32), builder.wide(I16)
    step = builder.new(f"zext {number} {builder.vector(delta)} to {wide}")
    size = builder.new(f"zext {number} {builder.vector(modulo)} to {wide}")
    ones = builder.call(wide, f"@llvm.ctpop.v{builder.width}i32", [(wide, size)])
    no_power = builder.new(f"icmp ne {wide} {ones}, splat (i32 1)")
    too_wide = builder.new(f"icmp ugt {wide} {size}, splat (i32 {width})")
    bad = builder.new(f"or {builder.wide(I1)} {no_power}, {too_wide}")
    _refuse(builder, bad, size, "@__msl_bad_modulo")
    lanes = builder.constants(I32, range(WIDTH))
    low = builder.new(f"sub {wide} {size}, splat (i32 1)")
    segment_lane = builder.new(f"and {wide} {lanes}, {low}")
    source = builder.new(f"{'sub' if up else 'add'} {wide} {segment_lane}, {step}")
    inside = builder.new(f"icmp ult {wide} {source}, {size}")
    start = builder.new(f"sub {wide} {lanes}, {segment_lane}")
    wrapped = builder.new(f"and {wide} {source}, {low}")
    source_lane = builder.new(f"add {wide} {start}, {wrapped}")
    moved, filled = (
        _read(builder, builder.vector(one), type, source_lane) for one in (data, filling)
    )
    builder.set(instruction, vector=builder.blend(inside, moved, filled, type))
