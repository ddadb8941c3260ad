"""Function constants: from the text that the front end knows to the bytes that Metal takes."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from typing import Any

from metalloid.errors import ArgumentError

#: Metal's scalar types, the code of `struct` of each; vectors of 2, 3 and 4 follow each.
_CODES = {
    "Float": "f", "Half": "e", "Int": "i", "UInt": "I", "Short": "h", "UShort": "H",
    "Char": "b", "UChar": "B", "Bool": "?", "Long": "q", "ULong": "Q",
}  # fmt: skip
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
    firsts = {getattr(module, f"MTLDataType{name}"): code for name, code in _CODES.items()}
    first = max((scalar for scalar in firsts if scalar <= kind), default=0)
    if first == 0 or kind - first >= 4:
        raise ArgumentError(f"[library] {text} is of a type that Metal takes no constants of.")
    lanes, code = kind - first + 1, firsts[first]
    inner = re.sub(r"^[^(]*\(|\)$", "", text)
    numbers = [_number(part, code) for part in inner.split(", ")]
    numbers = numbers * lanes if len(numbers) == 1 else numbers
    padding = [numbers[0]] if lanes == 3 else []
    return struct.pack(f"={lanes + len(padding)}{code}", *numbers, *padding)


def _number(text: str, code: str) -> float:
    if text in ("true", "false"):
        return text == "true"
    sign = -1 if text.startswith("-") else 1
    if _INFINITY in text:
        return sign * float("inf")
    if text == _NAN:
        return float("nan")
    if code == "?":
        return bool(float(text))
    if code in "fe":
        return float(text)
    number = int(text) if text.lstrip("-").isdigit() else int(float(text))
    bits = 8 * struct.calcsize(f"={code}")
    number &= (1 << bits) - 1  # as C++ converts
    is_negative = code.islower() and number >> (bits - 1)
    return number - (1 << bits) if is_negative else number
