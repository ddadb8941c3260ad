"""Discrete distributions of counts."""

from __future__ import annotations

from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.ir.dtypes import as_dtype, float32, int64, kind_of
from metalloid.arrays.ir.node import apply, broadcast
from metalloid.arrays.ir.operands import is_number, to_node
from metalloid.arrays.ir.ops import NO_DERIVATIVE, Op
from metalloid.random.integers import Shape, blocks
from metalloid.random.parameters import parameter, shape_of

POISSON = Op("poisson", "numpy::poisson({0}, {1}, {2}, {3})", "u", "A number of events", 4,
             cost=800, file="random", tangents=NO_DERIVATIVE)  # fmt: skip
#: Maximum mean: results of larger means might overflow.
_LARGEST_MEAN = 2.0**60


def poisson(lam: Any = 1, shape: Shape | None = None, dtype: Any = int64,
            key: Array | None = None) -> Array:  # fmt: skip
    """Draw from the Poisson distribution: the number of events if `lam` are expected.

    Parameters
    ----------
    lam : number or Array
        Means, converted to float32. Arrays broadcast to `shape`, and determine it by default. Where
        they are negative, NaN or above 2**60, the result is -1.
    shape, key
        See `uniform`.
    dtype : dtype
        An integer type.

    Raises
    ------
    ValueError
        If `lam` is a number outside [0, 2**60].

    Notes
    -----
    Element i uses the key ``split(key, n)[i]``, since the number of random bits that it consumes is
    random. Means below 10 use D. Knuth's product of uniform numbers, others W. Hörmann's
    transformed rejection [1]_ with C. Loader's formula for the logarithms of probabilities [2]_:
    differences of log-gamma functions are inaccurate in single precision.

    References
    ----------
    .. [1] W. Hörmann, "The transformed rejection method for generating Poisson random variables",
       Insurance: Mathematics and Economics 12, 1993.
    .. [2] C. Loader, "Fast and accurate computation of binomial probabilities", 2000.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.random.poisson(3.5, 8, key=mtl.random.key(0))
    array([3, 1, 3, 5, 4, 3, 3, 2], dtype=int64)
    """
    where = "random.poisson"
    result_dtype = as_dtype(dtype)
    if kind_of(result_dtype) not in "iu":
        raise TypeError(f"[{where}] expected an integer type, got {result_dtype}.")
    mean = parameter(where, lam, float32)
    if is_number(mean) and not 0 <= mean <= _LARGEST_MEAN:
        raise ValueError(f"[{where}] means must be between 0 and 2**60, got {lam}.")
    block = blocks(where, shape_of(where, shape, mean), key)
    means = broadcast(to_node(mean, where, float32, block[0].device), block[0].shape)
    return Array(apply(POISSON, int64, *block, means)).astype(result_dtype)
