"""Selection of elements by a condition or by limits; rounding to decimals."""

from __future__ import annotations

from typing import Any, overload

from metalloid.arrays.array import Array, as_array
from metalloid.arrays.functions import elementwise
from metalloid.arrays.functions.searching import nonzero
from metalloid.arrays.interop.dlpack import unshared
from metalloid.arrays.ir.dtypes import kind_of, promote
from metalloid.arrays.ir.node import broadcast, cast
from metalloid.arrays.ir.operands import binary, is_weak, to_node, where_node
from metalloid.arrays.ir.ops import OPS
from metalloid.kernels.strides import broadcast_shape


@overload
def where(condition: Any, /) -> tuple[Array, ...]: ...
@overload
def where(condition: Any, x1: Any, x2: Any, /) -> Array: ...
def where(condition: Any, x1: Any = None, x2: Any = None, /) -> Any:
    """Return elements of `x1` where a condition is true, and of `x2` elsewhere.

    With a condition only, return the indices at which it is true, as `nonzero`.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.where(mtl.asarray([True, False]), 1.0, mtl.asarray([5.0, 6.0]))
    array([1., 6.], dtype=float32)
    """
    if x1 is None and x2 is None:
        return nonzero(condition)
    if x1 is None or x2 is None:
        raise ValueError("[where] expected both x1 and x2, or neither.")
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
        if not is_weak(limit):
            limit = Array(to_node(limit, "clip", device=node.device))
            promote(dtype, limit.dtype)
        node = binary(OPS[name], Array(node), limit)
    if node.shape == ():
        node = broadcast(node, broadcast_shape("clip", node.shape))
    return Array(unshared(cast(node, dtype)))


def round(x: Any, /, decimals: int = 0) -> Array:
    """Round to the nearest multiple of ``10**-decimals``, to the even one of two.

    Parameters
    ----------
    decimals : int
        Digits after the decimal point; before it, if negative.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.round(mtl.asarray([1.25, 2.36]), 1)
    array([1.2, 2.4], dtype=float32)
    """
    if decimals == 0:
        return elementwise.round(x)
    numbers = as_array(x, "round")
    kind = kind_of(numbers.dtype)
    unit: int = 10 ** abs(decimals)
    if kind not in "iu":
        factor = float(unit)
        if decimals > 0:
            return elementwise.round(numbers * factor) / factor
        return elementwise.round(numbers / factor) * factor
    if decimals > 0:
        return numbers
    multiple = numbers // unit
    rest = numbers - multiple * unit
    is_up = (rest > unit // 2) | ((rest == unit // 2) & (multiple % 2 == 1))
    return (multiple + is_up.astype(numbers.dtype)) * unit
