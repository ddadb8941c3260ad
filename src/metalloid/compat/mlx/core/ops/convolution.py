"""Convolutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import metalloid as mtl
from metalloid import nn
from metalloid.compat.mlx.core import dtypes
from metalloid.compat.mlx.core.array import array, wrap
from metalloid.compat.mlx.core.ops.shapes import text
from metalloid.compat.mlx.core.ops.wrapping import pair_of_arrays, with_stream

__all__ = [
    "conv1d", "conv2d", "conv3d", "conv_general", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "convolve",
]  # fmt: skip

PerAxis = int | Sequence[int]


def _checked(input: Any, weight: Any, axes: int | None, groups: int, where: str,
             ) -> tuple[mtl.Array, mtl.Array]:  # fmt: skip
    """Operands of a convolution.

    Raises
    ------
    ValueError
        If types, numbers of axes or channels do not match.
    """
    x, w, dtype = pair_of_arrays(input, weight)
    if not dtypes.is_float(dtype):
        raise ValueError(f"[{where}] Invalid input array with type {dtype._name}: not a float.")
    rank = x.ndim if axes is None else axes + 2
    if x.ndim != rank or rank < 3:
        raise ValueError(
            f"[{where}] Invalid input array with {x.ndim} dimensions. Expected an array with "
            f"{rank} dimensions following the format [N, ..., C_in]."
        )
    if w.ndim != rank:
        raise ValueError(
            f"[{where}] Invalid weight array with {w.ndim} dimensions. Expected an array with "
            f"{rank} dimensions following the format [C_out, ..., C_in]."
        )
    channels = x.shape[-1]
    if groups < 1 or channels % groups or channels // groups != w.shape[-1]:
        raise ValueError(
            f"[{where}] Expect the input channels in the input and weight array to match but got "
            f"shapes - input: {text(x.shape)}, weight: {text(w.shape)}, groups: {groups}."
        )
    if w.shape[0] % groups:
        raise ValueError(
            f"[{where}] If groups > 1, the output channels must be divisible by the number of "
            f"groups, got {w.shape[0]} and {groups}."
        )
    return x, w


def _plain(axes: int) -> Callable[..., array]:
    name = f"conv{axes}d"

    def convolution(input: Any, weight: Any, /, stride: PerAxis = 1, padding: PerAxis = 0,
                    dilation: PerAxis = 1, groups: int = 1) -> array:  # fmt: skip
        if axes == 1 and getattr(input, "ndim", 3) != 3:  # MLX accepts more axes here
            return conv_general(input, weight, stride, padding, dilation, groups=groups)
        x, w = _checked(input, weight, axes, groups, name)
        return wrap(getattr(nn, name)(x, w, stride, padding, dilation, groups))

    convolution.__name__ = convolution.__qualname__ = name
    convolution.__doc__ = f"Convolution over {axes} axes; channels are the last axis."
    return with_stream(convolution)


def _transposed(axes: int) -> Callable[..., array]:
    name = f"conv_transpose{axes}d"

    def convolution(input: Any, weight: Any, /, stride: PerAxis = 1, padding: PerAxis = 0,
                    dilation: PerAxis = 1, output_padding: PerAxis = 0,
                    groups: int = 1) -> array:  # fmt: skip
        x, w = _checked(input, weight, axes, groups, name)
        function = getattr(nn, name)
        return wrap(function(x, w, stride, padding, dilation, output_padding, groups))

    convolution.__name__ = convolution.__qualname__ = name
    convolution.__doc__ = f"Transposed convolution over {axes} axes; channels are the last axis."
    return with_stream(convolution)


conv1d, conv2d, conv3d = (_plain(axes) for axes in (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = (_transposed(axes) for axes in (1, 2, 3))


@with_stream
def conv_general(input: Any, weight: Any, /, stride: PerAxis = 1, padding: Any = 0,
                 kernel_dilation: PerAxis = 1, input_dilation: PerAxis = 1, groups: int = 1,
                 flip: bool = False) -> array:  # fmt: skip
    """Convolution over any number of axes; channels are the last axis."""
    x, w = _checked(input, weight, None, groups, "conv_general")
    return wrap(
        nn.conv_general(x, w, stride, padding, kernel_dilation, input_dilation, groups, flip)
    )


@with_stream
def convolve(a: Any, v: Any, /, mode: str = "full") -> array:
    """Discrete convolution of two sequences."""
    x, y, dtype = pair_of_arrays(a, v)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError("[convolve] Inputs must be 1D.")
    if not x.size or not y.size:
        raise ValueError("[convolve] Inputs cannot be empty.")
    if not dtypes.is_inexact(dtype):
        x, y = x.astype(mtl.float32), y.astype(mtl.float32)
    if x.size < y.size:
        x, y = y, x
    size = y.size
    try:
        low, high = {"full": (size - 1, size - 1), "valid": (0, 0),
                     "same": (size // 2, size - 1 - size // 2)}[mode]  # fmt: skip
    except KeyError:
        raise ValueError(
            f"[convolve] expected mode to be one of full, same, valid, got {mode}."
        ) from None
    padded = mtl.pad(x, (low, high))
    result = mtl.conv1d(padded.reshape((1, -1, 1)), mtl.flip(y).reshape((1, -1, 1)))
    return wrap(result.reshape(-1))
