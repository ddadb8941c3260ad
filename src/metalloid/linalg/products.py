"""Products of vectors and matrices, and diagonals: expressions that fuse with others."""

from __future__ import annotations

import operator
from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.functions.creation import eye
from metalloid.arrays.functions.elementwise import multiply
from metalloid.arrays.functions.manipulation import broadcast_to, stack
from metalloid.arrays.functions.tensor_contractions import diagonal_of, matmul
from metalloid.arrays.ir.dtypes import float32
from metalloid.arrays.ir.node import cast
from metalloid.arrays.ir.operands import binary_operands, to_node
from metalloid.kernels.strides import broadcast_shape
from metalloid.linalg.equations import inv
from metalloid.linalg.matrices import square_matrices


def outer(x1: Any, x2: Any, /) -> Array:
    """Return the outer product of two vectors.

    Raises
    ------
    ValueError
        If an operand does not have exactly one axis.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.linalg.outer(mtl.arange(2), mtl.asarray([5, 6]))
    array([[0, 0],
           [5, 6]], dtype=int64)
    """
    a, b = map(Array, binary_operands("outer", x1, x2))
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError(
            f"[outer] Input arrays must be one-dimensional, got shapes {a.shape} and {b.shape}."
        )
    return multiply(a[:, None], b)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """Return the cross product of vectors of three elements.

    Parameters
    ----------
    axis : int
        Negative; non-negative only if both operands have equally many axes. The others broadcast.

    Raises
    ------
    ValueError
        If the extent along the axis is not 3.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.linalg.cross(mtl.asarray([1, 0, 0]), mtl.asarray([0, 1, 0]))
    array([0, 0, 1], dtype=int64)
    """
    a, b = map(Array, binary_operands("cross", x1, x2))
    if axis >= 0 and a.ndim == b.ndim:
        axis -= a.ndim
    if not -min(a.ndim, b.ndim) <= axis < 0:
        raise ValueError(f"[cross] invalid axis {axis} for shapes {a.shape} and {b.shape}.")
    if a.shape[axis] != 3 or b.shape[axis] != 3:
        raise ValueError(
            f"[cross] expected 3 elements along axis {axis}, got shapes {a.shape} and {b.shape}."
        )
    shape = broadcast_shape("cross", a.shape, b.shape)
    after = (slice(None),) * (-1 - axis)
    u = [broadcast_to(a, shape)[(..., k, *after)] for k in range(3)]
    v = [broadcast_to(b, shape)[(..., k, *after)] for k in range(3)]
    return stack(
        [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]],
        axis=len(shape) + axis,
    )


def diagonal(x: Any, /, *, offset: int = 0) -> Array:
    """Return a diagonal of every matrix: the main one, or above (`offset` > 0) or below it.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.linalg.diagonal(mtl.asarray([[1, 2], [3, 4]]))
    array([1, 4], dtype=int64)
    """
    node = to_node(x, "diagonal")
    if len(node.shape) < 2:
        raise ValueError(
            f"[diagonal] expected matrices along the last two axes, got shape {node.shape}."
        )
    return Array(diagonal_of(node, operator.index(offset)))


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Return the sum of the `diagonal` of every matrix; types as in `sum`.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.linalg.trace(mtl.asarray([[1, 2], [3, 4]]))
    array(5, dtype=int64)
    """
    node = to_node(x, "trace")
    if len(node.shape) < 2:
        raise ValueError(
            f"[trace] expected matrices along the last two axes, got shape {node.shape}."
        )
    return Array(diagonal_of(node, operator.index(offset))).sum(axis=-1, dtype=dtype)


def matrix_power(x: Any, n: int, /) -> Array:
    """Raise every square matrix to the power of `n`; a negative `n` uses the inverse.

    Integer matrices stay integer if `n` is not negative.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.linalg.matrix_power(mtl.asarray([[1, 1], [1, 0]]), 10)
    array([[89, 55],
           [55, 34]], dtype=int64)
    """
    times = operator.index(n)
    _, dtype = square_matrices("matrix_power", x)
    node = to_node(x, "matrix_power")
    if times >= 0 and node.dtype.kind in "iu":
        dtype = node.dtype
    wide = float32 if dtype.itemsize == 2 and dtype.kind not in "iu" else dtype
    square = Array(cast(node, wide))
    if times < 0:
        square = inv(square)
    result = None
    bits = abs(times)
    while bits:
        if bits & 1:
            result = square if result is None else matmul(result, square)
        bits >>= 1
        if bits:
            square = matmul(square, square)
    if result is None:
        unit = eye(node.shape[-1], dtype=dtype, device=node.device)
        return broadcast_to(unit, node.shape)
    return result.astype(dtype)
