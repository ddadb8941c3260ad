"""Scalar types: the names of MSL, NumPy, ml_dtypes and DLPack for the same bits."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np


class ScalarType(NamedTuple):
    """A scalar of MSL.

    Attributes
    ----------
    name : str
        MSL's name: ``"uint"``.
    numpy_name : str
        NumPy's: ``"uint32"``.
    kind : str
        ``"b"`` boolean, ``"i"`` signed, ``"u"`` unsigned, ``"f"`` IEEE float, ``"V"`` bfloat.
    bytes : int
    """

    name: str
    numpy_name: str
    kind: str
    bytes: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype; ml_dtypes' for bfloat."""
        return _dtype(self.numpy_name)


@functools.cache
def _dtype(name: str) -> np.dtype[Any]:
    import numpy as np

    if name == "bfloat16":
        import ml_dtypes

        brain: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return brain
    return np.dtype(name)


SCALARS = (
    ScalarType("bool", "bool", "b", 1),
    ScalarType("char", "int8", "i", 1),
    ScalarType("uchar", "uint8", "u", 1),
    ScalarType("short", "int16", "i", 2),
    ScalarType("ushort", "uint16", "u", 2),
    ScalarType("int", "int32", "i", 4),
    ScalarType("uint", "uint32", "u", 4),
    ScalarType("long", "int64", "i", 8),
    ScalarType("ulong", "uint64", "u", 8),
    ScalarType("half", "float16", "f", 2),
    ScalarType("bfloat", "bfloat16", "V", 2),
    ScalarType("float", "float32", "f", 4),
    ScalarType("double", "float64", "f", 8),
)

_BY_NAME = {scalar.name: scalar for scalar in SCALARS}
_BY_SHAPE = {(scalar.kind, scalar.bytes): scalar for scalar in SCALARS}


def scalar_type(name: str) -> ScalarType:
    """The scalar of an MSL name.

    Examples
    --------
    >>> scalar_type("half").numpy_name
    'float16'
    """
    return _BY_NAME[name]


def scalar_of(kind: str, size: int) -> ScalarType:
    """The scalar of a kind letter and a size in bytes."""
    return _BY_SHAPE[kind, size]
