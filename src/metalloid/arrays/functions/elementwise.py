"""Elementwise functions of the array API: one per row of the table of operations.

Type checkers and editors read ``elementwise.pyi``; a test generates it from these functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.ir.operands import binary, unary
from metalloid.arrays.ir.ops import OPS, Op


def _unary(name: str) -> Callable[[Any], Array]:
    row = OPS[name]

    def function(x: Any, /) -> Array:
        return Array(unary(row, x))

    return _documented(function, row)


def _binary(name: str) -> Callable[[Any, Any], Array]:
    row = OPS[name]

    def function(x1: Any, x2: Any, /) -> Array:
        return Array(binary(row, x1, x2))

    return _documented(function, row)


def _documented(function: Callable[..., Array], row: Op) -> Callable[..., Array]:
    """Set a function's name and docstring from its row of the table."""
    function.__name__ = function.__qualname__ = row.name
    parameters = list(inspect.signature(function).parameters)
    names, text = ", ".join(parameters), row.text
    for position, name in enumerate(parameters):
        text = text.replace(f"{{{position}}}", name)
    kinds = {"b": "bool", "i": "integers", "f": "floats", "c": "complex numbers"}
    types = ", ".join(word for letter, word in kinds.items() if letter in row.dtype_kinds)
    accuracy = f"At most {row.max_ulp} ULP from the exact result in float32." if row.max_ulp else (
        "Exact, or rounded once.")  # fmt: skip
    if row.complex_max_ulp:
        accuracy += f" Parts of complex64: {row.complex_max_ulp} ULP of the modulus."
    function.__doc__ = f"""{row.summary}, element-wise.

    Parameters
    ----------
    {names} : Array or number
        Supports {types}. Shapes broadcast and types are promoted. Integers are converted to
        float32 by functions that are defined for floats only.

    Raises
    ------
    TypeError
        If the type is not supported.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    {accuracy} In MSL: ``{text}``.
    """
    return function


add = _binary("add")
subtract = _binary("subtract")
multiply = _binary("multiply")
divide = _binary("divide")
floor_divide = _binary("floor_divide")
remainder = _binary("remainder")
pow = _binary("pow")
maximum = _binary("maximum")
minimum = _binary("minimum")
negative = _unary("negative")
positive = _unary("positive")
abs = _unary("abs")
square = _unary("square")
reciprocal = _unary("reciprocal")
sign = _unary("sign")
exp = _unary("exp")
exp2 = _unary("exp2")
expm1 = _unary("expm1")
log = _unary("log")
log1p = _unary("log1p")
log2 = _unary("log2")
log10 = _unary("log10")
logaddexp = _binary("logaddexp")
sqrt = _unary("sqrt")
hypot = _binary("hypot")
erf = _unary("erf")
erfinv = _unary("erfinv")
sin = _unary("sin")
cos = _unary("cos")
tan = _unary("tan")
asin = _unary("asin")
acos = _unary("acos")
atan = _unary("atan")
atan2 = _binary("atan2")
sinh = _unary("sinh")
cosh = _unary("cosh")
tanh = _unary("tanh")
asinh = _unary("asinh")
acosh = _unary("acosh")
atanh = _unary("atanh")
floor = _unary("floor")
ceil = _unary("ceil")
trunc = _unary("trunc")
round = _unary("round")
equal = _binary("equal")
not_equal = _binary("not_equal")
less = _binary("less")
less_equal = _binary("less_equal")
greater = _binary("greater")
greater_equal = _binary("greater_equal")
isnan = _unary("isnan")
isinf = _unary("isinf")
isfinite = _unary("isfinite")
signbit = _unary("signbit")
logical_and = _binary("logical_and")
logical_or = _binary("logical_or")
logical_xor = _binary("logical_xor")
logical_not = _unary("logical_not")
bitwise_and = _binary("bitwise_and")
bitwise_or = _binary("bitwise_or")
bitwise_xor = _binary("bitwise_xor")
bitwise_invert = _unary("bitwise_invert")
bitwise_left_shift = _binary("bitwise_left_shift")
bitwise_right_shift = _binary("bitwise_right_shift")
real = _unary("real")
imag = _unary("imag")
conj = _unary("conj")
copysign = _binary("copysign")
nextafter = _binary("nextafter")
