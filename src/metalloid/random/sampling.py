"""Elements of what there is: in another order, some of them, or by their probabilities."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from metalloid.array.array_object import Array
from metalloid.array.build import axes_of, broadcast_shape, to_node
from metalloid.array.calls import host_call
from metalloid.array.creation import arange
from metalloid.array.elementwise import log
from metalloid.array.indexing import gathered
from metalloid.array.movement import as_shape, moved_axes
from metalloid.array.node import broadcast, reshape
from metalloid.array.searching import argsort
from metalloid.array.types import float32, int64, kind_of, uint64
from metalloid.random.distributions import gumbel
from metalloid.random.integers import Shape, bits, randint


def permutation(x: Any, axis: int = 0, key: Array | None = None) -> Array:
    """The elements along an axis in a random order; of a number n, the numbers below n.

    Notes
    -----
    The order is that of 64 random bits for each. Among n elements two have the same bits, and keep
    their order, with a probability of at most n**2 / 2**65.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.random.permutation(5, key=mtl.random.key(0))
    array([3, 2, 4, 1, 0], dtype=int64)
    """
    given, along = _elements("random.permutation", x, axis)
    order = argsort(bits(given.shape[along], uint64, key))
    return _taken(given, order, along)


def _elements(where: str, x: Any, axis: int) -> tuple[Array, int]:
    """What is chosen from, and along which axis."""
    try:
        given = arange(operator.index(x)) if getattr(x, "shape", ()) == () else None
    except TypeError:
        given = None
    if given is None:
        given = Array(to_node(x, where))
    if given.ndim == 0:
        raise ValueError(f"[{where}] wants a whole number or elements along an axis, got {x!r}.")
    return given, axes_of(where, axis, given.ndim)[0]


def _taken(x: Array, places: Array, axis: int) -> Array:
    """Elements along an axis at places that are known to exist; their axes take its place."""
    found = gathered(x._node, [axis], [places._node])
    axes = range(places.ndim)
    return Array(moved_axes(found, tuple(axes), tuple(axis + k for k in axes)))


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
    array([2, 2, 2, 2, 2, 0, 2, 2], dtype=int64)
    """
    where = "random.categorical"
    node = to_node(logits, where)
    if not node.shape or kind_of(node.dtype) != "f":
        raise TypeError(f"[{where}] wants floats along an axis, got {node.dtype}{node.shape}.")
    node = moved_axes(node, axes_of(where, axis, len(node.shape))[0], -1)
    *rest, categories = node.shape
    if num_samples is not None:
        if shape is not None:
            raise ValueError(f"[{where}] wants shape or num_samples, got both.")
        extents = (*rest, operator.index(num_samples))
        node = reshape(node, (*rest, 1, categories))
    else:
        extents = tuple(rest) if shape is None else as_shape(where, shape)
        if broadcast_shape(where, extents, tuple(rest)) != extents:
            raise ValueError(f"[{where}] logits of shape {tuple(rest)} do not broadcast to {extents}.")
    noise = gumbel((*extents, categories), float32, key)
    return (noise + Array(broadcast(node, noise.shape))).argmax(-1)


def choice(a: Any, shape: Shape = (), replace: bool = True, p: Any = None, axis: int = 0,
           key: Array | None = None) -> Array:  # fmt: skip
    """Some of the elements along an axis, or of the numbers below a whole number.

    Parameters
    ----------
    shape : int or sequence of int
        Of what is chosen; it takes the place of the axis.
    replace : bool
        Whether an element may be chosen again.
    p : Array, optional
        Probabilities, or weights, of the elements; without, they are the same.

    Raises
    ------
    ValueError
        If there are not enough elements.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.random.choice(10, 4, replace=False, key=mtl.random.key(0))
    array([7, 2, 6, 4], dtype=int64)
    """
    where = "random.choice"
    given, along = _elements(where, a, axis)
    extents, n = as_shape(where, shape), given.shape[along]
    weights = None if p is None else Array(to_node(p, where)).astype(float32)
    if weights is not None and weights.shape != (n,):
        raise ValueError(f"[{where}] p has the shape {weights.shape} for {n} elements.")
    size = math.prod(extents)
    if size > n * (n if replace else 1):
        pass
    return _taken(given, randint(0, n, extents, key=key), along)


__all__ = ["categorical", "choice", "permutation", "host_call", "int64", "log", "np"]
