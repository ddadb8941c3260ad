"""Kernels over more places than a grid has: one after another, each over a part of the space."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from metalloid.arrays.access import Axes
from metalloid.arrays.steps import CallStep, FusedKernel, ProductKernel

#: Threads along an axis of a grid. Positions are 32-bit, and a bundle's end is computed in them.
MOST_PLACES = 2**31


def pieces(step: FusedKernel | CallStep) -> Iterator[FusedKernel | CallStep]:
    """What computes the same as a step, in grids that there are.

    Calls stay what they are, and products: their grids have tiles.
    """
    if isinstance(step, CallStep | ProductKernel) or _has_grid(step):
        yield step
        return
    axes = (axis for axis in range(len(step.space)) if axis not in step.row_axes)
    axis = max(axes, key=step.space.__getitem__)
    extent = step.space[axis]
    first = 1 << (extent - 1).bit_length() - 1  # a power of two: pieces begin where vectors may
    yield from pieces(_part(step, axis, 0, first))
    yield from pieces(_part(step, axis, first, extent - first))


def _has_grid(kernel: FusedKernel) -> bool:
    if math.prod(kernel.space) <= MOST_PLACES:
        return True
    kept = Axes(kernel).kept
    return max([*kept[-2:], math.prod(kept[:-2])]) <= MOST_PLACES


def _part(kernel: FusedKernel, axis: int, first: int, count: int) -> FusedKernel:
    """A kernel for `count` places of an axis."""
    space = (*kernel.space[:axis], count, *kernel.space[axis + 1 :])
    entries = tuple(
        replace(entry, start=entry.start + first * entry.strides[axis]) if entry.is_read else entry
        for entry in kernel.entries
    )
    start = kernel.start + first * kernel.strides[axis]
    return replace(kernel, space=space, entries=entries, start=start)
