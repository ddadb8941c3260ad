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
from metalloid.compiler.vectorize.builder import Builder
from metalloid.compiler.vectorize.permute import active_or, permute, where
from metalloid.compiler.vectorize.simdgroup import shuffles


def write(builder: Builder, instruction: Instruction) -> bool:
    """Write a call of one of these functions; False if it is none."""
    callee = instruction.callee
    if callee == LANE:
        builder.set(instruction, scalar=builder.new("add i32 0, 0"))
        return True
    if callee in ("@__msl_simdgroup_barrier", BARRIER):
        return True  # the lanes go in step; of threadgroup barriers the control flow takes care
    match = NAME.match(callee)
    if match is None:
        return False
    width, name = (WIDTH if match[1] == "simd" else QUAD), match[2]
    is_signed = bool(match[3]) and match[3][0] == "i"
    if name in OPERATIONS:
        _reduce(builder, instruction, width, name, is_signed)
    elif name.startswith("prefix_"):
        _, kind, operation = name.split("_")
        _prefix(builder, instruction, width, operation, kind == "exclusive", is_signed)
    elif name == "ballot":
        _ballot(builder, instruction, width)
    elif name == "broadcast_first":
        _broadcast_first(builder, instruction, width)
    elif name in shuffles.SOURCES:
        shuffles.shuffle(builder, instruction, width, name)
    elif name.startswith("shuffle_and_fill_"):
        shuffles.shuffle_and_fill(builder, instruction, width, name.endswith("up"))
    else:
        raise Unsupported(f"a call of {callee}")
    return True


# ---- reductions ----------------------------------------------------------------------------------


def _neutral(name: str, type: Type, is_signed: bool) -> str:
    """The identity of an operation, used for inactive lanes."""
    if isinstance(type, Float):
        nan = "0x7FF8000000000000"
        return {"sum": "-0.0", "product": "1.0", "min": nan, "max": nan}[name]
    assert isinstance(type, Integer)
    bits = type.bits
    least = -(1 << bits - 1) if is_signed else 0
    limit = (1 << bits - 1) - 1 if is_signed else -1
    known = {"sum": 0, "product": 1, "and": -1, "or": 0, "xor": 0, "min": limit, "max": least}
    return str(known[name])


def _combine(builder: Builder, name: str, type: Type, signed: bool, a: str, b: str) -> str:
    wide = builder.wide(type)
    integer, floating = OPERATIONS[name]
    if isinstance(type, Float):
        if name in ("sum", "product"):
            return builder.new(f"{floating} {wide} {a}, {b}")
        callee = f"@llvm.{floating}.v{builder.width}f{type.bits}"
        return builder.call(wide, callee, [(wide, a), (wide, b)])
    if integer:
        return builder.new(f"{integer} {wide} {a}, {b}")
    callee = f"@llvm.{'s' if signed else 'u'}{name}.v{builder.width}{type}"
    return builder.call(wide, callee, [(wide, a), (wide, b)])


def _reduce(
    builder: Builder, instruction: Instruction, width: int, name: str, signed: bool
) -> None:
    [operand] = instruction.operands
    type = operand.type
    total = active_or(builder, builder.vector(operand), _neutral(name, type, signed), type)
    compared = Integer(type.bits) if isinstance(type, Float) and name in ("min", "max") else None
    if compared:
        total = _as_ordered(builder, total, type, compared, name)
    distance = width // 2
    while distance:
        other = permute(
            builder, total, compared or type, [(i + distance) % WIDTH for i in range(WIDTH)]
        )
        total = _combine(builder, name, compared or type, signed or bool(compared), total, other)
        distance //= 2
    if compared:
        total = _negatives_reversed(builder, total, compared)
        total = builder.new(f"bitcast {builder.wide(compared)} {total} to {builder.wide(type)}")
    if width == WIDTH:
        scalar = builder.new(f"extractelement {builder.wide(type)} {total}, i64 0")
        builder.set(instruction, scalar=scalar)
    else:
        firsts = [i - i % width for i in range(WIDTH)]
        builder.set(instruction, vector=permute(builder, total, type, firsts))


def _as_ordered(builder: Builder, vector: str, type: Type, integer: Integer, name: str) -> str:
    """Floats as signed integers of the same order, -0 before 0, and NaN as the one that loses.

    Turned back, that is a NaN. Integers have a minimum and a maximum in one instruction; those of
    floats that know about NaN and the sign of zeros take five.
    """
    wide = builder.wide(integer)
    bits = builder.new(f"bitcast {builder.wide(type)} {vector} to {wide}")
    ordered = _negatives_reversed(builder, bits, integer)
    is_nan = builder.new(f"fcmp uno {builder.wide(type)} {vector}, zeroinitializer")
    loser = _neutral(name, integer, is_signed=True)
    return builder.blend(is_nan, f"splat ({integer} {loser})", ordered, integer)


def _negatives_reversed(builder: Builder, bits: str, integer: Integer) -> str:
    """Negative numbers in reverse order; twice gives what was before."""
    wide, limit = builder.wide(integer), (1 << integer.bits - 1) - 1
    sign = builder.new(f"ashr {wide} {bits}, splat ({integer} {integer.bits - 1})")
    reversed_bits = builder.new(f"and {wide} {sign}, splat ({integer} {limit})")
    return builder.new(f"xor {wide} {bits}, {reversed_bits}")


def _prefix(
    builder: Builder, instruction: Instruction, width: int, name: str, exclusive: bool, signed: bool
) -> None:
    [operand] = instruction.operands
    type = operand.type
    total = active_or(builder, builder.vector(operand), _neutral(name, type, signed), type)
    distance = 1
    while distance < width:
        before = [i - distance if i % width >= distance else i for i in range(WIDTH)]
        combined = _combine(
            builder, name, type, signed, permute(builder, total, type, before), total
        )
        total = where(builder, [i % width >= distance for i in range(WIDTH)], combined, total, type)
        distance *= 2
    if exclusive:
        start = {"sum": "0", "product": "1"}[name] + (".0" if isinstance(type, Float) else "")
        begin = f"splat ({type} {start})"
        before = [max(i - 1, 0) for i in range(WIDTH)]
        shifted = permute(builder, total, type, before)
        combined = _combine(builder, name, type, signed, begin, shifted)
        total = where(builder, [i % width > 0 for i in range(WIDTH)], combined, begin, type)
    builder.set(instruction, vector=total)


# ---- votes ---------------------------------------------------------------------------------------


def _ballot(builder: Builder, instruction: Instruction, width: int) -> None:
    [vote] = instruction.operands
    bits, wide = builder.vector(vote), builder.wide(I1)
    active = builder.mask_as_bits()
    if active is not None:
        bits = builder.new(f"select {wide} {active}, {wide} {bits}, {wide} zeroinitializer")
    number = builder.bits_as_integer(bits)
    if width == WIDTH:
        builder.set(instruction, scalar=builder.new(f"zext i32 {number} to i64"))
        return
    everywhere = builder.splat(number, I32)
    segments = builder.constants(I32, (i - i % width for i in range(WIDTH)))
    shifted = builder.new(f"lshr {builder.wide(I32)} {everywhere}, {segments}")
    own = builder.new(f"and {builder.wide(I32)} {shifted}, splat (i32 {(1 << width) - 1})")
    widened = builder.new(f"zext {builder.wide(I32)} {own} to {builder.wide(I64)}")
    builder.set(instruction, vector=widened)


def _broadcast_first(builder: Builder, instruction: Instruction, width: int) -> None:
    [operand] = instruction.operands
    type, vector = operand.type, builder.vector(operand)
    active = builder.mask_as_bits()
    if width == WIDTH:
        first = "0"
        if active is not None:
            number = builder.bits_as_integer(active)
            first = builder.call("i32", "@llvm.cttz.i32", [("i32", number), ("i1", "false")])
        scalar = builder.new(f"extractelement {builder.wide(type)} {vector}, i32 {first}")
        builder.set(instruction, scalar=scalar)
        return
    # The value of a quad's lowest active lane: lanes are overwritten by active ones before them.
    result = permute(builder, vector, type, [i - i % width + width - 1 for i in range(WIDTH)])
    for lane_before in range(width - 2, -1, -1):
        sources = [i - i % width + lane_before for i in range(WIDTH)]
        candidate = permute(builder, vector, type, sources)
        if active is None:
            result = candidate
        else:
            chosen = permute(builder, active, I1, sources)
            result = builder.blend(chosen, candidate, result, type)
    builder.set(instruction, vector=result)
