"""Operations on several arrays, or on an array and parameters, element by element."""

from __future__ import annotations

import builtins
import math
from typing import Any

import metalloid as mtl
from metalloid.compat.mlx.core import dtypes
from metalloid.compat.mlx.core.array import array, operand, wrap
from metalloid.compat.mlx.core.dtypes import dtype_of
from metalloid.compat.mlx.core.ops.elementwise import (
    floor_divide,
    maximum,
    minimum,
    remainder,
    stop_gradient,
)
from metalloid.compat.mlx.core.ops.wrapping import (
    alike,
    as_float,
    normalized_axis,
    pair,
    with_stream,
)

__all__ = [
    "allclose", "array_equal", "clip", "diff", "divmod", "isclose", "nan_to_num", "round", "where",
]  # fmt: skip


@with_stream
def divmod(a: Any, b: Any) -> list[array]:
    """Quotient and remainder, which are constants for derivatives."""
    return [stop_gradient(floor_divide(a, b)), stop_gradient(remainder(a, b))]


@with_stream
def where(condition: Any, x: Any, y: Any, /) -> array:
    """Elements of one array where a condition holds, and of another elsewhere."""
    first, second, _ = pair(x, y)
    is_true = operand(condition).astype(mtl.bool)
    own = (first if isinstance(first, mtl.Array) else second).dtype
    chosen: Any = mtl.where(is_true, mtl.asarray(first, own), mtl.asarray(second, own))
    return wrap(chosen)


@with_stream
def clip(a: Any, /, a_min: Any, a_max: Any) -> array:
    """Values limited to an interval."""
    if a_min is None and a_max is None:
        raise ValueError("[clip] At most one of a_min and a_max may be None.")
    result = a
    if a_min is not None:
        result = maximum(result, a_min)
    return result if a_max is None else minimum(result, a_max)


@with_stream
def round(a: Any, /, decimals: int = 0) -> array:
    """Values rounded to decimals, half to even."""
    x = operand(a)
    if x.dtype.kind in "bu" or (x.dtype.kind == "i" and decimals >= 0):
        return wrap(x)
    if decimals == 0:
        return wrap(mtl.round(x))
    scale = 10.0 ** builtins.abs(decimals)
    floats = as_float(x)
    scaled = floats * scale if decimals > 0 else floats / scale
    rounded = mtl.round(scaled)
    result = rounded / scale if decimals > 0 else rounded * scale
    return wrap(result.astype(x.dtype))


@with_stream
def nan_to_num(a: Any, nan: float = 0, posinf: float | None = None,
               neginf: float | None = None) -> array:  # fmt: skip
    """Finite numbers instead of NaN and infinities."""
    x = operand(a)
    if x.dtype.kind in "biu":
        return wrap(x)
    limits = dtypes.finfo(dtype_of(x.dtype))
    x = mtl.where(mtl.isnan(x), nan, x)
    x = mtl.where(x == math.inf, limits.max if posinf is None else posinf, x)
    return wrap(mtl.where(x == -math.inf, limits.min if neginf is None else neginf, x))


@with_stream
def isclose(a: Any, b: Any, /, rtol: float = 1e-05, atol: float = 1e-08, *,
            equal_nan: bool = False) -> array:  # fmt: skip
    """Whether elements differ by no more than ``atol + rtol * abs(b)``."""
    x, y = (as_float(v) for v in alike([a, b]))
    if x.dtype.kind == "c":
        is_infinite = mtl.logical_or(mtl.isinf(x), mtl.isinf(y))
    else:
        is_infinite = mtl.logical_or(mtl.isinf(x), mtl.isinf(y))
    is_near = mtl.abs(x - y) <= atol + rtol * mtl.abs(y)
    result = mtl.where(is_infinite, x == y, is_near)
    if equal_nan:
        result = mtl.logical_or(result, mtl.logical_and(mtl.isnan(x), mtl.isnan(y)))
    return wrap(result)


@with_stream
def allclose(a: Any, b: Any, /, rtol: float = 1e-05, atol: float = 1e-08, *,
             equal_nan: bool = False) -> array:  # fmt: skip
    """Whether all elements are close; see `isclose`."""
    return wrap(mtl.all(isclose(a, b, rtol, atol, equal_nan=equal_nan)._a))


@with_stream
def array_equal(a: Any, b: Any, equal_nan: bool = False) -> array:
    """Whether shapes and all elements are equal."""
    x, y = alike([a, b])
    if x.shape != y.shape:
        return wrap(mtl.full((), False, mtl.bool))
    result = x == y
    if equal_nan and x.dtype.kind in "fcV":
        result = mtl.logical_or(result, mtl.logical_and(mtl.isnan(x), mtl.isnan(y)))
    return wrap(mtl.all(result))


@with_stream
def diff(a: Any, /, n: int = 1, axis: int = -1) -> array:
    """Differences between consecutive elements along an axis."""
    x = operand(a)
    if n < 0:
        raise ValueError(f"[diff] n must not be negative, got {n}.")
    k = normalized_axis(axis, x.ndim, "diff")
    before = (slice(None),) * k
    for _ in range(n):
        last, first = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
        x = last != first if x.dtype.kind == "b" else last - first
    return wrap(x)
