"""Softmax and its relatives. The largest element of each row is subtracted first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metalloid.arrays.array import Array, as_array
from metalloid.arrays.functions.elementwise import exp, isfinite, log
from metalloid.arrays.functions.searching import take_along_axis
from metalloid.arrays.functions.select import where
from metalloid.arrays.ir.dtypes import float32, kind_of
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.node import Node
from metalloid.arrays.ir.operands import axes_of
from metalloid.nn.primitives import as_float, call, computed_type, define_composition
from metalloid.transforms.rules.control import stopped

Axis = int | Sequence[int] | None
Nodes = Sequence["Node | None"]


def softmax(x: Any, /, axis: Axis = None, *, precise: bool = False) -> Array:
    """Return ``exp(x) / sum(exp(x))`` along axes.

    Parameters
    ----------
    x : Array
    axis : int or sequence of int, optional
        By default all axes.
    precise : bool
        For compatibility. Halves are always accumulated in float32.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.nn.softmax(mtl.asarray([1000.0, 1000.0]))
    array([0.5, 0.5], dtype=float32)
    """
    x = as_float("softmax", x)
    return call("nn.softmax", [x], (_from_end("softmax", axis, x),), x.dtype, x.shape)


def softmin(x: Any, axis: int = -1) -> Array:
    """Return the `softmax` of ``-x``."""
    return softmax(-as_float("softmin", x), axis)


def log_softmax(x: Any, /, axis: Axis = -1) -> Array:
    """Return the logarithm of the `softmax`, without its loss of digits.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.nn.log_softmax(mtl.asarray([0.0, -1000.0]))
    array([    0., -1000.], dtype=float32)
    """
    x = as_float("log_softmax", x)
    return call("nn.log_softmax", [x], (_from_end("log_softmax", axis, x),), x.dtype, x.shape)


def logsumexp(x: Any, /, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return ``log(sum(exp(x)))`` along axes, without an overflow.

    Examples
    --------
    >>> import metalloid as mtl
    >>> float(mtl.nn.logsumexp(mtl.asarray([1000.0, 0.0])))
    1000.0
    """
    x = as_float("logsumexp", x)
    axes = _from_end("logsumexp", axis, x)
    shape = tuple(1 if k - x.ndim in axes else n for k, n in enumerate(x.shape))
    result = call("nn.logsumexp", [x], (axes,), x.dtype, shape)
    return result if keepdims else result.squeeze(axes)


def cross_entropy(logits: Any, targets: Any) -> Array:
    """Return ``logsumexp(logits) - logits[target]`` over the last axis, in float32.

    Parameters
    ----------
    logits : Array
        Logarithms of probabilities up to a summand, along the last axis.
    targets : Array of integers
        The class of each row, of the shape of `logits` without its last axis.

    Raises
    ------
    ValueError
        If the shapes are incompatible.
    IndexError
        If a class is out of range.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.nn.cross_entropy(mtl.asarray([[0.0, 0.0], [50.0, 0.0]]), mtl.asarray([1, 0]))
    array([0.6931472, 0.       ], dtype=float32)
    """
    logits, targets = as_float("cross_entropy", logits), as_array(targets, "cross_entropy")
    if kind_of(targets.dtype) not in "iu":
        raise TypeError(f"[cross_entropy] targets must be integers, got {targets.dtype}.")
    if logits.ndim == 0 or targets.shape != logits.shape[:-1]:
        raise ValueError(
            f"[cross_entropy] targets of shape {targets.shape} are incompatible with logits of "
            f"shape {logits.shape}: expected {logits.shape[:-1]}."
        )
    scores = logits.astype(computed_type(logits.dtype))
    total = logsumexp(scores, -1)
    return (total - take_along_axis(scores, targets[..., None], -1)[..., 0]).astype(float32)


def _from_end(where: str, axis: Axis, x: Array) -> Ints:
    """Axes as negative numbers, which do not change if a batch adds an axis before them."""
    return tuple(k - x.ndim for k in axes_of(where, axis, x.ndim))


def _computed(x: Array) -> Array:
    return x.astype(computed_type(x.dtype))


def _shifted(x: Array, axes: Ints) -> Array:
    return x - Array(stopped(x.max(axes, keepdims=True)._node))


def _softmax(x: Array, axes: Ints) -> Array:
    powers = exp(_shifted(_computed(x), axes))
    return (powers / powers.sum(axes, keepdims=True)).astype(x.dtype)


def _log_softmax(x: Array, axes: Ints) -> Array:
    shifted = _shifted(_computed(x), axes)
    return (shifted - log(exp(shifted).sum(axes, keepdims=True))).astype(x.dtype)


def _logsumexp(x: Array, axes: Ints) -> Array:
    values = _computed(x)
    largest = Array(stopped(values.max(axes, keepdims=True)._node))
    shift = where(isfinite(largest), largest, 0)
    return (log(exp(values - shift).sum(axes, keepdims=True)) + shift).astype(x.dtype)


def _softmax_tangents(args: Nodes, params: Any, results: Any, tangents: Nodes) -> Nodes:
    (x,), (t,), (axes,) = args, tangents, params
    if x is None or t is None:
        return [None]
    along, y = _computed(Array(t)), _softmax(_computed(Array(x)), axes)
    return [(y * (along - (y * along).sum(axes, keepdims=True))).astype(x.dtype)._node]


def _log_softmax_tangents(args: Nodes, params: Any, results: Any, tangents: Nodes) -> Nodes:
    (x,), (t,), (axes,) = args, tangents, params
    if x is None or t is None:
        return [None]
    along, y = _computed(Array(t)), _softmax(_computed(Array(x)), axes)
    return [(along - (y * along).sum(axes, keepdims=True)).astype(x.dtype)._node]


def _logsumexp_tangents(args: Nodes, params: Any, results: Any, tangents: Nodes) -> Nodes:
    (x,), (t,), (axes,) = args, tangents, params
    if x is None or t is None:
        return [None]
    along, y = _computed(Array(t)), _softmax(_computed(Array(x)), axes)
    return [(y * along).sum(axes, keepdims=True).astype(x.dtype)._node]


define_composition("nn.softmax", _softmax, tangents=_softmax_tangents)
define_composition("nn.log_softmax", _log_softmax, tangents=_log_softmax_tangents)
define_composition("nn.logsumexp", _logsumexp, tangents=_logsumexp_tangents)
