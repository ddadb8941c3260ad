"""Reductions in which NaN does not count, with NumPy's arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from metalloid.arrays.array import Array, as_array
from metalloid.arrays.functions import elementwise as ew
from metalloid.arrays.functions import statistical
from metalloid.arrays.functions.select import where as select
from metalloid.arrays.ir.dtypes import int64, kind_of
from metalloid.arrays.lowering.reductions import extreme
from metalloid.numpy.array import numpy_function, store
from metalloid.numpy.functions import reductions
from metalloid.numpy.known_calls import structural_function

_no_value: Any = np._NoValue


def _without_nan(a: Any, name: str, other: float) -> tuple[Array, Array | None]:
    """The numbers, with another one for NaN, and the mask of those that are not NaN."""
    x = as_array(a, name)
    if kind_of(x.dtype) not in "fc":
        return x, None
    mask = ew.isnan(x)
    return select(mask, other, x).astype(x.dtype), ew.logical_not(mask)


@structural_function(1)
def nansum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
           initial: Any = _no_value, where: Any = True) -> Any:  # fmt: skip
    """Sum in which NaN counts as 0."""
    x, _ = _without_nan(a, "nansum", 0)
    return reductions.sum(x, axis, dtype, out, keepdims, initial, where)


@structural_function(1)
def nanprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
            initial: Any = _no_value, where: Any = True) -> Any:  # fmt: skip
    """Product in which NaN counts as 1."""
    x, _ = _without_nan(a, "nanprod", 1)
    return reductions.prod(x, axis, dtype, out, keepdims, initial, where)


def _extreme(name: str, other: float, a: Any, axis: Any, out: Any, keepdims: Any, initial: Any,
             where: Any) -> Any:  # fmt: skip
    x = as_array(a, f"nan{name}")
    if kind_of(x.dtype) == "f" and initial is _no_value and where is True:
        axis = None if not x.ndim and axis in (0, -1) else axis
        result = Array(extreme(x._node, f"nan{name}", axis, keepdims is True))
        return store(result, out, f"nan{name}")
    x, mask = _without_nan(x, f"nan{name}", other)
    function = getattr(reductions, name)
    result = function(x, axis, None, keepdims, initial, where)
    if mask is not None and initial is _no_value:
        is_empty = ew.logical_not(statistical.any(mask, axis, keepdims is True))
        result = select(is_empty, np.nan, result).astype(x.dtype)
    return store(result, out, f"nan{name}")


@structural_function(1)
def nanmax(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False,
           initial: Any = _no_value, where: Any = True) -> Any:  # fmt: skip
    """Maximum of the numbers that are not NaN; NaN if there are none."""
    return _extreme("max", -np.inf, a, axis, out, keepdims, initial, where)


@structural_function(1)
def nanmin(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False,
           initial: Any = _no_value, where: Any = True) -> Any:  # fmt: skip
    """Minimum of the numbers that are not NaN; NaN if there are none."""
    return _extreme("min", np.inf, a, axis, out, keepdims, initial, where)


@structural_function(3)
def _index_and_check(name: str, other: float, a: Any, axis: Any, keepdims: Any) -> tuple[Any, ...]:
    """The index, and whether there are numbers everywhere if there may be none."""
    x, mask = _without_nan(a, f"nan{name}", other)
    index = getattr(reductions, name)(x, axis, keepdims=keepdims)
    if mask is None or not x.size:
        return (index,)
    return index, statistical.all(statistical.any(mask, axis))


def _index(name: str, other: float, a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    index, *check = _index_and_check(name, other, a, axis, keepdims)
    if check and not bool(check[0]):
        raise ValueError("All-NaN slice encountered")
    return index if out is None else numpy_function(store)(index, out, f"nan{name}")


def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """Index of the first largest number that is not NaN."""
    return _index("argmax", -np.inf, a, axis, out, keepdims)


def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """Index of the first smallest number that is not NaN."""
    return _index("argmin", np.inf, a, axis, out, keepdims)


def _and(mask: Array | None, where: Any) -> Any:
    if mask is None or where is True:
        return where if mask is None else mask
    return ew.logical_and(mask, as_array(where, "where", mask.device))


@structural_function(1)
def nanmean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *,
            where: Any = True) -> Any:  # fmt: skip
    """Mean of the numbers that are not NaN; NaN if there are none."""
    x, mask = _without_nan(a, "nanmean", 0)
    return reductions.mean(x, axis, dtype, out, keepdims, where=_and(mask, where))


@structural_function(1)
def nanvar(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
           keepdims: Any = False, *, where: Any = True, mean: Any = _no_value,
           correction: Any = _no_value) -> Any:  # fmt: skip
    """Variance of the numbers that are not NaN; NaN if there are too few."""
    x, mask = _without_nan(a, "nanvar", 0)
    ddof = reductions.degrees_of_freedom("nanvar", ddof, correction)
    selected = _and(mask, where)
    result = reductions.var(x, axis, dtype, None, ddof, keepdims, where=selected, mean=mean)
    if mask is not None:
        count = statistical.sum(as_array(selected, "nanvar").astype(int64), axis,
                                keepdims=keepdims is True)  # fmt: skip
        result = select(count - ddof <= 0, np.nan, result)
    return store(result, out, "nanvar")


@structural_function(1)
def nanstd(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
           keepdims: Any = False, *, where: Any = True, mean: Any = _no_value,
           correction: Any = _no_value) -> Any:  # fmt: skip
    """Standard deviation of the numbers that are not NaN, the square root of `nanvar`."""
    variance = nanvar(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean,
                      correction=correction)  # fmt: skip
    return store(ew.sqrt(variance), out, "nanstd")


@structural_function(1)
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
               ) -> Array:  # fmt: skip
    """Replace NaN and infinities by numbers; by default 0 and the largest finite ones.

    The result is a new array, also if not `copy`.
    """
    values = as_array(x, "nan_to_num")
    kind = kind_of(values.dtype)
    if kind == "c":
        real, imaginary = (nan_to_num(part, True, nan, posinf, neginf)
                           for part in (values.real, values.imag))  # fmt: skip
        return (real + imaginary * as_array(1j, "nan_to_num").astype(values.dtype)).astype(
            values.dtype
        )
    if kind != "f":
        return values
    limit = float(np.finfo(values.dtype).max) if values.dtype.kind == "f" else 3.3895313892515355e38
    high, low = limit if posinf is None else posinf, -limit if neginf is None else neginf
    result = select(ew.isnan(values), nan, values)
    result = select(values == np.inf, high, result)
    return select(values == -np.inf, low, result).astype(values.dtype)
