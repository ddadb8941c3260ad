"""Elements of what there is: in another order, some of them, or by their probabilities."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from metalloid.arrays.array import Array
from metalloid.arrays.execution.calls import host_call
from metalloid.arrays.functions.creation import arange
from metalloid.arrays.functions.elementwise import log
from metalloid.arrays.functions.sorting import argsort
from metalloid.arrays.ir.dtypes import float32, int64, kind_of, uint64
from metalloid.arrays.ir.node import broadcast, reshape
from metalloid.arrays.ir.operands import axes_of, broadcast_shape, to_node
from metalloid.arrays.ir.views import as_shape, moved_axes, sliced, whole
from metalloid.arrays.lowering.indexing import gathered
from metalloid.random.distributions import gumbel
from metalloid.random.integers import Shape, bits, randint


def permutation(x: Any, axis: int = 0, key: Array | None = None) -> Array:
    """The elements along an axis in a random order; of a whole number n, the numbers below n.

    Notes
    -----
    The order is that of 64 random bits for each. Among n elements two have the same bits, and keep
    their order, with a probability of at most n**2 / 2**65.

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
    """What is chosen from, and along which axis."""
    if isinstance(x, int | np.integer):
        return arange(operator.index(x)), 0
    node = to_node(x, where)
    if not node.shape:
        raise ValueError(f"[{where}] expected a whole number or elements along an axis, got {x!r}.")
    return Array(node), axes_of(where, axis, len(node.shape))[0]


def _taken(x: Array, indices: Array, axis: int, batch: int) -> Array:
    """Elements along an axis at places that are known to exist, whose axes take its place.

    All but the first ones, of several keys (`batch`): these come in front.
    """
    result = gathered(x._node, [axis], [indices._node])
    axes = range(batch, indices.ndim)
    return Array(moved_axes(result, tuple(axes), tuple(axis + k for k in axes)))


def categorical(logits: Any, axis: int = -1, shape: Shape | None = None,
                num_samples: int | None = None, key: Array | None = None) -> Array:  # fmt: skip
    """Places along an axis, with probabilities proportional to the exponentials of the logits.

    Parameters
    ----------
    logits : Array
    axis : int
        Of the categories.
    shape : int or sequence of int, optional
        Of the result; the other axes of `logits` broadcast to it. They are its shape without one.
    num_samples : int, optional
        Instead of a shape: this many for each, along a last axis.

    Notes
    -----
    The place of the largest sum of a logit and a number with the Gumbel distribution.

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
    """Some of the elements along an axis, or of the numbers below a whole number.

    Parameters
    ----------
    a : Array or int
    shape : int or sequence of int
        Of what is chosen; it takes the place of the axis.
    replace : bool
        Whether an element may be chosen again.
    p : Array, optional
        Probabilities of the elements, or weights; without, each is as likely as the others.

    Raises
    ------
    ValueError
        If there are not enough elements; when it is computed, if weights are negative or all 0.

    Notes
    -----
    Without replacement they are the first of a permutation; with weights, those with the largest
    sums of the logarithm of the weight and a number with the Gumbel distribution [1]_.

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
            raise ValueError(f"[{where}] p has the shape {weights.shape}, there are {n} elements.")
        if replace:
            source = bits(extents, uint64, key)
            wanted = int64, source.shape
            (result,) = host_call(_by_weight, [weights._node, source._node], (), wanted)
            indices = Array(result)
        else:
            score = log(weights.astype(float32)) + gumbel(n, key=key)
            indices = _first(argsort(score, descending=True), extents)
    return _taken(elements, indices, along, indices.ndim - len(extents))


def _first(order: Array, shape: tuple[int, ...]) -> Array:
    """As many along the last axis as a shape has elements, in that shape."""
    *batch, _ = order.shape
    some = sliced(order._node, [*whole(tuple(batch)), (0, 1, math.prod(shape))])
    return Array(reshape(some, (*batch, *shape)))


def _by_weight(weights: np.ndarray, source: np.ndarray) -> np.ndarray:
    """Places where the running sum of the weights passes a random part of the whole."""
    sums = np.cumsum(weights, dtype=np.float64)
    if weights.min() < 0 or not 0 < sums[-1] < np.inf:
        raise ValueError(f"[random.choice] no probabilities are proportional to {weights}.")
    part = (source >> np.uint64(11)) * 2.0**-53
    return np.asarray(np.searchsorted(sums, part * sums[-1], side="right"))


__all__ = ["categorical", "choice", "permutation"]
