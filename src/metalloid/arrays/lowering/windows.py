"""Windows of an array, as convolution and pooling use them, and their elements."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.node import Node, reshape
from metalloid.arrays.ir.views import full_slices, joined, sliced


class Windows(NamedTuple):
    """Geometry of the windows of an array.

    Attributes
    ----------
    shape : tuple of int
        Shape of the array: (batch, ..., channels).
    size, stride, dilation : tuple of int
        Elements of a window, distance between windows, and distance between the elements of a
        window; along all axes except the first and the last.
    """

    shape: Ints
    size: Ints
    stride: Ints
    dilation: Ints

    @property
    def counts(self) -> Ints:
        """Number of windows along each axis."""
        return tuple(
            (n - d * (k - 1) - 1) // max(s, 1) + 1
            for n, k, s, d in zip(
                self.shape[1:-1], self.size, self.stride, self.dilation, strict=True
            )
        )

    @property
    def step(self) -> int:
        """Distance between neighbouring windows of a row, in elements."""
        return self.stride[-1] * self.shape[-1]


def window_elements(node: Node, windows: Windows) -> Iterator[Node]:
    """For each position in a window, the elements that all windows have there."""
    for offset in itertools.product(*map(range, windows.size)):
        numbers = full_slices(node.shape)
        per_axis = zip(offset, windows.stride, windows.dilation, windows.counts, strict=True)
        for axis, (k, step, gap, count) in enumerate(per_axis, 1):
            numbers[axis] = (k * gap, step, count)
        yield sliced(node, numbers)


class Overlaps(NamedTuple):
    """A vector of `size` elements, and windows of it in each of which it meets another vector.

    Result i is the sum over k of ``x[i + k - left] * y[k]``, where elements outside of `x` are 0.

    Attributes
    ----------
    size, width : int
        Elements of `x` and `y`.
    left : int
        Zeros before `x`.
    windows : int
        Number of windows.
    flips : bool
        Whether `y` is read from its end, as in a convolution.
    """

    size: int
    width: int
    left: int
    windows: int
    flips: bool


def stacked_windows(node: Node, windows: Windows) -> Node:
    """Store all windows: the positions in a window are the axis before the channels."""
    elements = list(window_elements(node, windows))
    *outer, channels = elements[0].shape
    shape = (*outer, len(elements), channels)
    slices = []
    for k in range(len(elements)):
        region = full_slices(shape)
        region[-2] = (k, 1, 1)
        slices.append(region)
    operands = [reshape(element, (*outer, 1, channels)) for element in elements]
    return joined(operands, slices, shape, node.dtype)
