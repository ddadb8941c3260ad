"""Statistical and utility functions of the array API: reductions along axes, and running ones."""

from __future__ import annotations

from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.lowering.reductions import Axis


def sum(x: Array, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """Sum of the elements along axes, or of all.

    Parameters
    ----------
    axis : int or tuple of int, optional
    dtype : dtype, optional
        Of the result. Without it integers are summed in 64 bits; half floats are always summed in
        float32.
    keepdims : bool
        Whether the axes stay, of extent 1.

    Notes
    -----
    Floats are added in blocks, and the blocks' sums in a tree: the error grows like the logarithm
    of the count (N. J. Higham, "The accuracy of floating point summation", SIAM J. Sci. Comput. 14,
    1993).

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.sum(mtl.asarray([[1, 2], [3, 4]]), axis=0)
    array([4, 6], dtype=int64)
    """
    return x.sum(axis, dtype, keepdims)


def prod(x: Array, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """Product of the elements along axes, or of all; types as in `sum`."""
    return x.prod(axis, dtype, keepdims)


def max(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """The largest element along axes, or of all; NaN if there is one.

    Raises
    ------
    ValueError
        If there is no element.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.max(mtl.asarray([3, 1, 2]))
    array(3, dtype=int64)
    """
    return x.max(axis, keepdims)


def min(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """The smallest element along axes, or of all; NaN if there is one."""
    return x.min(axis, keepdims)


def mean(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """The average along axes, or of all; a float.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.mean(mtl.asarray([1.0, 2.0, 6.0]))
    array(3., dtype=float32)
    """
    return x.mean(axis, keepdims)


def var(x: Array, /, *, axis: Axis = None, correction: float = 0.0,
        keepdims: bool = False) -> Array:  # fmt: skip
    """The variance along axes, or of all: the mean of the squared distances from the mean.

    Parameters
    ----------
    correction : float
        Taken off the count: 1 for the variance of a sample.
    """
    return x.var(axis, correction, keepdims)


def std(x: Array, /, *, axis: Axis = None, correction: float = 0.0,
        keepdims: bool = False) -> Array:  # fmt: skip
    """The standard deviation: the square root of `var`."""
    return x.std(axis, correction, keepdims)


def any(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Whether one element along axes is not zero."""
    return x.any(axis, keepdims)


def all(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Whether no element along axes is zero.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.all(mtl.asarray([[1, 0], [1, 1]]), axis=1)
    array([False,  True], dtype=bool)
    """
    return x.all(axis, keepdims)
