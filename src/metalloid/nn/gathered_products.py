"""Products of matrices that indices choose from stacks."""

from __future__ import annotations

import math
from typing import Any

from metalloid.arrays.array import Array, as_array
from metalloid.arrays.functions.evenly_spaced import arange
from metalloid.arrays.functions.manipulation import reshape
from metalloid.arrays.functions.searching import take
from metalloid.arrays.ir.dtypes import kind_of, promote, uint32
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.lowering.indexing import checked_index
from metalloid.kernels.strides import broadcast_shape
from metalloid.nn.primitives import as_float


def gather_mm(a: Any, b: Any, /, lhs_indices: Any = None, rhs_indices: Any = None, *,
              sorted_indices: bool = False) -> Array:  # fmt: skip
    """Multiply pairs of matrices of two stacks, chosen by indices.

    Parameters
    ----------
    a : Array of shape (..., rows, depth)
    b : Array of shape (..., depth, columns)
    lhs_indices, rhs_indices : Array of integers, optional
        Flat indices into the stacks, which broadcast; by default all matrices in their order.
    sorted_indices : bool
        For compatibility.

    Raises
    ------
    ValueError
        If the shapes are incompatible.
    IndexError
        If an index is out of range.

    Examples
    --------
    >>> import metalloid as mtl
    >>> a, b = mtl.ones((1, 1, 2)), mtl.arange(4.0).reshape(2, 2, 1)
    >>> mtl.nn.gather_mm(a, b, mtl.asarray([0, 0]), mtl.asarray([1, 0])).flatten()
    array([5., 1.], dtype=float32)
    """
    where = "gather_mm"
    a, b = as_float(where, a), as_float(where, b)
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        raise ValueError(f"[{where}] matrices of shapes {a.shape} and {b.shape} have no product.")
    stack, left, right = pairs_of(where, a, b, lhs_indices, rhs_indices)
    dtype = promote(a.dtype, b.dtype)
    flat = [reshape(x.astype(dtype), (-1, *x.shape[-2:])) for x in (a, b)]
    product: Array = take(flat[0], left, axis=0) @ take(flat[1], right, axis=0)
    return reshape(product, (*stack, a.shape[-2], b.shape[-1]))


def pairs_of(where: str, a: Array, b: Array, lhs_indices: Any,
             rhs_indices: Any) -> tuple[Ints, Array, Array]:  # fmt: skip
    """The shape of the stack of products, and the indices of their factors."""
    left, right = _indices(where, lhs_indices, a), _indices(where, rhs_indices, b)
    return broadcast_shape(where, left.shape, right.shape), left, right


def _indices(where: str, indices: Any, x: Array) -> Array:
    stack = x.shape[:-2]
    if indices is None:
        return reshape(arange(math.prod(stack), dtype=uint32, device=x.device), stack)
    array = as_array(indices, where, x.device)
    if kind_of(array.dtype) not in "iu":
        raise TypeError(f"[{where}] indices must be integers, got {array.dtype}.")
    return Array(checked_index(array._node, math.prod(stack), 0))
