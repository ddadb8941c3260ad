"""Vector and matrix norms."""

from __future__ import annotations

import math
from typing import Any, Literal

from metalloid.arrays.array import Array
from metalloid.arrays.functions.elementwise import abs, add, imag, real, sqrt, square
from metalloid.arrays.functions.manipulation import expand_dims, moveaxis
from metalloid.arrays.ir.dtypes import kind_of, real_of
from metalloid.arrays.ir.node import Node
from metalloid.arrays.ir.operands import axes_of, to_node
from metalloid.arrays.ir.primitives import bind, implement
from metalloid.arrays.lowering.reductions import Axis
from metalloid.linalg.decompositions import svdvals
from metalloid.linalg.matrices import floats, matrices

MatrixOrder = float | Literal["fro", "nuc"]


def vector_norm(x: Any, /, *, axis: Axis = None, keepdims: bool = False,
                ord: float = 2) -> Array:  # fmt: skip
    """Return the `ord`-norm of vectors.

    Parameters
    ----------
    axis : int or tuple of int, optional
        Axes over which to compute the norm; all by default.
    keepdims : bool
        Whether the reduced axes are kept, with extent 1.
    ord : float
        2 for the Euclidean norm, 1 for the sum of absolute values, infinity and minus infinity for
        the largest and smallest absolute value, 0 for the number of nonzero elements.

    Notes
    -----
    Squares may overflow, as in NumPy. Half floats are squared in float32.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.linalg.vector_norm(mtl.asarray([[3.0, 4.0], [6.0, 8.0]]), axis=1)
    array([ 5., 10.], dtype=float32)
    """
    node, dtype = floats("vector_norm", x)
    array = Array(node)
    return _length(array, axis, keepdims, ord).astype(real_of(dtype))


def _length(x: Array, axis: Axis, keepdims: bool, ord: float) -> Array:
    if ord == 2:
        return _root(_squares(x).sum(axis, keepdims=keepdims), 2)
    sizes = abs(x)
    if ord == 1:
        return sizes.sum(axis, keepdims=keepdims)
    if ord == 0:
        is_there = sizes != 0
        return is_there.sum(axis, keepdims=keepdims).astype(sizes.dtype)
    if ord == -math.inf:
        return sizes.min(axis, keepdims)
    if ord == math.inf:
        return _largest(sizes, axis, keepdims)
    powers = sizes**ord
    return _root(powers.sum(axis, keepdims=keepdims), ord)


def _root(x: Array, ord: float) -> Array:
    """The root of a sum of powers, as a primitive: the derivative of a norm of 0 is 0."""
    node = x._node
    return Array(bind("root_of_norm", [node], (ord,), (node.dtype, node.shape))[0])


def _root_by_power(x: Node, ord: float) -> Node:
    return (sqrt(Array(x)) if ord == 2 else Array(x) ** (1 / ord))._node


implement("root_of_norm", _root_by_power, is_structural=True)


def _squares(x: Array) -> Array:
    """Return squared absolute values, without the square roots of complex absolute values."""
    if kind_of(x.dtype) == "c":
        return add(square(real(x)), square(imag(x)))
    return square(x)


def _largest(sizes: Array, axis: Axis, keepdims: bool) -> Array:
    """Return the largest absolute value; 0 if there are no elements."""
    if any(sizes.shape[k] == 0 for k in axes_of("norm", axis, sizes.ndim)):
        return sizes.sum(axis, keepdims=keepdims)
    return sizes.max(axis, keepdims)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: MatrixOrder | None = "fro") -> Array:
    """Return the norm of every matrix.

    Parameters
    ----------
    keepdims : bool
        Whether the last two axes are kept, with extent 1.
    ord : "fro", "nuc", 1, -1, 2, -2, inf, -inf or None
        "fro" or None: Frobenius norm. "nuc": sum of the singular values. 2 and -2: largest and
        smallest singular value. 1 and -1: largest and smallest sum of absolute values in a column.
        inf and -inf: in a row.

    Examples
    --------
    >>> import metalloid as mtl
    >>> x = mtl.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> mtl.linalg.matrix_norm(x, ord=1), mtl.linalg.matrix_norm(x, ord=mtl.inf)
    (array(6., dtype=float32), array(7., dtype=float32))
    """
    node, dtype = matrices("matrix_norm", x)
    result = _size(Array(node), "fro" if ord is None else ord).astype(real_of(dtype))
    return expand_dims(result, (-2, -1)) if keepdims else result


def _size(x: Array, ord: MatrixOrder) -> Array:
    if ord == "fro":
        return _root(_squares(x).sum((-2, -1)), 2)
    if ord == "nuc":
        return svdvals(x).sum(-1)
    if ord in (2, -2):
        values = svdvals(x)
        return _largest(values, -1, False) if ord == 2 else values.min(-1)
    if ord in (1, -1, math.inf, -math.inf):
        sums = abs(x).sum(-2 if ord in (1, -1) else -1)
        return _largest(sums, -1, False) if ord in (1, math.inf) else sums.min(-1)
    raise ValueError(
        f"[matrix_norm] ord must be 'fro', 'nuc', 1, -1, 2, -2, inf, -inf or None, got {ord!r}."
    )


def norm(x: Any, /, ord: MatrixOrder | None = None, axis: Axis = None,
         keepdims: bool = False) -> Array:  # fmt: skip
    """Return `vector_norm` along one axis, or `matrix_norm` along two, like ``numpy.linalg.norm``.

    Parameters
    ----------
    ord : optional
        Order of the norm. If `ord` and `axis` are None, the 2-norm of the flattened array.
    axis : int or pair of int, optional
        One or two axes. By default all axes of `x`, a vector or a matrix.

    Raises
    ------
    ValueError
        If there are neither one nor two axes.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.linalg.norm(mtl.asarray([[3.0, 0.0], [0.0, 4.0]]))
    array(5., dtype=float32)
    """
    array = Array(to_node(x, "norm"))
    if ord is None and axis is None:
        return vector_norm(array, keepdims=keepdims)
    axes = axes_of("norm", axis, array.ndim)
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ValueError(
                f"[norm] {ord!r} is a matrix norm and requires two axes; got axis {axis} of shape "
                f"{array.shape}."
            )
        return vector_norm(array, axis=axes, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ValueError(
            f"[norm] expected one or two axes, got {len(axes)} of shape {array.shape}. Pass axis."
        )
    result = matrix_norm(moveaxis(array, axes, (-2, -1)), ord=ord)
    return expand_dims(result, axes) if keepdims else result
