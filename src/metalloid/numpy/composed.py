"""Universal functions that are compositions of others; they fuse into one kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from metalloid.arrays.array import Array, as_array, as_arrays
from metalloid.arrays.functions import elementwise as ew
from metalloid.arrays.functions.select import where
from metalloid.arrays.functions.tensor_contractions import matmul, vecdot
from metalloid.arrays.ir.dtypes import (
    bool_,
    default_float,
    float32,
    float64,
    int8,
    int32,
    int64,
    kind_of,
    promote,
)
from metalloid.arrays.ir.dtypes import float_for as _float_for
from metalloid.arrays.ir.node import apply
from metalloid.arrays.ir.operands import binary_operands
from metalloid.arrays.ir.ops import BITS
from metalloid.numpy import complex_order


def as_floats(x: Any, where: str) -> Array:
    """Convert an operand to the floats in which functions compute its type."""
    array = as_array(x, where)
    return array if kind_of(array.dtype) in "fc" else array.astype(_float_for(array.dtype))


def bools_as_integers(x: Array) -> Array:
    """Convert booleans to the integers in which NumPy computes them."""
    return x.astype(int8) if x.dtype == bool_ else x


def fabs(x: Any) -> Array:
    """Absolute value, as a float."""
    return ew.abs(as_floats(x, "fabs"))


def rint(x: Any) -> Array:
    """Nearest integer, as a float."""
    return ew.round(as_floats(x, "rint"))


def degrees(x: Any) -> Array:
    """Angle in degrees."""
    return as_floats(x, "degrees") * (180 / math.pi)


def radians(x: Any) -> Array:
    """Angle in radians."""
    return as_floats(x, "radians") * (math.pi / 180)


def spacing(x: Any) -> Array:
    """Distance to the adjacent float, away from zero; of halves to the next larger one."""
    x = as_floats(x, "spacing")
    end = as_array(math.inf, "spacing").astype(x.dtype)
    next_one = ew.nextafter(x, end if x.dtype.itemsize == 2 else where(x < 0, -end, end))
    return where(ew.isinf(x), math.nan, next_one - x)


def _extreme(name: str, x1: Any, x2: Any) -> Array:
    x1, x2 = as_arrays(name, x1, x2)
    if "c" in (kind_of(x1.dtype), kind_of(x2.dtype)):
        return complex_order.FUNCTIONS[name](x1, x2)
    result: Array = getattr(ew, name)(x1, x2)
    return result


def fmax(x1: Any, x2: Any) -> Array:
    """Maximum of two numbers; the other one if one is NaN."""
    return where(ew.isnan(x1), x2, where(ew.isnan(x2), x1, _extreme("maximum", x1, x2)))


def fmin(x1: Any, x2: Any) -> Array:
    """Minimum of two numbers; the other one if one is NaN."""
    return where(ew.isnan(x1), x2, where(ew.isnan(x2), x1, _extreme("minimum", x1, x2)))


def fmod(x1: Any, x2: Any) -> Array:
    """Remainder of the division, with the sign of the dividend."""
    x1, x2 = as_arrays("fmod", x1, x2)
    if x1.dtype == x2.dtype:
        x1, x2 = bools_as_integers(x1), bools_as_integers(x2)
    if kind_of(promote(x1.dtype, x2.dtype)) == "f":
        return ew.copysign(ew.remainder(ew.abs(x1), ew.abs(x2)), x1)
    rest: Array = ew.remainder(x1, x2)  # with the sign of the divisor
    has_other_sign = ew.not_equal(ew.less(x1, 0), ew.less(rest, 0))
    return where(ew.logical_and(has_other_sign, ew.not_equal(rest, 0)), rest - x2, rest)


def heaviside(x1: Any, x2: Any) -> Array:
    """Step: 0 for negative numbers, `x2` for zeros, 1 for positive ones."""
    x = as_floats(x1, "heaviside")
    step = where(ew.less(x, 0), 0.0, where(ew.equal(x, 0), as_floats(x2, "heaviside"), 1.0))
    return where(ew.isnan(x), x, step)


def logaddexp2(x1: Any, x2: Any) -> Array:
    """``log2(2**x1 + 2**x2)``."""
    first, second = map(Array, binary_operands("logaddexp2", x1, x2))
    common = promote(first.dtype, second.dtype)
    first, second = (as_floats(x.astype(common), "logaddexp2") for x in (first, second))
    return ew.logaddexp(first * math.log(2), second * math.log(2)) / math.log(2)


def float_power(x1: Any, x2: Any) -> Array:
    """Power, at least in double precision where the device has it."""
    first, second = as_arrays("float_power", x1, x2)
    wide = promote(float64 if first.device.has_float64 else default_float(), first.dtype)
    return ew.pow(first.astype(wide), second.astype(promote(wide, second.dtype)))


def ldexp(x1: Any, x2: Any) -> Array:
    """``x1 * 2**x2``, rounded once: only the last factor leads below the normal numbers."""
    x = as_floats(x1, "ldexp")
    result = x if x.dtype.itemsize > 2 else x.astype(float32)
    is_double = result.dtype == float64
    bits_dtype, digits, top = (int64, 52, 1023) if is_double else (int32, 23, 127)
    least = 1 - top
    power = ew.maximum(ew.minimum(as_array(x2, "ldexp"), 4 * top), -4 * top).astype(bits_dtype)
    for _ in range(2):  # what no power of two that is a normal number covers
        step = where(power > top, top, where(power < least, least + digits + 1, 0))
        step = step.astype(bits_dtype)
        result, power = result * _power_of_two(step, digits, top), power - step
    last = ew.maximum(ew.minimum(power, top), least)
    return (result * _power_of_two(last, digits, top)).astype(x.dtype)


def _power_of_two(exponent: Array, digits: int, bias: int) -> Array:
    bits = ew.bitwise_left_shift(exponent + bias, digits)
    return Array(apply(BITS, float64 if bits.dtype == int64 else float32, bits._node))


def frexp(x: Any) -> tuple[Array, Array]:
    """Fraction of at least 0.5 and below 1, and exponent of 2, from the bits of the number."""
    x = as_floats(x, "frexp")
    wide = x if x.dtype.itemsize > 2 else x.astype(float32)
    bits_dtype, digits, bias = (int64, 52, 1022) if wide.dtype == float64 else (int32, 23, 126)
    is_small = ew.abs(wide) < 2.0 ** (1 - bias)  # scaled to numbers with a leading 1
    scaled = where(is_small, wide * 2.0**digits, wide)
    bits = Array(apply(BITS, bits_dtype, scaled._node))
    exponent = ew.bitwise_and(ew.bitwise_right_shift(bits, digits), 2 * bias + 3) - bias
    field = (2 * bias + 3) << digits
    fraction = ew.bitwise_or(ew.bitwise_and(bits, ~field), bias << digits)
    is_regular = ew.isfinite(wide) & (wide != 0)
    mantissa = where(is_regular, Array(apply(BITS, wide.dtype, fraction._node)), wide)
    exponent = where(is_regular, exponent - where(is_small, digits, 0), 0)
    return mantissa.astype(x.dtype), exponent.astype(int32)


def modf(x: Any) -> tuple[Array, Array]:
    """Fractional and integer part, with the sign of the number."""
    x = as_floats(x, "modf")
    integer = ew.trunc(x)
    rest = where(ew.isinf(x), 0.0, x - integer)
    return ew.copysign(rest, x), integer


def divmod(x1: Any, x2: Any) -> tuple[Array, Array]:
    """Quotient, rounded down, and remainder."""
    first, second = (bools_as_integers(x) for x in as_arrays("divmod", x1, x2))
    return ew.floor_divide(first, second), ew.remainder(first, second)


def matvec(x1: Any, x2: Any) -> Array:
    """Products of matrices and vectors."""
    first, second = as_arrays("matvec", x1, x2)
    return matmul(first, second[..., None])[..., 0]


def vecmat(x1: Any, x2: Any) -> Array:
    """Products of vectors, conjugated, and matrices."""
    first, second = as_arrays("vecmat", x1, x2)
    first = ew.conj(first) if kind_of(first.dtype) == "c" else first
    return matmul(first[..., None, :], second)[..., 0, :]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        degrees, divmod, fabs, float_power, fmax, fmin, fmod, frexp, heaviside, ldexp,
        logaddexp2, matmul, matvec, modf, radians, rint, spacing, vecdot, vecmat,
    )
} | {"deg2rad": radians, "rad2deg": degrees}  # fmt: skip
