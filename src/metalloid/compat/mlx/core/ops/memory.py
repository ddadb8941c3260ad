"""The memory of arrays, seen with other strides or types."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

import metalloid as mtl
from metalloid.arrays.ir.node import apply
from metalloid.arrays.ir.ops import BITS
from metalloid.compat.mlx.core.array import array, operand, wrap
from metalloid.compat.mlx.core.dtypes import Dtype, as_dtype
from metalloid.compat.mlx.core.ops.wrapping import arrays_only, with_stream

__all__ = [
    "as_strided", "view",
]  # fmt: skip


@with_stream
@arrays_only
def as_strided(a: array, /, shape: Sequence[int] | None = None,
               strides: Sequence[int] | None = None, offset: int = 0) -> array:  # fmt: skip
    """A view of the flattened array by strides, in elements."""
    x = a._a
    extents = tuple(shape if shape is not None else x.shape)
    if strides is None:
        steps, size = [], 1
        for n in reversed(extents):
            steps.append(size)
            size *= n
        strides = steps[::-1]
    if len(strides) != len(extents):
        raise ValueError("[as_strided] shape and strides must have the same length.")
    index = mtl.full((), offset, mtl.int32)
    for k, (n, step) in enumerate(zip(extents, strides, strict=True)):
        axis = mtl.arange(n, dtype=mtl.int32) * step
        index = index + axis.reshape([-1 if j == k else 1 for j in range(len(extents))])
    return wrap(x.reshape(-1)[mtl.broadcast_to(index, extents)])


@with_stream
def view(a: Any, dtype: Dtype) -> array:
    """The same memory as elements of another type."""
    x, target = operand(a), as_dtype(dtype, "view").numpy
    if x.dtype == target:
        return wrap(x)
    old, new = x.dtype.itemsize, target.itemsize
    if old != new and not x.ndim:
        raise ValueError("[view] Changing the type of a 0-dimensional array requires equal sizes.")
    if old < new and x.shape[-1] * old % new:
        raise ValueError(
            "[view] When viewing as a larger dtype, the size in bytes of the last axis must be a "
            "multiple of the requested type size."
        )
    words = _as_words(x)
    if words.dtype.itemsize > new:
        words = _split_words(words, new if new < 8 else 4)
    elif words.dtype.itemsize < builtins.min(new, 8):
        words = _joined_words(words, new)
    return wrap(_from_words(words, target))


def _unsigned(size: int) -> Any:
    return np.dtype(f"uint{8 * size}")


def bits_as(x: mtl.Array, dtype: Any) -> mtl.Array:
    """Elements as those of another type of the same size."""
    return mtl.Array(apply(BITS, np.dtype(dtype), x._node))


def _as_words(x: mtl.Array) -> mtl.Array:
    if x.dtype.kind == "c":
        parts = mtl.stack([x.real, x.imag], axis=-1)
        return bits_as(parts.reshape((*x.shape[:-1], -1) if x.ndim else (2,)), np.uint32)
    if x.dtype.kind == "b":
        return x.astype(mtl.uint8)
    return x if x.dtype.kind == "u" else bits_as(x, _unsigned(x.dtype.itemsize))


def _split_words(x: mtl.Array, size: int) -> mtl.Array:
    count = x.dtype.itemsize // size
    mask = (1 << 8 * size) - 1
    parts = [((x >> (8 * size * k)) & mask).astype(_unsigned(size)) for k in range(count)]
    return mtl.stack(parts, axis=-1).reshape((*x.shape[:-1], -1))


def _joined_words(x: mtl.Array, size: int) -> mtl.Array:
    old = x.dtype.itemsize
    count = size // old
    groups = x.reshape((*x.shape[:-1], -1, count)).astype(_unsigned(size))
    result = groups[..., 0]
    for k in range(1, count):
        result = result | groups[..., k] << (8 * old * k)
    return result


def _from_words(x: mtl.Array, dtype: Any) -> mtl.Array:
    if dtype.kind == "c":
        if x.dtype.itemsize == 8:
            x = _split_words(x, 4)
        pairs = bits_as(x, np.float32).reshape((*x.shape[:-1], -1, 2))
        return pairs[..., 0] + pairs[..., 1] * 1j
    if dtype.kind == "b":
        return x != 0
    return x if x.dtype == dtype else bits_as(x, dtype)
