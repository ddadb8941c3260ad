"""Matrix products and tensor contractions: the linear algebra of the array API's main namespace."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from metalloid.arrays.array import Array, as_array
from metalloid.arrays.functions.elementwise import conj, multiply
from metalloid.arrays.functions.manipulation import permute_dims
from metalloid.arrays.ir.dtypes import float32, kind_of, promote
from metalloid.arrays.ir.layout import Layout
from metalloid.arrays.ir.node import BUFFER, Node, reshape
from metalloid.arrays.ir.operands import axes_of, binary_operands
from metalloid.arrays.ir.views import full_slices, sliced
from metalloid.arrays.lowering.matmul import matrix_product


def matmul(x1: Any, x2: Any, /) -> Array:
    """Return the matrix product over the last two axes; the axes before them broadcast.

    Raises
    ------
    ValueError
        If the shapes are incompatible.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.matmul(mtl.asarray([[1, 2], [3, 4]]), mtl.asarray([1, 1]))
    array([3, 7], dtype=int64)
    """
    return Array(matrix_product(x1, x2))


def matrix_transpose(x: Any, /) -> Array:
    """Transpose the last two axes."""
    return as_array(x, "matrix_transpose").mT


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """Return the dot product along an axis; complex `x1` is conjugated."""
    a, b = binary_operands("vecdot", x1, x2)
    first, second = Array(a), Array(b)
    if not -min(len(a.shape), len(b.shape)) <= axis < 0:
        raise ValueError(f"[vecdot] invalid axis {axis} for shapes {a.shape} and {b.shape}.")
    if a.shape[axis] != b.shape[axis]:
        raise ValueError(f"[vecdot] incompatible shapes {a.shape} and {b.shape}.")
    dtype = promote(a.dtype, b.dtype)
    wide = float32 if kind_of(dtype) == "f" and dtype.itemsize == 2 else dtype
    left = conj(first) if kind_of(a.dtype) == "c" else first
    product = multiply(left.astype(wide), second.astype(wide))
    return product.sum(axis=axis, dtype=wide).astype(dtype)


def tensordot(x1: Any, x2: Any, /, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Array:
    """Return the tensor contraction over several axes.

    Parameters
    ----------
    axes : int or pair of sequences of int
        Number of last axes of `x1` and first axes of `x2`, or the axes of both.
    """
    a, b = binary_operands("tensordot", x1, x2)
    if isinstance(axes, int):
        if not 0 <= axes <= min(len(a.shape), len(b.shape)):
            raise ValueError(f"[tensordot] {axes} axes exceed shapes {a.shape} and {b.shape}.")
        over_a = tuple(range(len(a.shape) - axes, len(a.shape)))
        over_b = tuple(range(axes))
    else:
        over_a = axes_of("tensordot", axes[0], len(a.shape))
        over_b = axes_of("tensordot", axes[1], len(b.shape))
    if [a.shape[k] for k in over_a] != [b.shape[k] for k in over_b]:
        raise ValueError(f"[tensordot] incompatible shapes {a.shape} and {b.shape} over {axes}.")
    free_a = [k for k in range(len(a.shape)) if k not in over_a]
    free_b = [k for k in range(len(b.shape)) if k not in over_b]
    shape = (*(a.shape[k] for k in free_a), *(b.shape[k] for k in free_b))
    inner = math.prod(a.shape[k] for k in over_a)
    rows = math.prod(a.shape[k] for k in free_a)
    columns = math.prod(b.shape[k] for k in free_b)
    left = permute_dims(Array(a), (*free_a, *over_a))
    right = permute_dims(Array(b), (*over_b, *free_b))
    product = matmul(
        Array(reshape(left._node, (rows, inner))), Array(reshape(right._node, (inner, columns)))
    )
    return Array(reshape(product._node, shape))


def diagonal_of(node: Node, offset: int = 0) -> Node:
    """Return a diagonal of every matrix: a strided slice of the flattened matrix."""
    *stack, rows, columns = node.shape
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    if node.kind is BUFFER:
        *steps, down, right = node.data[0]
        first = node.data[1] + (max(offset, 0) * right - min(offset, 0) * down if count else 0)
        layout = Layout((*stack, count), (*steps, down + right), first)
        return Node(BUFFER, layout[1:], (), node.dtype, layout.shape, node.device, node.memory)
    start = max(offset, 0) - min(offset, 0) * columns
    flat = reshape(node, (*stack, rows * columns))
    slices = full_slices(flat.shape)
    slices[-1] = (start, columns + 1, count) if count else (0, 1, 0)
    return sliced(flat, slices)
