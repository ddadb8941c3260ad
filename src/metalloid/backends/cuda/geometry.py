"""Grids of Metal as grids of CUDA."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

from metalloid.runtime.program import Size

_MOST_BLOCKS = 65535  # of a launch in y and in z
_MOST_DEEP = 64  # threads of a block in z


class Part(NamedTuple):
    """One launch of the driver.

    Attributes
    ----------
    dimensions : tuple of int
        Blocks in x, y, z, and threads of a block in x, y, z.
    data : tuple of int
        What entry.h reads behind the words: the grid, the threadgroup, the first threadgroup, and
        whether the grid is even.
    """

    dimensions: tuple[int, int, int, int, int, int]
    data: tuple[int, ...]


class Geometry(NamedTuple):
    """How a kernel covers a grid.

    Attributes
    ----------
    function : CUfunction
    parts : list of Part
    """

    function: Any
    parts: list[Part]


def launches_of(grid: Size, group: Size, has_order: bool = True) -> list[Part]:
    """The launches that run `grid` in threadgroups of `group`; most often it is one.

    Without `has_order` threads are not the lanes in order, and work out their places.

    Examples
    --------
    >>> launches_of((1000, 70000, 1), (32, 1, 1))[1]
    Part(dimensions=(32, 4465, 1, 32, 1, 1), data=(1000, 70000, 1, 32, 1, 1, 0, 65535, 0, 0))
    """
    block = group if group[2] <= _MOST_DEEP else (group[0] * group[1] * group[2], 1, 1)
    is_whole = not any(extent % size for extent, size in zip(grid, group, strict=True))
    is_even = has_order and is_whole and block == group
    x, y, z = (-(-extent // size) for extent, size in zip(grid, group, strict=True))
    return [
        Part(
            (x, min(y - j, _MOST_BLOCKS), min(z - k, _MOST_BLOCKS), *block),
            (*grid, *group, 0, j, k, int(is_even)),
        )
        for k, j in itertools.product(range(0, z, _MOST_BLOCKS), range(0, y, _MOST_BLOCKS))
    ]
