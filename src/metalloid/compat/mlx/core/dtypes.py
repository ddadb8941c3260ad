"""Types of elements: MLX's objects, their categories, and promotion."""

from __future__ import annotations

import enum
import functools
from typing import Any

import ml_dtypes
import numpy as np

__all__ = [
    "Dtype", "DtypeCategory", "bfloat16", "bool_", "can_cast", "complex64", "complexfloating",
    "finfo", "float16", "float32", "float64", "floating", "generic", "iinfo", "inexact", "int8",
    "int16", "int32", "int64", "integer", "isdtype", "issubdtype", "number", "result_type",
    "signedinteger", "uint8", "uint16", "uint32", "uint64", "unsignedinteger",
]  # fmt: skip

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class Dtype:
    """Type of the elements of an array.

    Attributes
    ----------
    size : int
        Bytes of an element.

    Examples
    --------
    >>> from metalloid.compat.mlx import core as mx
    >>> mx.float16, mx.float16.size
    (mlx.core.float16, 2)
    """

    __slots__ = ("_name", "numpy", "size")

    def __init__(self, name: str) -> None:
        self._name = name
        #: The type of NumPy, and of metalloid's arrays.
        self.numpy = _BFLOAT16 if name == "bfloat16" else np.dtype(name)
        self.size = self.numpy.itemsize

    def __repr__(self) -> str:
        return f"mlx.core.{self._name}"

    def __reduce__(self) -> Any:
        return _by_name, (self._name,)

    def __copy__(self) -> Dtype:
        return self

    def __deepcopy__(self, memo: Any) -> Dtype:
        return self


def _by_name(name: str) -> Dtype:
    return _DTYPES[name]


_NAMES = ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
          "float16", "float32", "float64", "bfloat16", "complex64")  # fmt: skip
_DTYPES = {name: Dtype(name) for name in _NAMES}
_OF_NUMPY = {dtype.numpy: dtype for dtype in _DTYPES.values()}
bool_ = _DTYPES["bool"]
uint8, uint16, uint32, uint64 = (_DTYPES[f"uint{8 << k}"] for k in range(4))
int8, int16, int32, int64 = (_DTYPES[f"int{8 << k}"] for k in range(4))
float16, float32, float64 = (_DTYPES[f"float{16 << k}"] for k in range(3))
bfloat16, complex64 = _DTYPES["bfloat16"], _DTYPES["complex64"]


def dtype_of(numpy_dtype: Any) -> Dtype:
    """The type for one of NumPy."""
    return _OF_NUMPY[numpy_dtype]


class DtypeCategory(enum.Enum):
    """Categories of types; see `issubdtype`."""

    complexfloating = 0
    floating = 1
    inexact = 2
    signedinteger = 3
    unsignedinteger = 4
    integer = 5
    number = 6
    generic = 7

    def __repr__(self) -> str:
        return f"DtypeCategory.{self.name}"


complexfloating = DtypeCategory.complexfloating
floating = DtypeCategory.floating
inexact = DtypeCategory.inexact
signedinteger = DtypeCategory.signedinteger
unsignedinteger = DtypeCategory.unsignedinteger
integer = DtypeCategory.integer
number = DtypeCategory.number
generic = DtypeCategory.generic

_PARENTS = {
    complexfloating: inexact, floating: inexact, inexact: number, signedinteger: integer,
    unsignedinteger: integer, integer: number, number: generic, generic: None,
}  # fmt: skip
_CATEGORIES = {"b": generic, "u": unsignedinteger, "i": signedinteger, "f": floating,
               "c": complexfloating}  # fmt: skip
KINDS = {d: "f" if d is bfloat16 else d.numpy.kind for d in _DTYPES.values()}


def is_float(dtype: Dtype) -> bool:
    """Whether it is a real floating type."""
    return KINDS[dtype] == "f"


def is_inexact(dtype: Dtype) -> bool:
    """Whether it is a floating or a complex type."""
    return KINDS[dtype] in "fc"


def is_integer(dtype: Dtype) -> bool:
    """Whether it is an integer type."""
    return KINDS[dtype] in "iu"


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether a type or category is of another category.

    Examples
    --------
    >>> from metalloid.compat.mlx import core as mx
    >>> mx.issubdtype(mx.bfloat16, mx.inexact), mx.issubdtype(mx.bfloat16, mx.integer)
    (True, False)
    """
    for arg in (arg1, arg2):
        if not isinstance(arg, Dtype | DtypeCategory):
            raise TypeError(
                "issubdtype(): incompatible function arguments: expected Dtype or DtypeCategory, "
                f"got {arg!r}."
            )
    if isinstance(arg2, Dtype):
        return arg1 is arg2
    category: Any = _CATEGORIES[KINDS[arg1]] if isinstance(arg1, Dtype) else arg1
    while category is not None and category is not arg2:
        category = _PARENTS[category]
    return category is arg2


@functools.cache
def promoted(a: Dtype, b: Dtype) -> Dtype:
    """The type of an operation on two types."""
    if a is b:
        return a
    kinds = KINDS[a] + KINDS[b]
    if "b" in kinds:
        return b if KINDS[a] == "b" else a
    if "c" in kinds:
        return complex64
    if kinds == "ff":
        larger, smaller = (a, b) if a.size >= b.size else (b, a)
        return float32 if larger.size == smaller.size else larger
    if "f" in kinds:
        return a if KINDS[a] == "f" else b
    if kinds in ("ii", "uu"):
        return a if a.size >= b.size else b
    signed, unsigned = (a, b) if KINDS[a] == "i" else (b, a)
    if signed.size > unsigned.size:
        return signed
    return float32 if unsigned is uint64 else _DTYPES[f"int{unsigned.size * 16}"]


def at_least_float(dtype: Dtype) -> Dtype:
    """The type of results of functions that are defined for inexact types."""
    return dtype if is_inexact(dtype) else float32


def as_dtype(value: Any, where: str) -> Dtype:
    """Check that a value is a type.

    Raises
    ------
    TypeError
        If it is not.
    """
    if isinstance(value, Dtype):
        return value
    raise TypeError(
        f"{where}(): incompatible function arguments: expected mlx.core.Dtype, got {value!r}."
    )


def _dtypes_of(values: tuple[Any, ...]) -> list[Dtype]:
    return [v if isinstance(v, Dtype) else as_dtype(getattr(v, "dtype", v), "result_type")
            for v in values]  # fmt: skip


def result_type(*arrays_and_dtypes: Any) -> Dtype:
    """The type of an operation on arrays and types.

    Examples
    --------
    >>> from metalloid.compat.mlx import core as mx
    >>> mx.result_type(mx.int32, mx.float16)
    mlx.core.float16
    """
    if not arrays_and_dtypes:
        raise ValueError("[result_type] At least one array or dtype is required.")
    return functools.reduce(promoted, _dtypes_of(arrays_and_dtypes))


def can_cast(from_: Any, to: Dtype) -> bool:
    """Whether a type, or an array's type, converts to another one by promotion."""
    (source,) = _dtypes_of((from_,))
    return promoted(source, as_dtype(to, "can_cast")) is to


_ISDTYPE_KINDS = {
    "bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu",
    "real floating": "f", "complex floating": "c", "numeric": "iufc",
}  # fmt: skip


def isdtype(dtype: Dtype, kind: Any) -> bool:
    """Whether a type is of a kind, by the names of the array API standard."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, item) for item in kind)
    if isinstance(kind, Dtype):
        return as_dtype(dtype, "isdtype") is kind
    if kind not in _ISDTYPE_KINDS:
        raise ValueError(f"[isdtype] Unrecognized kind {kind!r}.")
    return KINDS[as_dtype(dtype, "isdtype")] in _ISDTYPE_KINDS[kind]


class finfo:
    """Limits of a floating type.

    Attributes
    ----------
    min, max, eps, smallest_normal : float
    bits : int
    dtype : Dtype

    Examples
    --------
    >>> from metalloid.compat.mlx import core as mx
    >>> mx.finfo(mx.float16)
    finfo(min=-65504, max=65504, dtype=float16)
    """

    def __init__(self, dtype: Dtype) -> None:
        if not is_inexact(as_dtype(dtype, "finfo")):
            raise ValueError("[finfo] dtype must be floating point or complex.")
        self.dtype = float32 if dtype is complex64 else dtype
        info: Any = ml_dtypes.finfo(self.dtype.numpy)  # type: ignore[no-untyped-call]
        self.min, self.max, self.eps = float(info.min), float(info.max), float(info.eps)
        self.smallest_normal = float(info.smallest_normal)
        self.bits = info.bits

    def __repr__(self) -> str:
        return f"finfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype._name})"


class iinfo:
    """Limits of an integer type.

    Attributes
    ----------
    min, max : int
    dtype : Dtype

    Examples
    --------
    >>> from metalloid.compat.mlx import core as mx
    >>> mx.iinfo(mx.int8)
    iinfo(min=-128, max=127, dtype=int8)
    """

    def __init__(self, dtype: Dtype) -> None:
        if not is_integer(as_dtype(dtype, "iinfo")):
            raise ValueError("[iinfo] dtype must be integer.")
        info = np.iinfo(dtype.numpy)
        self.min, self.max, self.dtype = int(info.min), int(info.max), dtype

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype._name})"
