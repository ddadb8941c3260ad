"""Maps grids of Metal to grids of OpenCL."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from metalloid.runtime.launch.program import Size


class SubGrid(NamedTuple):
    """Threadgroups of one size, as a launch of OpenCL with work-groups of one dimension.

    Attributes
    ----------
    work_items, group : tuple of int
        Work-items of the launch and of a work-group.
    data : tuple of int
        The end of launch_data in entry.h.
    """

    work_items: Size
    group: Size
    data: tuple[int, ...]


def sub_grids(grid: Size, group: Size) -> list[SubGrid]:
    """The launches that run `grid` in threadgroups of `group`: full ones, and those at the edges.

    Examples
    --------
    >>> [(each.work_items, each.group) for each in sub_grids((100, 4, 1), (32, 4, 1))]
    [((384, 1, 1), (128, 1, 1)), ((16, 1, 1), (16, 1, 1))]
    """
    axes = []
    for extent, size in zip(grid, group, strict=True):
        full, left = divmod(extent, size)
        # first threadgroup, number of them, and their size
        axes.append([axis for axis in ((0, full, size), (full, 1, left)) if axis[1] and axis[2]])
    result = []
    for x, y, z in itertools.product(*axes):
        first, counts, sizes = zip(x, y, z, strict=True)
        threads = sizes[0] * sizes[1] * sizes[2]
        work_items = (counts[0] * threads, counts[1], counts[2])
        result.append(SubGrid(work_items, (threads, 1, 1), (*grid, *group, *sizes, *first)))
    return result
