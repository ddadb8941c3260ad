"""The axis of the grid along which the lanes of a simdgroup lie."""

from __future__ import annotations

from metalloid.runtime.launch.program import Size


def lane_axis(group: Size) -> str:
    """The axis along which the lanes of a threadgroup lie: the first that has several threads.

    Examples
    --------
    >>> lane_axis((64, 1, 1)), lane_axis((1, 64, 4)), lane_axis((1, 1, 64)), lane_axis((1, 1, 1))
    ('x', 'y', 'z', 'x')
    """
    return next((axis for axis, size in zip("xyz", group, strict=True) if size > 1), "x")


def axis_order(axis: str) -> str:
    """The axes from `axis` on.

    Examples
    --------
    >>> axis_order("y")
    'yzx'
    """
    first = "xyz".index(axis)
    return "xyz"[first:] + "xyz"[:first]


def axis_first(size: Size, axis: str) -> Size:
    """A size with its extents in the order of `axis_order`.

    Examples
    --------
    >>> axis_first((1, 64, 4), "y")
    (64, 4, 1)
    """
    x, y, z = (size["xyz".index(each)] for each in axis_order(axis))
    return x, y, z
