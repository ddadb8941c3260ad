"""Function constants: from the text that the front end knows to the bytes that Metal takes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from metalloid.dtypes import ScalarType, scalar_type
from metalloid.errors import ArgumentError

#: Metal's scalar types; vectors of 2, 3 and 4 follow each.
_SCALARS = (
    "Float", "Half", "BFloat", "Int", "UInt", "Short", "UShort", "Char", "UChar", "Bool", "Long",
    "ULong",
)  # fmt: skip
_INFINITY, _NAN = "__builtin_inff()", '__builtin_nanf("")'


def constant_values(module: Any, function: Any, constants: Mapping[int, str]) -> Any:
    """An MTLFunctionConstantValues with the constants that a function uses.

    Parameters
    ----------
    function : MTLFunction
        Made without values; it knows the types.
    constants : mapping
        By index, as C++ text: ``"float(0.1)"``.
    """
    values = module.MTLFunctionConstantValues.alloc().init()
    for constant in function.functionConstantsDictionary().values():
        text = constants.get(constant.index())
        if text is not None:
            kind = constant.type()
            values.setConstantValue_type_atIndex_(
                packed(module, kind, text), kind, constant.index()
            )
    return values


def packed(module: Any, kind: int, text: str) -> bytes:
    r"""The bytes of a value, with the padding of three lanes.

    Examples
    --------
    >>> from metalloid.compat import Metal
    >>> packed(Metal, Metal.MTLDataTypeUShort2, "ushort2(1, 2)")
    b'\x01\x00\x02\x00'
    """
    firsts = {getattr(module, f"MTLDataType{name}"): name for name in _SCALARS}
    first = max((scalar for scalar in firsts if scalar <= kind), default=0)
    if first == 0 or kind - first >= 4:
        raise ArgumentError(
            f"[library] {text} has a type that Metal does not support for constants."
        )
    lanes, scalar = kind - first + 1, scalar_type(firsts[first].lower())
    inner = re.sub(r"^[^(]*\(|\)$", "", text)
    numbers = [_number(text, scalar) for text in inner.split(", ")]
    numbers = numbers * lanes if len(numbers) == 1 else numbers
    padding = [numbers[0]] if lanes == 3 else []
    with np.errstate(over="ignore"):  # too large is infinite, as in C++
        return np.array([*numbers, *padding], scalar.dtype).tobytes()


def _number(text: str, scalar: ScalarType) -> float:
    if text in ("true", "false"):
        return text == "true"
    sign = -1 if text.startswith("-") else 1
    if _INFINITY in text:
        return sign * float("inf")
    if text == _NAN:
        return float("nan")
    if scalar.kind == "b":
        return bool(float(text))
    if scalar.kind in "fV":
        return float(text)
    number = int(text) if text.lstrip("-").isdigit() else int(float(text))
    bits = 8 * scalar.bytes
    number &= (1 << bits) - 1  # as C++ converts
    is_negative = scalar.kind == "i" and number >> (bits - 1)
    return number - (1 << bits) if is_negative else number
