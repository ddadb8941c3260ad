"""The functions by which the lanes of a simdgroup exchange values, as vector code.

They give what ``backends/cpu/native/simdgroup.c`` defines, bit for bit: the same trees of
additions, the same values for lanes that take no part.
"""

from __future__ import annotations

from metalloid.compiler.analysis.simdgroup_functions import (
    BARRIER,
    LANE,
    NAME,
    OPERATIONS,
    QUAD,
    WIDTH,
)
from metalloid.compiler.ir.function import Instruction
from metalloid.compiler.ir.types import I1, I32, I64, Float, Integer, Type, Unsupported
from metalloid.compiler.vectorize.builder import Writer
from metalloid.compiler.vectorize.permute import active_or, permute, where
from metalloid.compiler.vectorize.simdgroup import shuffles


def write(writer: Writer, instruction: Instruction) -> bool:
    """Write a call of one of these functions; False if it is none."""
    callee = instruction.detail
    if callee == LANE:
        writer.set(instruction, scalar=writer.new("add i32 0, 0"))
        return True
    if callee in ("@__msl_simdgroup_barrier", BARRIER):
        return True  # the lanes go in step; of threadgroup barriers the control flow takes care
    match = NAME.match(callee)
    if match is None:
        return False
    width, name = (WIDTH if match[1] == "simd" else QUAD), match[2]
    is_signed = bool(match[3]) and match[3][0] == "i"
    if name in OPERATIONS:
        _reduce(writer, instruction, width, name, is_signed)
    elif name.startswith("prefix_"):
        _, kind, operation = name.split("_")
        _prefix(writer, instruction, width, operation, kind == "exclusive", is_signed)
    elif name == "ballot":
        _ballot(writer, instruction, width)
    elif name == "broadcast_first":
        _broadcast_first(writer, instruction, width)
    elif name in shuffles.SOURCES:
        shuffles.shuffle(writer, instruction, width, name)
    elif name.startswith("shuffle_and_fill_"):
        shuffles.shuffle_and_fill(writer, instruction, width, name.endswith("up"))
    else:
        raise Unsupported(f"a call of {callee}")
    return True


# ---- reductions ----------------------------------------------------------------------------------


def _neutral(name: str, type: Type, is_signed: bool) -> str:
    """What changes nothing; stands in place of inactive lanes."""
    if isinstance(type, Float):
        nan = "0x7FF8000000000000"
        return {"sum": "-0.0", "product": "1.0", "min": nan, "max": nan}[name]
    assert isinstance(type, Integer)
    bits = type.bits
    least = -(1 << bits - 1) if is_signed else 0
    most = (1 << bits - 1) - 1 if is_signed else -1
    known = {"sum": 0, "product": 1, "and": -1, "or": 0, "xor": 0, "min": most, "max": least}
    return str(known[name])


def _combine(writer: Writer, name: str, type: Type, signed: bool, a: str, b: str) -> str:
    wide = writer.wide(type)
    integer, floating = OPERATIONS[name]
    if isinstance(type, Float):
        if name in ("sum", "product"):
            return writer.new(f"{floating} {wide} {a}, {b}")
        callee = f"@llvm.{floating}.v{writer.width}f{type.bits}"
        return writer.call(wide, callee, [(wide, a), (wide, b)])
    if integer:
        return writer.new(f"{integer} {wide} {a}, {b}")
    callee = f"@llvm.{'s' if signed else 'u'}{name}.v{writer.width}{type}"
    return writer.call(wide, callee, [(wide, a), (wide, b)])


def _reduce(writer: Writer, instruction: Instruction, width: int, name: str, signed: bool) -> None:
    [operand] = instruction.operands
    type = operand.type
    total = active_or(writer, writer.vector(operand), _neutral(name, type, signed), type)
    compared = Integer(type.bits) if isinstance(type, Float) and name in ("min", "max") else None
    if compared:
        total = _as_ordered(writer, total, type, compared, name)
    distance = width // 2
    while distance:
        other = permute(
            writer, total, compared or type, [(i + distance) % WIDTH for i in range(WIDTH)]
        )
        total = _combine(writer, name, compared or type, signed or bool(compared), total, other)
        distance //= 2
    if compared:
        total = _negatives_turned(writer, total, compared)
        total = writer.new(f"bitcast {writer.wide(compared)} {total} to {writer.wide(type)}")
    if width == WIDTH:
        scalar = writer.new(f"extractelement {writer.wide(type)} {total}, i64 0")
        writer.set(instruction, scalar=scalar)
    else:
        firsts = [i - i % width for i in range(WIDTH)]
        writer.set(instruction, vector=permute(writer, total, type, firsts))


def _as_ordered(writer: Writer, vector: str, type: Type, integer: Integer, name: str) -> str:
    """Floats as signed integers of the same order, -0 before 0, and NaN as the one that loses.

    Turned back, that is a NaN. Integers have a minimum and a maximum in one instruction; those of
    floats that know about NaN and the sign of zeros take five.
    """
    wide = writer.wide(integer)
    bits = writer.new(f"bitcast {writer.wide(type)} {vector} to {wide}")
    ordered = _negatives_turned(writer, bits, integer)
    is_nan = writer.new(f"fcmp uno {writer.wide(type)} {vector}, zeroinitializer")
    loser = _neutral(name, integer, is_signed=True)
    return writer.blend(is_nan, f"splat ({integer} {loser})", ordered, integer)


def _negatives_turned(writer: Writer, bits: str, integer: Integer) -> str:
    """Negative numbers in reverse order; twice gives what was before."""
    wide, most = writer.wide(integer), (1 << integer.bits - 1) - 1
    sign = writer.new(f"ashr {wide} {bits}, splat ({integer} {integer.bits - 1})")
    turned = writer.new(f"and {wide} {sign}, splat ({integer} {most})")
    return writer.new(f"xor {wide} {bits}, {turned}")


def _prefix(
    writer: Writer, instruction: Instruction, width: int, name: str, exclusive: bool, signed: bool
) -> None:
    [operand] = instruction.operands
    type = operand.type
    total = active_or(writer, writer.vector(operand), _neutral(name, type, signed), type)
    distance = 1
    while distance < width:
        before = [i - distance if i % width >= distance else i for i in range(WIDTH)]
        combined = _combine(writer, name, type, signed, permute(writer, total, type, before), total)
        total = where(writer, [i % width >= distance for i in range(WIDTH)], combined, total, type)
        distance *= 2
    if exclusive:
        start = {"sum": "0", "product": "1"}[name] + (".0" if isinstance(type, Float) else "")
        begin = f"splat ({type} {start})"
        before = [max(i - 1, 0) for i in range(WIDTH)]
        shifted = permute(writer, total, type, before)
        combined = _combine(writer, name, type, signed, begin, shifted)
        total = where(writer, [i % width > 0 for i in range(WIDTH)], combined, begin, type)
    writer.set(instruction, vector=total)


# ---- votes ---------------------------------------------------------------------------------------


def _ballot(writer: Writer, instruction: Instruction, width: int) -> None:
    [vote] = instruction.operands
    bits, wide = writer.vector(vote), writer.wide(I1)
    active = writer.mask_as_bits()
    if active is not None:
        bits = writer.new(f"select {wide} {active}, {wide} {bits}, {wide} zeroinitializer")
    number = writer.bits_as_integer(bits)
    if width == WIDTH:
        writer.set(instruction, scalar=writer.new(f"zext i32 {number} to i64"))
        return
    everywhere = writer.splat(number, I32)
    places = writer.constants(I32, (i - i % width for i in range(WIDTH)))
    shifted = writer.new(f"lshr {writer.wide(I32)} {everywhere}, {places}")
    own = writer.new(f"and {writer.wide(I32)} {shifted}, splat (i32 {(1 << width) - 1})")
    widened = writer.new(f"zext {writer.wide(I32)} {own} to {writer.wide(I64)}")
    writer.set(instruction, vector=widened)


def _broadcast_first(writer: Writer, instruction: Instruction, width: int) -> None:
    [operand] = instruction.operands
    type, vector = operand.type, writer.vector(operand)
    active = writer.mask_as_bits()
    if width == WIDTH:
        first = "0"
        if active is not None:
            number = writer.bits_as_integer(active)
            first = writer.call("i32", "@llvm.cttz.i32", [("i32", number), ("i1", "false")])
        scalar = writer.new(f"extractelement {writer.wide(type)} {vector}, i32 {first}")
        writer.set(instruction, scalar=scalar)
        return
    # The lowest active lane of a quad is the one that no lane before it takes the place of.
    result = permute(writer, vector, type, [i - i % width + width - 1 for i in range(WIDTH)])
    for place in range(width - 2, -1, -1):
        sources = [i - i % width + place for i in range(WIDTH)]
        candidate = permute(writer, vector, type, sources)
        if active is None:
            result = candidate
        else:
            chosen = permute(writer, active, I1, sources)
            result = writer.blend(chosen, candidate, result, type)
    writer.set(instruction, vector=result)
