"""Quantiles, percentiles and medians, with NumPy's arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from metalloid.arrays.array import Array, as_array
from metalloid.arrays.functions import elementwise as ew
from metalloid.arrays.functions import searching, sorting
from metalloid.arrays.functions.creation import asarray, full
from metalloid.arrays.functions.manipulation import concat
from metalloid.arrays.functions.select import where
from metalloid.arrays.interop.numpy_functions import call_on_host
from metalloid.arrays.ir.dtypes import as_dtype, default_float, int64, kind_of, promote
from metalloid.arrays.ir.node import broadcast
from metalloid.arrays.ir.operands import as_number, axes_of
from metalloid.arrays.library.order_statistics import LONG_ROW, MAX_TARGETS
from metalloid.numpy.array import store
from metalloid.numpy.known_calls import structural_function
from metalloid.settings import settings

#: The continuous methods: parameters alpha and beta of an index ``q * (n - a) + b`` (R. J. Hyndman,
#: Y. Fan, "Sample quantiles in statistical packages", The American Statistician 50, 1996).
_LINEAR = {
    "linear": (1, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
    "interpolated_inverted_cdf": (0, 1),
}
#: Discontinuous methods, which NumPy computes.
_STEPS = ("inverted_cdf", "averaged_inverted_cdf", "closest_observation")
_ROUNDED = ("lower", "higher", "midpoint", "nearest")
#: Of more different elements of long rows, all are sorted.
_MAX_SELECTED = 4 * MAX_TARGETS


def _rows(x: Array, axis: Any, keepdims: bool) -> tuple[Array, tuple[int, ...]]:
    """The reduced axes as one last axis, and the shape of the result."""
    axes = axes_of("quantile", axis, x.ndim)
    rest = [k for k in range(x.ndim) if k not in axes]
    shape = [1 if k in axes else n for k, n in enumerate(x.shape) if keepdims or k not in axes]
    rows = x.transpose(*rest, *axes) if x.ndim > 1 else x
    count = int(np.prod([x.shape[k] for k in axes], dtype=int))
    return rows.reshape(*(x.shape[k] for k in rest), count), tuple(shape)


def _indices(q: Any, count: Any, method: str) -> Any:
    """Real-valued index of a quantile among `count` sorted elements, rounded as NumPy's."""
    if method in _LINEAR and method != "linear":
        alpha, beta = _LINEAR[method]
        return count * q + (alpha + q * (1 - alpha - beta)) - 1
    return q * (count - 1)


def _between(q: float, count: Any, method: str, library: Any) -> tuple[Any, Any, Any]:
    """Indices of the two elements next to a quantile, and the weight of the second one.

    `library` is `numpy` if all rows have the same number of elements, `count`.
    """
    last = count - 1
    index = library.maximum(library.minimum(_indices(q, count, method), last), 0)
    if method == "nearest":
        index = library.round(index)
    low = library.floor(index)
    if method in ("nearest", "lower"):
        return low, low, 0.0
    high = library.maximum(library.minimum(library.ceil(index), last), 0)
    if method == "higher":
        return high, high, 0.0
    if method in ("midpoint", "mean"):
        return low, high, 0.5
    return low, high, float(index - low) if library is np else index - low


def _elements(rows: Array, indices: list[Any]) -> list[Array]:
    """For each index, the element of each row that it would have if the row was sorted.

    Indices are numbers, or arrays with one for each row.
    """
    outer = rows.shape[:-1]
    is_static = not any(isinstance(index, Array) for index in indices)
    numbers: np.ndarray = np.unique(np.asarray(indices, np.int64)) if is_static else np.array([])
    count = numbers.size if is_static else len(indices)
    if count > _MAX_SELECTED or rows.shape[-1] < LONG_ROW:
        rows = sorting.sort(rows, -1)
        if is_static:
            return [rows[..., int(index)] for index in indices]
        last = rows.ndim - 1  # the indices are valid: nothing has to be evaluated
        columns = [_column(index, outer)._node for index in indices]
        return [
            Array(searching.elements_along(rows._node, column, last))[..., 0] for column in columns
        ]
    parts = []
    for first in np.arange(0, count, MAX_TARGETS).tolist():
        if is_static:
            own = asarray(numbers[first : first + MAX_TARGETS], device=rows.device)
        else:
            own = concat(
                [_column(index, outer) for index in indices[first : first + MAX_TARGETS]], axis=-1
            )
        positions = broadcast(own._node, (*outer, own.shape[-1]))
        parts.append(Array(sorting.order_statistics(rows._node, positions, settings.sorting)))
    values = parts[0] if len(parts) == 1 else concat(parts, axis=-1)
    if is_static:
        return [values[..., int(np.searchsorted(numbers, index))] for index in indices]
    return [values[..., k] for k in np.arange(count).tolist()]


def _column(index: Array, outer: tuple[int, ...]) -> Array:
    return Array(broadcast(index.astype(int64)._node, outer))[..., None]


def _interpolated(below: Array, above: Array, weight: Any, method: str) -> Array:
    wide = below.dtype if kind_of(below.dtype) in "fc" else default_float()
    if below is above and method in _ROUNDED:
        return below
    below, above = below.astype(wide), above.astype(wide)
    if method == "mean":
        return (below + above) / 2
    weight = (
        weight.astype(wide) if isinstance(weight, Array)
        else Array(as_number(weight, wide, below.device))
    )  # fmt: skip
    difference = above - below
    result = where(weight < 0.5, below + difference * weight, above - difference * (1 - weight))
    return where(below == above, below, result)  # infinities, and exact results


def _type_of_quantiles(q: np.ndarray, x: Array) -> Any:
    """The type of `q` with which that of results is promoted; None unless both are floats."""
    if kind_of(x.dtype) != "f" or q.dtype.kind != "f":
        return None
    return as_dtype(q.dtype) if q.dtype.itemsize < 8 else default_float()


def _quantiles(name: str, a: Any, q: Any, axis: Any, out: Any, overwrite_input: bool, method: str,
               keepdims: Any, weights: Any, skips_nan: bool) -> Any:  # fmt: skip
    x = as_array(a, name)
    if kind_of(x.dtype) == "c":
        raise TypeError(f"[{name}] expected an array of real numbers, got {x.dtype}.")
    is_weak = type(q) in (bool, int, float)
    given = q if is_weak else np.asarray(q)
    q_type = None if is_weak else _type_of_quantiles(given, x)
    selects = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")
    if q_type is not None and method not in selects:
        x = x.astype(promote(x.dtype, q_type))
    q = np.asarray(q, np.float64)
    if not ((q >= 0) & (q <= 1)).all():
        raise ValueError(f"[{name}] quantiles must be in the range from 0 to 1, got {q}.")
    is_median = name.endswith("median")  # whose method is the "mean" of two elements
    if method not in _LINEAR and method not in _ROUNDED + _STEPS and not is_median:
        raise ValueError(f"[{name}] unknown method {method!r}.")
    if weights is not None or method in _STEPS or kind_of(x.dtype) == "b":
        function = np.nanquantile if skips_nan else np.quantile
        options = {"axis": axis, "method": method, "keepdims": keepdims is True, "weights": weights}
        result = call_on_host(function, (x, given), options)
        return store(result, out, name, broadcasts=not is_median)
    rows, shape = _rows(x, axis, keepdims is True)
    if not rows.shape[-1]:
        dtype = x.dtype if kind_of(x.dtype) == "f" else default_float()
        nan = full((*q.shape, *shape), np.nan, dtype, device=x.device)
        return store(nan, out, name, broadcasts=not is_median)
    count: Any = rows.shape[-1]
    has_nan = None
    library: Any = np
    if kind_of(x.dtype) == "f":
        nans = ew.isnan(rows)
        has_nan = nans.any(-1)
        if skips_nan:
            count, library = ew.logical_not(nans).astype(int64).sum(-1), ew
            has_nan = count == 0
    if q.ndim > 2:
        raise ValueError(f"[{name}] expected at most two axes of q, got shape {q.shape}.")
    between = [_between(number, count, method, library) for number in q.ravel().tolist()]
    elements = _elements(rows, [index for low, high, _ in between for index in (low, high)])
    results = []
    for k, (low, high, weight) in enumerate(between):
        below, above = elements[2 * k : 2 * k + 2]
        result = _interpolated(below, below if low is high else above, weight, method)
        if has_nan is not None:
            result = where(has_nan, np.nan, result)
        results.append(result.reshape(shape))
    if is_weak:
        return store(results[0], out, name, broadcasts=not is_median)
    stacked = concat([result[None] for result in results]) if results else full((0, *shape), 0.0)
    return store(stacked.reshape(*q.shape, *shape), out, name, broadcasts=not is_median)


@structural_function(1)
def quantile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
             method: str = "linear", keepdims: Any = False, *, weights: Any = None
             ) -> Any:  # fmt: skip
    """Quantiles along axes, or of all elements; NaN if there is one.

    Parameters
    ----------
    q : number or array
        From 0 to 1. Of an array, the quantiles are along new first axes.
    method : str
        NumPy's methods, "linear" by default. The discontinuous ones, and weights, are computed on
        the host.

    Examples
    --------
    >>> import metalloid.numpy as np
    >>> np.quantile([1.0, 2.0, 4.0], [0.25, 0.5])
    array([1.5, 2. ])
    """
    return _quantiles(
        "quantile", a, q, axis, out, overwrite_input, method, keepdims, weights, False
    )


@structural_function(1)
def nanquantile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
                method: str = "linear", keepdims: Any = False, *, weights: Any = None
                ) -> Any:  # fmt: skip
    """Quantiles of the numbers that are not NaN; see `quantile`."""
    return _quantiles("nanquantile", a, q, axis, out, overwrite_input, method, keepdims, weights,
                      True)  # fmt: skip


def _hundredths(q: Any, where: str) -> float | np.ndarray:
    hundredths: np.ndarray = np.asarray(q)
    if hundredths.dtype.kind != "f":
        hundredths = hundredths.astype(np.float64)
    if not ((hundredths >= 0) & (hundredths <= 100)).all():
        raise ValueError(f"[{where}] percentiles must be in the range from 0 to 100, got {q}.")
    return (
        float(hundredths) / 100
        if type(q) in (bool, int, float)
        else np.asarray(hundredths / hundredths.dtype.type(100))
    )


@structural_function(1)
def percentile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
               method: str = "linear", keepdims: Any = False, *, weights: Any = None
               ) -> Any:  # fmt: skip
    """Percentiles: quantiles by hundredths; see `quantile`."""
    return _quantiles("percentile", a, _hundredths(q, "percentile"), axis, out, overwrite_input,
                      method, keepdims, weights, False)  # fmt: skip


@structural_function(1)
def nanpercentile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
                  method: str = "linear", keepdims: Any = False, *, weights: Any = None
                  ) -> Any:  # fmt: skip
    """Percentiles of the numbers that are not NaN; see `quantile`."""
    return _quantiles("nanpercentile", a, _hundredths(q, "nanpercentile"), axis, out,
                      overwrite_input, method, keepdims, weights, True)  # fmt: skip


def _median(name: str, a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    x = as_array(a, name)
    if kind_of(x.dtype) == "c":
        return store(call_on_host(getattr(np, name), (x, axis), {"keepdims": keepdims is True}),
                     out, name)  # fmt: skip
    x = x if kind_of(x.dtype) == "f" else x.astype(default_float())
    return _quantiles(name, x, 0.5, axis, out, False, "mean", keepdims, None, name == "nanmedian")


@structural_function(1)
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
           keepdims: Any = False) -> Any:  # fmt: skip
    """Median along axes, or of all elements; NaN if there is one."""
    return _median("median", a, axis, out, keepdims)


@structural_function(1)
def nanmedian(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
              keepdims: Any = False) -> Any:  # fmt: skip
    """Median of the numbers that are not NaN."""
    return _median("nanmedian", a, axis, out, keepdims)
