"""Permutations, choices and categorical samples."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from metalloid.arrays.array import Array
from metalloid.arrays.execution.calls import host_call
from metalloid.arrays.functions.elementwise import log
from metalloid.arrays.functions.evenly_spaced import arange
from metalloid.arrays.functions.sorting import argsort
from metalloid.arrays.ir.dtypes import float32, int64, kind_of, uint64
from metalloid.arrays.ir.node import Node, broadcast, reshape
from metalloid.arrays.ir.operands import axes_of, to_node
from metalloid.arrays.ir.primitives import bind, implement
from metalloid.arrays.ir.views import as_shape, full_slices, moved_axes, sliced
from metalloid.arrays.lowering.indexing import gathered
from metalloid.kernels.strides import broadcast_shape
from metalloid.random.distributions import gumbel
from metalloid.random.integers import Shape, bits, randint


def permutation(x: Any, axis: int = 0, key: Array | None = None) -> Array:
    """Permute the elements along an axis, or the integers below an int, randomly.

    Notes
    -----
    The elements are sorted by 64 random bits each. The probability that two of n elements have
    equal bits, and so keep their order, is at most n**2 / 2**65.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.random.permutation(5, key=mtl.random.key(0))
    array([1, 0, 4, 3, 2], dtype=int64)
    """
    elements, along = _elements("random.permutation", x, axis)
    order = argsort(bits(elements.shape[along], uint64, key))
    return _taken(elements, order, along, order.ndim - 1)


def _elements(where: str, x: Any, axis: int) -> tuple[Array, int]:
    """Return the population and its axis."""
    if isinstance(x, int | np.integer):
        return arange(operator.index(x)), 0
    node = to_node(x, where)
    if not node.shape:
        raise ValueError(f"[{where}] expected an int or elements along an axis, got {x!r}.")
    return Array(node), axes_of(where, axis, len(node.shape))[0]


def _taken(x: Array, indices: Array, axis: int, batch: int) -> Array:
    """Return elements along an axis at valid indices, whose axes replace the axis.

    The first `batch` axes of the indices, those of several keys, come first in the result.
    """
    result = gathered(x._node, [axis], [indices._node])
    axes = range(batch, indices.ndim)
    return Array(moved_axes(result, tuple(axes), tuple(axis + k for k in axes)))


def categorical(logits: Any, axis: int = -1, shape: Shape | None = None,
                num_samples: int | None = None, key: Array | None = None) -> Array:  # fmt: skip
    """Draw indices along an axis, with probabilities proportional to the logits' exponentials.

    Parameters
    ----------
    logits : Array
    axis : int
        Axis of the categories.
    shape : int or sequence of int, optional
        Shape of the result, to which the other axes of `logits` broadcast. By default their shape.
    num_samples : int, optional
        Instead of a shape: the number of samples per distribution, along a new last axis.

    Notes
    -----
    The index of the largest sum of a logit and Gumbel noise (Gumbel-max trick).

    Examples
    --------
    >>> import metalloid as mtl
    >>> logits = mtl.log(mtl.asarray([0.1, 0.0, 0.9]))
    >>> mtl.random.categorical(logits, num_samples=8, key=mtl.random.key(0))
    array([0, 2, 2, 2, 2, 2, 2, 2], dtype=int64)
    """
    where = "random.categorical"
    node = to_node(logits, where)
    if not node.shape or kind_of(node.dtype) != "f":
        raise TypeError(
            f"[{where}] expected floats along an axis, got {node.dtype} of shape {node.shape}."
        )
    node = moved_axes(node, axes_of(where, axis, len(node.shape))[0], -1)
    *rest, categories = node.shape
    if num_samples is not None:
        if shape is not None:
            raise ValueError(f"[{where}] expected shape or num_samples, got both.")
        extents = (*rest, operator.index(num_samples))
        node = reshape(node, (*rest, 1, categories))
    else:
        extents = tuple(rest) if shape is None else as_shape(where, shape)
        if broadcast_shape(where, extents, tuple(rest)) != extents:
            raise ValueError(
                f"[{where}] logits of shape {tuple(rest)} do not broadcast to {extents}."
            )
    noise = gumbel((*extents, categories), key=key)
    score = noise + Array(broadcast(node, noise.shape))
    return score.argmax(-1)


def choice(a: Any, shape: Shape = (), replace: bool = True, p: Any = None, axis: int = 0,
           key: Array | None = None) -> Array:  # fmt: skip
    """Draw elements along an axis, or integers below an int.

    Parameters
    ----------
    a : Array or int
    shape : int or sequence of int
        Shape of the sample; it replaces the axis.
    replace : bool
        Whether elements may be drawn repeatedly.
    p : Array, optional
        Probabilities or weights of the elements; equal by default.

    Raises
    ------
    ValueError
        If there are not enough elements, or, at evaluation, if weights are negative or all 0.

    Notes
    -----
    Without replacement the sample is the start of a permutation. With weights, it is the elements
    with the largest sums of the weight's logarithm and Gumbel noise [1]_.

    References
    ----------
    .. [1] P. Efraimidis, P. Spirakis, "Weighted random sampling with a reservoir", Information
       Processing Letters 97, 2006.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.random.choice(10, 4, replace=False, key=mtl.random.key(0))
    array([9, 1, 5, 0], dtype=int64)
    """
    where = "random.choice"
    elements, along = _elements(where, a, axis)
    extents, n = as_shape(where, shape), elements.shape[along]
    size = math.prod(extents)
    if size > n and (not replace or n == 0):
        raise ValueError(f"[{where}] {n} elements are not enough for {size}.")
    if p is None:
        indices = randint(0, max(n, 1), extents, key=key) if replace else _first(
            argsort(bits(n, uint64, key)), extents)  # fmt: skip
    else:
        weights = Array(to_node(p, where))
        if weights.shape != (n,):
            raise ValueError(f"[{where}] p has shape {weights.shape}, expected ({n},).")
        if replace:
            source = bits(extents, uint64, key)
            indices = Array(weighted_choice(weights._node, source._node))
        else:
            score = log(weights.astype(float32)) + gumbel(n, key=key)
            indices = _first(argsort(score, descending=True), extents)
    return _taken(elements, indices, along, indices.ndim - len(extents))


def _first(order: Array, shape: tuple[int, ...]) -> Array:
    """Return the first elements along the last axis, reshaped to `shape`."""
    *batch, _ = order.shape
    some = sliced(order._node, [*full_slices(tuple(batch)), (0, 1, math.prod(shape))])
    return Array(reshape(some, (*batch, *shape)))


def weighted_choice(weights: Node, source: Node) -> Node:
    """Indices of a row of weights, drawn with 64 random bits each.

    If there are several rows, each belongs to a row of the bits: the leading axes are the same.
    """
    return bind("weighted_choice", [weights, source], (), (int64, source.shape))[0]


def _by_host(weights: Node, source: Node) -> Node:
    return host_call(_by_weight, [weights, source], (), (int64, source.shape))[0]


implement("weighted_choice", _by_host)


def _by_weight(weights: np.ndarray, source: np.ndarray) -> np.ndarray:
    """Return the indices at which the cumulative weights exceed uniform random numbers."""
    indices = np.empty(source.shape, np.int64)
    for row in np.ndindex(weights.shape[:-1]):
        sums = np.cumsum(weights[row], dtype=np.float64)
        if weights[row].min() < 0 or not 0 < sums[-1] < np.inf:
            raise ValueError(f"[random.choice] weights {weights[row]} are not probabilities.")
        uniform = (source[row] >> np.uint64(11)) * 2.0**-53
        indices[row] = np.searchsorted(sums, uniform * sums[-1], side="right")
    return indices
