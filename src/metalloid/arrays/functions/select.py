"""Selection of elements by a condition or by limits."""

from __future__ import annotations

from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.interop.dlpack import unshared
from metalloid.arrays.ir.dtypes import promote
from metalloid.arrays.ir.node import broadcast, cast
from metalloid.arrays.ir.operands import binary, is_number, to_node, where_node
from metalloid.arrays.ir.ops import OPS
from metalloid.kernels.strides import broadcast_shape


def where(condition: Any, x1: Any, x2: Any, /) -> Array:
    """Return elements of `x1` where a condition is true, and of `x2` elsewhere.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.where(mtl.asarray([True, False]), 1.0, mtl.asarray([5.0, 6.0]))
    array([1., 6.], dtype=float32)
    """
    return Array(where_node(condition, x1, x2))


def clip(x: Any, /, min: Any = None, max: Any = None) -> Array:
    """Limit elements to the interval from `min` to `max`.

    Parameters
    ----------
    min, max : Array, number or None
        Limits that broadcast with `x`. The result has the type of `x`.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.clip(mtl.asarray([-2, 0, 9]), 0, 5)
    array([0, 0, 5], dtype=int64)
    """
    node = to_node(x, "clip")
    dtype = node.dtype
    for name, limit in (("maximum", min), ("minimum", max)):
        if limit is None:
            continue
        if not is_number(limit):
            limit = Array(to_node(limit, "clip", device=node.device))
            promote(dtype, limit.dtype)
        node = binary(OPS[name], Array(node), limit)
    if node.shape == ():
        node = broadcast(node, broadcast_shape("clip", node.shape))
    return Array(unshared(cast(node, dtype)))
