"""Values of function constants: numbers by type, collected before a function is made."""

from __future__ import annotations

import struct
from typing import Any

from metalloid.compat.Metal.constants import (
    MTLDataTypeBool,
    MTLDataTypeChar,
    MTLDataTypeFloat,
    MTLDataTypeHalf,
    MTLDataTypeInt,
    MTLDataTypeLong,
    MTLDataTypeShort,
    MTLDataTypeUChar,
    MTLDataTypeUInt,
    MTLDataTypeULong,
    MTLDataTypeUShort,
)
from metalloid.compat.Metal.conversions import leading_bytes, text, unsigned
from metalloid.compat.Metal.failures import fail
from metalloid.compat.Metal.structures import location_and_length

#: Code of `struct` by type; the vectors of 2, 3 and 4 follow each.
_CODES = {
    MTLDataTypeFloat: "f",
    MTLDataTypeHalf: "e",
    MTLDataTypeInt: "i",
    MTLDataTypeUInt: "I",
    MTLDataTypeShort: "h",
    MTLDataTypeUShort: "H",
    MTLDataTypeChar: "b",
    MTLDataTypeUChar: "B",
    MTLDataTypeBool: "?",
    MTLDataTypeLong: "q",
    MTLDataTypeULong: "Q",
}
#: Scalar type and name by the first word of a declared type.
SCALARS = {
    "float": MTLDataTypeFloat,
    "half": MTLDataTypeHalf,
    "int": MTLDataTypeInt,
    "uint": MTLDataTypeUInt,
    "short": MTLDataTypeShort,
    "ushort": MTLDataTypeUShort,
    "char": MTLDataTypeChar,
    "uchar": MTLDataTypeUChar,
    "bool": MTLDataTypeBool,
    "long": MTLDataTypeLong,
    "ulong": MTLDataTypeULong,
}


class MTLFunctionConstantValues:
    """Values by index or by name."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: dict[int | str, Any] = {}

    @classmethod
    def alloc(cls) -> MTLFunctionConstantValues:
        """A new one, before `init`."""
        return cls()

    new = alloc

    def init(self) -> MTLFunctionConstantValues:
        """Itself."""
        return self

    def setConstantValue_type_atIndex_(self, value: Any, kind: int, index: int) -> None:
        """The constant of an index: bytes of a number, or of several for a vector."""
        self.values[unsigned(index)] = _value(value, kind, 0)

    def setConstantValue_type_withName_(self, value: Any, kind: int, name: str) -> None:
        """The constant of a name."""
        self.values[text(name)] = _value(value, kind, 0)

    def setConstantValues_type_withRange_(self, values: Any, kind: int, indices: Any) -> None:
        """The constants of some indices one after the other."""
        location, length = location_and_length(indices)
        for place in range(length):
            self.values[location + place] = _value(values, kind, place)

    def reset(self) -> None:
        """Forget all values."""
        self.values.clear()


def size_of(kind: int, selector: str) -> tuple[int, int]:
    """Bytes and alignment of a type in memory."""
    layout, lanes = _layout(kind, selector)
    room = layout.size // lanes * (4 if lanes == 3 else lanes)
    return room, room


def _layout(kind: int, where: str) -> tuple[struct.Struct, int]:
    scalar = max((scalar for scalar in _CODES if scalar <= unsigned(kind)), default=0)
    lanes = kind - scalar + 1
    if not scalar or lanes > 4:
        fail(where, f"type {kind} is not a valid type of a constant")
    return struct.Struct(f"={lanes}{_CODES[scalar]}"), lanes


def _value(memory: Any, kind: int, place: int) -> Any:
    """One number, or a tuple for a vector, of those that lie in memory."""
    layout, lanes = _layout(kind, "MTLFunctionConstantValues")
    room, _ = size_of(kind, "MTLFunctionConstantValues")
    found = leading_bytes(memory, place * room + layout.size)[place * room :]
    numbers = layout.unpack(found.tobytes())
    return numbers if lanes > 1 else numbers[0]
