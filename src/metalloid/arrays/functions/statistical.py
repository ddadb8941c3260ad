"""Statistical and utility functions of the array API: reductions along axes."""

from __future__ import annotations

from typing import Any

from metalloid.arrays.array import Array, as_array
from metalloid.arrays.lowering.reductions import Axis


def sum(x: Any, /, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """Return the sum along axes, or of all elements.

    Parameters
    ----------
    axis : int or tuple of int, optional
    dtype : dtype, optional
        Type of the result. By default integers are summed in 64 bits. Half floats are always summed
        in float32.
    keepdims : bool
        Whether the reduced axes are kept, with extent 1.

    Notes
    -----
    Floats are added in blocks, and the sums of blocks in a tree: the error grows with the logarithm
    of the number of elements (N. J. Higham, "The accuracy of floating point summation", SIAM J.
    Sci. Comput. 14, 1993).

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.sum(mtl.asarray([[1, 2], [3, 4]]), axis=0)
    array([4, 6], dtype=int64)
    """
    return as_array(x, "sum").sum(axis, dtype, keepdims)


def prod(x: Any, /, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """Return the product along axes, or of all elements; types as in `sum`."""
    return as_array(x, "prod").prod(axis, dtype, keepdims)


def max(x: Any, /, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the maximum along axes, or of all elements; NaN if there is one.

    Raises
    ------
    ValueError
        If there are no elements.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.max(mtl.asarray([3, 1, 2]))
    array(3, dtype=int64)
    """
    return as_array(x, "max").max(axis, keepdims)


def min(x: Any, /, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the minimum along axes, or of all elements; NaN if there is one."""
    return as_array(x, "min").min(axis, keepdims)


def mean(x: Any, /, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Array:
    """Return the mean along axes, or of all elements, as floats.

    Parameters
    ----------
    dtype : dtype, optional
        Type to which the elements are converted first.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.mean(mtl.asarray([1.0, 2.0, 6.0]))
    array(3., dtype=float32)
    """
    return as_array(x, "mean").mean(axis, dtype, keepdims=keepdims)


def var(x: Any, /, axis: Axis = None, dtype: Any = None, *, correction: float = 0.0,
        keepdims: bool = False) -> Array:  # fmt: skip
    """Return the variance along axes, or of all elements: the mean squared deviation.

    Parameters
    ----------
    dtype : dtype, optional
        Type to which the elements are converted first.
    correction : float
        Subtracted from the number of elements; 1 for the variance of a sample.
    """
    return as_array(x, "var").var(axis, dtype, correction=correction, keepdims=keepdims)


def std(x: Any, /, axis: Axis = None, dtype: Any = None, *, correction: float = 0.0,
        keepdims: bool = False) -> Array:  # fmt: skip
    """Return the standard deviation, the square root of `var`."""
    return as_array(x, "std").std(axis, dtype, correction=correction, keepdims=keepdims)


def any(x: Any, /, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return whether any element along axes is nonzero."""
    return as_array(x, "any").any(axis, keepdims)


def all(x: Any, /, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return whether all elements along axes are nonzero.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.all(mtl.asarray([[1, 0], [1, 1]]), axis=1)
    array([False,  True], dtype=bool)
    """
    return as_array(x, "all").all(axis, keepdims)
