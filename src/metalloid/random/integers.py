"""Random bits and integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from metalloid.arrays.array import Array
from metalloid.arrays.ir.dtypes import DType, as_dtype, int64, kind_of, uint32, uint64
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.node import Node, apply, broadcast, cast, constant, iota, reshape
from metalloid.arrays.ir.operands import as_number, is_number, to_node, where_node, wide_integer
from metalloid.arrays.ir.ops import NO_DERIVATIVE, Op
from metalloid.arrays.ir.views import as_shape
from metalloid.kernels.strides import broadcast_shape
from metalloid.random.keys import broadcast_words, next_key
from metalloid.runtime.devices.registry import get_device

Shape = int | Sequence[int]

BITS = Op("random_bits", "numpy::random_bits<{T}>({0}, {1}, {2})", "u", "Random bits", 3,
          cost=50, file="random", tangents=NO_DERIVATIVE)  # fmt: skip
BELOW = Op("below", "numpy::below({0}, {1})", "u", "A number below the second", 2,
           cost=6, file="random", tangents=NO_DERIVATIVE)  # fmt: skip


def random_bits(where: str, shape: Ints, dtype: DType, key: Array | None) -> Node:
    """Return random bits for every index of a shape; axes of several keys come first."""
    return apply(BITS, dtype, *blocks(where, shape, key))


def blocks(where: str, shape: Ints, key: Array | None) -> tuple[Node, Node, Node]:
    """Return the words of a key and the linear index of each element: the inputs of random bits."""
    if key is None:
        key = next_key()
    first, second = broadcast_words(where, key, shape)
    indices = reshape(iota((math.prod(shape),), 0, first.device), shape)
    return first, second, broadcast(indices, first.shape)


def bits(shape: Shape = (), dtype: Any = uint32, key: Array | None = None) -> Array:
    """Return random bits.

    Parameters
    ----------
    dtype : dtype
        An unsigned integer type.

    Notes
    -----
    They equal those of ``jax.random.bits``: the block of an element is Threefry-2x32 with 20
    rounds [1]_ of its linear index as 64 bits. Shorter numbers are the lowest bits of the exclusive
    or of the block's halves.

    References
    ----------
    .. [1] J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3",
       SC11.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.random.bits(3, key=mtl.random.key(0))
    array([4070199207, 4202968722, 1427181096], dtype=uint32)
    """
    result_dtype = as_dtype(dtype)
    if result_dtype.kind != "u":
        raise TypeError(f"[random.bits] expected unsigned integers, got {result_dtype}.")
    return Array(random_bits("random.bits", as_shape("random.bits", shape), result_dtype, key))


def randint(low: Any, high: Any, shape: Shape | None = None, dtype: Any = int64,
            key: Array | None = None) -> Array:  # fmt: skip
    """Draw integers in the half-open interval from `low` to `high`, with equal probabilities.

    Parameters
    ----------
    low, high : int or Array
        Arrays broadcast with `shape`. Where `high` is not above `low`, the result is `low`.
    shape : int or sequence of int, optional
        By default that of `low` and `high`.

    Raises
    ------
    ValueError
        If the interval is empty.
    OverflowError
        If `dtype` does not represent them.

    Notes
    -----
    The result is the upper half of the product of 64 random bits and ``n = high - low``, so its
    probability differs from 1/n by less than 2**-64: by a relative error of n/2**64, less than
    2.4e-10 for every interval within 32 bits.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.random.randint(1, 7, 8, key=mtl.random.key(3))
    array([6, 3, 2, 2, 2, 4, 6, 4], dtype=int64)
    """
    where = "random.randint"
    result_dtype = as_dtype(dtype)
    if kind_of(result_dtype) not in "iu":
        raise TypeError(f"[{where}] expected an integer type, got {result_dtype}.")
    own = () if shape is None else as_shape(where, shape)
    if is_number(low) and is_number(high):
        return _between(int(low), int(high), own, result_dtype, key)
    wide = wide_integer(result_dtype)
    first, last = (
        as_number(limit, wide, get_device())
        if is_number(limit)
        else cast(to_node(limit, where), wide)
        for limit in (low, high)
    )
    extents = broadcast_shape(where, first.shape, last.shape, own)
    source = random_bits(where, extents, uint64, key)
    start = broadcast(first, source.shape)
    end = Array(broadcast(last, source.shape))
    span = (end - Array(start)).astype(uint64)  # of int64 it may take all 64 bits
    some = where_node(end > Array(start), span, 0)
    offset = Array(apply(BELOW, uint64, source, some)).astype(wide)
    return (Array(start) + offset).astype(result_dtype)


def _between(low: int, high: int, shape: Ints, dtype: DType, key: Array | None) -> Array:
    """Draw integers between two Python integers."""
    span = high - low
    if span <= 0:
        raise ValueError(f"[random.randint] high must be above low, got {low} and {high}.")
    limits = np.iinfo(dtype)
    if low < limits.min or high - 1 > limits.max:
        raise OverflowError(f"[random.randint] {dtype} does not hold {low} to {high - 1}.")
    offset = random_bits("random.randint", shape, uint64, key)
    if span < 2**64:
        kind = uint32 if span < 2**32 else uint64
        offset = apply(BELOW, uint64, offset, constant(span, kind, offset.device))
    start = constant(low % 2**64, uint64, offset.device)  # in two's complement
    return (Array(offset) + Array(start)).astype(dtype)
