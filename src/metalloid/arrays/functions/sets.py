"""Set functions of the array API."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from metalloid.arrays.array import Array, as_array
from metalloid.arrays.execution.calls import host_call
from metalloid.arrays.execution.evaluate import evaluate
from metalloid.arrays.functions.creation import asarray, full
from metalloid.arrays.functions.elementwise import equal, minimum, not_equal
from metalloid.arrays.functions.scans import cumulative_sum
from metalloid.arrays.functions.searching import diff, elements_at, insertion_points
from metalloid.arrays.functions.sorting import argsort, comparable, sort, sorted_along
from metalloid.arrays.ir.dtypes import bool_, int64, promote
from metalloid.arrays.ir.host_arrays import from_result
from metalloid.arrays.ir.node import Node, broadcast, constant
from metalloid.arrays.ir.operands import binary_operands
from metalloid.arrays.ir.primitives import Implementation, bind, implement
from metalloid.arrays.ir.views import concatenated
from metalloid.arrays.lowering import host_compaction
from metalloid.arrays.lowering.assignment import updated
from metalloid.arrays.lowering.indexing import nonzero_indices
from metalloid.arrays.lowering.sort_dispatch import by_kernels
from metalloid.runtime.devices.device import Device
from metalloid.settings import settings


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Array
    inverse_indices: Array


def unique_all(x: Any, /) -> UniqueAll:
    """Return the sorted distinct values, their first indices, the inverse, and their counts.

    The inverse indices reconstruct `x` from the values. Every NaN is distinct. `x` is evaluated:
    the result's shape depends on its values.

    Examples
    --------
    >>> import metalloid as mtl
    >>> [result.tolist() for result in mtl.unique_all(mtl.asarray([2, 1, 2]))]
    [[1, 2], [1, 0], [1, 0, 1], [1, 2]]
    """
    x = as_array(x, "unique_all")
    if not by_kernels("unique_all", x.dtype, x.device, x.size, settings.sorting):
        values, indices, inverse, counts = _by_numpy(
            x, return_index=True, return_inverse=True, return_counts=True
        )  # fmt: skip
        return UniqueAll(values, indices, inverse.reshape(x.shape), counts)
    order = argsort(x.ravel())
    runs = _Runs(elements_at(x.ravel(), order))
    group = cumulative_sum(runs.is_first.astype(int64)) - 1
    inverse = Array(updated(group._node, order, group)).reshape(x.shape)
    return UniqueAll(runs.values, elements_at(order, runs.starts), inverse, runs.counts)


def unique_counts(x: Any, /) -> UniqueCounts:
    """Return the sorted distinct values and their counts."""
    x = as_array(x, "unique_counts")
    if not by_kernels("unique_counts", x.dtype, x.device, x.size, settings.sorting):
        return UniqueCounts(*_by_numpy(x, return_counts=True))
    runs = _Runs(sort(x.ravel()))
    return UniqueCounts(runs.values, runs.counts)


def unique_inverse(x: Any, /) -> UniqueInverse:
    """Return the sorted distinct values, and the indices that reconstruct `x` from them."""
    x = as_array(x, "unique_inverse")
    if not by_kernels("unique_all", x.dtype, x.device, x.size, settings.sorting):
        values, inverse = _by_numpy(x, return_inverse=True)
        return UniqueInverse(values, inverse.reshape(x.shape))
    result = unique_all(x)
    return UniqueInverse(result.values, result.inverse_indices)


def unique_values(x: Any, /) -> Array:
    """Return the sorted distinct values.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.unique_values(mtl.asarray([2, 1, 2]))
    array([1, 2], dtype=int64)
    """
    x = as_array(x, "unique_values")
    if not by_kernels("unique_counts", x.dtype, x.device, x.size, settings.sorting):
        return Array(_distinct(np.asarray(x), x.device))
    return unique_counts(x).values


def _distinct(x: np.ndarray, device: Device) -> Node:
    """The sorted distinct values, every NaN among them.

    NumPy's function looks up integers in a hash table first, which takes longer than to sort them.
    """
    ordered = np.sort(comparable(x), axis=None)
    is_first = np.ones(ordered.shape, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    if ordered.dtype == x.dtype:
        return host_compaction.elements_at_true(ordered, is_first, device)
    return from_result(np.compress(is_first, ordered).astype(x.dtype), device)


def _by_numpy(x: Array, **options: bool) -> list[Array]:
    """Return the results of NumPy's `unique`; `x` is evaluated."""
    unique: Any = np.unique
    results = unique(comparable(np.asarray(x)), equal_nan=False, **options)
    values, *more = results
    results = values.astype(x.dtype, copy=False), *more
    return [Array(from_result(result, x.device)) for result in results]


class _Runs:
    """Runs of equal elements in a sorted array, which is evaluated.

    Attributes
    ----------
    is_first : Array
        Mask of elements that differ from their predecessor; NaN differs from NaN.
    starts : Array
        Index of the first element of each run.
    """

    def __init__(self, ordered: Array) -> None:
        self._ordered = ordered
        begin = broadcast(constant(True, bool_, ordered.device), (min(ordered.size, 1),))
        changes = (ordered[1:] != ordered[:-1])._node
        self.is_first = Array(concatenated([begin, changes], 0))
        evaluate([ordered._node, self.is_first._node])
        self.starts = Array(*nonzero_indices(self.is_first._node))

    @property
    def values(self) -> Array:
        """The value of each run."""
        return elements_at(self._ordered, self.starts)

    @property
    def counts(self) -> Array:
        """The length of each run."""
        return diff(self.starts, append=asarray([self._ordered.size], device=self.starts.device))


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Array:
    """Return whether each element of `x1` occurs in `x2`.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.isin(mtl.asarray([1, 2, 3]), mtl.asarray([3, 1]))
    array([ True, False,  True], dtype=bool)
    """
    first, second = (Array(node) for node in binary_operands("isin", x1, x2))
    dtype = promote(first.dtype, second.dtype)
    first, second = first.astype(dtype), second.astype(dtype).ravel()
    operands = [first._node, second._node]
    return Array(*bind("isin", operands, (invert, settings.sorting), (bool_, first.shape)))


def _is_by_kernels(x1: Node, x2: Node, invert: bool, setting: str) -> bool:
    return by_kernels("isin", x1.dtype, x1.device, x1.size, setting)


def _isin_by_kernels(x1: Node, x2: Node, invert: bool, setting: str) -> Node:
    if not x2.size:
        return full(x1.shape, invert, device=x1.device)._node
    ordered = sorted_along(x2, 0, False, setting)
    positions = Array(insertion_points(ordered, x1, "left", setting))
    nearest = elements_at(Array(ordered), minimum(positions, x2.size - 1))
    return (not_equal if invert else equal)(nearest, Array(x1))._node


def _isin_on_host(x1: Node, x2: Node, invert: bool, setting: str) -> Node:
    return host_call(_isin, [x1, x2], (invert,), (bool_, x1.shape))[0]


implement("isin", Implementation(_isin_by_kernels, _is_by_kernels), _isin_on_host,
          is_structural=True)  # fmt: skip


def _isin(x1: np.ndarray, x2: np.ndarray, invert: bool) -> np.ndarray:
    return np.isin(comparable(x1), comparable(x2), invert=invert)
