"""Elementwise operations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import metalloid as mtl
from metalloid import nn
from metalloid.compat.mlx.core import dtypes
from metalloid.compat.mlx.core.array import array, operand, wrap
from metalloid.compat.mlx.core.ops.wrapping import (
    as_float,
    function_from,
    pair,
)

__all__ = [
    "abs", "acos", "acosh", "add", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
    "arctan2", "arctanh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "ceil", "conj", "conjugate", "cos", "cosh", "degrees", "divide",
    "equal", "erf", "erfinv", "exp", "expm1", "floor", "floor_divide", "greater", "greater_equal",
    "imag", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "left_shift", "less",
    "less_equal", "log", "log1p", "log2", "log10", "logaddexp", "logical_and", "logical_not",
    "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative",
    "not_equal", "positive", "pow", "power", "radians", "real", "reciprocal", "remainder",
    "right_shift", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "square",
    "stop_gradient", "subtract", "tan", "tanh", "trunc",
]  # fmt: skip

Function = Callable[..., mtl.Array]
Operation = Callable[..., array]


def _unary(name: str, doc: str, function: Function) -> Operation:
    def compute(a: Any, /) -> array:
        return wrap(function(operand(a)))

    return function_from(name, doc, compute)


def _of_floats(name: str, doc: str, function: Function) -> Operation:
    return _unary(name, doc, lambda a: function(as_float(a)))


def _binary(name: str, doc: str, function: Function) -> Operation:
    def compute(a: Any, b: Any) -> array:
        first, second, _ = pair(a, b)
        return wrap(function(first, second))

    return function_from(name, doc, compute)


def _of_two_floats(name: str, doc: str, function: Function) -> Operation:
    def compute(a: Any, b: Any) -> array:
        first, second, dtype = pair(a, b)
        if not dtypes.is_inexact(dtype):
            first, second = (
                x.astype(mtl.float32) if isinstance(x, mtl.Array) else float(x)
                for x in (first, second)
            )
        return wrap(function(first, second))

    return function_from(name, doc, compute)


# -- one operand


def _negative(a: mtl.Array) -> mtl.Array:
    if a.dtype.kind == "b":
        raise ValueError("[negative] Not supported for bool, use logical_not instead.")
    return mtl.negative(a)


def _absolute(a: mtl.Array) -> mtl.Array:
    if a.dtype.kind == "c":
        return mtl.abs(a)
    return a if a.dtype.kind in "bu" else mtl.abs(a)


def _rounded_to_integer(function: Function) -> Function:
    def compute(a: mtl.Array) -> mtl.Array:
        if a.dtype.kind == "c":
            raise ValueError(f"[{function.__name__}] Not supported for complex64.")
        return a if a.dtype.kind in "biu" else function(a)

    return compute


def _sign(a: mtl.Array) -> mtl.Array:
    if a.dtype.kind == "b":
        return a
    return mtl.sign(a)


def _square(a: mtl.Array) -> mtl.Array:
    return a if a.dtype.kind == "b" else mtl.square(a)


def _rsqrt(a: mtl.Array) -> mtl.Array:
    return mtl.reciprocal(mtl.sqrt(a))


def _is(predicate: Function, otherwise: bool) -> Function:
    """A predicate of floats; other types have one value."""

    def compute(a: mtl.Array) -> mtl.Array:
        if a.dtype.kind in "biu":
            return mtl.full(a.shape, otherwise, mtl.bool)
        return predicate(a)

    return compute


def _isfinite(a: mtl.Array) -> mtl.Array:
    return mtl.logical_not(mtl.logical_or(mtl.isnan(a), mtl.isinf(a)))


def _signed_infinity(sign: float) -> Function:
    def compute(a: mtl.Array) -> mtl.Array:
        return a.real == sign * math.inf

    return compute


def _real_floats(function: Function) -> Function:
    def compute(a: mtl.Array) -> mtl.Array:
        if a.dtype.kind == "c":
            raise ValueError(f"[{function.__name__}] Not supported for complex64.")
        return function(a)

    return compute


def _real(a: mtl.Array) -> mtl.Array:
    return a.real


def _imag(a: mtl.Array) -> mtl.Array:
    return a.imag if a.dtype.kind == "c" else mtl.zeros_like(a)


def _conj(a: mtl.Array) -> mtl.Array:
    return mtl.conj(a) if a.dtype.kind == "c" else a


def _bitwise_invert(a: mtl.Array) -> mtl.Array:
    if a.dtype.kind not in "biu":
        raise ValueError("[bitwise_invert] Bitwise inversion is only for integers and bool.")
    return mtl.bitwise_invert(a)


def _scaled(factor: float) -> Function:
    return lambda a: a * factor


def _log1p(a: mtl.Array) -> mtl.Array:
    return mtl.log1p(a)


abs = _unary("abs", "Absolute value.", _absolute)
sign = _unary("sign", "Sign: -1, 0 or 1.", _sign)
positive = _unary("positive", "The same values.", lambda a: a)
negative = _unary("negative", "Negative.", _negative)
floor = _unary("floor", "Largest integer that is not greater.", _rounded_to_integer(mtl.floor))
ceil = _unary("ceil", "Smallest integer that is not less.", _rounded_to_integer(mtl.ceil))
trunc = _unary("trunc", "Nearest integer towards zero.", _rounded_to_integer(mtl.trunc))
square = _unary("square", "Square.", _square)
real = _unary("real", "Real part.", _real)
imag = _unary("imag", "Imaginary part.", _imag)
conj = _unary("conj", "Complex conjugate.", _conj)
conjugate = conj
logical_not = _unary("logical_not", "Logical negation.",
                     lambda a: mtl.logical_not(a.astype(mtl.bool)))  # fmt: skip
bitwise_invert = _unary("bitwise_invert", "Inversion of all bits.", _bitwise_invert)
isnan = _unary("isnan", "Whether elements are NaN.", _is(mtl.isnan, False))
isinf = _unary("isinf", "Whether elements are infinite.", _is(mtl.isinf, False))
isfinite = _unary("isfinite", "Whether elements are finite.", _is(_isfinite, True))
isposinf = _unary("isposinf", "Whether elements are positive infinity.",
                  _is(_signed_infinity(1), False))  # fmt: skip
isneginf = _unary("isneginf", "Whether elements are negative infinity.",
                  _is(_signed_infinity(-1), False))  # fmt: skip
stop_gradient = _unary("stop_gradient", "The same values, constant for derivatives.",
                       mtl.stop_gradient)  # fmt: skip
sqrt = _of_floats("sqrt", "Square root.", mtl.sqrt)
rsqrt = _of_floats("rsqrt", "Reciprocal of the square root.", _rsqrt)
reciprocal = _of_floats("reciprocal", "Reciprocal.", mtl.reciprocal)
exp = _of_floats("exp", "Exponential.", mtl.exp)
expm1 = _of_floats("expm1", "Exponential minus 1.", _real_floats(mtl.expm1))
erf = _of_floats("erf", "Error function.", _real_floats(mtl.erf))
erfinv = _of_floats("erfinv", "Inverse of the error function.", _real_floats(mtl.erfinv))
sin = _of_floats("sin", "Sine.", mtl.sin)
cos = _of_floats("cos", "Cosine.", mtl.cos)
tan = _of_floats("tan", "Tangent.", mtl.tan)
arcsin = asin = _of_floats("arcsin", "Inverse sine.", mtl.asin)
arccos = acos = _of_floats("arccos", "Inverse cosine.", mtl.acos)
arctan = atan = _of_floats("arctan", "Inverse tangent.", mtl.atan)
sinh = _of_floats("sinh", "Hyperbolic sine.", mtl.sinh)
cosh = _of_floats("cosh", "Hyperbolic cosine.", mtl.cosh)
tanh = _of_floats("tanh", "Hyperbolic tangent.", mtl.tanh)
arcsinh = asinh = _of_floats("arcsinh", "Inverse hyperbolic sine.", mtl.asinh)
arccosh = acosh = _of_floats("arccosh", "Inverse hyperbolic cosine.", mtl.acosh)
arctanh = atanh = _of_floats("arctanh", "Inverse hyperbolic tangent.", mtl.atanh)
degrees = _of_floats("degrees", "Radians in degrees.", _scaled(180 / math.pi))
radians = _of_floats("radians", "Degrees in radians.", _scaled(math.pi / 180))
log = _of_floats("log", "Natural logarithm.", mtl.log)
log2 = _of_floats("log2", "Logarithm to base 2.", mtl.log2)
log10 = _of_floats("log10", "Logarithm to base 10.", mtl.log10)
log1p = _of_floats("log1p", "Natural logarithm of 1 plus the value.", _log1p)
sigmoid = _of_floats("sigmoid", "Logistic sigmoid.", _real_floats(nn.sigmoid))


# -- two operands


def _divided(a: Any, b: Any) -> mtl.Array:
    return mtl.divide(a, b)


def _real_only(name: str, function: Function) -> Function:
    def compute(a: Any, b: Any) -> mtl.Array:
        if any(isinstance(x, mtl.Array) and x.dtype.kind == "c" for x in (a, b)):
            raise ValueError(f"[{name}] Complex type not supported.")
        return function(a, b)

    return compute


def _truth(x: Any) -> Any:
    return x.astype(mtl.bool) if isinstance(x, mtl.Array) else bool(x)


def _logical(function: Function) -> Function:
    return lambda a, b: function(_truth(a), _truth(b))


def _bits_only(name: str, function: Function) -> Function:
    def compute(a: Any, b: Any) -> mtl.Array:
        for x in (a, b):
            if isinstance(x, mtl.Array) and x.dtype.kind not in "biu":
                raise ValueError(
                    f"[{name}] Only allowed on integer and bool types, got {x.dtype.name}."
                )
        return function(a, b)

    return compute


def _shift(name: str, function: Function) -> Function:
    def compute(a: Any, b: Any) -> mtl.Array:
        if any(isinstance(x, mtl.Array) and x.dtype.kind == "b" for x in (a, b)):
            a, b = (x.astype(mtl.uint8) if isinstance(x, mtl.Array) else x for x in (a, b))
        return function(a, b)

    return _bits_only(name, compute)


def _less_as_complex(strict: Function, name: str) -> Function:
    """Comparisons, of complex numbers by real parts and then imaginary ones."""

    def compute(a: Any, b: Any) -> mtl.Array:
        if not any(isinstance(x, mtl.Array) and x.dtype.kind == "c" for x in (a, b)):
            return strict(a, b)
        x, y = (mtl.asarray(v, mtl.complex64) for v in (a, b))
        return mtl.where(x.real == y.real, strict(x.imag, y.imag), strict(x.real, y.real))

    compute.__name__ = name
    return compute


def _power(a: Any, b: Any) -> mtl.Array:
    own = next(x.dtype for x in (a, b) if isinstance(x, mtl.Array))
    if own.kind == "i":
        if isinstance(b, int):
            return mtl.pow(a, b) if b >= 0 else mtl.zeros_like(a)
        return mtl.where(b < 0, 0, mtl.pow(a, mtl.maximum(b, 0)))
    if isinstance(a, mtl.Array) and a.dtype.kind == "b":
        a, b = a.astype(mtl.uint8), (b.astype(mtl.uint8) if isinstance(b, mtl.Array) else int(b))
    return mtl.pow(a, b)


def log_of_sum(a: Any, b: Any) -> mtl.Array:
    """The logarithm of the sum of exponentials, of complex numbers, too."""
    if not any(isinstance(x, mtl.Array) and x.dtype.kind == "c" for x in (a, b)):
        return mtl.logaddexp(a, b)
    x, y = (mtl.asarray(v, mtl.complex64) for v in (a, b))
    larger, smaller = mtl.where(x.real > y.real, x, y), mtl.where(x.real > y.real, y, x)
    shifted = larger + mtl.log(1 + mtl.exp(smaller - larger))
    return mtl.where(mtl.isinf(smaller.real), larger, shifted)


def _extreme(function: Function, name: str) -> Function:
    def compute(a: Any, b: Any) -> mtl.Array:
        if not any(isinstance(x, mtl.Array) and x.dtype.kind == "c" for x in (a, b)):
            return function(a, b)
        x, y = (mtl.asarray(v, mtl.complex64) for v in (a, b))
        chosen = _less_as_complex(mtl.greater if name == "maximum" else mtl.less, name)(x, y)
        return mtl.where(mtl.logical_or(chosen, x != x), x, y)

    return compute


add = _binary("add", "Sum.", mtl.add)
subtract = _binary("subtract", "Difference.", mtl.subtract)
multiply = _binary("multiply", "Product.", mtl.multiply)
divide = _of_two_floats("divide", "Quotient, as a float.", _divided)
floor_divide = _binary("floor_divide", "Quotient, rounded down.",
                       _real_only("floor_divide", mtl.floor_divide))  # fmt: skip
remainder = _binary("remainder", "Remainder, with the sign of the divisor.",
                    _real_only("remainder", mtl.remainder))  # fmt: skip
power = _binary("power", "First operand to the power of the second.", _power)
pow = power
maximum = _binary("maximum", "Larger operand; NaN if one is.", _extreme(mtl.maximum, "maximum"))
minimum = _binary("minimum", "Smaller operand; NaN if one is.", _extreme(mtl.minimum, "minimum"))
equal = _binary("equal", "Whether operands are equal.", mtl.equal)
not_equal = _binary("not_equal", "Whether operands differ.", mtl.not_equal)
less = _binary("less", "Whether the first operand is less.", _less_as_complex(mtl.less, "less"))
less_equal = _binary("less_equal", "Whether the first operand is not greater.",
                     _less_as_complex(mtl.less_equal, "less_equal"))  # fmt: skip
greater = _binary("greater", "Whether the first operand is greater.",
                  _less_as_complex(mtl.greater, "greater"))  # fmt: skip
greater_equal = _binary("greater_equal", "Whether the first operand is not less.",
                        _less_as_complex(mtl.greater_equal, "greater_equal"))  # fmt: skip
logical_and = _binary("logical_and", "Logical conjunction.", _logical(mtl.logical_and))
logical_or = _binary("logical_or", "Logical disjunction.", _logical(mtl.logical_or))
logical_xor = _binary("logical_xor", "Logical exclusive disjunction.", _logical(mtl.logical_xor))
logaddexp = _of_two_floats("logaddexp", "Logarithm of the sum of exponentials.", log_of_sum)
arctan2 = atan2 = _of_two_floats("arctan2", "Angle of a vector in the plane.",
                                 _real_only("arctan2", mtl.atan2))  # fmt: skip
bitwise_and = _binary("bitwise_and", "Conjunction of bits.",
                      _bits_only("bitwise_and", mtl.bitwise_and))  # fmt: skip
bitwise_or = _binary("bitwise_or", "Disjunction of bits.",
                     _bits_only("bitwise_or", mtl.bitwise_or))  # fmt: skip
bitwise_xor = _binary("bitwise_xor", "Exclusive disjunction of bits.",
                      _bits_only("bitwise_xor", mtl.bitwise_xor))  # fmt: skip
left_shift = bitwise_left_shift = _binary("left_shift", "Bits moved to the left.",
                                          _shift("left_shift", mtl.bitwise_left_shift))  # fmt: skip
right_shift = bitwise_right_shift = _binary("right_shift", "Bits moved to the right.",
                                            _shift("right_shift",
                                                   mtl.bitwise_right_shift))  # fmt: skip
