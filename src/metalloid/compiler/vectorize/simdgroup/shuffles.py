"""Shuffles of a simdgroup: each lane reads another."""

from __future__ import annotations

from collections.abc import Callable

from metalloid.compiler.analysis.simdgroup_functions import WIDTH
from metalloid.compiler.ir.function import Instruction
from metalloid.compiler.ir.types import I1, I16, I32, Type
from metalloid.compiler.vectorize.builder import Writer
from metalloid.compiler.vectorize.failures import fail_where, thread_of
from metalloid.compiler.vectorize.permute import is_active, permute, read_lanes

#: Lane that each lane reads, from its place, its operand and the width; out of range its own.
SOURCES: dict[str, Callable[[int, int, int], int]] = {
    "shuffle": lambda self, operand, width: operand,
    "broadcast": lambda self, operand, width: operand,
    "shuffle_xor": lambda self, operand, width: self ^ operand,
    "shuffle_up": lambda self, operand, width: self - operand,
    "shuffle_down": lambda self, operand, width: self + operand,
    "shuffle_rotate_up": lambda self, operand, width: (self - operand) % width,
    "shuffle_rotate_down": lambda self, operand, width: (self + operand) % width,
}


def shuffle(writer: Writer, instruction: Instruction, width: int, name: str) -> None:
    """Write a shuffle or broadcast within segments of `width` lanes."""
    data, operand = instruction.operands
    type, number = data.type, operand.integer
    if number is not None:
        number &= 0xFFFF
        if name in ("shuffle", "broadcast") and number >= width:
            number = None  # fails, when it runs
    if number is None:
        _shuffle_by_value(writer, instruction, width, name)
        return
    sources = []
    for lane in range(WIDTH):
        source = SOURCES[name](lane % width, number, width)
        sources.append(lane - lane % width + source if 0 <= source < width else lane)
    vector = writer.vector(data)
    result = permute(writer, vector, type, sources)
    active = writer.mask_as_bits()
    if active is not None:
        here = permute(writer, active, I1, sources)
        result = writer.blend(here, result, "zeroinitializer", type)
    if writer.own_shape(instruction.value).is_uniform:
        first = writer.new(f"extractelement {writer.wide(type)} {result}, i64 0")
        writer.set(instruction, scalar=first)
    else:
        writer.set(instruction, vector=result)


def _shuffle_by_value(writer: Writer, instruction: Instruction, width: int, name: str) -> None:
    """A shuffle whose lanes are known only when it runs."""
    data, operand = instruction.operands
    type, wide = data.type, writer.wide(I32)
    wanted = writer.new(f"zext {writer.wide(I16)} {writer.vector(operand)} to {wide}")
    place = writer.constants(I32, (i % width for i in range(WIDTH)))
    start = writer.constants(I32, (i - i % width for i in range(WIDTH)))
    if name in ("shuffle", "broadcast"):
        source = wanted
        bad = writer.new(f"icmp uge {wide} {wanted}, splat (i32 {width})")
        _refuse(writer, bad, wanted, "@__msl_lane_out_of_range")
    elif name == "shuffle_xor":
        source = writer.new(f"xor {wide} {place}, {wanted}")
    else:
        step = "sub" if name.endswith("up") else "add"
        source = writer.new(f"{step} {wide} {place}, {wanted}")
        if "rotate" in name:
            source = writer.new(f"and {wide} {source}, splat (i32 {width - 1})")
    inside = writer.new(f"icmp ult {wide} {source}, splat (i32 {width})")
    source = writer.new(f"add {wide} {start}, {source}")
    vector = writer.vector(data)
    moved = _read(writer, vector, type, source)
    result = writer.blend(inside, moved, vector, type)
    if writer.own_shape(instruction.value).is_uniform:
        first = writer.new(f"extractelement {writer.wide(type)} {result}, i64 0")
        writer.set(instruction, scalar=first)
    else:
        writer.set(instruction, vector=result)


def _read(writer: Writer, vector: str, type: Type, lanes: str) -> str:
    """For each lane the value of another; 0 of one that is inactive."""
    moved = read_lanes(writer, vector, type, lanes)
    if writer.mask is None:
        return moved
    return writer.blend(is_active(writer, lanes), moved, "zeroinitializer", type)


def _refuse(writer: Writer, bad: str, wrong: str, failure: str) -> None:
    """End the launch where an active lane asks for what no simdgroup has."""

    def given(lane: str) -> list[tuple[str, str]]:
        value = writer.new(f"extractelement {writer.wide(I32)} {wrong}, i{writer.width} {lane}")
        return [("i32", value), ("i32", thread_of(writer, writer.first_index, lane))]

    fail_where(writer, bad, failure, given)


def shuffle_and_fill(writer: Writer, instruction: Instruction, width: int, up: bool) -> None:
    """Write a shuffle_and_fill within segments of `width` lanes."""
    data, filling, delta, modulo = instruction.operands
    type, wide, number = data.type, writer.wide(I32), writer.wide(I16)
    step = writer.new(f"zext {number} {writer.vector(delta)} to {wide}")
    size = writer.new(f"zext {number} {writer.vector(modulo)} to {wide}")
    ones = writer.call(wide, f"@llvm.ctpop.v{writer.width}i32", [(wide, size)])
    no_power = writer.new(f"icmp ne {wide} {ones}, splat (i32 1)")
    too_wide = writer.new(f"icmp ugt {wide} {size}, splat (i32 {width})")
    bad = writer.new(f"or {writer.wide(I1)} {no_power}, {too_wide}")
    _refuse(writer, bad, size, "@__msl_bad_modulo")
    lanes = writer.constants(I32, range(WIDTH))
    low = writer.new(f"sub {wide} {size}, splat (i32 1)")
    place = writer.new(f"and {wide} {lanes}, {low}")
    source = writer.new(f"{'sub' if up else 'add'} {wide} {place}, {step}")
    inside = writer.new(f"icmp ult {wide} {source}, {size}")
    start = writer.new(f"sub {wide} {lanes}, {place}")
    wrapped = writer.new(f"and {wide} {source}, {low}")
    origin = writer.new(f"add {wide} {start}, {wrapped}")
    moved, filled = (_read(writer, writer.vector(one), type, origin) for one in (data, filling))
    writer.set(instruction, vector=writer.blend(inside, moved, filled, type))
