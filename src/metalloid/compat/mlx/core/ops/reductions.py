"""Reductions, scans and orders."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from typing import Any

import metalloid as mtl
from metalloid.compat.mlx.core import dtypes
from metalloid.compat.mlx.core.array import array, operand, wrap
from metalloid.compat.mlx.core.dtypes import Dtype, dtype_of
from metalloid.compat.mlx.core.ops.elementwise import log_of_sum
from metalloid.compat.mlx.core.ops.wrapping import (
    arrays_only,
    as_float,
    normalized_axes,
    normalized_axis,
    with_stream,
)

__all__ = [
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "count_nonzero", "cummax",
    "cummin", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "logcumsumexp", "max",
    "mean", "median", "min", "minmax", "partition", "prod", "searchsorted", "sort", "std", "sum",
    "topk", "unique", "var",
]  # fmt: skip

Axes = int | list[int] | tuple[int, ...] | None


def _accumulated(a: mtl.Array) -> Any:
    """The type in which sums and products of an array are computed."""
    kind, size = a.dtype.kind, a.dtype.itemsize
    if kind == "b" or (kind == "i" and size < 4):
        return mtl.int32
    return mtl.uint32 if kind == "u" and size < 4 else a.dtype


def _reduction(name: str, doc: str, compute: Callable[..., mtl.Array],
               needs_elements: bool = False) -> Callable[..., array]:  # fmt: skip
    def reduced(a: array, /, axis: Axes = None, keepdims: bool = False) -> array:
        x = a._a
        axes = normalized_axes(axis, x.ndim, name)
        if needs_elements:
            for k in axes:
                if x.shape[k] == 0:
                    raise ValueError(f"[{name}] Cannot {name} reduce over axis {k} with size 0.")
        if not axes and name not in ("all", "any", "mean", "std", "var"):
            return wrap(x.astype(_accumulated(x)) if name in ("sum", "prod") else x)
        return wrap(compute(x, axes, keepdims))

    reduced.__name__ = reduced.__qualname__ = name
    reduced.__doc__ = doc
    return with_stream(arrays_only(reduced))


def _sum(x: mtl.Array, axes: Any, keepdims: bool) -> mtl.Array:
    return mtl.sum(x, axis=axes, dtype=_accumulated(x), keepdims=keepdims)


def _prod(x: mtl.Array, axes: Any, keepdims: bool) -> mtl.Array:
    return mtl.prod(x, axis=axes, dtype=_accumulated(x), keepdims=keepdims)


def _extreme(function: Any) -> Any:
    def compute(x: mtl.Array, axes: Any, keepdims: bool) -> mtl.Array:
        if x.dtype.kind == "b":
            truth = mtl.any if function is mtl.max else mtl.all
            return truth(x, axis=axes, keepdims=keepdims)
        if x.dtype.kind == "c":
            return _complex_extreme(x, axes, keepdims, function)
        return function(x, axis=axes, keepdims=keepdims)  # type: ignore[no-any-return]

    return compute


def _complex_extreme(x: mtl.Array, axes: Any, keepdims: bool, function: Any) -> mtl.Array:
    """By real parts, and then imaginary ones; NaN if there is one."""
    worst = -math.inf if function is mtl.max else math.inf
    real = function(x.real, axis=axes, keepdims=True)
    imaginary = function(mtl.where(x.real == real, x.imag, worst), axis=axes, keepdims=True)
    result = real + imaginary * 1j
    bad = mtl.any(x != x, axis=axes, keepdims=True)
    result = mtl.where(bad, mtl.asarray(complex(math.nan, math.nan), mtl.complex64), result)
    return result if keepdims else mtl.squeeze(result, axis=axes)


def _truth(function: Any) -> Any:
    return lambda x, axes, keepdims: function(x.astype(mtl.bool), axis=axes, keepdims=keepdims)


def _mean(x: mtl.Array, axes: Any, keepdims: bool) -> mtl.Array:
    return mtl.mean(as_float(x), axis=axes, keepdims=keepdims)


all = _reduction("all", "Whether all elements are true.", _truth(mtl.all))
any = _reduction("any", "Whether an element is true.", _truth(mtl.any))
sum = _reduction("sum", "Sum along axes.", _sum)
prod = _reduction("prod", "Product along axes.", _prod)
max = _reduction("max", "Largest element along axes.", _extreme(mtl.max), needs_elements=True)
min = _reduction("min", "Smallest element along axes.", _extreme(mtl.min), needs_elements=True)
mean = _reduction("mean", "Mean along axes.", _mean)


@with_stream
@arrays_only
def minmax(a: array, /, axis: Axes = None, keepdims: bool = False) -> tuple[array, array]:
    """Smallest and largest element along axes."""
    return min(a, axis, keepdims), max(a, axis, keepdims)


@with_stream
@arrays_only
def var(a: array, /, axis: Axes = None, keepdims: bool = False, ddof: int = 0, *,
        correction: int | None = None) -> array:  # fmt: skip
    """Variance along axes."""
    x = as_float(a._a)
    axes = normalized_axes(axis, x.ndim, "var")
    ddof = ddof if correction is None else correction
    if x.dtype.kind == "c":
        parts = (
            mtl.var(p, axis=axes, correction=ddof, keepdims=keepdims) for p in (x.real, x.imag)
        )
        return wrap(builtins.sum(parts))  # type: ignore[arg-type]
    count = math.prod(x.shape[k] for k in axes)
    if ddof >= count > 0:
        return wrap(mtl.var(x, axis=axes, keepdims=keepdims) * math.inf)
    return wrap(mtl.var(x, axis=axes, correction=ddof, keepdims=keepdims))


@with_stream
@arrays_only
def std(a: array, /, axis: Axes = None, keepdims: bool = False, ddof: int = 0, *,
        correction: int | None = None) -> array:  # fmt: skip
    """Standard deviation along axes."""
    return wrap(mtl.sqrt(var(a, axis, keepdims, ddof, correction=correction)._a))


@with_stream
@arrays_only
def median(a: array, /, axis: Axes = None, keepdims: bool = False) -> array:
    """Median along axes."""
    x = as_float(a._a)
    axes = normalized_axes(axis, x.ndim, "median")
    others = [k for k in range(x.ndim) if k not in axes]
    shape = x.shape
    count = math.prod(shape[k] for k in axes)
    if count == 0:
        raise ValueError("[median] Cannot take the median of an empty axis.")
    rows = mtl.permute_dims(x, (*others, *axes)).reshape((*(shape[k] for k in others), count))
    rows = mtl.sort(rows)
    middle = rows[..., (count - 1) // 2 : count // 2 + 1].mean(axis=-1)
    middle = mtl.where(mtl.isnan(rows[..., -1]), rows[..., -1], middle)
    if keepdims:
        middle = middle.reshape(tuple(1 if k in axes else n for k, n in enumerate(shape)))
    return wrap(middle)


@with_stream
@arrays_only
def count_nonzero(a: array, /, *, axis: Axes = None, keepdims: bool = False) -> array:
    """Number of elements that are not zero."""
    return sum(wrap((a._a != 0).astype(mtl.int32)), axis, keepdims)


def _arg(name: str, doc: str, function: Any) -> Callable[..., array]:
    def reduced(a: array, /, axis: int | None = None, keepdims: bool = False) -> array:
        x = a._a
        if x.size == 0:
            raise ValueError(f"[{name}] Cannot {name} reduce zero size array.")
        if axis is not None:
            axis = normalized_axis(axis, x.ndim, name)
        if x.dtype.kind == "b":
            x = x.astype(mtl.uint8)
        if x.dtype.kind == "c":
            x = x.real
        return wrap(function(x, axis=axis, keepdims=keepdims).astype(mtl.uint32))

    reduced.__name__ = reduced.__qualname__ = name
    reduced.__doc__ = doc
    return with_stream(arrays_only(reduced))


argmax = _arg("argmax", "Index of the largest element.", mtl.argmax)
argmin = _arg("argmin", "Index of the smallest element.", mtl.argmin)


# -- scans


def _scan(name: str, doc: str, function: Any, start: Any) -> Callable[..., array]:
    def scanned(a: array, /, axis: int | None = None, *, reverse: bool = False,
                inclusive: bool = True, dtype: Dtype | None = None) -> array:  # fmt: skip
        x = a._a if dtype is None else a._a.astype(dtype.numpy)
        if axis is None:
            x, axis = x.reshape(-1), 0
        k = normalized_axis(axis, x.ndim, name)
        if x.size == 0:
            return wrap(x)
        given = x
        if x.dtype.kind == "b":
            x = x.astype(mtl.int32)
        if reverse:
            x = mtl.flip(x, axis=k)
        result = function(x, axis=k).astype(x.dtype)
        if not inclusive:
            first = mtl.full((*x.shape[:k], 1, *x.shape[k + 1 :]), start(x.dtype), x.dtype)
            rest = result[(*(slice(None),) * k, slice(0, -1))]
            result = mtl.concat([first, rest], axis=k)
        if reverse:
            result = mtl.flip(result, axis=k)
        if given.dtype.kind == "b" and name != "cumsum":
            result = result.astype(mtl.bool)
        return wrap(result)

    scanned.__name__ = scanned.__qualname__ = name
    scanned.__doc__ = doc
    return with_stream(arrays_only(scanned))


def _limit(largest: bool) -> Any:
    def start(dtype: Any) -> Any:
        own = dtype_of(dtype)
        if dtypes.is_integer(own):
            info = dtypes.iinfo(own)
            return info.max if largest else info.min
        return math.inf if largest else -math.inf

    return start


def _logcumsumexp(x: mtl.Array, axis: int) -> mtl.Array:
    x = as_float(x)
    # Each pass doubles the number of elements that a logarithm covers (W. D. Hillis, G. L. Steele,
    # "Data parallel algorithms", 1986); no sum of exponentials overflows.
    before = (slice(None),) * axis
    distance = 1
    while distance < x.shape[axis]:
        first, rest = x[(*before, slice(0, distance))], x[(*before, slice(distance, None))]
        added = log_of_sum(rest, x[(*before, slice(0, -distance))])
        x = mtl.concat([first, added], axis=axis)
        distance *= 2
    return x


cumsum = _scan("cumsum", "Running sums.", mtl.cumulative_sum, lambda dtype: 0)
cumprod = _scan("cumprod", "Running products.", mtl.cumulative_prod, lambda dtype: 1)
cummax = _scan("cummax", "Running maxima.", mtl.cummax, _limit(False))
cummin = _scan("cummin", "Running minima.", mtl.cummin, _limit(True))
logcumsumexp = _scan("logcumsumexp", "Logarithms of running sums of exponentials.",
                     _logcumsumexp, _limit(False))  # fmt: skip
cumulative_sum, cumulative_prod = cumsum, cumprod


# -- orders


def _along(a: array, axis: int | None, where: str) -> tuple[mtl.Array, int]:
    x = a._a
    if axis is None:
        return x.reshape(-1), 0
    return x, normalized_axis(axis, x.ndim, where)


def _sortable(x: mtl.Array) -> mtl.Array:
    return x.astype(mtl.uint8) if x.dtype.kind == "b" else x


def _is_trivial(x: mtl.Array) -> bool:
    return x.ndim == 0 or x.size == 0


@with_stream
@arrays_only
def sort(a: array, /, axis: int | None = -1) -> array:
    """Sorted elements along an axis."""
    x, k = _along(a, axis, "sort") if a.ndim else (a._a, 0)
    if _is_trivial(x):
        return wrap(x)
    if x.dtype.kind == "c":
        return wrap(mtl.take_along_axis(x, _complex_order(x, k), axis=k))
    return wrap(mtl.sort(_sortable(x), axis=k).astype(x.dtype))


def _complex_order(x: mtl.Array, axis: int) -> mtl.Array:
    by_imaginary = mtl.argsort(x.imag, axis=axis)
    real = mtl.take_along_axis(x.real, by_imaginary, axis=axis)
    return mtl.take_along_axis(by_imaginary, mtl.argsort(real, axis=axis), axis=axis)


@with_stream
@arrays_only
def argsort(a: array, /, axis: int | None = -1) -> array:
    """Indices that sort along an axis."""
    x, k = _along(a, axis, "argsort") if a.ndim else (a._a, 0)
    if _is_trivial(x):
        return wrap(mtl.zeros(x.shape, dtype=mtl.uint32))
    order = _complex_order(x, k) if x.dtype.kind == "c" else mtl.argsort(_sortable(x), axis=k)
    return wrap(order.astype(mtl.uint32))


def _check_kth(kth: int, size: int, where: str) -> None:
    if not -size <= kth < size:
        raise ValueError(f"[{where}] Received invalid kth {kth} along axis with size {size}.")


@with_stream
@arrays_only
def partition(a: array, /, kth: int, axis: int | None = -1) -> array:
    """Elements such that smaller ones than that at `kth` precede it; here they are sorted."""
    x, k = _along(a, axis, "partition")
    _check_kth(kth, x.shape[k], "partition")
    return sort(wrap(x), k)


@with_stream
@arrays_only
def argpartition(a: array, /, kth: int, axis: int | None = -1) -> array:
    """Indices of `partition`."""
    x, k = _along(a, axis, "argpartition")
    _check_kth(kth, x.shape[k], "argpartition")
    return argsort(wrap(x), k)


@with_stream
@arrays_only
def topk(a: array, /, k: int, axis: int | None = -1) -> array:
    """The `k` largest elements along an axis, in ascending order."""
    x, where = _along(a, axis, "topk")
    k = operator.index(k)
    if not 0 <= k <= x.shape[where]:
        raise ValueError(
            f"[topk] Received invalid k={k} along axis {where} for array with shape {x.shape}."
        )
    if k == 0:
        return wrap(x[(*(slice(None),) * where, slice(0, 0))])
    values, _ = mtl.top_k(_sortable(x), k, axis=where)
    return wrap(mtl.flip(values, axis=where).astype(x.dtype))


@with_stream
def searchsorted(sorted_sequence: Any, values: Any, /, side: str = "left") -> array:
    """Indices at which values would be inserted to maintain an order."""
    if side not in ("left", "right"):
        raise ValueError(f"[searchsorted] side must be 'left' or 'right', got {side!r}.")
    x, v = operand(sorted_sequence), operand(values)
    if x.ndim != 1:
        raise ValueError("[searchsorted] The sorted sequence must be 1-dimensional.")
    dtype = dtypes.promoted(dtype_of(x.dtype), dtype_of(v.dtype)).numpy
    return wrap(mtl.searchsorted(x.astype(dtype), v.astype(dtype), side=side).astype(mtl.uint32))


@with_stream
@arrays_only
def unique(a: array, /, size: int, return_index: bool = False, return_inverse: bool = False,
           return_counts: bool = False, fill_value: Any = None) -> Any:  # fmt: skip
    """The first `size` distinct elements, sorted, with their indices and counts."""
    x = a._a.reshape(-1)
    if size < 0:
        raise ValueError("[unique] size must not be negative.")
    order = mtl.argsort(_sortable(x))
    ordered = x[order]
    starts = mtl.concat([mtl.ones(builtins.min(1, x.size), dtype=mtl.bool),
                         ordered[1:] != ordered[:-1]])  # fmt: skip
    group = mtl.cumulative_sum(starts.astype(mtl.int32)) - 1
    rows = mtl.searchsorted(group, mtl.arange(size + 1, dtype=mtl.int32))
    first, last = rows[:-1], rows[1:]
    is_filled = first >= x.size
    source = mtl.where(is_filled, 0, first)
    fill = ordered[0] if fill_value is None else operand(fill_value, a.dtype).astype(x.dtype)
    results = [mtl.where(is_filled, fill, ordered[source])]
    if return_index:
        results.append(mtl.where(is_filled, order[0], order[source]).astype(mtl.uint32))
    if return_inverse:
        inverse = mtl.zeros(x.size, dtype=mtl.int32).at[order].set(group)
        results.append(inverse.reshape(a.shape).astype(mtl.uint32))
    if return_counts:
        results.append(mtl.where(is_filled, 0, last - first).astype(mtl.uint32))
    wrapped = tuple(map(wrap, results))
    return wrapped if len(wrapped) > 1 else wrapped[0]
