"""Shapes and strides, in elements, as kernels and arrays use them."""

from __future__ import annotations

from collections.abc import Sequence

from metalloid.errors import ArgumentError

Ints = tuple[int, ...]


def row_major(shape: Sequence[int]) -> Ints:
    """Strides of a contiguous row-major array.

    Examples
    --------
    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def collapse(
    shape: Sequence[int], *all_strides: Sequence[int], max_extent: int | None = None
) -> tuple[Ints, list[Ints]]:
    """Merge adjacent axes of several arrays at once where all their strides allow.

    Parameters
    ----------
    shape, *all_strides : sequence of int
    max_extent : int, optional
        Axes are not merged to this extent or a larger one.

    Examples
    --------
    >>> collapse((2, 3, 4), (12, 4, 1), (0, 4, 1))
    ((2, 12), [(12, 1), (0, 1)])
    """
    extents: list[int] = []
    columns: list[Ints] = []
    for axis, extent in enumerate(shape):
        if extent == 1:
            continue
        steps = tuple(strides[axis] for strides in all_strides)
        outer = columns[-1] if columns else ()
        fits = bool(extents) and (max_extent is None or extents[-1] * extent < max_extent)
        if fits and all(a == b * extent for a, b in zip(outer, steps, strict=True)):
            extents[-1] *= extent
            columns[-1] = steps
        else:
            extents.append(extent)
            columns.append(steps)
    return tuple(extents), [tuple(column[k] for column in columns) for k in range(len(all_strides))]


def broadcast_shape(where: str, *shapes: Ints) -> Ints:
    """The common shape of a broadcast.

    Raises
    ------
    ArgumentError
    """
    result: list[int] = []
    rank = max(map(len, shapes), default=0)
    for axis in range(-rank, 0):
        common = 1
        for shape in shapes:
            if len(shape) < -axis or (extent := shape[axis]) == 1:
                continue
            if common == 1:
                common = extent
            elif extent != common:
                raise ArgumentError(
                    f"[{where}] the shapes {' and '.join(map(str, shapes))} do not broadcast."
                )
        result.append(common)
    return tuple(result)
