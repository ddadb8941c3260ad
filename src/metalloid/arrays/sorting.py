"""Sorting functions of the array API."""

from __future__ import annotations

import numpy as np

from metalloid.arrays.array_object import Array
from metalloid.arrays.build import axes_of
from metalloid.arrays.calls import host_call, launch_call
from metalloid.arrays.movement import moved_axes, sliced, whole
from metalloid.arrays.node import Node, cast
from metalloid.arrays.sort_choice import by_kernels
from metalloid.arrays.sort_kernels import sorted_rows
from metalloid.arrays.types import int64, uint32


def sort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The elements in order along an axis; NaN counts as the largest.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.sort(mtl.asarray([3, 1, 2]), descending=True)
    array([3, 2, 1], dtype=int64)
    """
    (along,) = axes_of("sort", axis, x.ndim)
    if by_kernels("sort", x.dtype, x.shape[along], x.device):
        return Array(_by_kernels(x._node, along, descending, with_places=False)[0])
    (found,) = host_call(_sort, [x._node], (along, descending), (x.dtype, x.shape))
    return Array(found)


def argsort(x: Array, /, *, axis: int = -1, descending: bool = False,
            stable: bool = True) -> Array:  # fmt: skip
    """The places of the elements in order along an axis; equal ones as they stand.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.argsort(mtl.asarray([3.0, 1.0, 3.0]), descending=True)
    array([0, 2, 1], dtype=int64)
    """
    (along,) = axes_of("argsort", axis, x.ndim)
    if by_kernels("argsort", x.dtype, x.shape[along], x.device):
        return Array(_by_kernels(x._node, along, descending, with_places=True)[1])
    (found,) = host_call(_argsort, [x._node], (along, descending), (int64, x.shape))
    return Array(found)


def top_k(x: Array, k: int, /, *, axis: int = -1) -> tuple[Array, Array]:
    """The `k` largest elements along an axis, the largest first, and their places.

    Of equal ones the first are taken.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.top_k(mtl.asarray([3, 1, 2]), 2)
    (array([3, 2], dtype=int64), array([0, 2], dtype=int64))
    """
    (along,) = axes_of("top_k", axis, x.ndim)
    numbers = whole(x.shape)
    numbers[along] = (0, 1, min(k, x.shape[along]))
    if by_kernels("top_k", x.dtype, x.shape[along], x.device):
        parts = _by_kernels(x._node, along, True, with_places=True)
    else:
        parts = host_call(_ordered, [x._node], (along,), (x.dtype, x.shape), (int64, x.shape))
    values, places = (Array(sliced(part, numbers)) for part in parts)
    return values, places


def _by_kernels(x: Node, axis: int, descending: bool, with_places: bool) -> tuple[Node, ...]:
    """The elements in order, and their places."""
    rows = moved_axes(x, axis, -1)
    results = ((x.dtype, rows.shape), (uint32, rows.shape))[: 1 + with_places]
    found = launch_call(sorted_rows, [rows], (descending, with_places), *results)
    back = [moved_axes(part, -1, axis) for part in found]
    return (*back[:1], *(cast(places, int64) for places in back[1:]))


def _sort(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    result = np.sort(x, axis=axis)  # equal numbers are the same
    return np.flip(result, axis) if descending else result


def _argsort(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    turned = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    places: np.ndarray = x.shape[axis] - 1 - np.flip(turned, axis)
    return places


def _ordered(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    places = _argsort(x, axis, True)
    return np.take_along_axis(x, places, axis), places
