"""Reductions along axes, with NumPy's arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from metalloid.arrays.array import Array, as_array
from metalloid.arrays.functions import elementwise as ew
from metalloid.arrays.functions import searching, statistical
from metalloid.arrays.functions.creation import full
from metalloid.arrays.functions.manipulation import moveaxis
from metalloid.arrays.functions.select import where as select
from metalloid.arrays.ir.dtypes import as_dtype, bool_, default_float, kind_of
from metalloid.arrays.ir.operands import axes_of
from metalloid.numpy import complex_order
from metalloid.numpy.array import store
from metalloid.numpy.known_calls import structural_function

_no_value: Any = np._NoValue
Axis = Any


def operand(a: Any, where: str) -> Array:
    """An operand as an array."""
    return as_array(a, where)


def _masked(x: Array, mask: Any, other: Any) -> Array:
    """Elements where a mask is true, and another number elsewhere."""
    return x if mask is True else select(as_array(mask, "where", x.device).astype(bool_), x, other)


def _reduced(name: str, combine: Callable[..., Array], x: Array, axis: Axis, out: Any,
             initial: Any, **options: Any) -> Any:  # fmt: skip
    """Reduce, combine with the initial value, and store."""
    options["keepdims"] = options.get("keepdims") is True
    if not x.ndim and axis in (0, -1):  # as NumPy takes numbers
        axis = None
    if name in ("max", "min") and kind_of(x.dtype) == "c":
        result = _complex_extreme(name, x, axis, options["keepdims"])
        if initial is not _no_value and initial is not None:
            first = as_array(initial, name).astype(x.dtype)
            result = complex_order.FUNCTIONS[f"{name}imum"](result, first)
        return store(result, out, name)
    result = getattr(statistical, name)(x, axis, **options)
    if initial is not _no_value and initial is not None:
        result = combine(result, initial)
    is_truth = name in ("sum", "prod") and getattr(out, "dtype", None) == bool_
    return store(result, out, name, "unsafe" if is_truth else "same_kind")


@structural_function(1)
def sum(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
        initial: Any = _no_value, where: Any = True) -> Any:  # fmt: skip
    """Sum along axes, or of all elements.

    Parameters
    ----------
    out : array, optional
        Stores the result.
    initial : number
        Added to the result.
    where : array of bool
        Elements to include.
    """
    x = _masked(operand(a, "sum"), where, 0)
    return _reduced("sum", ew.add, x, axis, out, initial, dtype=dtype, keepdims=keepdims)


@structural_function(1)
def prod(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
         initial: Any = _no_value, where: Any = True) -> Any:  # fmt: skip
    """Product along axes, or of all elements; see `sum`."""
    x = _masked(operand(a, "prod"), where, 1)
    return _reduced("prod", ew.multiply, x, axis, out, initial, dtype=dtype, keepdims=keepdims)


def _extreme(name: str, combine: Callable[..., Array], a: Any, axis: Axis, out: Any,
             keepdims: Any, initial: Any, where: Any) -> Any:  # fmt: skip
    x = operand(a, name)
    if initial is _no_value or initial is None:
        if where is not True:
            raise ValueError(f"[{name}] with where, the initial value must be given.")
    else:
        x = _masked(x, where, initial)
        axes = axes_of(name, axis, x.ndim)
        if any_is_empty(x, axes):
            shape = [1 if k in axes else n for k, n in enumerate(x.shape)
                     if keepdims is True or k not in axes]  # fmt: skip
            return store(full(tuple(shape), initial, x.dtype, device=x.device), out, name)
    return _reduced(name, combine, x, axis, out, initial, keepdims=keepdims)


def _complex_extreme(name: str, x: Array, axis: Axis, keepdims: bool) -> Array:
    axes = axes_of(name, axis, x.ndim)
    if any_is_empty(x, axes):
        raise ValueError(f"[{name}] there are no elements along the axes of shape {x.shape}.")
    if not axes or not x.size:
        return statistical.sum(x, axes, keepdims=keepdims)  # of one element, or of none
    rest = [k for k in np.arange(x.ndim).tolist() if k not in axes]
    rows = x.transpose(*rest, *axes) if x.ndim > 1 else x
    rows = rows.reshape(*(x.shape[k] for k in rest), -1)
    index = complex_order.arg_extreme(rows, name)
    result = searching.take_along_axis(rows, index[..., None], -1)
    return result.reshape([1 if k in axes else n for k, n in enumerate(x.shape)
                           if keepdims or k not in axes])  # fmt: skip


def _arg_extreme(name: str, a: Any, axis: Axis, out: Any, keepdims: Any) -> Any:
    x = operand(a, f"arg{name}")
    if kind_of(x.dtype) != "c" or not x.size:
        result = getattr(searching, f"arg{name}")(x, axis, keepdims is True)
        return store(result, out, f"arg{name}")
    (along,) = (0,) if axis is None else axes_of(f"arg{name}", axis, x.ndim)
    rows = x.ravel() if axis is None else moveaxis(x, along, -1)
    index = complex_order.arg_extreme(rows, name)
    if keepdims is True:
        index = index.reshape([1 if axis is None or k == along else n
                               for k, n in enumerate(x.shape)])  # fmt: skip
    return store(index, out, f"arg{name}")


def any_is_empty(x: Array, axes: Any) -> bool:
    """Whether there are no elements along axes."""
    return 0 in [x.shape[k] for k in axes]


@structural_function(1)
def max(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False,
        initial: Any = _no_value, where: Any = True) -> Any:  # fmt: skip
    """Maximum along axes, or of all elements; NaN if there is one.

    Parameters
    ----------
    initial : number
        Smallest possible result. It is required if there may be no elements.
    """
    return _extreme("max", ew.maximum, a, axis, out, keepdims, initial, where)


@structural_function(1)
def min(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False,
        initial: Any = _no_value, where: Any = True) -> Any:  # fmt: skip
    """Minimum along axes, or of all elements; see `max`."""
    return _extreme("min", ew.minimum, a, axis, out, keepdims, initial, where)


@structural_function(1)
def any(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, *,
        where: Any = True) -> Any:  # fmt: skip
    """Whether any element along axes is nonzero."""
    x = _masked(operand(a, "any").astype(bool_), where, False)
    return _reduced("any", ew.logical_or, x, axis, out, _no_value, keepdims=keepdims)


@structural_function(1)
def all(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, *,
        where: Any = True) -> Any:  # fmt: skip
    """Whether all elements along axes are nonzero."""
    x = _masked(operand(a, "all").astype(bool_), where, True)
    return _reduced("all", ew.logical_and, x, axis, out, _no_value, keepdims=keepdims)


def counted(x: Array, axis: Axis, keepdims: Any, where: Any) -> Any:
    """Number of elements that each result reduces."""
    if where is True:
        return math.prod(x.shape[k] for k in axes_of("mean", axis, x.ndim))
    mask = as_array(where, "where", x.device).astype(bool_)
    full_mask = ew.logical_and(mask, full(x.shape, True, device=x.device))
    return statistical.sum(full_mask, axis, keepdims=keepdims is True)


def _as_floats(x: Array, dtype: Any) -> Array:
    if dtype is not None:
        return x.astype(as_dtype(dtype))
    return x if kind_of(x.dtype) in "fc" else x.astype(default_float())


@structural_function(1)
def mean(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *,
         where: Any = True) -> Any:  # fmt: skip
    """Mean along axes, or of all elements."""
    x = _as_floats(operand(a, "mean"), dtype)
    if where is True:
        result = statistical.mean(x, axis, keepdims=keepdims is True).astype(x.dtype)
        return store(result, out, "mean")
    total = statistical.sum(_masked(x, where, 0), axis, keepdims=keepdims is True)
    return store((total / counted(x, axis, keepdims, where)).astype(x.dtype), out, "mean")


def degrees_of_freedom(where: str, ddof: Any, correction: Any) -> Any:
    """The number to subtract from the number of elements."""
    if correction is _no_value:
        return ddof
    if ddof != 0:
        raise ValueError(f"[{where}] ddof and correction can't be provided simultaneously.")
    return correction


@structural_function(1)
def var(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
        keepdims: Any = False, *, where: Any = True, mean: Any = _no_value,
        correction: Any = _no_value) -> Any:  # fmt: skip
    """Variance along axes, or of all elements.

    Parameters
    ----------
    ddof, correction : float
        Subtracted from the number of elements.
    mean : array, optional
        The mean, with the reduced axes of extent 1.
    """
    ddof = degrees_of_freedom("var", ddof, correction)
    x = _as_floats(operand(a, "var"), dtype)
    if where is True and mean is _no_value:
        result = statistical.var(x, axis, correction=ddof, keepdims=keepdims is True)
        return store(result, out, "var")
    count = counted(x, axis, True, where)
    if mean is _no_value:
        total = statistical.sum(_masked(x, where, 0), axis, keepdims=True)
        mean = (total / count).astype(x.dtype)
    deviation = ew.abs(x - mean)
    squares = _masked(deviation * deviation, where, 0)
    total = statistical.sum(squares, axis, keepdims=keepdims is True)
    divisor = ew.maximum(as_array(counted(x, axis, keepdims, where), "var") - ddof, 0)
    return store((total / divisor).astype(total.dtype), out, "var")


@structural_function(1)
def std(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
        keepdims: Any = False, *, where: Any = True, mean: Any = _no_value,
        correction: Any = _no_value) -> Any:  # fmt: skip
    """Standard deviation, the square root of `var`."""
    variance = var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean,
                   correction=correction)  # fmt: skip
    return store(ew.sqrt(variance), out, "std")


@structural_function(1)
def ptp(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False) -> Any:
    """Difference of the maximum and the minimum."""
    x = operand(a, "ptp")
    keepdims = keepdims is True
    result = statistical.max(x, axis, keepdims) - statistical.min(x, axis, keepdims)
    return store(result, out, "ptp")


@structural_function(1)
def argmax(a: Any, axis: Axis = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """Index of the first largest element; NaN is the largest."""
    return _arg_extreme("max", a, axis, out, keepdims)


@structural_function(1)
def argmin(a: Any, axis: Axis = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """Index of the first smallest element; see `argmax`."""
    return _arg_extreme("min", a, axis, out, keepdims)


@structural_function(1)
def count_nonzero(a: Any, axis: Axis = None, *, keepdims: Any = False) -> Any:
    """Count the nonzero elements."""
    return searching.count_nonzero(a, axis, keepdims=keepdims)


def average(a: Any, axis: Axis = None, weights: Any = None, returned: bool = False, *,
            keepdims: Any = False) -> Any:  # fmt: skip
    """Weighted mean along axes.

    Parameters
    ----------
    weights : array, optional
        Of the shape of `a`, or of its extents along the axes.
    returned : bool
        Whether to return the sums of the weights as well.

    Examples
    --------
    >>> import metalloid.numpy as np
    >>> np.average([1.0, 4.0], weights=[3, 1])
    np.float64(1.75)
    """
    if weights is None:
        result, total = _unweighted(a, axis, keepdims is True)
    else:
        result, total, is_valid = _weighted(a, axis, weights, keepdims is True)
        if not bool(is_valid):
            raise ZeroDivisionError("[average] weights sum to zero.")
    return (result, total) if returned else result


@structural_function(1)
def _unweighted(a: Any, axis: Axis, keepdims: bool) -> tuple[Any, Any]:
    x = operand(a, "average")
    result = mean(x, axis, keepdims=keepdims)
    count = counted(x, axis, keepdims, True)
    return result, full(result.shape, count, result.dtype, device=x.device)


@structural_function(3)
def _weighted(a: Any, axis: Axis, weights: Any, keepdims: bool) -> tuple[Any, Any, Any]:
    """The mean, the sums of the weights, and whether none of them is zero."""
    x = operand(a, "average")
    w = as_array(weights, "average", x.device)
    if w.shape != x.shape:
        if axis is None:
            raise TypeError("[average] weights of another shape require an axis.")
        axes = axes_of("average", axis, x.ndim)
        if w.shape != tuple(x.shape[k] for k in axes):
            raise ValueError(f"[average] weights of shape {w.shape} do not fit axes {axis}.")
        order = sorted(range(len(axes)), key=axes.__getitem__)
        w = w.transpose(*order) if w.ndim > 1 else w
        w = w.reshape([n if k in axes else 1 for k, n in enumerate(x.shape)])
        w = ew.add(w, full(x.shape, 0, w.dtype, device=x.device))
    w = w if kind_of(w.dtype) in "fc" else w.astype(default_float())
    if kind_of(x.dtype) not in "fc":
        x = x.astype(default_float())
    total = statistical.sum(w, axis, keepdims=keepdims)
    result = statistical.sum(x * w, axis, keepdims=keepdims) / total
    return result, total, statistical.all(ew.not_equal(total, 0))
