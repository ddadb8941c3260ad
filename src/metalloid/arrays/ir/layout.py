"""Strided layouts, and views as arithmetic on them.

A layout is ``(shape, strides, offset)`` in elements. Each view of the array API is a combination of
four operations. Strides can express all of them except some reshapes, which need a copy.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable
from typing import NamedTuple

from metalloid.kernels.strides import row_major

Ints = tuple[int, ...]

#: Maximum extent of a collapsed axis: thread positions are 32-bit.
MAX_COLLAPSED_EXTENT = 2**31


class Layout(NamedTuple):
    """Strided elements of a buffer.

    Attributes
    ----------
    shape : tuple of int
    strides : tuple of int
        In elements.
    offset : int
        Offset of the first element in the buffer.
    """

    shape: Ints
    strides: Ints
    offset: int


class ViewOp(NamedTuple):
    """A view operation.

    Attributes
    ----------
    kind : str
        ``"reshape"``, ``"broadcast"`` (both to the shape in `numbers`), ``"permute"`` (axes), or
        ``"slice"`` (start, step and count of each axis, flattened).
    numbers : tuple of int
    """

    kind: str
    numbers: Ints


def contiguous(shape: Ints) -> Layout:
    """The layout of a contiguous array."""
    return Layout(shape, row_major(shape), 0)


def is_contiguous(layout: Layout) -> bool:
    """Whether a layout is row-major and contiguous, at any offset."""
    step = 1
    for extent, stride in zip(reversed(layout.shape), reversed(layout.strides), strict=True):
        if extent != 1 and stride != step:
            return not all(layout.shape)
        step *= extent
    return True


def apply_view(layout: Layout, view_op: ViewOp) -> Layout | None:
    """The layout of a view; None if strides cannot express it."""
    kind, numbers = view_op
    shape, strides, offset = layout
    if kind == "broadcast":
        missing = len(numbers) - len(shape)
        own = (0 if n == 1 else s for n, s in zip(shape, strides, strict=True))
        return Layout(numbers, (0,) * missing + tuple(own), offset)
    if kind == "permute":
        return Layout(
            tuple(shape[axis] for axis in numbers), tuple(strides[axis] for axis in numbers), offset
        )
    if kind == "slice":
        first, step, count = numbers[0::3], numbers[1::3], numbers[2::3]
        offset += sum(f * s for f, s, n in zip(first, strides, shape, strict=True) if n)
        return Layout(count, tuple(s * k for s, k in zip(strides, step, strict=True)), offset)
    steps = _reshaped(shape, strides, numbers)
    return None if steps is None else Layout(numbers, steps, offset)


def apply_views(layout: Layout, view_ops: Iterable[ViewOp]) -> Layout | None:
    """The layout after several views, or None if strides cannot express it."""
    after: Layout | None = layout
    for view_op in view_ops:
        if after is None:
            break
        after = apply_view(after, view_op)
    return after


#: Plans see few layouts and views, again and again. Their extents are numbers, not symbolic.
planned_view = functools.lru_cache(maxsize=4096)(apply_view)


@functools.lru_cache(maxsize=4096)
def contiguous_view(shape: Ints, view_ops: tuple[ViewOp, ...]) -> Layout | None:
    """The layout of a contiguous array after several views, in a plan."""
    return apply_views(contiguous(shape), view_ops)


def viewed_shape(shape: Ints, view_op: ViewOp) -> Ints:
    """The shape of a view."""
    kind, numbers = view_op
    if kind == "permute":
        return tuple(shape[axis] for axis in numbers)
    return numbers[2::3] if kind == "slice" else numbers


def _reshaped(shape: Ints, strides: Ints, new: Ints) -> Ints | None:
    """Strides of a reshape, or None.

    Axes are matched in groups of equal size, from the first to the last.
    """
    if math.prod(shape) == 0:
        return row_major(new)
    old = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    steps = [0] * len(new)
    axes = [axis for axis, extent in enumerate(new) if extent != 1]
    while axes:
        group, size = [old.pop(0)], 1
        taken: list[int] = []
        while size != math.prod(n for n, _ in group):
            if size < math.prod(n for n, _ in group):
                taken.append(axes.pop(0))
                size *= new[taken[-1]]
            else:
                group.append(old.pop(0))
        if any(s != n * t for (_, s), (n, t) in itertools.pairwise(group)):
            return None
        stride = group[-1][1]
        for axis in reversed(taken):
            steps[axis] = stride
            stride *= new[axis]
    return tuple(steps)


def reach(layout: Layout) -> tuple[int, int]:
    """Lowest and highest offset of a layout."""
    steps = [(n - 1) * s for n, s in zip(layout.shape, layout.strides, strict=True)]
    low, high = sum(s for s in steps if s < 0), sum(s for s in steps if s > 0)
    return layout.offset + low, layout.offset + high
