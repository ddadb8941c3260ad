"""Kernels over more places than a grid has: one after another, each over a part of the space."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from metalloid.arrays.planning.loop_axes import Axes
from metalloid.arrays.planning.schedule import CallStep, FusedKernel, ProductKernel

#: Threads along an axis of a grid. Positions are 32-bit, and a bundle's end is computed in them.
MAX_GRID_POINTS = 2**31


def partition_grid(step: FusedKernel | CallStep) -> Iterator[FusedKernel | CallStep]:
    """What computes the same as a step, in grids that there are.

    Calls stay what they are, and products: their grids have tiles.
    """
    if isinstance(step, CallStep | ProductKernel) or _has_grid(step):
        yield step
        return
    axes = (axis for axis in range(len(step.iteration_space)) if axis not in step.row_axes)
    axis = max(axes, key=step.iteration_space.__getitem__)
    extent = step.iteration_space[axis]
    first = 1 << (extent - 1).bit_length() - 1  # a power of two: pieces begin where vectors may
    yield from partition_grid(_part(step, axis, 0, first))
    yield from partition_grid(_part(step, axis, first, extent - first))


def _has_grid(kernel: FusedKernel) -> bool:
    if math.prod(kernel.iteration_space) <= MAX_GRID_POINTS:
        return True
    outer = Axes(kernel).outer
    return max([*outer[-2:], math.prod(outer[:-2])]) <= MAX_GRID_POINTS


def _part(kernel: FusedKernel, axis: int, first: int, count: int) -> FusedKernel:
    """A kernel for `count` places of an axis."""
    iteration_space = (*kernel.iteration_space[:axis], count, *kernel.iteration_space[axis + 1 :])
    ops = tuple(
        replace(op, start=op.start + first * op.strides[axis]) if op.is_read else op
        for op in kernel.ops
    )
    start = kernel.start + first * kernel.strides[axis]
    return replace(kernel, iteration_space=iteration_space, ops=ops, start=start)
