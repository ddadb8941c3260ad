"""Sorting functions of the array API."""

from __future__ import annotations

import math

import numpy as np

from metalloid.arrays.array import Array
from metalloid.arrays.execution.calls import host_call, launch_call
from metalloid.arrays.ir.dtypes import bfloat16, int64, uint32
from metalloid.arrays.ir.node import Node, cast, fresh
from metalloid.arrays.ir.operands import axes_of
from metalloid.arrays.ir.views import moved_axes
from metalloid.arrays.library.sort import sorted_rows, top_k_rows
from metalloid.arrays.lowering.sort_dispatch import by_kernels


def sort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Sort elements along an axis; NaN is the largest.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.sort(mtl.asarray([3, 1, 2]), descending=True)
    array([3, 2, 1], dtype=int64)
    """
    (along,) = axes_of("sort", axis, x.ndim)
    if by_kernels("sort", x.dtype, x.device, x.size):
        return Array(_by_kernels(x._node, along, descending, with_indices=False)[0])
    (result,) = host_call(_sort, [x._node], (along, descending), (x.dtype, x.shape))
    return Array(result)


def argsort(x: Array, /, *, axis: int = -1, descending: bool = False,
            stable: bool = True) -> Array:  # fmt: skip
    """Return the indices that sort elements along an axis; equal elements keep their order.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.argsort(mtl.asarray([3.0, 1.0, 3.0]), descending=True)
    array([0, 2, 1], dtype=int64)
    """
    (along,) = axes_of("argsort", axis, x.ndim)
    if by_kernels("argsort", x.dtype, x.device, x.size):
        return Array(_by_kernels(x._node, along, descending, with_indices=True)[1])
    (result,) = host_call(_argsort, [x._node], (along, descending), (int64, x.shape))
    return Array(result)


def top_k(x: Array, k: int, /, *, axis: int = -1) -> tuple[Array, Array]:
    """Return the `k` largest elements along an axis in descending order, and their indices.

    Of equal elements the first are chosen.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.top_k(mtl.asarray([3, 1, 2]), 2)
    (array([3, 2], dtype=int64), array([0, 2], dtype=int64))
    """
    (along,) = axes_of("top_k", axis, x.ndim)
    if k < 0:
        raise ValueError(f"[top_k] k must not be negative, got {k}.")
    rows = moved_axes(x._node, along, -1)
    shape = (*rows.shape[:-1], min(k, x.shape[along]))
    if not by_kernels("top_k", x.dtype, x.device, x.size):
        values, indices = host_call(_top_k, [rows], (shape[-1],), (x.dtype, shape), (int64, shape))
    elif math.prod(shape):
        values, indices = launch_call(
            top_k_rows, [rows], (shape[-1],), (x.dtype, shape), (uint32, shape)
        )  # fmt: skip
    else:
        values, indices = fresh(x.dtype, shape, x.device), fresh(int64, shape, x.device)
    values, indices = (moved_axes(part, -1, along) for part in (values, cast(indices, int64)))
    return Array(values), Array(indices)


def _by_kernels(x: Node, axis: int, descending: bool, with_indices: bool) -> tuple[Node, ...]:
    """Sort by kernels: the elements, and their indices if required."""
    rows = moved_axes(x, axis, -1)
    result_types = ((x.dtype, rows.shape), (uint32, rows.shape))[: 1 + with_indices]
    sorted_parts = launch_call(sorted_rows, [rows], (descending, with_indices), *result_types)
    parts = [moved_axes(part, -1, axis) for part in sorted_parts]
    return (*parts[:1], *(cast(indices, int64) for indices in parts[1:]))


def comparable(x: np.ndarray) -> np.ndarray:
    """Convert to a type that NumPy sorts with NaN last: it does not for bfloat16."""
    return x.astype(np.float32) if x.dtype == bfloat16 else x


def _sort(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    # Equal numbers are interchangeable. NumPy's stable sort is faster for single bytes.
    result = np.sort(comparable(x), axis=axis, stable=x.dtype.itemsize == 1)
    return np.flip(result, axis) if descending else result


def _argsort(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    x = comparable(x)
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    reversed_order = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    indices: np.ndarray = x.shape[axis] - 1 - np.flip(reversed_order, axis)
    return indices


def _top_k(x: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    indices = _argsort(x, -1, True)[..., :k]
    return np.take_along_axis(x, indices, -1), indices
