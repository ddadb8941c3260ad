"""MLX's array: a reference to an array of metalloid, which in-place operators replace."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

import metalloid as mtl
from metalloid.compat.mlx.core import dtypes
from metalloid.compat.mlx.core.dtypes import Dtype, dtype_of
from metalloid.compat.mlx.core.printing import text_of

__all__ = [
    "ArrayLike", "array",
]  # fmt: skip

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_INT32 = range(-(2**31), 2**31)
_bare = object.__new__


class array:
    """An array of MLX.

    Parameters
    ----------
    val : object
        A number, a nested list or tuple of numbers or arrays, an array of MLX or NumPy, or an
        object with DLPack or the buffer protocol.
    dtype : Dtype, optional
        By default that of `val`, and float32 for float64 of NumPy, int32 for int.

    Examples
    --------
    >>> from metalloid.compat.mlx import core as mx
    >>> x = mx.array([1, 2, 3])
    >>> y = x
    >>> x += 1  # y is the same array
    >>> y
    array([2, 3, 4], dtype=int32)
    """

    __slots__ = ("__weakref__", "_a")
    _a: mtl.Array

    def __init__(self, val: Any, dtype: Dtype | None = None) -> None:
        self._a = created(val, dtype)

    # -- properties

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._a.size

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._a.ndim

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self._a.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._a.nbytes

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent of each axis."""
        return self._a.shape

    @property
    def dtype(self) -> Dtype:
        """Type of the elements."""
        return dtype_of(self._a.dtype)

    # -- values

    def item(self) -> Any:
        """The value of an array of one element."""
        if self._a.size != 1:
            raise ValueError("[convert] Only length-1 arrays can be converted to Python scalars.")
        return _plain(self._a).reshape(()).item()

    def tolist(self) -> Any:
        """Nested lists of the values."""
        return _plain(self._a).tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            if self.dtype is dtypes.bfloat16:
                raise TypeError("bfloat16 arrays cannot be converted to NumPy.")
            return np.asarray(_Exported(self), dtype)
        return np.array(_plain(self._a), dtype=dtype, copy=True)

    def __dlpack__(self, **options: Any) -> Any:
        for name in ("stream", "max_version", "dl_device", "copy"):
            if options.get(name) is None:
                options.pop(name, None)
        return self._a.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self._a.__dlpack_device__()
        return int(kind), number

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
            raise ValueError(f"[array] there is no version {api_version!r} of the array API.")
        return sys.modules["metalloid.compat.mlx.core"]

    def __len__(self) -> int:
        if not self._a.ndim:
            raise TypeError("len() 0-dimensional array.")
        return self._a.shape[0]

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if not dtypes.is_integer(self.dtype):
            raise TypeError("[convert] Only integer arrays can be used as an index.")
        return int(self.item())

    def __bytes__(self) -> bytes:
        return np.asarray(self._a).tobytes()

    def __hash__(self) -> int:
        return id(self) >> 4

    def __repr__(self) -> str:
        return text_of(np.asarray(self._a))

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        if self._a.size != 1:
            raise TypeError("unsupported format string passed to mlx.core.array.__format__")
        return format(self.item(), spec)

    # -- copies

    def __copy__(self) -> array:
        return wrap(self._a)

    def __deepcopy__(self, memo: Any) -> array:
        return wrap(self._a)

    def __getstate__(self) -> tuple[Any, Any]:
        return np.array(_bits(self._a)), self.dtype

    def __setstate__(self, state: tuple[Any, Any]) -> None:
        values, dtype = state
        self._a = mtl.asarray(np.asarray(values).view(dtype.numpy))

    def __reduce__(self) -> Any:
        return _restored, self.__getstate__()


def _restored(values: Any, dtype: Dtype) -> array:
    restored = _bare(array)
    restored.__setstate__((values, dtype))
    return restored


def _plain(a: mtl.Array) -> np.ndarray:
    """The values in a type that NumPy has."""
    values = np.asarray(a)
    return values.astype(np.float32) if values.dtype == _BFLOAT16 else values


def _bits(a: mtl.Array) -> np.ndarray:
    values = np.asarray(a)
    return values.view(np.uint16) if values.dtype == _BFLOAT16 else values


class _Exported:
    """The memory of an array, for NumPy, which refers to the array by it."""

    def __init__(self, values: array) -> None:
        self._owner, self._view = values, np.asarray(values._a)
        self.__array_interface__ = self._view.__array_interface__


class ArrayLike:
    """A value that converts to an array by a method ``__mlx_array__``."""

    def __init__(self, value: Any) -> None:
        if not hasattr(value, "__mlx_array__"):
            raise TypeError(f"ArrayLike(): {type(value).__name__} has no __mlx_array__.")
        self._value = value

    def __mlx_array__(self) -> array:
        converted: array = self._value.__mlx_array__()
        return converted


def wrap(a: mtl.Array) -> array:
    """An array on one of metalloid."""
    wrapped = _bare(array)
    wrapped._a = a
    return wrapped


def created(val: Any, dtype: Dtype | None = None) -> mtl.Array:
    """Create the array that `array` holds.

    Raises
    ------
    ValueError
        If the value is not numeric, or lists have different lengths.
    """
    if dtype is not None:
        dtype = dtypes.as_dtype(dtype, "array")
    if isinstance(val, array):
        return val._a if dtype is None else val._a.astype(dtype.numpy)
    if isinstance(val, mtl.Array):
        return val if dtype is None else val.astype(dtype.numpy)
    if isinstance(val, bool | int | float | complex):
        return _number(val, (dtype or _type_of(val)).numpy)
    if isinstance(val, list | tuple):
        return _from_list(val, dtype)
    if hasattr(val, "__mlx_array__"):
        return created(val.__mlx_array__(), dtype)
    return _imported(val, dtype)


def _number(value: Any, dtype: Any) -> mtl.Array:
    """An array of one number; integers wrap around."""
    if dtype.kind in "iu":
        value = int(value) & (1 << 8 * dtype.itemsize) - 1
        if dtype.kind == "i" and value >> 8 * dtype.itemsize - 1:
            value -= 1 << 8 * dtype.itemsize
    return mtl.full((), value, dtype)


def _type_of(value: Any) -> Dtype:
    if isinstance(value, bool):
        return dtypes.bool_
    if isinstance(value, int):
        return dtypes.int32 if value in _INT32 else dtypes.int64
    return dtypes.float32 if isinstance(value, float) else dtypes.complex64


def _imported(val: Any, dtype: Dtype | None) -> mtl.Array:
    """The copy of an array of another library."""
    try:
        if isinstance(val, np.ndarray | np.generic):
            values = np.asarray(val)
        elif hasattr(val, "__dlpack__"):
            imported: Any = mtl.from_dlpack(val)
            values = np.asarray(imported)
        else:
            values = np.asarray(memoryview(val))
    except (TypeError, BufferError):
        raise ValueError(
            f"Invalid type {type(val).__name__} received in array initialization."
        ) from None
    if dtype is None:
        narrowed = {"float64": dtypes.float32, "complex128": dtypes.complex64}
        dtype = narrowed.get(values.dtype.name)
    if values.dtype.kind not in "biufc" and values.dtype != _BFLOAT16:
        raise ValueError(f"[convert] Cannot convert array of {values.dtype} to mlx.")
    for extent in values.shape:
        if extent >= 2**31:
            raise OverflowError(
                f"Shape dimension {extent} is outside the supported range [-2147483648, "
                "2147483647]. MLX currently uses 32-bit integers for shape dimensions."
            )
    if dtype is not None and values.dtype != dtype.numpy:
        with np.errstate(over="ignore", invalid="ignore"):
            values = values.astype(dtype.numpy)
    return mtl.asarray(values)


def _from_list(values: Any, dtype: Dtype | None) -> mtl.Array:
    shape: list[int] = []
    first = values
    while isinstance(first, list | tuple):
        shape.append(len(first))
        first = first[0] if first else None
    if isinstance(first, array):
        shape += first.shape
    has_arrays, kind = _check_list(values, shape, 0)
    if has_arrays:
        return mtl.stack(_alike([created(item, dtype) for item in values]))
    if dtype is None:
        dtype = (dtypes.bool_, dtypes.int32, dtypes.int64, dtypes.float32,
                 dtypes.complex64)[kind]  # fmt: skip
    given = (np.bool_, np.int64, np.int64, np.float64, np.complex128)[kind]
    try:
        flat = np.array(values, np.float64 if dtypes.is_float(dtype) and kind < 4 else given)
    except OverflowError:
        flat = np.array(values, np.uint64)
    with np.errstate(over="ignore", invalid="ignore"):
        if kind == 3 and dtypes.is_integer(dtype):
            flat = np.trunc(flat).astype(np.int64)
        return mtl.asarray(flat.reshape(shape).astype(dtype.numpy))


def _alike(items: list[mtl.Array]) -> list[mtl.Array]:
    dtype = dtypes.result_type(*(dtype_of(item.dtype) for item in items)).numpy
    return [item.astype(dtype) for item in items]


def _check_list(values: Any, shape: list[int], axis: int) -> tuple[bool, int]:
    """Whether a list contains arrays, and the kind of its numbers, as an index."""
    if axis >= len(shape):
        raise ValueError("Initialization encountered extra dimension.")
    if len(values) != shape[axis]:
        raise ValueError("Initialization encountered non-uniform length.")
    if not values:
        return False, 3
    has_arrays, largest = False, 0
    for item in values:
        kind = 0
        if isinstance(item, list | tuple):
            inner, kind = _check_list(item, shape, axis + 1)
            has_arrays |= inner
        elif isinstance(item, array):
            if list(item.shape) != shape[axis + 1 :]:
                raise ValueError("Initialization encountered non-uniform length.")
            has_arrays = True
        else:
            if isinstance(item, bool | np.bool_):
                kind = 0
            elif isinstance(item, int | np.integer):
                kind = 1 if item in _INT32 else 2
            elif isinstance(item, float | np.floating):
                kind = 3
            elif isinstance(item, complex | np.complexfloating):
                kind = 4
            else:
                raise ValueError(
                    f"Invalid type {type(item).__name__} received in array initialization."
                )
            if axis + 1 != len(shape):
                raise ValueError("Initialization encountered non-uniform length.")
        largest = max(largest, kind)
    return has_arrays, largest


# -- operands of operations


def operand(value: Any, dtype: Dtype | None = None) -> mtl.Array:
    """The array for an operand; a number has the type `dtype` if its kind allows that.

    Raises
    ------
    ValueError
        If it is no array or number, or the type cannot hold the number.
    """
    if type(value) is array:
        return value._a
    if isinstance(value, bool | int | float | complex):
        if dtype is None:
            return created(value)
        return mtl.full((), value, number_type(value, dtype).numpy)
    if isinstance(value, array):
        return value._a
    if isinstance(value, np.ndarray | np.generic) or hasattr(value, "__dlpack__"):
        return _imported(value, None if isinstance(value, np.ndarray) and value.ndim else dtype)
    if hasattr(value, "__mlx_array__"):
        return created(value)
    if isinstance(value, mtl.Array):
        return value
    raise ValueError(f"Invalid type {type(value).__name__} received in array initialization.")


def number_type(value: Any, dtype: Dtype) -> Dtype:
    """The type of a Python number that meets an array of a type.

    Raises
    ------
    ValueError
        If that is an integer type which cannot hold the number.
    """
    if isinstance(value, bool):
        return dtype
    kind = dtypes.KINDS[dtype]
    if isinstance(value, int):
        if kind in "iu" and dtype.size < 8:
            limits = np.iinfo(dtype.numpy)
            if not limits.min <= value <= limits.max:
                raise ValueError(f"Converting {value} to {dtype._name} would result in overflow.")
        return dtypes.int32 if kind == "b" else dtype
    if isinstance(value, float):
        return dtype if kind == "f" else dtypes.float32
    return dtypes.complex64


def is_operand(value: Any) -> bool:
    """Whether operators of arrays accept a value."""
    if isinstance(value, array | bool | int | float | complex | np.ndarray):
        return True
    if isinstance(value, list | tuple | str | bytes | dict | set):
        return False
    return (
        hasattr(value, "__mlx_array__")
        or hasattr(value, "__dlpack__")
        or isinstance(value, np.generic)
    )


def unwrapped_leaves(tree: Any) -> Iterator[mtl.Array]:
    """The arrays of a tree of lists, tuples and dictionaries."""
    if isinstance(tree, array):
        yield tree._a
    elif isinstance(tree, list | tuple):
        for item in tree:
            yield from unwrapped_leaves(item)
    elif isinstance(tree, dict):
        for item in tree.values():
            yield from unwrapped_leaves(item)
