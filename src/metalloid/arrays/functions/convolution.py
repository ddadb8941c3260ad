"""Convolution and pooling over any number of axes; the last axis holds the channels.

The kernels are in ``windows.metal``. A convolution is computed as a matrix product whose second
factor, the matrix of windows, is never stored (implicit GEMM; S. Chetlur et al., "cuDNN: efficient
primitives for deep learning", 2014, section 3). On devices with matrix units that matrix is stored
(im2col; K. Chellapilla et al., "High performance convolutional neural networks for document
processing", 2006). Small windows are pooled by an expression, which fuses with its neighbours.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from metalloid.arrays.array import Array, as_array, as_arrays
from metalloid.arrays.functions.manipulation import pad
from metalloid.arrays.ir.dtypes import float32, kind_of, promote
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.node import Node, broadcast, cast, permute, reshape
from metalloid.arrays.ir.operands import as_number, binary, binary_operands, op
from metalloid.arrays.ir.primitives import Implementation, bind, implement
from metalloid.arrays.ir.views import concatenated
from metalloid.arrays.library.window import convolved, correlated, pooled, pooled_type
from metalloid.arrays.lowering.matmul import stacked_product
from metalloid.arrays.lowering.windows import (
    Overlaps,
    Windows,
    stacked_windows,
    window_elements,
)
from metalloid.settings import settings

PerAxis = int | Sequence[int]
#: Windows are numbered by 32-bit integers.
_MAX_WINDOWS = 2**32 - 1
#: Windows of at most this many elements are pooled by an expression.
_FEW_ELEMENTS = 4


def conv1d(x: Any, weight: Any, /, stride: PerAxis = 1, padding: PerAxis = 0,
           dilation: PerAxis = 1, groups: int = 1) -> Array:  # fmt: skip
    """Convolve along one axis; see `conv_general`."""
    return _convolved(
        where="conv1d", axes=1, x=x, weight=weight,
        stride=stride, padding=padding, dilation=dilation, groups=groups,
    )  # fmt: skip


def conv2d(x: Any, weight: Any, /, stride: PerAxis = 1, padding: PerAxis = 0,
           dilation: PerAxis = 1, groups: int = 1) -> Array:  # fmt: skip
    """Convolve along two axes; see `conv_general`.

    Examples
    --------
    >>> import metalloid as mtl
    >>> picture = mtl.ones((1, 3, 3, 1))
    >>> mtl.conv2d(picture, mtl.ones((1, 2, 2, 1)))[0, :, :, 0]
    array([[4., 4.],
           [4., 4.]], dtype=float32)
    """
    return _convolved(
        where="conv2d", axes=2, x=x, weight=weight,
        stride=stride, padding=padding, dilation=dilation, groups=groups,
    )  # fmt: skip


def conv3d(x: Any, weight: Any, /, stride: PerAxis = 1, padding: PerAxis = 0,
           dilation: PerAxis = 1, groups: int = 1) -> Array:  # fmt: skip
    """Convolve along three axes; see `conv_general`."""
    return _convolved(
        where="conv3d", axes=3, x=x, weight=weight,
        stride=stride, padding=padding, dilation=dilation, groups=groups,
    )  # fmt: skip


def conv_general(x: Any, weight: Any, /, stride: PerAxis = 1, padding: PerAxis = 0,
                 dilation: PerAxis = 1, groups: int = 1) -> Array:  # fmt: skip
    """Convolve along all axes except the first and the last.

    As in machine learning, the weights are not flipped: this is a cross-correlation.

    Parameters
    ----------
    x : Array of shape (batch, ..., channels)
    weight : Array of shape (outputs, ..., channels / groups)
        One filter per output channel.
    stride, padding, dilation : int or sequence of int
        Distance between windows, width of the zero padding at both ends of an axis, and distance
        between the elements of a window. An int applies to all axes.
    groups : int
        Number of groups of channels. Outputs of a group depend only on its own channels.

    Returns
    -------
    Array of shape (batch, ..., outputs)

    Raises
    ------
    ValueError
        If the shapes are incompatible.
    """
    x, weight = as_arrays("conv_general", x, weight)
    return _convolved(
        where="conv_general", axes=x.ndim - 2, x=x, weight=weight,
        stride=stride, padding=padding, dilation=dilation, groups=groups,
    )  # fmt: skip


def _convolved(where: str, axes: int, x: Any, weight: Any, stride: PerAxis, padding: PerAxis,
               dilation: PerAxis, groups: int) -> Array:  # fmt: skip
    x, weight = as_arrays(where, x, weight)
    if x.ndim != axes + 2 or weight.ndim != axes + 2 or axes < 1:
        raise ValueError(
            f"[{where}] expected arrays and weights with {axes + 2} axes (batch, ..., channels), "
            f"got shapes {x.shape} and {weight.shape}."
        )
    outputs, channels = weight.shape[0], weight.shape[-1]
    if groups < 1 or x.shape[-1] != channels * groups or outputs % groups:
        raise ValueError(
            f"[{where}] weights of shape {weight.shape} are incompatible with {x.shape[-1]} "
            f"channels in {groups} groups."
        )
    node, filters = binary_operands(where, x, weight)
    dtype = promote(x.dtype, weight.dtype)
    x = _padded(Array(cast(node, dtype)), _per_axis(where, padding, axes), 0)
    windows = Windows(x.shape, weight.shape[1:-1], _per_axis(where, stride, axes),
                      _per_axis(where, dilation, axes))  # fmt: skip
    _check(where, windows)
    settings_of_products = settings.products, settings.tf32
    return Array(convolution(x._node, cast(filters, dtype), windows, groups, settings_of_products))


def convolution(x: Node, weights: Node, windows: Windows, groups: int,
                settings_of_products: tuple[str, bool]) -> Node:  # fmt: skip
    """Bind the primitive of a convolution without padding, of operands of one type.

    Its gradients are products with the settings of the call.
    """
    shape = (x.shape[0], *windows.counts, weights.shape[0])
    params = windows, groups, settings_of_products
    return bind("convolution", [x, weights], params, (x.dtype, shape))[0]


def correlation(x: Node, y: Node, overlaps: Overlaps) -> Node:
    """Bind the primitive of the correlation or convolution of two vectors of one type."""
    return bind("correlation", [x, y], (overlaps,), (x.dtype, (overlaps.windows,)))[0]


def _is_empty(x: Node, weights: Node, *params: Any) -> bool:
    return not x.size or not weights.size


def _zeros(x: Node, weights: Node, windows: Windows, *params: Any) -> Node:
    shape = (x.shape[0], *windows.counts, weights.shape[0])
    return broadcast(as_number(0, x.dtype, x.device), shape)


def _has_matrix_units(x: Node, *params: Any) -> bool:
    return x.dtype.name in x.device.traits.matrices


def _filters_as_columns(weights: Node) -> Node:
    """A matrix with a column for each filter."""
    outputs = weights.shape[0]
    return permute(reshape(weights, (outputs, weights.size // outputs)), (1, 0))


def _by_im2col(x: Node, weights: Node, windows: Windows, groups: int,
               settings_of_products: tuple[str, bool]) -> Node:  # fmt: skip
    """Convolve by matrix products with a stored matrix of windows."""
    patches, filters = Array(stacked_windows(x, windows)), Array(_filters_as_columns(weights))
    *outer, elements, channels = patches.shape
    channels, outputs = channels // groups, filters.shape[1] // groups
    results = []
    for group in range(groups):
        own = patches[..., group * channels : (group + 1) * channels]
        rows = reshape(own._node, (math.prod(outer), elements * channels))
        columns = filters[:, group * outputs : (group + 1) * outputs]
        results.append(stacked_product(rows, columns._node, settings_of_products))
    result = concatenated(results, 1) if groups > 1 else results[0]
    return reshape(result, (*outer, outputs * groups))


def _by_launch(x: Node, weights: Node, windows: Windows, groups: int, *params: Any) -> Node:
    return convolved(x, _filters_as_columns(weights), windows, groups)


implement("convolution", Implementation(_zeros, _is_empty),
          Implementation(_by_im2col, _has_matrix_units), _by_launch)  # fmt: skip
implement("correlation", correlated, is_structural=True)


def _check(where: str, windows: Windows) -> None:
    shape, size, stride, dilation = windows
    if min(*stride, *dilation, *windows.counts, *size) < 1:
        raise ValueError(
            f"[{where}] a window of {size} with stride {stride} and dilation {dilation} does not "
            f"fit into {shape[1:-1]}."
        )
    if math.prod(shape[:1] + windows.counts) > _MAX_WINDOWS:
        raise ValueError(f"[{where}] {shape} has more than {_MAX_WINDOWS} windows; split it.")


def _per_axis(where: str, value: PerAxis, axes: int) -> Ints:
    numbers = (value,) * axes if isinstance(value, int) else tuple(value)
    if len(numbers) != axes:
        raise ValueError(f"[{where}] expected an int or {axes} of them, got {value!r}.")
    return numbers


def _padded(x: Array, padding: Ints, value: Any) -> Array:
    if not any(padding):
        return x
    return pad(x, [(0, 0), *((n, n) for n in padding), (0, 0)], constant_values=value)


def max_pool(x: Any, /, size: PerAxis, stride: PerAxis | None = None,
             padding: PerAxis = 0) -> Array:  # fmt: skip
    """Return the largest element of every window, for each channel.

    Parameters
    ----------
    x : Array of shape (batch, ..., channels)
    size : int or sequence of int
        Size of a window.
    stride : int or sequence of int, optional
        Distance between windows. By default their size, so that they do not overlap.
    padding : int or sequence of int
        Width of the padding at both ends of an axis. Padding is never the largest element.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.max_pool(mtl.arange(4).reshape(1, 4, 1), 2).flatten()
    array([1, 3], dtype=int64)
    """
    x = as_array(x, "max_pool")
    lowest = -math.inf if kind_of(x.dtype) == "f" else _lowest(x)
    return _pooled("max_pool", x, size, stride, padding, lowest, largest=True)[0]


def _lowest(x: Array) -> int:
    bits = 8 * x.itemsize
    return 0 if kind_of(x.dtype) == "u" else -(2 ** (bits - 1))


def avg_pool(x: Any, /, size: PerAxis, stride: PerAxis | None = None,
             padding: PerAxis = 0) -> Array:  # fmt: skip
    """Return the mean of every window, for each channel. Padding counts as zeros."""
    x = as_array(x, "avg_pool")
    dtype = x.dtype if kind_of(x.dtype) in "fc" else float32
    floats = Array(cast(x._node, dtype))
    total, windows = _pooled("avg_pool", floats, size, stride, padding, 0, largest=False)
    return Array(cast((total / math.prod(windows.size))._node, dtype))


def _pooled(where: str, x: Array, size: PerAxis, stride: PerAxis | None, padding: PerAxis,
            border: Any, largest: bool) -> tuple[Array, Windows]:  # fmt: skip
    axes = x.ndim - 2
    if axes < 1:
        raise ValueError(f"[{where}] expected an array (batch, ..., channels), got {x.shape}.")
    extents = _per_axis(where, size, axes)
    steps = extents if stride is None else _per_axis(where, stride, axes)
    padded = _padded(x, _per_axis(where, padding, axes), border)
    windows = Windows(padded.shape, extents, steps, (1,) * axes)
    _check(where, windows)
    return Array(pooling(padded._node, windows, largest)), windows


def pooling(x: Node, windows: Windows, largest: bool) -> Node:
    """Bind the primitive of the maximum or the sum of each window."""
    result = pooled_type(x.dtype, largest), (x.shape[0], *windows.counts, x.shape[-1])
    return bind("max_pool" if largest else "sum_pool", [x], (windows,), result)[0]


def _implement_pooling(name: str, largest: bool) -> None:
    combine = op("maximum" if largest else "add")

    def zeros(x: Node, windows: Windows) -> Node:
        number = as_number(0, pooled_type(x.dtype, largest), x.device)
        return broadcast(number, (x.shape[0], *windows.counts, x.shape[-1]))

    def by_expression(x: Node, windows: Windows) -> Node:
        dtype = pooled_type(x.dtype, largest)
        elements = (Array(cast(node, dtype)) for node in window_elements(x, windows))
        return functools.reduce(lambda a, b: Array(binary(combine, a, b)), elements)._node

    implement(
        name,
        Implementation(zeros, lambda x, windows: not x.size),
        Implementation(by_expression, lambda x, windows: math.prod(windows.size) <= _FEW_ELEMENTS),
        functools.partial(pooled, largest=largest),
    )


_implement_pooling("max_pool", largest=True)
_implement_pooling("sum_pool", largest=False)
