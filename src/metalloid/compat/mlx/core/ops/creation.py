"""Creation of arrays."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import metalloid as mtl
from metalloid.compat.mlx.core import dtypes
from metalloid.compat.mlx.core.array import array, created, operand, wrap
from metalloid.compat.mlx.core.dtypes import Dtype, as_dtype, dtype_of
from metalloid.compat.mlx.core.ops.wrapping import check_extents, normalized_axis, with_stream

__all__ = [
    "arange", "asarray", "bartlett", "blackman", "diag", "diagonal", "empty", "empty_like", "eye",
    "from_dlpack", "full", "full_like", "hamming", "hanning", "identity", "linspace", "ones",
    "ones_like", "trace", "tri", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip

Shape = int | Sequence[int]


def _shape(value: Shape, where: str) -> tuple[int, ...]:
    try:
        shape = (value,) if isinstance(value, int) else tuple(int(n.__index__()) for n in value)
    except (AttributeError, TypeError):
        raise TypeError(
            f"{where}(): incompatible function arguments: {value!r} is no shape."
        ) from None
    check_extents(shape)
    if any(n < 0 for n in shape):
        raise ValueError("[full] Negative dimensions not allowed.")
    return shape


@with_stream
def full(shape: Shape, vals: Any, dtype: Dtype | None = None) -> array:
    """An array of one value, or of values that broadcast to its shape."""
    value = created(vals, dtype)
    return wrap(mtl.broadcast_to(value, _shape(shape, "full")))


@with_stream
def zeros(shape: Shape, dtype: Dtype | None = dtypes.float32) -> array:
    """An array of zeros."""
    return wrap(mtl.zeros(_shape(shape, "zeros"), as_dtype(dtype or dtypes.float32, "zeros").numpy))


@with_stream
def ones(shape: Shape, dtype: Dtype | None = dtypes.float32) -> array:
    """An array of ones."""
    return wrap(mtl.ones(_shape(shape, "ones"), as_dtype(dtype or dtypes.float32, "ones").numpy))


@with_stream
def empty(shape: Shape, dtype: Dtype | None = dtypes.float32) -> array:
    """An array of a shape; here its elements are zeros."""
    return zeros(shape, dtype)


def _like(a: Any, dtype: Dtype | None) -> tuple[tuple[int, ...], Dtype]:
    x = operand(a)
    return x.shape, dtype or dtype_of(x.dtype)


@with_stream
def full_like(a: Any, vals: Any, dtype: Dtype | None = None) -> array:
    """An array of one value, of the shape and type of another."""
    shape, own = _like(a, dtype)
    return full(shape, vals, own)


@with_stream
def zeros_like(a: Any, /, dtype: Dtype | None = None) -> array:
    """Zeros in the shape and type of an array."""
    return zeros(*_like(a, dtype))


@with_stream
def ones_like(a: Any, /, dtype: Dtype | None = None) -> array:
    """Ones in the shape and type of an array."""
    return ones(*_like(a, dtype))


@with_stream
def empty_like(a: Any, /, dtype: Dtype | None = None) -> array:
    """An array in the shape and type of another; here its elements are zeros."""
    return zeros(*_like(a, dtype))


def asarray(a: Any, dtype: Dtype | None = None, *, copy: bool | None = None) -> array:
    """Convert a value to an array.

    Raises
    ------
    ValueError
        If `copy` is False and a copy is necessary.
    """
    if copy is False:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    if isinstance(a, array) and copy is not True and dtype in (None, a.dtype):
        return a
    return wrap(created(a, dtype))


def from_dlpack(x: Any, /, *, copy: bool | None = None) -> array:
    """Convert an array of another library."""
    if copy is False:
        raise ValueError("[convert] Cannot import a CPU array without a copy.")
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack(): {type(x).__name__} has no __dlpack__.")
    return wrap(created(x))


@with_stream
def arange(*args: Any, dtype: Dtype | None = None, **named: Any) -> array:
    """Evenly spaced numbers: ``arange(stop)`` or ``arange(start, stop, step=1)``."""
    values = list(args)
    if values and isinstance(values[-1], Dtype):
        dtype = values.pop()
    if "stop" in named and len(values) < 2:
        values = [named.pop("start", 0) if not values else values[0], named.pop("stop")]
    if "start" in named:
        raise TypeError("arange(): incompatible function arguments: start needs a stop.")
    step = named.pop("step", None)
    if named or not 1 <= len(values) <= 3:
        raise TypeError(f"arange(): incompatible function arguments: {args}, {named}.")
    if len(values) == 3:
        step = values.pop()
    start, stop = (0, values[0]) if len(values) == 1 else values
    start, step = 0 if start is None else start, 1 if step is None else step
    if stop is None:
        start, stop = 0, start
    numbers = [v.item() if isinstance(v, array | np.generic) else v for v in (start, stop, step)]
    if not all(isinstance(v, int | float) for v in numbers):
        raise TypeError(f"arange(): incompatible function arguments: {args}.")
    return _arange(numbers, dtype)


def _arange(numbers: list[Any], dtype: Dtype | None) -> array:
    start, stop, step = numbers
    if dtype is None:
        is_integral = all(isinstance(v, int) for v in (start, stop, step))
        is_wide = is_integral and any(
            not -(2**31) <= v < 2**31 for v in (start, stop - (step > 0), step)
        )
        dtype = dtypes.int64 if is_wide else dtypes.int32 if is_integral else dtypes.float32
    if as_dtype(dtype, "arange") is dtypes.bool_:
        raise ValueError("[arange] bool is not supported.")
    if any(math.isnan(v) for v in (start, stop, step)):
        raise ValueError("[arange] Cannot compute length.")
    if any(math.isinf(v) for v in (start, stop)):
        raise ValueError("[arange] Cannot compute length.")
    if step == 0:
        raise ValueError("[arange] step must be nonzero.")
    count = (
        builtins.max(math.ceil((stop - start) / step), 0)
        if not math.isinf(step)
        else int((step > 0 and start < stop) or (step < 0 and start > stop))
    )
    if count > 2**31 - 1:
        raise ValueError("[arange] Maximum size exceeded.")
    if dtypes.is_integer(dtype):
        start, step = int(start), 0 if math.isinf(step) else int(step)
    elif math.isinf(step):
        step = 0
    indices = mtl.arange(count, dtype=mtl.int64)
    if dtypes.is_integer(dtype):
        return wrap((indices * step + start).astype(dtype.numpy))
    exact = mtl.float32 if dtype.size < 8 or dtype is dtypes.complex64 else dtype.numpy
    values = indices.astype(exact) * float(step) + float(start)
    return wrap(values.astype(dtype.numpy))


@with_stream
def linspace(start: Any, stop: Any, num: int | None = 50, endpoint: bool = True,
             dtype: Dtype | None = dtypes.float32) -> array:  # fmt: skip
    """Evenly spaced numbers over an interval."""
    count = 50 if num is None else num
    if count < 0:
        raise ValueError(f"[linspace] number of samples, {count}, must be non-negative.")
    first, last = (float(v.item() if isinstance(v, array) else v) for v in (start, stop))
    own = dtype or dtypes.float32
    if count == 1:
        return wrap(mtl.full((1,), first, mtl.float32).astype(own.numpy))
    exact = mtl.float64 if own is dtypes.float64 else mtl.float32
    t = mtl.arange(count, dtype=exact) / builtins.max(count - bool(endpoint), 1)
    return wrap(((1 - t) * first + t * last).astype(own.numpy))


@with_stream
def eye(n: int, m: int | None = None, k: int = 0, dtype: Dtype | None = dtypes.float32) -> array:
    """A matrix with ones on a diagonal."""
    columns = n if m is None else m
    if n < 0 or columns < 0:
        raise ValueError("[eye] N and M must be positive integers.")
    return wrap(mtl.eye(n, columns, k=k, dtype=(dtype or dtypes.float32).numpy))


@with_stream
def identity(n: int, dtype: Dtype | None = dtypes.float32) -> array:
    """An identity matrix."""
    return eye(n, n, 0, dtype)


@with_stream
def tri(n: int, m: int | None = None, k: int = 0, dtype: Dtype | None = None) -> array:
    """A matrix with ones on and below a diagonal."""
    columns = n if m is None else m
    ones_ = mtl.ones((n, columns), (dtype or dtypes.float32).numpy)
    return wrap(mtl.tril(ones_, k=k))


@with_stream
def tril(x: Any, k: int = 0) -> array:
    """Zeros above a diagonal."""
    if operand(x).ndim < 2:
        raise ValueError("[tril] array must be at least 2-D")
    return wrap(mtl.tril(operand(x), k=k))


@with_stream
def triu(x: Any, k: int = 0) -> array:
    """Zeros below a diagonal."""
    if operand(x).ndim < 2:
        raise ValueError("[triu] array must be at least 2-D")
    return wrap(mtl.triu(operand(x), k=k))


@with_stream
def diag(a: Any, /, k: int = 0) -> array:
    """The diagonal of a matrix, or a matrix with a diagonal."""
    x = operand(a)
    if x.ndim == 2:
        return diagonal(wrap(x), k)
    if x.ndim != 1:
        raise ValueError(f"[diag] array must be 1-D or 2-D, got array with {x.ndim} dimensions.")
    size = x.shape[0] + builtins.abs(k)
    rows = mtl.arange(x.shape[0], dtype=mtl.int32)
    index = rows + builtins.max(-k, 0), rows + builtins.max(k, 0)
    return wrap(mtl.zeros((size, size), x.dtype).at[index].set(x))


@with_stream
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> array:
    """The diagonals of two axes, as the last axis."""
    x = operand(a)
    if x.ndim < 2:
        raise ValueError(f"[diagonal] Array must have at least two dimensions, got {x.ndim}.")
    first, second = (normalized_axis(k, x.ndim, "diagonal") for k in (axis1, axis2))
    if first == second:
        raise ValueError("[diagonal] axis1 and axis2 cannot be the same axis")
    others = [k for k in range(x.ndim) if k not in (first, second)]
    return wrap(mtl.linalg.diagonal(mtl.permute_dims(x, (*others, first, second)), offset=offset))


@with_stream
def trace(a: Any, /, offset: int = 0, axis1: int = 0, axis2: int = 1,
          dtype: Dtype | None = None) -> array:  # fmt: skip
    """Sum of a diagonal."""
    values = diagonal(a, offset, axis1, axis2)._a
    own = dtype or dtype_of(values.dtype)
    if own is dtypes.bool_:
        own = dtypes.int32
    return wrap(mtl.sum(values.astype(own.numpy), axis=-1, dtype=own.numpy))


# -- windows


def _window(name: str, doc: str, coefficients: tuple[float, ...]) -> Callable[..., array]:
    def window(M: int) -> array:
        if M < 1:
            return wrap(mtl.zeros(0, mtl.float32))
        if M == 1:
            return wrap(mtl.ones(1, mtl.float32))
        angles = 2 * np.pi * np.arange(M) / (M - 1)
        values = builtins.sum(
            (c * np.cos(k * angles) for k, c in enumerate(coefficients)), np.zeros(M)
        )
        return wrap(mtl.asarray(values.astype(np.float32)))

    window.__name__ = window.__qualname__ = name
    window.__doc__ = doc
    return with_stream(window)


hanning = _window("hanning", "The Hann window.", (0.5, -0.5))
hamming = _window("hamming", "The Hamming window.", (0.54, -0.46))
blackman = _window("blackman", "The Blackman window.", (0.42, -0.5, 0.08))


@with_stream
def bartlett(M: int) -> array:
    """The Bartlett window."""
    return wrap(mtl.asarray(np.bartlett(M).astype(np.float32)))
