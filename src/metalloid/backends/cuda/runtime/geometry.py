"""Grids of Metal as grids of CUDA."""

from __future__ import annotations

import itertools
from typing import NamedTuple

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
    several : int
        Threadgroups that each block runs.
    """

    dimensions: tuple[int, int, int, int, int, int]
    data: tuple[int, ...]
    several: int = 1


def launches_of(grid: Size, group: Size, has_order: bool = True, several: int = 1) -> list[Part]:
    """The launches that run `grid` in threadgroups of `group`; most often it is one.

    Without `has_order` threads are not the lanes in order, and work out their places. With
    `several` each block may run as many whole threadgroups that follow each other in x; what is
    left over in x comes in launches of its own.

    Examples
    --------
    >>> launches_of((1000, 70000, 1), (32, 1, 1))[1].dimensions
    (32, 4465, 1, 32, 1, 1)
    >>> [part.dimensions[0] for part in launches_of((1000, 1, 1), (32, 1, 1), several=4)]
    [7, 4]
    """
    block = group if group[2] <= _MOST_DEEP else (group[0] * group[1] * group[2], 1, 1)
    ragged = [extent % size != 0 for extent, size in zip(grid, group, strict=True)]
    has_places = has_order and block == group  # in which threads are as in the threadgroup
    x, y, z = (-(-extent // size) for extent, size in zip(grid, group, strict=True))
    together = 0
    if several > 1 and has_places and not any(ragged[1:]):
        together = grid[0] // group[0] // several
    left = x - together * several
    parts = []
    for k, j in itertools.product(range(0, z, _MOST_BLOCKS), range(0, y, _MOST_BLOCKS)):
        rest = (min(y - j, _MOST_BLOCKS), min(z - k, _MOST_BLOCKS), *block)
        if together:
            parts.append(Part((together, *rest), (*grid, *group, 0, j, k, 1), several))
        if left:
            is_even = int(has_places and not any(ragged))
            parts.append(Part((left, *rest), (*grid, *group, x - left, j, k, is_even)))
    return parts
