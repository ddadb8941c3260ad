"""Kernels over more places than a grid has: one after another, each over a part of the space."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from metalloid.arrays.access import Axes
from metalloid.arrays.steps import FusedKernel, ProductKernel

#: Threads along an axis of a grid. Positions are 32-bit, and a bundle's end is computed in them.
MOST_PLACES = 2**31


def pieces(kernel: FusedKernel) -> Iterator[FusedKernel]:
    """What computes the same as a kernel, in grids that there are.

    A product stays whole: its grid has tiles.
    """
    if math.prod(kernel.space) <= MOST_PLACES or isinstance(kernel, ProductKernel):
        yield kernel
        return
    kept = Axes(kernel).kept
    if max([*kept[-2:], math.prod(kept[:-2])]) <= MOST_PLACES:
        yield kernel
        return
    axes = (axis for axis in range(len(kernel.space)) if axis not in kernel.row_axes)
    axis = max(axes, key=kernel.space.__getitem__)
    extent = kernel.space[axis]
    first = 1 << (extent - 1).bit_length() - 1  # a power of two: pieces begin where vectors may
    yield from pieces(_part(kernel, axis, 0, first))
    yield from pieces(_part(kernel, axis, first, extent - first))


def _part(kernel: FusedKernel, axis: int, first: int, count: int) -> FusedKernel:
    """A kernel for `count` places of an axis."""
    space = (*kernel.space[:axis], count, *kernel.space[axis + 1 :])
    entries = tuple(
        replace(entry, start=entry.start + first * entry.strides[axis]) if entry.is_read else entry
        for entry in kernel.entries
    )
    start = kernel.start + first * kernel.strides[axis]
    return replace(kernel, space=space, entries=entries, start=start)
