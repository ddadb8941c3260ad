"""Correlation and histograms, with NumPy's arguments."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from metalloid.arrays.array import Array, as_array, as_arrays
from metalloid.arrays.functions import elementwise as ew
from metalloid.arrays.functions import histograms, searching, statistical
from metalloid.arrays.functions.creation import asarray, full
from metalloid.arrays.functions.manipulation import concat, stack
from metalloid.arrays.functions.select import where
from metalloid.arrays.functions.tensor_contractions import matmul
from metalloid.arrays.ir.dtypes import as_dtype, default_float, int64, kind_of, promote
from metalloid.numpy.array import numpy_function
from metalloid.numpy.known_calls import structural_function

# -- correlation

#: Up to this many variables, of at least so many elements together, covariances are sums, without
#: a matrix of the centered variables.
_FEW_VARIABLES, _MIN_SUMMED = 4, 2**17


@structural_function(2)
def cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None,
        fweights: Any = None, aweights: Any = None, *, dtype: Any = None) -> Array:  # fmt: skip
    """Covariance matrix of variables, which are rows.

    Parameters
    ----------
    y : array, optional
        More variables.
    rowvar : bool
        False: variables are columns.
    bias : bool
        Whether to divide by the number of observations, not by one less.
    ddof : int, optional
        Subtracted from the number of observations, in place of the choice by `bias`.
    fweights, aweights : array, optional
        Counts and weights of the observations.

    Examples
    --------
    >>> import metalloid.numpy as np
    >>> np.cov([0.0, 1.0, 2.0], [2.0, 1.0, 0.0])
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    given = as_arrays("cov", m) if y is None else as_arrays("cov", m, y)
    if any(x.ndim > 2 for x in given):
        raise ValueError("[cov] expected at most two axes.")
    wide = default_float()
    for x in given:
        wide = promote(wide, x.dtype)
    wide = wide if dtype is None else as_dtype(dtype)
    rows = []
    for x in given:
        matrix = x.astype(wide)
        matrix = matrix.reshape((1,) * (2 - x.ndim) + x.shape)
        rows.append(matrix if rowvar or x.ndim < 2 else matrix.T)
    matrix = concat(rows) if len(rows) > 1 else rows[0]
    # Few variables stay where they are; the products of many are one product of matrices.
    count = matrix.shape[0]
    is_few = count <= _FEW_VARIABLES and matrix.size >= _MIN_SUMMED and kind_of(wide) != "c"
    variables = [x[k] for x in rows for k in range(x.shape[0])] if is_few else [matrix]
    weights = _weights(fweights, aweights, matrix)
    ddof = int(not bias) if ddof is None else ddof
    if weights is None:
        centers = [statistical.mean(x, -1, keepdims=True) for x in variables]
        factor: Any = max(matrix.shape[1] - ddof, 0)
    else:
        total = weights.sum()
        centers = [(x * weights).sum(-1, keepdims=True) / total for x in variables]
        factor = _weighted_factor(weights, aweights, ddof)
    centered = [x - center for x, center in zip(variables, centers, strict=True)]
    others = centered if weights is None else [x * weights for x in centered]
    if is_few:
        pairs = [(min(i, j), max(i, j)) for i in range(count) for j in range(count)]
        product = stack([(centered[i] * others[j]).sum() for i, j in pairs])
        product = product.reshape((count, count))
    else:
        other = others[0].T
        product = matmul(centered[0], ew.conj(other) if kind_of(wide) == "c" else other)
    result = product / (as_array(factor, "cov", product.device).astype(default_float()))
    return (result if dtype is None else result.astype(wide)).squeeze()


def _weights(fweights: Any, aweights: Any, matrix: Array) -> Array | None:
    """The product of the weights of the observations, which are columns; None without any."""
    weights = None
    for name, values in (("fweights", fweights), ("aweights", aweights)):
        if values is not None:
            w = as_array(values, name, matrix.device)
            if w.ndim != 1 or w.size != matrix.shape[1] or bool((w < 0).any()):
                raise ValueError(f"[cov] {name} must be {matrix.shape[1]} non-negative numbers.")
            if name == "fweights" and bool((ew.round(w) != w).any()):
                raise TypeError("[cov] fweights must be integers.")
            w = w.astype(default_float())
            weights = w if weights is None else weights * w
    return weights


def _weighted_factor(weights: Array, aweights: Any, ddof: Any) -> Array:
    """The divisor of sums of weighted products."""
    total = weights.sum()
    if ddof == 0:
        factor = total
    elif aweights is None:
        factor = total - ddof
    else:
        a = as_array(aweights, "aweights").astype(default_float())
        factor = total - ddof * (weights * a).sum() / total
    return ew.maximum(factor, 0)


@structural_function(2)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Array:
    """Matrix of correlation coefficients of variables; see `cov`."""
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return c / c
    from metalloid.numpy.functions.products import diagonal

    deviation = ew.sqrt(diagonal(c).real)
    c = c / deviation[:, None] / deviation[None, :]
    if kind_of(c.dtype) == "c":
        return c
    return ew.maximum(ew.minimum(c, 1), -1)


# -- histograms


def _edges(values: Array, bins: Any, limits: Any, weights: Any) -> Array:
    """The edges of bins, as NumPy computes them from the values."""
    if isinstance(bins, str) or values.size == 0 or kind_of(values.dtype) == "b":
        own = np.histogram_bin_edges(np.asarray(values), bins, limits, weights)
        return asarray(own, device=values.device)
    if np.ndim(bins) == 1:
        edges = as_array(bins, "histogram", values.device)
        if edges.size > 1 and bool((edges[1:] < edges[:-1]).any()):
            raise ValueError("[histogram] bins must increase monotonically.")
        return edges
    count = operator.index(bins)
    if count < 1:
        raise ValueError(f"[histogram] there must be at least one bin, got {bins}.")
    low: Any
    high: Any
    if limits is None:
        low, high = (np.asarray(edge)[()] for edge in (values.min(), values.max()))
    else:
        low, high = map(float, limits)
    if low > high:
        raise ValueError("[histogram] max must be larger than min in range parameter.")
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError(f"[histogram] range of [{low}, {high}] is not finite.")
    if low == high:
        low, high = low - 0.5, high + 0.5
    dtype = values.dtype if kind_of(values.dtype) == "f" else default_float()
    return asarray(np.linspace(low, high, count + 1).astype(dtype), device=values.device)


@numpy_function
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
              ) -> tuple[Array, Array]:  # fmt: skip
    """Numbers of elements in bins, and the edges of the bins."""
    values = as_array(a, "histogram").ravel()
    edges = _edges(values, bins, range, weights)
    if kind_of(values.dtype) == "b":
        values = values.astype(int64)
    if weights is not None:
        weights = as_array(weights, "histogram", values.device).ravel()
        if kind_of(weights.dtype) == "b":
            weights = weights.astype(default_float())
    counts = histograms.counts_in_bins(values, edges, weights, is_even=np.ndim(bins) == 0)
    if density:
        counts = counts / searching.diff(edges).astype(default_float()) / counts.sum()
    return counts, edges


@numpy_function
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Array:
    """Edges of the bins of `histogram`."""
    return _edges(as_array(a, "histogram_bin_edges").ravel(), bins, range, weights)


@numpy_function
def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Any = None,
                weights: Any = None) -> tuple[Array, tuple[Array, ...]]:  # fmt: skip
    """Numbers of points in the bins of a grid, and the edges along each axis.

    Parameters
    ----------
    sample : array or sequence of arrays
        Points are rows; of a sequence, each array has the coordinates along one axis.
    """
    if isinstance(sample, Array | np.ndarray):
        points = as_array(sample, "histogramdd")
        points = points[:, None] if points.ndim == 1 else points
        columns = [points[:, k] for k in np.arange(points.shape[1]).tolist()]
    else:
        columns = [x.ravel() for x in as_arrays("histogramdd", *sample)]
    rank = len(columns)
    each = list(bins) if isinstance(bins, list | tuple) or np.ndim(bins) else [bins] * rank
    limits = [None] * rank if range is None else list(range)
    if len(each) != rank or len(limits) != rank:
        raise ValueError(f"[histogramdd] expected bins and ranges of {rank} axes.")
    edges = [
        _edges(x if r is None else x.astype(promote(x.dtype, default_float())), b, r, None)
        for x, b, r in zip(columns, each, limits, strict=True)
    ]
    index, is_inside = full((columns[0].size,), 0, int64), full((columns[0].size,), True)
    shape = []
    for values, edge, of_axis in zip(columns, edges, each, strict=True):
        bin_of = histograms.bins_of(values, edge, is_even=np.ndim(of_axis) == 0)
        is_inside = ew.logical_and(is_inside, bin_of < edge.size - 1)
        index = index * (edge.size - 1) + bin_of
        shape.append(edge.size - 1)
    total = int(np.prod(shape))
    index = where(is_inside, index, total)
    weight = None if weights is None else as_array(weights, "histogramdd").ravel()
    counts = histograms.bincount(index, weight, minlength=total)[:total].astype(default_float())
    counts = counts.reshape(shape)
    if density:
        sum_of_counts = counts.sum()
        for axis, edge in enumerate(edges):
            width = searching.diff(edge).reshape([-1 if k == axis else 1 for k in np.arange(rank)])
            counts = counts / width
        counts = counts / sum_of_counts
    return counts, tuple(edges)


@numpy_function
def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None,
                weights: Any = None) -> tuple[Array, Array, Array]:  # fmt: skip
    """Numbers of points in the bins of two coordinates, and the edges of both."""
    if len(x) != len(y):
        raise ValueError(f"[histogram2d] got {len(x)} and {len(y)} coordinates.")
    if (isinstance(bins, list | tuple) or np.ndim(bins)) and len(bins) not in (1, 2):
        bins = [bins, bins]
    counts, edges = histogramdd([x, y], bins, range, density, weights)
    return counts, edges[0], edges[1]


@numpy_function
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Array:
    """Count the occurrences of each integer from 0 to the largest."""
    values, length = as_array(x, "bincount"), operator.index(minlength)
    if length < 0:
        raise ValueError(f"[bincount] minlength must not be negative, got {length}.")
    values = values if values.size else values.astype(int64)
    if weights is not None:
        weights = as_array(weights, "bincount", values.device).astype(default_float())
    return histograms.bincount(values, weights, minlength=length)
