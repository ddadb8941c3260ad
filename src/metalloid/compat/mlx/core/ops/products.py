"""Products of matrices, and contractions."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import metalloid as mtl
from metalloid.compat.mlx.core import dtypes
from metalloid.compat.mlx.core.array import array, operand, wrap
from metalloid.compat.mlx.core.ops.shapes import broadcast_shapes, text
from metalloid.compat.mlx.core.ops.wrapping import (
    alike,
    check_extents,
    normalized_axis,
    pair_of_arrays,
    with_stream,
)

__all__ = [
    "addmm", "block_masked_mm", "einsum", "einsum_path", "gather_mm", "inner", "kron", "matmul",
    "outer", "segmented_mm", "tensordot", "vecdot",
]  # fmt: skip


def _factors(a: Any, b: Any, where: str) -> tuple[mtl.Array, mtl.Array]:
    x, y, dtype = pair_of_arrays(a, b)
    if not dtypes.is_inexact(dtype):
        raise ValueError(
            f"[{where}] Only inexact types are supported but {x.dtype.name} and {y.dtype.name} "
            f"were provided which results in {dtype._name}, which is not a floating point type."
        )
    return x, y


def product(x: mtl.Array, y: mtl.Array, where: str = "matmul") -> mtl.Array:
    """The product of matrices or vectors.

    Raises
    ------
    ValueError
        If the shapes do not match.
    """
    if x.ndim == 0 or y.ndim == 0:
        raise ValueError(
            f"[{where}] Got 0 dimension input. Inputs must have at least one dimension."
        )
    if x.shape[-1] != y.shape[-2 if y.ndim > 1 else 0]:
        raise ValueError(
            f"[{where}] Last dimension of first input with shape {text(x.shape)} must match second "
            f"to last dimension of second input with shape {text(y.shape)}."
        )
    if x.ndim > 1 and y.ndim > 1:
        broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return mtl.matmul(x, y)


@with_stream
def matmul(a: Any, b: Any, /) -> array:
    """Product of matrices."""
    return wrap(product(*_factors(a, b, "matmul")))


@with_stream
def addmm(c: Any, a: Any, b: Any, /, alpha: float = 1.0, beta: float = 1.0) -> array:
    """``alpha * (a @ b) + beta * c``."""
    z, x, y = alike([c, a, b])
    _factors(wrap(x), wrap(y), "addmm")
    result = product(x, y, "addmm")
    if alpha != 1:
        result = alpha * result
    added = z if beta == 1 else beta * z
    shape = broadcast_shapes(result.shape, added.shape)
    if shape != result.shape:
        raise ValueError(
            f"[addmm] Shapes {text(added.shape)} and {text(result.shape)} cannot be broadcast."
        )
    return wrap(result + added)


@with_stream
def inner(a: Any, b: Any, /) -> array:
    """Sums of products over the last axes."""
    x, y, _ = pair_of_arrays(a, b)
    if x.ndim == 0 or y.ndim == 0:
        return wrap(x * y)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError("[inner] a and b must have the same last dimension.")
    return tensordot(wrap(x), wrap(y), [[x.ndim - 1], [y.ndim - 1]])


@with_stream
def vecdot(a: Any, b: Any, /, *, axis: int = -1) -> array:
    """Sums of products along an axis."""
    x, y, _ = pair_of_arrays(a, b)
    if x.ndim == 0 or y.ndim == 0:
        raise ValueError("[vecdot] Inputs must have at least one dimension.")
    if x.dtype.kind == "c":
        x = mtl.conj(x)
    first, second = (normalized_axis(axis, z.ndim, "vecdot") for z in (x, y))
    if x.shape[first] != y.shape[second]:
        raise ValueError(
            f"[vecdot] axis {axis} of {text(x.shape)} and {text(y.shape)} must be the same."
        )
    return wrap(mtl.sum(x * y, axis=axis, dtype=x.dtype))


@with_stream
def outer(a: Any, b: Any, /) -> array:
    """Products of all pairs of elements."""
    x, y, _ = pair_of_arrays(a, b)
    return wrap(x.reshape((-1, 1)) * y.reshape((1, -1)))


@with_stream
def tensordot(a: Any, b: Any, /, axes: int | Sequence[Sequence[int]] = 2) -> array:
    """Sums of products over axes."""
    x, y, _ = pair_of_arrays(a, b)
    if isinstance(axes, int):
        if axes < 0 or axes > builtins.min(x.ndim, y.ndim):
            raise ValueError("[tensordot] axes must be between 0 and min(a.ndim, b.ndim).")
        first = list(range(x.ndim - axes, x.ndim))
        second = list(range(axes))
    else:
        first, second = ([k % builtins.max(n, 1) for k in group]
                         for group, n in zip(axes, (x.ndim, y.ndim), strict=True))  # fmt: skip
    if len(first) != len(second):
        raise ValueError("[tensordot] axes must have the same size.")
    if [x.shape[k] for k in first] != [y.shape[k] for k in second]:
        raise ValueError("[tensordot] a and b must have the same shape on the contracted axes.")
    rows = [k for k in range(x.ndim) if k not in first]
    columns = [k for k in range(y.ndim) if k not in second]
    size = math.prod(x.shape[k] for k in first)
    shape = (*(x.shape[k] for k in rows), *(y.shape[k] for k in columns))
    left = mtl.permute_dims(x, (*rows, *first)).reshape((math.prod(x.shape[k] for k in rows), size))
    right = mtl.permute_dims(y, (*second, *columns)).reshape(
        (size, math.prod(y.shape[k] for k in columns))
    )
    return wrap(product(left, right).astype(x.dtype).reshape(shape))


@with_stream
def kron(a: Any, b: Any) -> array:
    """Kronecker product."""
    x, y, _ = pair_of_arrays(a, b)
    if not x.size or not y.size:
        raise ValueError("[kron] Input arrays cannot be empty.")
    rank = builtins.max(x.ndim, y.ndim)
    x = x.reshape((*(1,) * (rank - x.ndim), *x.shape))
    y = y.reshape((*(1,) * (rank - y.ndim), *y.shape))
    left = x.reshape([n for extent in x.shape for n in (extent, 1)])
    right = y.reshape([n for extent in y.shape for n in (1, extent)])
    shape = check_extents(tuple(n * m for n, m in zip(x.shape, y.shape, strict=True)))
    return wrap((left * right).reshape(shape))


@with_stream
def einsum(subscripts: str, *operands: Any) -> array:
    """Sums of products by Einstein's convention."""
    items = alike(operands)
    _check_einsum(subscripts, items, "einsum")
    return wrap(mtl.einsum(subscripts, *items))


def einsum_path(subscripts: str, *operands: Any) -> tuple[list[Any], str]:
    """The order of products that `einsum` uses, and its cost."""
    items = alike(operands)
    _check_einsum(subscripts, items, "einsum_path")
    shapes = [np.broadcast_to(np.float32(0), item.shape) for item in items]
    path, report = np.einsum_path(subscripts, *shapes)
    return [step for step in path if not isinstance(step, str)], report


def _check_einsum(subscripts: str, items: list[mtl.Array], where: str) -> None:
    if not isinstance(subscripts, str):
        raise TypeError(f"{where}(): incompatible function arguments: subscripts must be a string.")
    inputs = subscripts.replace(" ", "").split("->")[0].split(",")
    if len(inputs) != len(items):
        raise ValueError(
            f"[{where}] Number of operands, {len(items)}, does not match number of input "
            f"subscripts, {len(inputs)}"
        )


# -- products of selected matrices


@with_stream
def gather_mm(a: Any, b: Any, /, lhs_indices: Any = None, rhs_indices: Any = None, *,
              sorted_indices: bool = False) -> array:  # fmt: skip
    """Products of the matrices that indices select."""
    if lhs_indices is None and rhs_indices is None:
        return matmul(a, b)
    x, y = _factors(a, b, "gather_mm")
    if x.ndim < 2 or y.ndim < 2:
        raise ValueError("[gather_mm] Inputs must have at least two dimensions.")
    if x.shape[-1] != y.shape[-2]:
        product(x, y, "gather_mm")
    return wrap(mtl.matmul(_selected(x, lhs_indices), _selected(y, rhs_indices)))


def _selected(x: mtl.Array, indices: Any) -> mtl.Array:
    """Matrices by flat indices of the other axes."""
    if indices is None:
        return x
    index = operand(indices)
    if not dtypes.is_integer(dtypes.dtype_of(index.dtype)):
        raise ValueError("[gather_mm] Got indices with invalid dtype. Indices must be integral.")
    return mtl.take(x.reshape((-1, *x.shape[-2:])), index, axis=0)


@with_stream
def block_masked_mm(a: Any, b: Any, /, block_size: int = 64, mask_out: Any = None,
                    mask_lhs: Any = None, mask_rhs: Any = None) -> array:  # fmt: skip
    """Product of matrices, blocks of which are masked."""
    if block_size not in (32, 64):
        raise ValueError("[block_masked_mm] Only block_sizes 32, 64 are supported.")
    x, y = _factors(a, b, "block_masked_mm")
    x, y = _masked(x, mask_lhs, block_size), _masked(y, mask_rhs, block_size)
    return wrap(_masked(product(x, y, "block_masked_mm"), mask_out, block_size))


def _masked(x: mtl.Array, mask: Any, block: int) -> mtl.Array:
    if mask is None:
        return x
    m = operand(mask)
    rows, columns = (-(-n // block) for n in x.shape[-2:])
    if m.shape[-2:] != (rows, columns):
        raise ValueError(
            f"[block_masked_mm] The mask {text(m.shape)} must have {rows} by {columns} blocks."
        )
    for axis in (-2, -1):
        m = mtl.repeat(m, block, axis=axis)
    m = m[..., : x.shape[-2], : x.shape[-1]]
    return mtl.where(m, x, mtl.zeros_like(x)) if m.dtype.kind == "b" else x * m.astype(x.dtype)


@with_stream
def segmented_mm(a: Any, b: Any, /, segments: Any) -> array:
    """A product for each segment of the inner axis."""
    x, y = _factors(a, b, "segmented_mm")
    s = operand(segments)
    if s.dtype.kind == "f":
        s = (s * x.shape[-1]).astype(mtl.int32)
    limits = s.reshape((-1, 2))
    inner_index = mtl.arange(x.shape[-1], dtype=mtl.int32)
    chosen = mtl.logical_and(inner_index >= limits[:, :1], inner_index < limits[:, 1:])
    left = mtl.where(chosen[:, None, :], x, mtl.zeros_like(x))
    right = mtl.where(chosen[:, :, None], y, mtl.zeros_like(y))
    result = mtl.matmul(left, right)
    return wrap(result.reshape((*s.shape[:-1], *result.shape[-2:])))
