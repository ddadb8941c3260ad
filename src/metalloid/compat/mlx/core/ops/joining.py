"""Joins, splits, repetitions and padding."""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Sequence
from typing import Any

import metalloid as mtl
from metalloid.compat.mlx.core.array import array, operand, wrap
from metalloid.compat.mlx.core.dtypes import dtype_of
from metalloid.compat.mlx.core.ops.shapes import broadcast_arrays, text
from metalloid.compat.mlx.core.ops.wrapping import (
    alike,
    arrays_only,
    check_extents,
    normalized_axis,
    with_stream,
    wrapped_all,
)

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "concat", "concatenate", "meshgrid", "pad",
    "repeat", "roll", "split", "stack", "tile",
]  # fmt: skip

Axes = int | Sequence[int] | None


@with_stream
def concatenate(arrays: Sequence[Any], axis: int | None = 0) -> array:
    """Join arrays along an axis."""
    items = alike(arrays)
    if not items:
        raise ValueError("[concatenate] No arrays provided for concatenation")
    if axis is None:
        return wrap(mtl.concat([x.reshape(-1) for x in items], axis=0))
    k = normalized_axis(axis, items[0].ndim, "concatenate")
    first = items[0].shape
    for x in items:
        if x.ndim != len(first) or x.shape[:k] + x.shape[k + 1 :] != first[:k] + first[k + 1 :]:
            shapes = ", ".join(text(item.shape) for item in items)
            raise ValueError(
                "[concatenate] All the input array dimensions must match exactly except for the "
                f"concatenation axis. However, the provided shapes are {shapes}, and the "
                f"concatenation axis is {axis}."
            )
    check_extents((sum(x.shape[k] for x in items),))
    return wrap(mtl.concat(items, axis=k))


concat = concatenate


@with_stream
def stack(arrays: Sequence[Any], axis: int | None = 0) -> array:
    """Join arrays along a new axis."""
    items = alike(arrays)
    if not items:
        raise ValueError("[stack] No arrays provided for stacking")
    if any(x.shape != items[0].shape for x in items):
        raise ValueError("[stack] All arrays must have the same shape")
    if axis is None:
        return wrap(mtl.stack([x.reshape(-1) for x in items]))
    return wrap(mtl.stack(items, axis=normalized_axis(axis, items[0].ndim + 1, "stack")))


@with_stream
@arrays_only
def split(a: array, /, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[array]:
    """Split along an axis, into equal parts or at indices."""
    k = normalized_axis(axis, a.ndim, "split")
    size = a.shape[k]
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        if count <= 0:
            raise ValueError("[split] The number of splits must be positive.")
        if size % count:
            raise ValueError(
                "Array split does not result in sub arrays with equal size: attempting "
                f"{count} splits along axis {axis} for shape {text(a.shape)}."
            )
        limits = [n * (size // count) for n in range(count + 1)]
    else:
        limits = [0, *(n + size if n < 0 else n for n in indices_or_sections), size]
    before = (slice(None),) * k
    return [wrap(a._a[(*before, slice(first, builtins.max(first, last)))])
            for first, last in itertools.pairwise(limits)]  # fmt: skip


@with_stream
def meshgrid(*arrays: Any, sparse: bool | None = False,
             indexing: str | None = "xy") -> tuple[array, ...]:  # fmt: skip
    """Coordinates of a grid."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"[meshgrid] Invalid indexing {indexing!r}: use 'xy' or 'ij'.")
    grids = []
    for k, item in enumerate(arrays):
        position = 1 - k if indexing == "xy" and k < 2 and len(arrays) > 1 else k
        x = operand(item)
        if x.ndim > 1:
            raise ValueError("[meshgrid] Expected 1-dimensional arrays.")
        grids.append(wrap(x.reshape([-1 if n == position else 1 for n in range(len(arrays))])))
    return tuple(grids) if sparse else broadcast_arrays(*grids)


@with_stream
def repeat(array: Any, repeats: int, axis: int | None = None) -> Any:
    """Repeat each element along an axis."""
    x = operand(array)
    if repeats < 0:
        raise ValueError("[repeat] Number of repeats cannot be negative")
    if axis is None:
        x, axis = x.reshape(-1), 0
    k = normalized_axis(axis, x.ndim, "repeat")
    check_extents((x.shape[k] * repeats,))
    shape = x.shape
    spread = mtl.broadcast_to(
        mtl.expand_dims(x, k + 1), (*shape[: k + 1], repeats, *shape[k + 1 :])
    )
    return wrap(spread.reshape((*shape[:k], shape[k] * repeats, *shape[k + 1 :])))


@with_stream
def tile(a: Any, reps: int | Sequence[int], /) -> array:
    """Repeat an array along axes."""
    return wrap(mtl.tile(operand(a), (reps,) if isinstance(reps, int) else tuple(reps)))


@with_stream
def roll(a: Any, shift: int | Sequence[int], axis: Axes = None, /) -> array:
    """Shift elements along axes; those that leave enter at the other end."""
    x = operand(a)
    if axis is None:
        amount = shift if isinstance(shift, int) else builtins.sum(shift)
        return wrap(mtl.roll(x.reshape(-1), amount, axis=0).reshape(x.shape)) if x.size else wrap(x)
    axes = [axis] if isinstance(axis, int) else list(axis)
    shifts = [shift] if isinstance(shift, int) else list(shift)
    if len(shifts) == 1:
        shifts *= len(axes)
    elif len(axes) == 1:
        axes *= len(shifts)
    if len(shifts) != len(axes):
        raise ValueError("[roll] At least one shift value is required for each axis.")
    if not x.size:
        return wrap(x)
    for amount, k in zip(shifts, axes, strict=True):
        x = mtl.roll(x, amount, axis=normalized_axis(k, x.ndim, "roll"))
    return wrap(x)


@with_stream
def pad(a: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> array:
    """Add elements before and after each axis."""
    x = operand(a)
    if isinstance(pad_width, int):
        widths = [(pad_width, pad_width)] * x.ndim
    elif all(isinstance(n, int) for n in pad_width):
        low, high = (*pad_width, *pad_width)[:2]
        widths = [(low, high)] * x.ndim
    else:
        widths = [tuple(w) if len(w) > 1 else (w[0], w[0]) for w in pad_width]
        widths = widths * x.ndim if len(widths) == 1 else widths
    if len(widths) != x.ndim:
        raise ValueError(
            f"[pad] Invalid number of padding sizes passed to pad with axes of size {x.ndim}."
        )
    if any(n < 0 for pair in widths for n in pair):
        raise ValueError(f"[pad] Invalid padding sizes {widths}: they must not be negative.")
    if mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError(f"[pad] Invalid padding mode ({mode}) passed to pad")
    if mode == "constant":
        value = operand(constant_values, dtype_of(x.dtype)).astype(x.dtype)
        if value.size != 1:
            value = mtl.broadcast_to(value, x.shape[-value.ndim :] if value.ndim else ())
            shape = tuple(n + low + high for n, (low, high) in zip(x.shape, widths, strict=True))
            base = mtl.broadcast_to(value, shape)
        else:
            shape = tuple(n + low + high for n, (low, high) in zip(x.shape, widths, strict=True))
            base = mtl.broadcast_to(value.reshape(()), shape)
        index = tuple(slice(low, low + n) for n, (low, _) in zip(x.shape, widths, strict=True))
        return wrap(base.at[index].set(x) if index else x)
    for k, (low, high) in enumerate(widths):
        if low or high:
            x = mtl.take(x, _padded_indices(x.shape[k], low, high, mode), axis=k)
    return wrap(x)


def _padded_indices(size: int, low: int, high: int, mode: str) -> mtl.Array:
    if size == 0:
        raise ValueError(f"[pad] Cannot pad an empty axis in mode {mode!r}.")
    positions = range(-low, size + high)
    if mode == "edge":
        values = [builtins.min(builtins.max(k, 0), size - 1) for k in positions]
    elif mode == "symmetric":
        values = [k % (2 * size) for k in positions]
        values = [k if k < size else 2 * size - 1 - k for k in values]
    else:
        period = builtins.max(2 * (size - 1), 1)
        values = [k % period for k in positions]
        values = [k if k < size else period - k for k in values]
    return mtl.asarray(values, mtl.int32)


@with_stream
def atleast_1d(*arys: Any) -> Any:
    """Arrays with at least one axis."""
    return _each(arys, lambda x: x.reshape(1) if x.ndim == 0 else x)


@with_stream
def atleast_2d(*arys: Any) -> Any:
    """Arrays with at least two axes."""
    return _each(arys, lambda x: x.reshape((1, x.size)) if x.ndim < 2 else x)


@with_stream
def atleast_3d(*arys: Any) -> Any:
    """Arrays with at least three axes."""

    def shaped(x: mtl.Array) -> mtl.Array:
        if x.ndim < 2:
            return x.reshape((1, x.size, 1))
        return x.reshape((*x.shape, 1)) if x.ndim == 2 else x

    return _each(arys, shaped)


def _each(arys: Sequence[Any], shaped: Any) -> Any:
    if len(arys) == 1 and isinstance(arys[0], list | tuple):
        arys = arys[0]
        return wrapped_all([shaped(operand(a)) for a in arys])
    results = wrapped_all([shaped(operand(a)) for a in arys])
    return results[0] if len(results) == 1 else results
