"""MSL types by name: how their values lie in NumPy arrays and in a kernel's memory."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

import ml_dtypes
import numpy as np

BFLOAT = np.dtype(ml_dtypes.bfloat16)
SIGNED = ("char", "short", "int", "long")
UNSIGNED = ("uchar", "ushort", "uint", "ulong")
INTEGERS = tuple(name for pair in zip(SIGNED, UNSIGNED, strict=True) for name in pair)
FLOATS = ("float", "half", "bfloat")
SCALARS = ("bool", *INTEGERS, *FLOATS)
DTYPES = {
    "bool": np.dtype(np.bool_), "char": np.dtype(np.int8), "uchar": np.dtype(np.uint8),
    "short": np.dtype(np.int16), "ushort": np.dtype(np.uint16), "int": np.dtype(np.int32),
    "uint": np.dtype(np.uint32), "long": np.dtype(np.int64), "ulong": np.dtype(np.uint64),
    "float": np.dtype(np.float32), "half": np.dtype(np.float16), "bfloat": BFLOAT,
    "size_t": np.dtype(np.uint64),
}  # fmt: skip

_NAME = re.compile(r"(packed_)?([a-z_]+?)(?:([234])(?:x([234]))?)?$")


@dataclass(frozen=True)
class MslType:
    """A scalar, a vector of `lanes` or a matrix of `columns` columns.

    In NumPy a value of n threads is an array (n,), (n, lanes) or, a matrix, (n, rows, columns).
    """

    element: str
    packed: bool = False
    lanes: int = 1
    columns: int = 1

    @property
    def dtype(self) -> np.dtype:
        """The type of the values in memory: truth values are bytes, so that their bits are seen."""
        return DTYPES["uchar" if self.element == "bool" else self.element]

    @property
    def _stride(self) -> int:
        """Elements from one column of a matrix to the next."""
        return 4 if self.columns > 1 and self.lanes == 3 else self.lanes

    def empty(self, threads: int) -> np.ndarray:
        """Memory for the values of `threads` threads, full of what no kernel stores by chance."""
        columns = (self.columns,) if self.columns > 1 else ()
        lanes = (self._stride,) if self.lanes > 1 else ()
        memory = np.empty((threads, *columns, *lanes), self.dtype)
        memory.view(np.uint8)[...] = 0xA5
        return memory

    def read(self, memory: np.ndarray) -> np.ndarray:
        """The values in what `empty` made."""
        if self.columns == 1:
            return memory
        return np.swapaxes(memory[..., : self.lanes], -1, -2)

    def write(self, values: np.ndarray) -> np.ndarray:
        """Memory that holds `values`."""
        memory = self.empty(len(values))
        self.read(memory)[...] = values
        return memory


@functools.cache
def parse(name: str) -> MslType:
    """The type called `name`."""
    packed, element, first, second = _NAME.match(name).groups()
    lanes, columns = int(second or first or 1), int(first) if second else 1
    return MslType(element, bool(packed), lanes, columns)


def to_memory(name: str, values: np.ndarray) -> np.ndarray:
    """Memory that holds `values` of the type called `name`."""
    return parse(name).write(np.asarray(values))


def memory_type(name: str) -> str:
    """The MSL type in which values of the type travel: vectors packed, truth values as bytes."""
    type_ = parse(name)
    element = "uchar" if type_.element == "bool" else type_.element
    if type_.columns > 1:
        return name
    return element if type_.lanes == 1 else f"packed_{element}{type_.lanes}"


def memory_of(name: str, expression: str) -> str:
    """MSL: from a value to what is stored."""
    type_ = parse(name)
    return (
        f"{vector('uchar', type_.lanes)}({expression})" if type_.element == "bool" else expression
    )


def from_memory(name: str, expression: str) -> str:
    """MSL: from what was stored to a value."""
    type_ = parse(name)
    if type_.element != "bool":
        return expression
    return f"{name}({vector('uchar', type_.lanes)}({expression}))"


def vector(element: str, lanes: int) -> str:
    """Name of the vector, or of the scalar if there is one lane."""
    return element if lanes == 1 else f"{element}{lanes}"
