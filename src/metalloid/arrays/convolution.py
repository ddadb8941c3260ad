"""Convolution and pooling over any number of axes, channels last.

Every window is a strided slice. Pooling combines the slices, which is one kernel; convolution puts
them side by side and multiplies by the weights as one matrix (K. Chellapilla et al., "High
performance convolutional neural networks for document processing", 2006).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from metalloid.arrays.array_object import Array
from metalloid.arrays.build import binary, op
from metalloid.arrays.layout import Ints
from metalloid.arrays.linear import matmul
from metalloid.arrays.manipulation import concat, pad, permute_dims
from metalloid.arrays.movement import joined, sliced, whole
from metalloid.arrays.node import Node, cast, reshape
from metalloid.arrays.types import kind_of, promote

PerAxis = int | Sequence[int]


def conv1d(x: Array, weight: Array, /, stride: PerAxis = 1, padding: PerAxis = 0,
           dilation: PerAxis = 1, groups: int = 1) -> Array:  # fmt: skip
    """Convolution along one axis; see `conv_general`."""
    return _convolved("conv1d", 1, x, weight, stride, padding, dilation, groups)


def conv2d(x: Array, weight: Array, /, stride: PerAxis = 1, padding: PerAxis = 0,
           dilation: PerAxis = 1, groups: int = 1) -> Array:  # fmt: skip
    """Convolution along two axes; see `conv_general`.

    Examples
    --------
    >>> import metalloid as mtl
    >>> picture = mtl.ones((1, 3, 3, 1))
    >>> mtl.conv2d(picture, mtl.ones((1, 2, 2, 1)))[0, :, :, 0]
    array([[4., 4.],
           [4., 4.]], dtype=float32)
    """
    return _convolved("conv2d", 2, x, weight, stride, padding, dilation, groups)


def conv3d(x: Array, weight: Array, /, stride: PerAxis = 1, padding: PerAxis = 0,
           dilation: PerAxis = 1, groups: int = 1) -> Array:  # fmt: skip
    """Convolution along three axes; see `conv_general`."""
    return _convolved("conv3d", 3, x, weight, stride, padding, dilation, groups)


def conv_general(x: Array, weight: Array, /, stride: PerAxis = 1, padding: PerAxis = 0,
                 dilation: PerAxis = 1, groups: int = 1) -> Array:  # fmt: skip
    """Convolution along all axes but the first and the last, as machine learning has it.

    Parameters
    ----------
    x : Array of shape (batch, ..., channels)
    weight : Array of shape (outputs, ..., channels / groups)
        Not turned round: it is a correlation.
    stride, padding, dilation : int or sequence of int
        Steps between windows, zeros on both sides, steps between a window's elements.
    groups : int
        Parts of the channels that do not see each other.

    Returns
    -------
    Array of shape (batch, ..., outputs)

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    return _convolved("conv_general", x.ndim - 2, x, weight, stride, padding, dilation, groups)


def _convolved(where: str, axes: int, x: Array, weight: Array, stride: PerAxis, padding: PerAxis,
               dilation: PerAxis, groups: int) -> Array:  # fmt: skip
    if x.ndim != axes + 2 or weight.ndim != axes + 2 or axes < 1:
        raise ValueError(
            f"[{where}] wants {axes + 2} axes (batch, ..., channels) and weights of as many, got "
            f"{x.shape} and {weight.shape}."
        )
    outputs, channels = weight.shape[0], weight.shape[-1]
    if groups < 1 or x.shape[-1] != channels * groups or outputs % groups:
        raise ValueError(
            f"[{where}] {x.shape[-1]} channels in {groups} groups, and weights of {weight.shape} "
            "do not fit."
        )
    dtype = promote(x.dtype, weight.dtype)
    x = _padded(Array(cast(x._node, dtype)), _per_axis(where, padding, axes), 0)
    weight = Array(cast(weight._node, dtype))
    size = weight.shape[1:-1]
    steps, spread = _per_axis(where, stride, axes), _per_axis(where, dilation, axes)
    windows = list(_windows(where, x._node, size, steps, spread))
    *outer, _ = windows[0].shape
    patches = _side_by_side(windows)
    results = []
    for group in range(groups):
        own = patches[..., group * channels : (group + 1) * channels]
        filters = weight[group * outputs // groups : (group + 1) * outputs // groups]
        rows = Array(reshape(own._node, (math.prod(outer), math.prod(size) * channels)))
        matrix = Array(reshape(filters._node, (outputs // groups, math.prod(size) * channels)))
        results.append(matmul(rows, permute_dims(matrix, (1, 0))))
    result = concat(results, axis=1) if groups > 1 else results[0]
    return Array(reshape(result._node, (*outer, outputs)))


def _side_by_side(windows: Sequence[Node]) -> Array:
    """Arrays of one shape along a new axis before the last."""
    *outer, channels = windows[0].shape
    shape = (*outer, len(windows), channels)
    places = []
    for k in range(len(windows)):
        place = whole(shape)
        place[-2] = (k, 1, 1)
        places.append(place)
    parts = [reshape(window, (*outer, 1, channels)) for window in windows]
    return Array(joined(parts, places, shape, windows[0].dtype))


def _windows(where: str, node: Node, size: Ints, stride: Ints,
             dilation: Ints) -> Iterator[Node]:  # fmt: skip
    """For each element of a window, what all windows have there."""
    extents = node.shape[1:-1]
    counts = [
        (n - d * (k - 1) - 1) // max(s, 1) + 1
        for n, k, s, d in zip(extents, size, stride, dilation, strict=True)
    ]
    if min(*stride, *dilation, *counts, *size) < 1:
        raise ValueError(
            f"[{where}] a window of {size} with stride {stride} and dilation {dilation} has no "
            f"place in {extents}."
        )
    for offset in itertools.product(*map(range, size)):
        numbers = whole(node.shape)
        for axis, (k, s, d, count) in enumerate(zip(offset, stride, dilation, counts, strict=True)):
            numbers[axis + 1] = (k * d, s, count)
        yield sliced(node, numbers)


def _per_axis(where: str, value: PerAxis, axes: int) -> Ints:
    numbers = (value,) * axes if isinstance(value, int) else tuple(value)
    if len(numbers) != axes:
        raise ValueError(f"[{where}] wants a number, or {axes}, got {value!r}.")
    return numbers


def _padded(x: Array, padding: Ints, value: Any) -> Array:
    if not any(padding):
        return x
    return pad(x, [(0, 0), *((n, n) for n in padding), (0, 0)], constant_values=value)


def max_pool(x: Array, /, size: PerAxis, stride: PerAxis | None = None,
             padding: PerAxis = 0) -> Array:  # fmt: skip
    """The largest element of every window, for each channel.

    Parameters
    ----------
    x : Array of shape (batch, ..., channels)
    size : int or sequence of int
        Of the windows.
    stride : int or sequence of int, optional
        Steps between windows; their size without.
    padding : int or sequence of int
        What never is the largest, on both sides.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.max_pool(mtl.arange(4).reshape(1, 4, 1), 2).flatten()
    array([1, 3], dtype=int64)
    """
    lowest = -math.inf if kind_of(x.dtype) == "f" else _lowest(x)
    return _pooled("max_pool", x, size, stride, padding, "maximum", lowest)[0]


def _lowest(x: Array) -> int:
    bits = 8 * x.itemsize
    return 0 if kind_of(x.dtype) == "u" else -(2 ** (bits - 1))


def avg_pool(x: Array, /, size: PerAxis, stride: PerAxis | None = None,
             padding: PerAxis = 0) -> Array:  # fmt: skip
    """The average of every window, for each channel; zeros of the padding count."""
    total, count = _pooled("avg_pool", x, size, stride, padding, "add", 0)
    return total / count


def _pooled(where: str, x: Array, size: PerAxis, stride: PerAxis | None, padding: PerAxis,
            function: str, border: Any) -> tuple[Array, int]:  # fmt: skip
    axes = x.ndim - 2
    if axes < 1:
        raise ValueError(f"[{where}] wants an array (batch, ..., channels), got {x.shape}.")
    extents = _per_axis(where, size, axes)
    steps = extents if stride is None else _per_axis(where, stride, axes)
    padded = _padded(x, _per_axis(where, padding, axes), border)
    windows = _windows(where, padded._node, extents, steps, (1,) * axes)
    combined = functools.reduce(
        lambda a, b: Array(binary(op(function), a, b)), (Array(node) for node in windows)
    )
    return combined, math.prod(extents)
