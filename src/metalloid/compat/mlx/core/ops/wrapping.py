"""Functions of MLX from functions of metalloid: operands, types, and the argument `stream`."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np

import metalloid as mtl
from metalloid.compat.mlx.core import dtypes
from metalloid.compat.mlx.core.array import array, number_type, operand, wrap
from metalloid.compat.mlx.core.devices import (
    Device,
    DeviceType,
    Stream,
    ThreadLocalStream,
    check_stream,
)
from metalloid.compat.mlx.core.dtypes import Dtype, dtype_of
from metalloid.compat.mlx.core.tape import OPERATIONS, current

Function = Callable[..., Any]
_STREAMS = frozenset((Device, DeviceType, Stream, ThreadLocalStream))
F = TypeVar("F", bound=Function)
#: The function that returns the next key of the default sequence of random numbers.
next_key: list[Function] = []


def with_stream(function: F) -> F:
    """Add the argument `stream`, which all operations of MLX have."""
    name = function.__name__.rstrip("_")
    operation = f"{function.__module__.rpartition('.')[2]}:{name}"
    signature = inspect.signature(function)
    takes_key = "key" in signature.parameters and name != "split"

    @functools.wraps(function)
    def wrapped(*args: Any, stream: Any = None, **named: Any) -> Any:
        if args and type(args[-1]) in _STREAMS:
            *args, stream = args  # type: ignore[assignment]
        if stream is not None:
            check_stream(stream, name)
        tape = current.tape
        if tape is None:
            return function(*args, **named)
        if takes_key and signature.bind(*args, **named).arguments.get("key") is None:
            named["key"] = next_key[0]()
        return tape.call(operation, function, args, named)

    OPERATIONS[operation] = wrapped
    stream = inspect.Parameter("stream", inspect.Parameter.KEYWORD_ONLY, default=None)
    parameters = list(signature.parameters.values())
    end = len(parameters) - (bool(parameters) and parameters[-1].kind is stream.VAR_KEYWORD)
    parameters.insert(end, stream)
    wrapped.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return cast(F, wrapped)


def pair(a: Any, b: Any) -> tuple[Any, Any, Dtype]:
    """Two operands in their common type, which follows.

    A number whose type is that of the array stays a number of Python.
    """
    if type(a) is array:
        if type(b) is array:
            return _arrays(a._a, b._a)
        if isinstance(b, bool | int | float | complex):
            own = dtype_of(a._a.dtype)
            dtype = _number(b, own)
            return (a._a if dtype is own else a._a.astype(dtype.numpy)), _valued(b, dtype), dtype
        return _arrays(a._a, operand(b, a.dtype))
    if type(b) is array:
        if isinstance(a, bool | int | float | complex):
            own = dtype_of(b._a.dtype)
            dtype = _number(a, own)
            return _valued(a, dtype), (b._a if dtype is own else b._a.astype(dtype.numpy)), dtype
        return _arrays(operand(a, b.dtype), b._a)
    return _arrays(operand(a), operand(b))


def _number(value: Any, dtype: Dtype) -> Dtype:
    """The type of an operation on an array and a number."""
    return dtypes.promoted(number_type(value, dtype), dtype)


def _valued(value: Any, dtype: Dtype) -> Any:
    """The number as one of the kind of a type."""
    kind = dtypes.KINDS[dtype]
    if kind == "f":
        return float(value)
    return int(value) if kind in "iu" else value


def _arrays(a: mtl.Array, b: mtl.Array) -> tuple[mtl.Array, mtl.Array, Dtype]:
    if a.dtype is b.dtype or a.dtype == b.dtype:
        return a, b, dtype_of(a.dtype)
    dtype = dtypes.promoted(dtype_of(a.dtype), dtype_of(b.dtype))
    return a.astype(dtype.numpy), b.astype(dtype.numpy), dtype


def pair_of_arrays(a: Any, b: Any) -> tuple[mtl.Array, mtl.Array, Dtype]:
    """The same, of arrays only."""
    return _arrays(operand(a), operand(b))


def alike(values: Sequence[Any]) -> list[mtl.Array]:
    """Operands in their common type."""
    items = [operand(value) for value in values]
    if not items:
        return items
    dtype = functools.reduce(dtypes.promoted, (dtype_of(item.dtype) for item in items)).numpy
    return [item.astype(dtype) for item in items]


def as_float(a: mtl.Array) -> mtl.Array:
    """The array, or float32 of integers and truth values."""
    return a if a.dtype.kind in "fcV" else a.astype(mtl.float32)


def normalized_axis(axis: Any, ndim: int, where: str) -> int:
    """An axis as a number that is not negative.

    Raises
    ------
    IndexError, ValueError
        If there is no such axis: both in one, as versions of MLX differ.
    TypeError
        If it is no integer.
    """
    try:
        number = operator.index(axis)
    except TypeError:
        raise TypeError(
            f"{where}(): incompatible function arguments: the axis {axis!r} is no integer."
        ) from None
    if not -ndim <= number < ndim:
        raise np.exceptions.AxisError(
            f"[{where}] Axis {axis} is out of bounds for array with {ndim} dimensions."
        )
    return number % ndim


def normalized_axes(axis: Any, ndim: int, where: str) -> tuple[int, ...]:
    """Axes as numbers that are not negative; None stands for all."""
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, list | tuple) else (axis,)
    axes = tuple(normalized_axis(k, ndim, where) for k in given)
    if len(set(axes)) < len(axes):
        raise ValueError(f"[{where}] Received duplicate axes {tuple(given)}.")
    return axes


def arrays_only(function: F) -> F:
    """Let a function refuse a first argument that is no array, as MLX does.

    Raises
    ------
    TypeError
        From the function, if it is none.
    """
    name = function.__name__.rstrip("_")

    @functools.wraps(function)
    def checked(a: Any, /, *args: Any, **named: Any) -> Any:
        if not isinstance(a, array):
            if not (isinstance(a, np.ndarray) or hasattr(a, "__mlx_array__")):
                raise TypeError(
                    f"{name}(): incompatible function arguments: expected mlx.core.array, got "
                    f"{type(a).__name__}."
                )
            a = array(a)
        return function(a, *args, **named)

    return cast(F, checked)


def function_from(name: str, doc: str, compute: Function, module: str = "") -> Function:
    """A named and documented function."""
    compute.__name__ = compute.__qualname__ = name
    compute.__doc__ = doc
    compute.__module__ = "metalloid.compat.mlx.core" + module
    return with_stream(compute)


def check_extents(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape.

    Raises
    ------
    OverflowError
        If an extent has more than 31 bits.
    """
    for n in shape:
        if not -(2**31) <= n < 2**31:
            raise OverflowError(
                f"Shape dimension {n} is outside the supported range [-2147483648, 2147483647]. "
                "MLX currently uses 32-bit integers for shape dimensions."
            )
    return shape


def wrapped_all(values: Sequence[mtl.Array]) -> list[array]:
    """Arrays of MLX."""
    return [wrap(value) for value in values]
