"""Element types of arrays: NumPy dtypes, their names in MSL, and promotion."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import ml_dtypes
import numpy as np

from metalloid.dtypes import SCALARS

DType = np.dtype[Any]

bool_: Final[DType] = np.dtype(np.bool_)
int8: Final[DType] = np.dtype(np.int8)
int16: Final[DType] = np.dtype(np.int16)
int32: Final[DType] = np.dtype(np.int32)
int64: Final[DType] = np.dtype(np.int64)
uint8: Final[DType] = np.dtype(np.uint8)
uint16: Final[DType] = np.dtype(np.uint16)
uint32: Final[DType] = np.dtype(np.uint32)
uint64: Final[DType] = np.dtype(np.uint64)
float16: Final[DType] = np.dtype(np.float16)
bfloat16: Final[DType] = np.dtype(ml_dtypes.bfloat16)
float32: Final[DType] = np.dtype(np.float32)
float64: Final[DType] = np.dtype(np.float64)
complex64: Final[DType] = np.dtype(np.complex64)
complex128: Final[DType] = np.dtype(np.complex128)
#: Types that need `double`, which not every device has.
DOUBLES: Final = frozenset({float64, complex128})

_STANDARD_DEFAULTS: Final = {bool: bool_, int: int64, float: float32, complex: complex64}
_NUMPY_DEFAULTS: Final = {bool: bool_, int: int64, float: float64, complex: complex128}

_MSL_NAMES: Final = {scalar.dtype: scalar.name for scalar in SCALARS} | {
    complex64: "complex<float>",
    complex128: "complex<double>",
}

ALL: Final = (
    bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32,
    float64, complex64, complex128,
)  # fmt: skip
#: One object per dtype, so that they can be compared by identity.
_OWN: Final = {dtype: dtype for dtype in ALL}

#: Kinds by increasing rank in promotion.
_RANK: Final = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


class _TypeRules(threading.local):
    """The rules for default types and promotion in this thread.

    Attributes
    ----------
    are_numpys : bool
        Whether they are NumPy's. Otherwise those of the array API, with 32-bit floats: Metal has no
        64-bit floats.
    are_chosen : bool
        Whether a caller has chosen them.
    """

    are_numpys = False
    are_chosen = False


type_rules: Final = _TypeRules()


@contextmanager
def chosen_type_rules(are_numpys: bool, are_chosen: bool = True) -> Iterator[None]:
    """Choose the type rules of a block."""
    before = type_rules.are_numpys, type_rules.are_chosen
    type_rules.are_numpys, type_rules.are_chosen = are_numpys, are_chosen
    try:
        yield
    finally:
        type_rules.are_numpys, type_rules.are_chosen = before


def default_dtype(number: type) -> DType:
    """The default type of Python's numbers of a class."""
    return (_NUMPY_DEFAULTS if type_rules.are_numpys else _STANDARD_DEFAULTS)[number]


def default_float() -> DType:
    """The default type of floats."""
    return float64 if type_rules.are_numpys else float32


def float_for(dtype: DType) -> DType:
    """The float type in which functions of floats compute integers."""
    return np.promote_types(dtype, np.float16) if type_rules.are_numpys else float32


@functools.cache
def kind_of(dtype: DType) -> str:
    """``"b"``, ``"i"``, ``"u"``, ``"f"`` or ``"c"``; bfloat16 is a float like others."""
    return "f" if dtype == bfloat16 else dtype.kind


def is_same_kind(source: DType, target: DType) -> bool:
    """Whether NumPy's rule "same_kind" casts a type to another one."""
    return kind_of(source) == kind_of(target) or bool(np.can_cast(source, target, "same_kind"))


def is_integral(*dtypes: DType) -> bool:
    """Whether types are all of booleans or integers."""
    return all(kind_of(dtype) in "biu" for dtype in dtypes)


@functools.cache
def msl_name(dtype: DType) -> str:
    """The name of the type in MSL, or of the struct for value-index pairs.

    Examples
    --------
    >>> msl_name(np.dtype("int64"))
    'long'
    """
    if dtype.names:
        return f"value_index<{msl_name(dtype['value'])}>"
    return _MSL_NAMES[dtype]


@functools.cache
def value_index_dtype(dtype: DType) -> DType:
    """The type of value-index pairs, as arg-reductions carry them."""
    return np.dtype([("value", dtype), ("index", np.int64)], align=True)


def promote(a: DType, b: DType) -> DType:
    """The promoted type: the array API's table, and the higher kind's between kinds.

    An integer and a float give the float's type. NumPy's rules widen it to float64, which Metal
    lacks.

    Raises
    ------
    TypeError
        For uint64 with a signed integer, which no integer type holds.

    Examples
    --------
    >>> promote(np.dtype("int8"), np.dtype("uint8"))
    dtype('int16')
    >>> promote(np.dtype("int64"), np.dtype("float32"))
    dtype('float32')
    """
    return (_promoted_by_numpy if type_rules.are_numpys else _promoted)(a, b)


@functools.cache
def _promoted_by_numpy(a: DType, b: DType) -> DType:
    return as_dtype(np.promote_types(a, b))


@functools.cache
def _promoted(a: DType, b: DType) -> DType:
    if a == b:
        return a
    rank_a, rank_b = _RANK[kind_of(a)], _RANK[kind_of(b)]
    if rank_a == 1 and rank_b == 1:
        promoted = np.promote_types(a, b)
        if promoted.kind == "f":
            raise TypeError(f"[promotion] no integer type holds both {a} and {b}. Convert one.")
        return promoted
    if rank_a == rank_b:
        # Neither 16-bit format can represent the other.
        return float32 if {a, b} == {float16, bfloat16} else _wider(a, b)
    high, low = (a, b) if rank_a > rank_b else (b, a)
    if high.kind == "c" and low == float64:
        return complex128
    return high


def _wider(a: DType, b: DType) -> DType:
    return a if a.itemsize >= b.itemsize else b


def type_of_number(number: type, dtype: DType) -> DType:
    """The type of a Python scalar, given by its class, when combined with `dtype`."""
    return _type_of_number(number, dtype, default_float(), default_dtype(complex))


@functools.cache
def _type_of_number(number: type, dtype: DType, float_dtype: DType, complex_dtype: DType) -> DType:
    kind = kind_of(dtype)
    if number is bool or kind == "c":
        return dtype
    if number is int:
        return int64 if kind == "b" else dtype
    if number is float:
        return dtype if kind == "f" else float_dtype
    return complex_of(dtype) if kind == "f" else complex_dtype


def complex_of(dtype: DType) -> DType:
    """The complex type with parts of a float type; complex64 for 16-bit floats."""
    return complex128 if dtype == float64 else complex64


def real_of(dtype: DType) -> DType:
    """The type of the real and imaginary part."""
    return {complex64: float32, complex128: float64}.get(dtype, dtype)


def as_dtype(value: Any) -> DType:
    """The dtype that an argument of a user denotes.

    Raises
    ------
    TypeError
        If arrays cannot hold it.

    Examples
    --------
    >>> as_dtype("float16"), as_dtype(float)
    (dtype('float16'), dtype('float32'))
    """
    if isinstance(value, np.dtype) and value in _OWN:
        return _OWN[value]
    if isinstance(value, type) and value in _STANDARD_DEFAULTS:
        return default_dtype(value)
    try:
        dtype = bfloat16 if value == "bfloat16" else np.dtype(value)
    except TypeError:
        dtype = None
    if dtype is not None:
        dtype = dtype.newbyteorder("=")
    if dtype not in _OWN:
        names = ", ".join(map(str, ALL))
        raise TypeError(f"[dtype] arrays do not support {value!r}. They support: {names}.")
    return _OWN[dtype]
