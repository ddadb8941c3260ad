"""Counts of integers, and histograms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from metalloid.arrays.array import Array
from metalloid.arrays.execution.calls import host_call
from metalloid.arrays.execution.evaluate import evaluate
from metalloid.arrays.functions.elementwise import minimum
from metalloid.arrays.functions.evenly_spaced import arange
from metalloid.arrays.functions.manipulation import concat
from metalloid.arrays.functions.searching import diff, elements_at, searchsorted
from metalloid.arrays.functions.select import clip, where
from metalloid.arrays.ir.dtypes import (
    complex128,
    default_float,
    float64,
    int32,
    int64,
    kind_of,
    promote,
    uint32,
)
from metalloid.arrays.ir.host_arrays import from_numpy
from metalloid.arrays.ir.node import Node, broadcast, cast, constant
from metalloid.arrays.ir.operands import to_node, to_numpy
from metalloid.arrays.ir.primitives import Implementation, bind, implement
from metalloid.arrays.library.scatter import sums_by_index
from metalloid.arrays.library.searching import MAX_BINS, bin_counts
from metalloid.arrays.lowering.reductions import summed
from metalloid.arrays.lowering.sort_dispatch import by_kernels
from metalloid.settings import settings


def bincount(x: Any, /, weights: Any = None, *, minlength: int = 0) -> Array:
    """Count the occurrences of each integer from 0 to the largest.

    Parameters
    ----------
    x : Array
        Non-negative integers along one axis. They are evaluated: the result's shape depends on
        them.
    weights : Array, optional
        Weight of each element; 1 by default.
    minlength : int
        Minimum length of the result.

    Returns
    -------
    Array
        int64, or the type of `weights`.

    Raises
    ------
    TypeError
        If `x` does not hold integers.
    ValueError
        If an element is negative.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.bincount(mtl.asarray([0, 3, 3]))
    array([1, 0, 0, 2], dtype=int64)
    """
    numbers = Array(to_node(x, "bincount"))
    if kind_of(numbers.dtype) not in "biu":
        raise TypeError(f"[bincount] expected integers, got {numbers.dtype}. Use histogram.")
    if numbers.ndim != 1:
        raise ValueError(f"[bincount] expected one axis, got shape {numbers.shape}.")
    numbers, count = numbers.astype(int64), minlength
    if numbers.size:
        smallest, largest = _limits(numbers)
        if smallest < 0:
            raise ValueError(f"[bincount] expected non-negative integers, got {smallest}.")
        count = max(count, largest + 1)
    return _counted(numbers, count, weights, "bincount")


def _limits(numbers: Array) -> tuple[int, int]:
    """The extremes of integers; a lower bound of the first if none is negative."""
    if numbers.device.memory == "own":
        limits = numbers.min(), numbers.max()
        evaluate([limit._node for limit in limits])  # in one pass
        return int(limits[0]), int(limits[1])
    values = np.asarray(numbers)
    largest = int(values.view(np.uint64).max())  # where negative numbers are large
    return (0, largest) if largest < 2**63 else (int(values.min()), int(values.max()))


def histogram(x: Any, /, bins: int | Sequence[float] | Array = 10,
              range: tuple[float, float] | None = None, *, weights: Any = None,
              density: bool = False) -> tuple[Array, Array]:  # fmt: skip
    """Count the elements in bins; also return the edges of the bins.

    Parameters
    ----------
    x : Array
        Real numbers, along any axes.
    bins : int or sequence
        Number of bins of equal width, or their edges in ascending order. Bins include their left
        edge; the last bin includes both.
    range : (float, float), optional
        The outermost edges; the smallest and the largest element by default. Elements outside are
        ignored.
    weights : Array, optional
        Weight of each element; 1 by default.
    density : bool
        Whether counts are divided by their sum and by the widths of the bins.

    Returns
    -------
    counts : Array
        int64; the type of `weights`; or floats for a density.
    edges : Array
        One more than there are bins. Edges of equal bins are floats of the type of `x`, or float32
        for integers.

    Raises
    ------
    ValueError
        If there are no bins, or the edges descend.

    Notes
    -----
    Values are not checked. If an element is NaN, NumPy raises; here all edges are NaN and nothing
    is counted. If bins are narrower than the resolution of floats, NumPy raises; here elements may
    be counted in a neighbouring bin.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.histogram(mtl.asarray([1.0, 2.0, 1.5, 4.0]), bins=3)
    (array([2, 1, 1], dtype=int64), array([1., 2., 3., 4.], dtype=float32))
    """
    values = Array(to_node(x, "histogram")).ravel()
    if kind_of(values.dtype) == "c":
        raise TypeError("[histogram] complex numbers have no order.")
    if isinstance(bins, int | np.integer):
        edges = _even_edges(values, int(bins), range)
        counts = counts_in_bins(values, edges, weights, is_even=True)
    else:
        edges = _given_edges(bins, values)
        counts = counts_in_bins(values, edges, weights, is_even=False)
    if density:
        widths = diff(edges.astype(promote(edges.dtype, default_float())))
        counts = counts / widths / counts.sum()
    return counts, edges


def _even_edges(values: Array, bins: int, range: tuple[float, float] | None) -> Array:
    if bins < 1:
        raise ValueError(f"[histogram] bins must be at least 1, got {bins}.")
    dtype = values.dtype if kind_of(values.dtype) == "f" else default_float()
    if range is None and values.size:
        low, high = (edge.astype(dtype) for edge in (values.min(), values.max()))
        is_point = low == high
        low, high = where(is_point, low - 0.5, low), where(is_point, high + 0.5, high)
        indices = arange(bins, dtype=dtype, device=values.device)
        return concat([indices * ((high - low) / bins) + low, high.reshape(1)])
    first, last = map(float, range or (0, 1))
    if not (math.isfinite(first) and math.isfinite(last) and first <= last):
        raise ValueError(f"[histogram] range must be finite and ascending, got {range}.")
    if first == last:
        first, last = first - 0.5, last + 0.5
    return Array(from_numpy(np.linspace(first, last, bins + 1).astype(dtype), values.device))


def counts_in_bins(values: Array, edges: Array, weights: Any, *, is_even: bool) -> Array:
    """Count the elements in bins, or add up their weights.

    Parameters
    ----------
    is_even : bool
        Whether all bins have the same width.
    """
    index = bins_of(values, edges, is_even=is_even)
    return _counted(index, edges.size - 1, weights, "histogram")


def bins_of(values: Array, edges: Array, *, is_even: bool) -> Array:
    """Return the bin of each element, and for elements outside all bins the number of bins."""
    if is_even:
        return _even_bins(values, edges)
    index = searchsorted(edges, values, side="right") - 1
    index = where(values == edges[-1], edges.size - 2, index)
    return where(index < 0, edges.size - 1, index)  # includes NaN


def _even_bins(values: Array, edges: Array) -> Array:
    """Estimate the bin of each element and correct it by its edges."""
    count = edges.size - 1
    values, edges = (
        operand.astype(promote(operand.dtype, default_float())) for operand in (values, edges)
    )
    low, high = edges[0], edges[-1]
    is_inside = (values >= low) & (values <= high)
    guess = where(is_inside, (values - low) / (high - low) * count, 0).astype(int32)
    guess = clip(guess, 0, count - 1)
    guess = guess - (values < elements_at(edges, guess)).astype(int32)
    guess = guess + (values >= elements_at(edges, guess + 1)).astype(int32)
    return where(is_inside, minimum(guess, count - 1), count)


def _given_edges(bins: Any, values: Array) -> Array:
    if isinstance(bins, Array):
        edges = bins
    else:
        given = to_numpy(bins, "histogram")
        if (given[1:] < given[:-1]).any():
            raise ValueError(f"[histogram] the edges of bins must ascend, got {bins}.")
        edges = Array(from_numpy(given, values.device))
    if edges.ndim != 1 or edges.size < 2:
        raise ValueError(f"[histogram] expected at least two edges, got shape {edges.shape}.")
    return edges


def _counted(indices: Array, count: int, weights: Any, where: str) -> Array:
    """Count the occurrences of each integer below `count`; none is negative."""
    if weights is not None:
        weight = Array(to_node(weights, where, device=indices.device)).ravel()
        if weight.size != indices.size:
            raise ValueError(f"[{where}] got {weight.size} weights for {indices.size} elements.")
        return Array(weighted_counts_of(indices._node, weight._node, count))
    return Array(counts_of(indices._node, count, settings.sorting))


def counts_of(indices: Node, count: int, setting: str) -> Node:
    """Bind the primitive of `bincount`: the occurrences of each integer below `count`."""
    return bind("bincount", [indices], (count, setting), (int64, (count,)))[0]


def weighted_counts_of(indices: Node, weights: Node, count: int) -> Node:
    """Bind the primitive of `bincount` with weights."""
    result = weights.dtype, (count,)
    return bind("weighted_bincount", [indices, weights], (count,), result)[0]


def _is_by_bins(indices: Node, count: int, setting: str) -> bool:
    is_supported = 0 < count <= MAX_BINS and indices.size > 0
    return is_supported and by_kernels("bincount", uint32, indices.device, indices.size, setting)


def _by_bins(indices: Node, count: int, setting: str) -> Node:
    return summed(bin_counts(cast(indices, uint32), count), "sum", 0, int64, False)


def _is_by_scatter(indices: Node, count: int, setting: str) -> bool:
    return setting != "host" and indices.size < 2**32


def _by_scatter(indices: Node, count: int, setting: str) -> Node:
    ones = broadcast(constant(1, uint32, indices.device), indices.shape)
    return cast(sums_by_index(ones, indices, count), int64)


def _weighted_by_scatter(indices: Node, weights: Node, count: int) -> Node:
    """On the CPU, sums are in double precision, as NumPy's are."""
    dtype = weights.dtype
    if not indices.device.traits.is_simt:
        dtype = complex128 if kind_of(dtype) == "c" else float64
    return cast(sums_by_index(cast(weights, dtype), indices, count), weights.dtype)


def _counts_on_host(indices: Node, count: int, setting: str) -> Node:
    return host_call(_bincount, [indices], (count,), (int64, (count,)))[0]


implement("bincount", Implementation(_by_bins, _is_by_bins),
          Implementation(_by_scatter, _is_by_scatter), _counts_on_host,
          is_structural=True)  # fmt: skip
implement("weighted_bincount", _weighted_by_scatter)


def _bincount(indices: np.ndarray, count: int) -> np.ndarray:
    counts: np.ndarray = np.bincount(indices, minlength=count)[:count]
    return counts
