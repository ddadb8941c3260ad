"""Rows of a table of weights, and dropout."""

from __future__ import annotations

from typing import Any

from metalloid.arrays.array import Array, as_array
from metalloid.arrays.functions.searching import take
from metalloid.arrays.functions.select import where
from metalloid.nn.primitives import as_float
from metalloid.random.distributions import bernoulli


def embedding(weight: Any, indices: Any) -> Array:
    """Return rows of a table; their gradients are added up in its rows.

    Parameters
    ----------
    weight : Array of shape (rows, ...)
    indices : Array of integers

    Raises
    ------
    IndexError
        If an index is out of range.

    Examples
    --------
    >>> import metalloid as mtl
    >>> table = mtl.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> mtl.nn.embedding(table, mtl.asarray([1, 1]))
    array([[3., 4.],
           [3., 4.]], dtype=float32)
    """
    return take(as_array(weight, "embedding"), indices, axis=0)


def dropout(x: Any, p: float = 0.5, *, key: Array | None = None, training: bool = True) -> Array:
    """Set elements to zero with a probability, and scale the others so that means stay the same.

    Parameters
    ----------
    x : Array
    p : float
        The probability, at least 0 and below 1.
    key : Array, optional
        The key of `metalloid.random`; by default the next of its sequence.
    training : bool
        If false, return `x` as it is.

    References
    ----------
    N. Srivastava et al., "Dropout", Journal of Machine Learning Research 15, 2014.

    Examples
    --------
    >>> import metalloid as mtl
    >>> x = mtl.nn.dropout(mtl.ones(8), 0.5, key=mtl.random.key(0))
    >>> bool(((x == 0) | (x == 2)).all())
    True
    """
    array = as_float("dropout", x)
    if not 0 <= p < 1:
        raise ValueError(f"[dropout] p must be at least 0 and below 1, got {p}.")
    if p == 0 or not training:
        return array
    is_retained = bernoulli(1 - p, array.shape, key=key)
    return where(is_retained, array * (1 / (1 - p)), 0)
