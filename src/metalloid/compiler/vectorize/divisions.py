"""Integer division of all lanes, for which processors have no vector instruction.

A quotient of doubles, cut off, is that of integers below 2^53. So 32 bits are divided as doubles,
and 64 bits are where all lanes have numbers that are small enough, in a sixth of the time.
"""

from __future__ import annotations

from metalloid.compiler.ir.function import Instruction
from metalloid.compiler.ir.types import DOUBLE, I1, I64, Integer
from metalloid.compiler.vectorize.builder import Builder

DIVISIONS = ("udiv", "sdiv", "urem", "srem")
#: 2^52 + 2^51 as a double: its bits plus an integer from -2^51 on and below 2^51 are those of the
#: sum. AVX2 has no instruction that converts 64-bit integers.
_BIAS = "0x4338000000000000"
_BIAS_BITS = int(_BIAS, 16)
_RANGE = 1 << 51


def divide(builder: Builder, instruction: Instruction) -> str:
    """Integer division, which must not fail for a lane that is not active."""
    op, type = instruction.op, instruction.type
    dividend, divisor = instruction.operands
    assert isinstance(type, Integer)
    left, right = builder.vector(dividend), builder.vector(divisor)
    wide = builder.wide(type)
    if divisor.integer not in (None, 0, -1):
        return builder.new(f"{op} {wide} {left}, {right}")  # becomes a multiplication
    bits = builder.mask_as_bits()
    if bits is not None:
        right = builder.blend(bits, right, f"splat ({type} 1)", type)
    if type.bits > 32:
        if bits is not None:
            left = builder.blend(bits, left, f"splat ({type} 1)", type)
        return _divide_wide(builder, op, type, left, right)
    _refuse_bad_divisors(builder, op, type, left, right)
    return _divide_as_doubles(builder, op, type, left, right)


def _refuse_bad_divisors(builder: Builder, op: str, type: Integer, left: str, right: str) -> None:
    """Fail where the processor's own division would."""
    wide, bits = builder.wide(type), builder.wide(I1)
    bad = builder.new(f"icmp eq {wide} {right}, zeroinitializer")
    if op in ("sdiv", "srem"):
        least = builder.new(f"icmp eq {wide} {left}, splat ({type} {-(1 << type.bits - 1)})")
        by_minus_one = builder.new(f"icmp eq {wide} {right}, splat ({type} -1)")
        overflow = builder.new(f"and {bits} {least}, {by_minus_one}")
        bad = builder.new(f"or {bits} {bad}, {overflow}")
    number = builder.bits_as_integer(bad)
    none = builder.new(f"icmp eq i{builder.width} {number}, 0")
    fine, failed = builder.fresh_label("divisible"), builder.fresh_label("divided_by_zero")
    builder.cond_br(none, fine, failed)
    builder.label(failed)
    builder.call("void", "@__msl_divided_by_zero", [])
    builder.unreachable()
    builder.label(fine)


def _divide_as_doubles(builder: Builder, op: str, type: Integer, left: str, right: str) -> str:
    """A quotient of doubles, which hold 53 bits: cut off, it is exact."""
    wide, double = builder.wide(type), builder.wide(DOUBLE)
    sign = "u" if op[0] == "u" else "s"
    a = builder.new(f"{sign}itofp {wide} {left} to {double}")
    b = builder.new(f"{sign}itofp {wide} {right} to {double}")
    quotient = builder.new(f"fdiv {double} {a}, {b}")
    integral = builder.new(f"fpto{sign}i {double} {quotient} to {wide}")
    if op.endswith("div"):
        return integral
    back = builder.new(f"mul {wide} {integral}, {right}")
    return builder.new(f"sub {wide} {left}, {back}")


def _divide_wide(builder: Builder, op: str, type: Integer, left: str, right: str) -> str:
    """Divide as doubles if all numbers are small, otherwise as the processor does, lane by lane."""
    wide, bits = builder.wide(type), builder.wide(I1)
    in_range = builder.new(f"icmp ne {wide} {right}, zeroinitializer")
    for number in (left, right):
        first = 0 if op[0] == "u" else _RANGE
        shifted = builder.new(f"add {wide} {number}, splat ({type} {first})")
        inside = builder.new(f"icmp ult {wide} {shifted}, splat ({type} {_RANGE + first})")
        in_range = builder.new(f"and {bits} {in_range}, {inside}")
    all_ = builder.new(f"icmp eq i{builder.width} {builder.bits_as_integer(in_range)}, -1")
    small, large = builder.fresh_label("small"), builder.fresh_label("large")
    divided = builder.fresh_label("divided")
    builder.cond_br(all_, small, large)
    builder.label(small)
    as_doubles = _divide_small(builder, op, left, right)
    builder.br(divided)
    builder.label(large)
    by_lane = builder.new(f"{op} {wide} {left}, {right}")
    builder.br(divided)
    builder.label(divided)
    return builder.new(f"phi {wide} [ {as_doubles}, %{small} ], [ {by_lane}, %{large} ]")


def _divide_small(builder: Builder, op: str, left: str, right: str) -> str:
    """A quotient, or the remainder, of 64-bit integers in the range of the bias."""
    wide, double = builder.wide(I64), builder.wide(DOUBLE)
    bias, bias_bits = f"splat (double {_BIAS})", f"splat (i64 {_BIAS_BITS})"
    numbers = []
    for integer in (left, right):
        biased = builder.new(f"add {wide} {integer}, {bias_bits}")
        as_double = builder.new(f"bitcast {wide} {biased} to {double}")
        numbers.append(builder.new(f"fsub {double} {as_double}, {bias}"))
    a, b = numbers
    quotient = builder.new(f"fdiv {double} {a}, {b}")
    result = builder.call(double, f"@llvm.trunc.v{builder.width}f64", [(double, quotient)])
    if op.endswith("rem"):
        product = builder.new(f"fmul {double} {result}, {b}")  # exact, as the difference
        result = builder.new(f"fsub {double} {a}, {product}")
    biased = builder.new(f"fadd {double} {result}, {bias}")
    as_integer = builder.new(f"bitcast {double} {biased} to {wide}")
    return builder.new(f"sub {wide} {as_integer}, {bias_bits}")
