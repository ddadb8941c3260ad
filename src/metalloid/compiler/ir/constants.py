"""Constants as bits, and bits as constants."""

from __future__ import annotations

import struct
from typing import Any

from metalloid.compiler.ir.types import Float, Integer, Type, Unsupported

#: How hexadecimal constants of these begin; those of float and double are bits of a double.
_HEXADECIMAL = {"half": "0xH", "bfloat": "0xR"}


def constant_bits(text: str, type: Type) -> int | None:
    """Bits of the constant `text`; None if it may be anything.

    Raises
    ------
    Unsupported
        If it is no number.

    Examples
    --------
    >>> hex(constant_bits("-1", Integer(16))), hex(constant_bits("1.0", Float("float")))
    ('0xffff', '0x3f800000')
    """
    if text in ("undef", "poison"):
        return None
    if text == "zeroinitializer":
        return 0
    try:
        if isinstance(type, Integer):
            return {"true": 1, "false": 0}[text] if type.bits == 1 else int(text) % (1 << type.bits)
        if isinstance(type, Float):
            return _float_bits(text, type)
    except (KeyError, ValueError):
        pass
    raise Unsupported(f"the constant {type} {text}")


def _float_bits(text: str, type: Float) -> int:
    prefix = _HEXADECIMAL.get(type.name)
    if prefix and text.startswith(prefix):
        return int(text[len(prefix) :], 16)
    value = float(text) if not text.startswith("0x") else _as("<d", "<Q", int(text, 16))
    if type.name == "float" and value != value:  # in Python a NaN may become a quiet one
        double = int(text, 16)
        return double >> 63 << 31 | 0xFF << 23 | double >> 29 & 0x7FFFFF
    if type.name == "bfloat":
        return int(_as("<I", "<f", value)) >> 16
    form, integer = {"half": ("<e", "<H"), "float": ("<f", "<I"), "double": ("<d", "<Q")}[type.name]
    return int(_as(integer, form, value))


def constant_of(bits: int | None, type: Type) -> str:
    """The constant with these bits.

    Examples
    --------
    >>> constant_of(0xFFFF, Integer(16)), constant_of(0x3F800000, Float("float"))
    ('-1', '0x3FF0000000000000')
    """
    if bits is None:
        return "poison"
    if isinstance(type, Integer):
        if type.bits == 1:
            return "true" if bits else "false"
        return str(bits - (bits >> type.bits - 1 << type.bits))
    if not isinstance(type, Float):
        raise Unsupported(f"a constant of type {type}")
    prefix = _HEXADECIMAL.get(type.name)
    if prefix:
        return f"{prefix}{bits:04X}"
    if type.name == "float":
        bits = _double_of(bits)
    return f"0x{bits:016X}"


def _double_of(bits: int) -> int:
    """The double with the value of a float, by their bits; of NaNs the payload is kept."""
    if bits & 0x7F800000 == 0x7F800000:
        return bits >> 31 << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29
    return int(_as("<Q", "<d", _as("<f", "<I", bits)))


def _as(read: str, written: str, value: float) -> Any:
    return struct.unpack(read, struct.pack(written, value))[0]
