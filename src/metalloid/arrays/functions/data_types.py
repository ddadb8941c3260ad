"""Data type functions of the array API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from metalloid.arrays.array import Array, as_array
from metalloid.arrays.ir import dtypes as types
from metalloid.arrays.ir.dtypes import DType, as_dtype, kind_of, promote, real_of, type_of_number
from metalloid.arrays.ir.operands import is_number
from metalloid.runtime.devices.registry import devices, get_device


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
    """Convert an array to another type.

    Raises
    ------
    TypeError
        If complex numbers are converted to real ones. Use ``.real`` or ``.imag``.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.astype(mtl.asarray([1.7, -1.7]), mtl.int32)
    array([ 1, -1], dtype=int32)
    """
    array, result_dtype = as_array(x, "astype"), as_dtype(dtype)
    if kind_of(array.dtype) == "c" and kind_of(result_dtype) in "iuf":
        raise TypeError(f"[astype] {array.dtype} as {result_dtype}: take .real or .imag.")
    return array.astype(result_dtype, copy=copy, device=device)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """Return the type that arrays, types and Python numbers are promoted to.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.result_type(mtl.int8, mtl.uint8)
    dtype('int16')
    """
    dtypes = [
        value.dtype if isinstance(value, Array) else as_dtype(value)
        for value in arrays_and_dtypes
        if not is_number(value)
    ]
    if not dtypes:
        raise ValueError("[result_type] expected at least one array or type.")
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = promote(result, dtype)
    for value in arrays_and_dtypes:
        if is_number(value):
            result = promote(result, type_of_number(value.__class__, result))
    return result


def can_cast(from_: Any, to: Any, /) -> bool:
    """Return whether promotion leads from one type to another."""
    start = from_.dtype if isinstance(from_, Array) else as_dtype(from_)
    end = as_dtype(to)
    try:
        return promote(start, end) == end and (kind_of(start) in "b" or kind_of(start) == kind_of(
            end) or (kind_of(start) + kind_of(end)) in ("ui", "fc"))  # fmt: skip
    except TypeError:
        return False


@dataclass(frozen=True)
class FloatInfo:
    """Limits of a float type, as Python numbers; returned by `finfo`."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True)
class IntInfo:
    """Limits of an integer type; returned by `iinfo`."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: Any, /) -> FloatInfo:
    """Return the limits of a float type, or of the parts of a complex type.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.finfo(mtl.float32).bits
    32
    """
    dtype = real_of(type.dtype if isinstance(type, Array) else as_dtype(type))
    if kind_of(dtype) != "f":
        raise TypeError(f"[finfo] {dtype} is not a float type.")
    info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return FloatInfo(info.bits, float(info.eps), float(info.max), float(info.min),
                     float(info.smallest_normal), dtype)  # fmt: skip


def iinfo(type: Any, /) -> IntInfo:
    """Return the limits of an integer type."""
    dtype = type.dtype if isinstance(type, Array) else as_dtype(type)
    if kind_of(dtype) not in "iu":
        raise TypeError(f"[iinfo] {dtype} is not an integer type.")
    info = np.iinfo(dtype)
    return IntInfo(info.bits, int(info.max), int(info.min), dtype)


_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether a type is of a kind: a name of the array API, a type, or a tuple of them.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.isdtype(mtl.float16, "real floating")
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"[isdtype] unknown kind {kind!r}. Kinds: {', '.join(_KINDS)}.")
        return kind_of(dtype) in _KINDS[kind]
    return bool(dtype == as_dtype(kind))


class _Info:
    """Inspection of the array API; returned by ``__array_namespace_info__``."""

    def capabilities(self) -> dict[str, Any]:
        """Return which optional parts of the standard this library implements."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """Return the default device."""
        return get_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """Return the default types."""
        return {
            "real floating": types.float32,
            "complex floating": types.complex64,
            "integral": types.int64,
            "indexing": types.int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """Return the standard's types that a device supports, by name."""
        left_out = frozenset() if get_device(device).has_float64 else types.DOUBLES
        return {
            str(dtype): dtype
            for dtype in types.ALL
            if dtype not in (types.float16, types.bfloat16)
            and dtype not in left_out
            and (kind is None or isdtype(dtype, kind))
        }

    def devices(self) -> tuple[Any, ...]:
        """Return all devices."""
        return tuple(devices())


def array_namespace_info() -> _Info:
    """Return the inspection object of the array API, ``__array_namespace_info__``."""
    return _Info()
