"""Shapes: views, joins, repetitions, padding."""

from __future__ import annotations

import builtins
import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import metalloid as mtl
from metalloid.compat.mlx.core.array import array, operand, wrap
from metalloid.compat.mlx.core.dtypes import Dtype, as_dtype
from metalloid.compat.mlx.core.ops.wrapping import (
    arrays_only,
    check_extents,
    normalized_axes,
    normalized_axis,
    with_stream,
)

__all__ = [
    "ArrayIterator", "astype", "broadcast_arrays", "broadcast_shapes", "broadcast_to",
    "contiguous", "expand_dims", "flatten", "flip", "matrix_transpose", "moveaxis",
    "permute_dims", "reshape", "squeeze", "swapaxes", "transpose", "unflatten", "unstack",
]  # fmt: skip

Axes = int | Sequence[int] | None


def text(shape: Sequence[int]) -> str:
    """A shape as MLX prints it."""
    return f"({','.join(map(str, shape))})"


def _shape(value: Any, where: str) -> tuple[int, ...]:
    try:
        shape = tuple(operator.index(n) for n in ([value] if isinstance(value, int) else value))
    except TypeError:
        raise TypeError(
            f"{where}(): incompatible function arguments: {value!r} is no shape."
        ) from None
    return check_extents(shape)


@with_stream
@arrays_only
def reshape(a: array, /, shape: Sequence[int]) -> array:
    """The same elements in another shape; one extent may be -1."""
    x, extents = a._a, list(_shape(shape, "reshape"))
    unknown = [k for k, n in enumerate(extents) if n == -1]
    if len(unknown) > 1:
        raise ValueError("[reshape] Reshape can only infer one dimension.")
    size = math.prod(n for n in extents if n != -1)
    if unknown:
        if size == 0:
            raise ValueError("[reshape] Cannot infer the shape of an empty array.")
        extents[unknown[0]] = x.size // size
        size *= extents[unknown[0]]
    if size != x.size:
        raise ValueError(
            f"[reshape] Cannot reshape array of size {x.size} into shape {text(extents)}."
        )
    return wrap(x.reshape(tuple(extents)))


@with_stream
@arrays_only
def flatten(a: array, /, start_axis: int = 0, end_axis: int = -1) -> array:
    """Collapse axes to one."""
    x = a._a
    if not x.ndim:
        return wrap(x.reshape(1))
    first = builtins.max(0, start_axis + x.ndim if start_axis < 0 else start_axis)
    last = builtins.min(x.ndim - 1, end_axis + x.ndim if end_axis < 0 else end_axis)
    if last < first:
        raise ValueError("[flatten] start_axis must be less than or equal to end_axis")
    if first >= x.ndim:
        raise ValueError(f"[flatten] Invalid start_axis {start_axis} for {x.ndim} dimensions.")
    if last < 0:
        raise ValueError(f"[flatten] Invalid end_axis {end_axis} for {x.ndim} dimensions.")
    shape = x.shape
    return wrap(x.reshape((*shape[:first], math.prod(shape[first : last + 1]),
                           *shape[last + 1 :])))  # fmt: skip


@with_stream
@arrays_only
def unflatten(a: array, /, axis: int, shape: Sequence[int]) -> array:
    """Split an axis into several."""
    x = a._a
    if not len(shape):
        raise ValueError("[unflatten] Shape to unflatten to cannot be empty.")
    k = normalized_axis(axis, x.ndim, "unflatten")
    extents = list(shape)
    if -1 in extents:
        known = math.prod(n for n in extents if n != -1)
        extents[extents.index(-1)] = x.shape[k] // known if known else 0
    if math.prod(extents) != x.shape[k]:
        raise ValueError(
            f"[unflatten] Cannot unflatten axis {axis} with size {x.shape[k]} into shape "
            f"{text(shape)}."
        )
    return wrap(x.reshape((*x.shape[:k], *extents, *x.shape[k + 1 :])))


@with_stream
@arrays_only
def squeeze(a: array, /, axis: Axes = None) -> array:
    """Remove axes of extent 1; by default, all of them."""
    x = a._a
    if axis is None:
        return wrap(x.squeeze())
    axes = normalized_axes(axis, x.ndim, "squeeze")
    for k in axes:
        if x.shape[k] != 1:
            raise ValueError(
                f"[squeeze] Cannot squeeze axis {k} with size {x.shape[k]} which is not equal to 1."
            )
    return wrap(x.squeeze(axes)) if axes else wrap(x)


@with_stream
@arrays_only
def expand_dims(a: array, /, axis: int | Sequence[int]) -> array:
    """Insert axes of extent 1."""
    given = axis if isinstance(axis, list | tuple) else (axis,)
    normalized_axes(axis, a.ndim + len(given), "expand_dims")
    return wrap(mtl.expand_dims(a._a, tuple(given)))


@with_stream
@arrays_only
def flip(a: array, /, axis: Axes = None) -> array:
    """Reverse the order of elements along axes."""
    axes = normalized_axes(axis, a.ndim, "flip")
    return wrap(mtl.flip(a._a, axis=axes) if axes else a._a)


@with_stream
@arrays_only
def unstack(x: array, /, *, axis: int = 0) -> tuple[array, ...]:
    """The slices along an axis."""
    k = normalized_axis(axis, x.ndim, "unstack")
    return tuple(map(wrap, mtl.unstack(x._a, axis=k)))


@with_stream
@arrays_only
def moveaxis(a: array, /, source: int, destination: int) -> array:
    """Move an axis to another position."""
    first = normalized_axis(source, a.ndim, "moveaxis")
    last = normalized_axis(destination, a.ndim, "moveaxis")
    order = [k for k in range(a.ndim) if k != first]
    order.insert(last, first)
    return wrap(a._a.transpose(*order) if order else a._a)


@with_stream
@arrays_only
def swapaxes(a: array, /, axis1: int, axis2: int) -> array:
    """Exchange two axes."""
    order = list(range(a.ndim))
    first = normalized_axis(axis1, a.ndim, "swapaxes")
    second = normalized_axis(axis2, a.ndim, "swapaxes")
    order[first], order[second] = second, first
    return wrap(a._a.transpose(*order))


@with_stream
@arrays_only
def transpose(a: array, /, axes: Sequence[int] | None = None) -> array:
    """Permute the axes; by default, reverse them."""
    if axes is None:
        return wrap(a._a.T)
    if len(axes) != a.ndim:
        raise ValueError(
            f"[transpose] Recived {len(axes)} axes for array with {a.ndim} dimensions."
        )
    order = tuple(normalized_axis(k, a.ndim, "transpose") for k in axes)
    if len(set(order)) < len(order):
        raise ValueError("[transpose] Repeat axes not allowed.")
    return wrap(mtl.permute_dims(a._a, order))


permute_dims = transpose


@with_stream
@arrays_only
def matrix_transpose(a: array, /) -> array:
    """Transpose every matrix, over the last two axes."""
    return swapaxes(a, -1, -2)


@with_stream
def broadcast_to(a: Any, /, shape: Sequence[int]) -> array:
    """Repeat an array along axes to a shape."""
    x, target = operand(a), _shape(shape, "broadcast_to")
    if broadcast_shapes(x.shape, target) != target:
        raise ValueError(
            f"[broadcast_shapes] Shapes {text(x.shape)} and {text(target)} cannot be broadcast."
        )
    return wrap(mtl.broadcast_to(x, target))


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that shapes broadcast to."""
    if not shapes:
        raise ValueError("[broadcast_shapes] Must provide at least one shape.")
    return functools.reduce(_broadcast_shape, (_shape(s, "broadcast_shapes") for s in shapes))


def _broadcast_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    count = builtins.max(len(a), len(b))
    extents = []
    for n, m in zip((1,) * (count - len(a)) + a, (1,) * (count - len(b)) + b, strict=True):
        if n != m and 1 not in (n, m):
            raise ValueError(
                f"[broadcast_shapes] Shapes {text(a)} and {text(b)} cannot be broadcast."
            )
        extents.append(m if n == 1 else n)
    return tuple(extents)


@with_stream
def broadcast_arrays(*arrays: Any) -> tuple[array, ...]:
    """Arrays in their common shape."""
    items = [operand(a) for a in arrays]
    if not items:
        return ()
    shape = broadcast_shapes(*(x.shape for x in items))
    return tuple(wrap(mtl.broadcast_to(x, shape)) for x in items)


@with_stream
def contiguous(a: Any, /, allow_col_major: bool = False) -> array:
    """The same values, contiguous in memory when they are read."""
    return wrap(operand(a))


@with_stream
def astype(a: Any, dtype: Dtype, /) -> array:
    """Convert to another type."""
    return wrap(converted(operand(a), as_dtype(dtype, "astype")))


def converted(x: mtl.Array, dtype: Dtype) -> mtl.Array:
    """An array in another type; of complex numbers, their real parts."""
    target = dtype.numpy
    if x.dtype.kind == "c" and target.kind not in "cb":
        x = x.real
    return x.astype(target)


class ArrayIterator:
    """Iterator over the first axis of an array."""

    def __init__(self, values: array) -> None:
        if not values.ndim:
            raise TypeError("iteration over a 0-d array")
        self._items = iter(unstack(values))

    def __iter__(self) -> ArrayIterator:
        return self

    def __next__(self) -> array:
        return next(self._items)
