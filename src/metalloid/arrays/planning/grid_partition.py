"""Kernels whose iteration space exceeds a grid are split into several launches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from metalloid.arrays.planning.loop_axes import Axes
from metalloid.arrays.planning.schedule import (
    CallStep,
    FusedKernel,
    HorizontalKernel,
    LibraryKernel,
    ProductKernel,
    Step,
)

#: Maximum threads along an axis of a grid: positions are 32-bit, the end of a vector included.
MAX_GRID_POINTS = 2**31


def partition_grid(step: Step) -> Iterator[Step]:
    """The steps that compute the same as `step` within the limits of a grid.

    Calls and small kernels stay as they are, and so do matrix products, whose grids count tiles.
    """
    if isinstance(step, CallStep | LibraryKernel | ProductKernel | HorizontalKernel):
        yield step
        return
    if _has_grid(step):
        yield step
        return
    axes = (axis for axis in range(len(step.iteration_space)) if axis not in step.row_axes)
    axis = max(axes, key=step.iteration_space.__getitem__)
    extent = step.iteration_space[axis]
    first = 1 << (extent - 1).bit_length() - 1  # a power of two keeps vectors aligned
    yield from partition_grid(_restricted(step, axis, 0, first))
    yield from partition_grid(_restricted(step, axis, first, extent - first))


def _has_grid(kernel: FusedKernel) -> bool:
    if math.prod(kernel.iteration_space) <= MAX_GRID_POINTS:
        return True
    outer = Axes(kernel).outer
    return max([*outer[-2:], math.prod(outer[:-2])]) <= MAX_GRID_POINTS


def _restricted(kernel: FusedKernel, axis: int, first: int, count: int) -> FusedKernel:
    """The kernel restricted to `count` indices of an axis."""
    iteration_space = (*kernel.iteration_space[:axis], count, *kernel.iteration_space[axis + 1 :])
    ops = tuple(
        replace(op, offset=op.offset + first * op.strides[axis]) if op.is_read else op
        for op in kernel.ops
    )
    offset = kernel.offset + first * kernel.strides[axis]
    others = tuple(
        replace(output, offset=output.offset + first * output.strides[axis])
        for output in kernel.other_outputs
    )
    return replace(
        kernel, iteration_space=iteration_space, ops=ops, offset=offset, other_outputs=others
    )
