"""Values of function constants: numbers by type, collected before a function is made."""

from __future__ import annotations

from typing import Any

import numpy as np

from metalloid.compat.Metal.constants import (
    MTLDataTypeBFloat,
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
from metalloid.dtypes import scalar_type

#: By the first word of a declared type; the vectors of 2, 3 and 4 follow each.
SCALARS = {
    "float": MTLDataTypeFloat,
    "half": MTLDataTypeHalf,
    "bfloat": MTLDataTypeBFloat,
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
_NAMES = {number: name for name, number in SCALARS.items()}


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
        for element in range(length):
            self.values[location + element] = _value(values, kind, element)

    def reset(self) -> None:
        """Forget all values."""
        self.values.clear()


def size_of(kind: int, selector: str) -> tuple[int, int]:
    """Bytes and alignment of a type in memory."""
    scalar, lanes = _layout(kind, selector)
    slot_bytes = scalar.itemsize * (4 if lanes == 3 else lanes)
    return slot_bytes, slot_bytes


def _layout(kind: int, where: str) -> tuple[np.dtype[Any], int]:
    """The scalar of a type, and how many there are."""
    scalar = max((scalar for scalar in _NAMES if scalar <= unsigned(kind)), default=0)
    lanes = kind - scalar + 1
    if not scalar or lanes > 4:
        fail(where, f"type {kind} is not a valid type of a constant")
    return scalar_type(_NAMES[scalar]).dtype, lanes


def _value(memory: Any, kind: int, element: int) -> Any:
    """One number, or a tuple for a vector, of those that lie in memory."""
    scalar, lanes = _layout(kind, "MTLFunctionConstantValues")
    slot_bytes, _ = size_of(kind, "MTLFunctionConstantValues")
    start, size = element * slot_bytes, scalar.itemsize * lanes
    numbers = leading_bytes(memory, start + size)[start:].view(scalar).tolist()
    return tuple(numbers) if lanes > 1 else numbers[0]
