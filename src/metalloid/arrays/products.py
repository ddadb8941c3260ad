"""Matrix products as nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from metalloid.arrays.build import broadcast_shape, pair
from metalloid.arrays.calls import host_call
from metalloid.arrays.node import Node, cast
from metalloid.arrays.types import float32, kind_of, promote


def matrix_product(x1: Any, x2: Any) -> Node:
    """The product over the last axis of one and the second to last of the other.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    a, b = pair("matmul", x1, x2)
    if not a.shape or not b.shape:
        raise ValueError(f"[matmul] wants at least one axis each, got {a.shape} and {b.shape}.")
    dtype = promote(a.dtype, b.dtype)
    if kind_of(dtype) == "b":
        raise TypeError("[matmul] has no meaning for bool.")
    inner_b = b.shape[-2] if len(b.shape) > 1 else b.shape[0]
    if a.shape[-1] != inner_b:
        raise ValueError(f"[matmul] the shapes {a.shape} and {b.shape} do not fit.")
    batch = broadcast_shape("matmul", a.shape[:-2], b.shape[:-2])
    rows, columns = a.shape[-2:-1], b.shape[-1:] if len(b.shape) > 1 else ()
    wide = float32 if kind_of(dtype) == "f" and dtype.itemsize == 2 else dtype
    args = [cast(a, wide), cast(b, wide)]
    (product,) = host_call(np.matmul, args, (), (wide, (*batch, *rows, *columns)))
    return cast(product, dtype)
