"""Convolutions in the parameters of MLX, on the primitive of the array library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metalloid.arrays.array import Array, as_arrays
from metalloid.arrays.functions import convolution
from metalloid.arrays.functions.manipulation import flip as flipped
from metalloid.arrays.functions.manipulation import pad
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.views import full_slices, joined
from metalloid.transforms.tangents import zeros_like

PerAxis = int | Sequence[int]


def conv_general(x: Any, weight: Any, /, stride: PerAxis = 1, padding: Any = 0,
                 kernel_dilation: PerAxis = 1, input_dilation: PerAxis = 1, groups: int = 1,
                 flip: bool = False) -> Array:  # fmt: skip
    """Convolve along all axes except the first and the last.

    Parameters
    ----------
    x : Array of shape (batch, ..., channels)
    weight : Array of shape (outputs, ..., channels / groups)
        One filter per output channel.
    stride : int or sequence of int
        Distance between windows.
    padding : int, sequence of int, or a pair of sequences
        Width of the zero padding at both ends of an axis; or widths at the beginnings and at the
        ends of all axes. Negative widths remove elements.
    kernel_dilation, input_dilation : int or sequence of int
        Distance between the elements of a window, and between the elements of `x`, with zeros
        between them.
    groups : int
        Number of groups of channels. Outputs of a group depend only on its own channels.
    flip : bool
        Whether to flip filters, as in mathematics.

    Returns
    -------
    Array of shape (batch, ..., outputs)

    Raises
    ------
    ValueError
        If the shapes are incompatible.

    Examples
    --------
    >>> import metalloid as mtl
    >>> x = mtl.asarray([1.0, 2.0]).reshape(1, 2, 1)
    >>> mtl.nn.conv_general(x, mtl.ones((1, 2, 1)), padding=([1], [0])).flatten()
    array([1., 3.], dtype=float32)
    """
    return _general("conv_general", x, weight, stride, padding, kernel_dilation, input_dilation,
                    groups, flip)  # fmt: skip


def conv_transpose1d(x: Any, weight: Any, /, stride: PerAxis = 1, padding: PerAxis = 0,
                     dilation: PerAxis = 1, output_padding: PerAxis = 0,
                     groups: int = 1) -> Array:  # fmt: skip
    """Convolve along one axis, transposed; see `conv_transpose2d`."""
    return _transposed("conv_transpose1d", 1, x, weight, stride, padding, dilation, output_padding,
                       groups)  # fmt: skip


def conv_transpose2d(x: Any, weight: Any, /, stride: PerAxis = 1, padding: PerAxis = 0,
                     dilation: PerAxis = 1, output_padding: PerAxis = 0,
                     groups: int = 1) -> Array:  # fmt: skip
    """Multiply with the transpose of the matrix of a convolution along two axes.

    Parameters
    ----------
    x : Array of shape (batch, ..., channels)
    weight : Array of shape (outputs, ..., channels / groups)
    stride, padding, dilation : int or sequence of int
        Those of the convolution whose transpose this is.
    output_padding : int or sequence of int
        Elements that the result has more at the end of each axis.
    groups : int

    Examples
    --------
    >>> import metalloid as mtl
    >>> x = mtl.ones((1, 2, 2, 1))
    >>> mtl.nn.conv_transpose2d(x, mtl.ones((1, 2, 2, 1)))[0, :, :, 0]
    array([[1., 2., 1.],
           [2., 4., 2.],
           [1., 2., 1.]], dtype=float32)
    """
    return _transposed("conv_transpose2d", 2, x, weight, stride, padding, dilation, output_padding,
                       groups)  # fmt: skip


def conv_transpose3d(x: Any, weight: Any, /, stride: PerAxis = 1, padding: PerAxis = 0,
                     dilation: PerAxis = 1, output_padding: PerAxis = 0,
                     groups: int = 1) -> Array:  # fmt: skip
    """Convolve along three axes, transposed; see `conv_transpose2d`."""
    return _transposed("conv_transpose3d", 3, x, weight, stride, padding, dilation, output_padding,
                       groups)  # fmt: skip


def _transposed(where: str, axes: int, x: Any, weight: Any, stride: PerAxis, padding: PerAxis,
                dilation: PerAxis, output_padding: PerAxis, groups: int) -> Array:  # fmt: skip
    x, weight = as_arrays(where, x, weight)
    if x.ndim != axes + 2 or weight.ndim != axes + 2:
        raise ValueError(
            f"[{where}] expected arrays and weights with {axes + 2} axes (batch, ..., channels), "
            f"got shapes {x.shape} and {weight.shape}."
        )
    removed, gaps = _per_axis(where, padding, axes), _per_axis(where, dilation, axes)
    extra = _per_axis(where, output_padding, axes)
    spans = [gap * (k - 1) for gap, k in zip(gaps, weight.shape[1:-1], strict=True)]
    lows = [span - width for span, width in zip(spans, removed, strict=True)]
    highs = [low + more for low, more in zip(lows, extra, strict=True)]
    return _general(where, x, weight, 1, (lows, highs), dilation, stride, groups, is_flipped=True)


def _general(where: str, x: Any, weight: Any, stride: PerAxis, padding: Any,
             kernel_dilation: PerAxis, input_dilation: PerAxis, groups: int,
             is_flipped: bool) -> Array:  # fmt: skip
    x, weight = as_arrays(where, x, weight)
    axes = x.ndim - 2
    if axes < 1:
        raise ValueError(f"[{where}] expected an array (batch, ..., channels), got {x.shape}.")
    lows, highs = _widths(where, padding, axes)
    x = _spread(where, x, _per_axis(where, input_dilation, axes))
    widths = [(max(low, 0), max(high, 0)) for low, high in zip(lows, highs, strict=True)]
    if any(map(any, widths)):
        x = pad(x, [(0, 0), *widths, (0, 0)])
    if min(*lows, *highs) < 0:
        remaining = [slice(max(-low, 0), min(high, 0) or None)
                for low, high in zip(lows, highs, strict=True)]  # fmt: skip
        x = x[(slice(None), *remaining)]
    if is_flipped:
        weight = flipped(weight, axis=tuple(range(1, weight.ndim - 1)))
    return convolution.conv_general(
        x, weight, stride=stride, dilation=kernel_dilation, groups=groups
    )


def _spread(where: str, x: Array, steps: Ints) -> Array:
    """Put zeros between the elements along all axes but the first and the last."""
    if min(steps) < 1:
        raise ValueError(f"[{where}] input dilations must be positive, got {steps}.")
    if max(steps) == 1 or not x.size:
        return x
    extents = tuple(step * (n - 1) + 1 for n, step in zip(x.shape[1:-1], steps, strict=True))
    shape = (x.shape[0], *extents, x.shape[-1])
    region = full_slices(shape)
    for axis, (n, step) in enumerate(zip(x.shape[1:-1], steps, strict=True), 1):
        region[axis] = (0, step, n)
    operands = [zeros_like(x._node, shape), x._node]
    return Array(joined(operands, [full_slices(shape), region], shape, x.dtype))


def _widths(where: str, padding: Any, axes: int) -> tuple[Ints, Ints]:
    """Widths at the beginning and at the end of each axis."""
    if isinstance(padding, tuple) and len(padding) == 2 and not isinstance(padding[0], int):
        return _per_axis(where, padding[0], axes), _per_axis(where, padding[1], axes)
    widths = _per_axis(where, padding, axes)
    return widths, widths


def _per_axis(where: str, value: PerAxis, axes: int) -> Ints:
    numbers = (value,) * axes if isinstance(value, int) else tuple(value)
    if len(numbers) != axes:
        raise ValueError(f"[{where}] expected an int or {axes} of them, got {value!r}.")
    return numbers
