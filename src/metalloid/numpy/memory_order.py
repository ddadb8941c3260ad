"""The order of elements in memory, as NumPy's parameter `order` asks for it.

Results are row-major otherwise. An order is only about memory that is passed on: it changes no
value, and expressions of an array do not have it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metalloid.arrays.array import Array
from metalloid.arrays.execution.evaluate import evaluate
from metalloid.arrays.functions.manipulation import permute_dims, reshape
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.node import BUFFER, TRACED
from metalloid.kernels.strides import row_major

_ORDERS = ("C", "F", "A", "K")


def in_memory(x: Array) -> tuple[Ints, Ints]:
    """The axes, from that with the largest stride on, and the strides of all axes in elements.

    Those of a row-major array if elements are not adjacent in memory, and while `x` is traced.
    """
    node, rows = x._node, tuple(range(x.ndim))
    if not node.flags & TRACED:
        (node,) = evaluate([node])
    if node.kind is BUFFER:
        strides = node.data[0]
        axes = _sorted_axes(strides)
        if strides == _strides_in(axes, x.shape):
            return axes, strides
    return rows, row_major(x.shape)


def strides_of(x: Array) -> Ints:
    """Bytes between adjacent elements along each axis."""
    return tuple(n * x.dtype.itemsize for n in in_memory(x)[1])


class _Addresses:
    """The addresses of an array's elements, as NumPy takes them."""

    def __init__(self, x: Array) -> None:
        (node,) = evaluate([x._node])
        strides, offset = node.data
        assert node.memory is not None
        self.__array_interface__ = {
            "version": 3,
            "shape": x.shape,
            "typestr": np.dtype(f"V{x.dtype.itemsize}").str,
            "data": (node.memory.address + offset * x.dtype.itemsize, True),
            "strides": tuple(n * x.dtype.itemsize for n in strides),
        }


def addresses_of(x: Any) -> np.ndarray:
    """An array at the addresses of `x`, to compare; it must not be read on a device."""
    if isinstance(x, Array) and x.size:
        return np.asarray(_Addresses(x))
    return np.asarray(() if isinstance(x, Array) else x)


def _strides_in(axes: Ints, shape: Ints) -> Ints:
    """Strides of adjacent elements whose axes are in this order in memory."""
    steps = row_major(tuple(shape[axis] for axis in axes))
    return tuple(steps[axes.index(axis)] for axis in range(len(shape)))


def _are_adjacent(axes: Ints, strides: Ints, shape: Ints) -> bool:
    """Whether elements are adjacent in memory in this order of the axes."""
    steps = _strides_in(axes, shape)
    return len(strides) == len(shape) and all(
        n == 1 or own == step for n, own, step in zip(shape, strides, steps, strict=True)
    )


def _axes(order: str, rank: int, like: Any) -> Ints:
    """The axes, of which the first one has the largest strides."""
    rows, columns = tuple(range(rank)), tuple(reversed(range(rank)))
    if order in "CF" or not isinstance(like, Array | np.ndarray) or like.ndim != rank:
        return columns if order == "F" else rows
    strides: Ints = ()
    if isinstance(like, np.ndarray):
        strides = tuple(n // like.itemsize for n in like.strides)
    elif like._node.kind is BUFFER:
        strides = like._node.data[0]
    if order == "A":
        return columns if _are_adjacent(columns, strides, like.shape) else rows
    return _sorted_axes(strides) if strides else rows


def _sorted_axes(strides: Ints) -> Ints:
    """The axes, from that with the largest stride on.

    Repeated elements have stride 0, which is neither larger nor smaller: as in NumPy's iterators,
    an axis is inserted before those that are known to have a larger stride.
    """
    axes: list[int] = []  # from the smallest stride on
    for axis in reversed(range(len(strides))):
        position = len(axes)
        for k in reversed(range(len(axes))):
            own, other = abs(strides[axis]), abs(strides[axes[k]])
            if own and other and other <= own:
                break
            if own and other:
                position = k
        axes.insert(position, axis)
    return tuple(reversed(axes))


def flattened(x: Array, order: Any) -> Array:
    """The elements along one axis; for A and K in the order that they have in memory."""
    order = "K" if order is None else str(order).upper()
    if order not in ("A", "K"):
        return reshape(x, -1, order)
    is_traced = x._node.flags & TRACED
    return reshape(x if is_traced else permute_dims(x, _axes(order, x.ndim, x)), -1)


def is_column_major(x: Array) -> bool:
    """Whether the first index changes fastest in memory, and the last one does not."""
    return x.ndim > 1 and not x._node.flags & TRACED and _axes("A", x.ndim, x)[0] != 0


def in_order(x: Array, order: Any, like: Any = None, is_copied: bool = False) -> Array:
    """The array with its elements in memory in an order of NumPy; K and A follow `like`.

    Raises
    ------
    ValueError
        If there is no such order.
    """
    order = "K" if order is None else str(order).upper()
    if order not in _ORDERS:
        raise ValueError(f"[order] expected one of 'C', 'F', 'A' and 'K', got {order!r}.")
    if x.ndim < 2 or x._node.flags & TRACED:
        return x
    axes = _axes(order, x.ndim, like)
    is_free = order == "K" and not is_copied
    if axes == tuple(range(x.ndim)) and (is_free or x._node.kind is not BUFFER):
        return x
    if x._node.kind is BUFFER and x._node.data[0] == _strides_in(axes, x.shape):
        return x
    rows = permute_dims(x, axes)
    memory = rows.reshape(-1).reshape(rows.shape)
    if axes == tuple(range(x.ndim)):  # as results of expressions are
        return memory
    evaluate([memory._node])
    result = permute_dims(memory, tuple(axes.index(axis) for axis in range(x.ndim)))
    evaluate([result._node])
    return result
