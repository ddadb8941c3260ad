"""Maps grids of Metal to grids of CUDA."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from metalloid.runtime.launch.program import Size

_MAX_BLOCKS = 65535  # of a launch in y and in z
_MAX_DEPTH = 64  # threads of a block in z


class SubGrid(NamedTuple):
    """One launch of the driver.

    Attributes
    ----------
    dimensions : tuple of int
        Blocks in x, y, z, and threads of a block in x, y, z.
    data : tuple of int
        The end of launch_data in entry.h, after the words: the grid, the threadgroup, the first
        threadgroup, and whether the work-groups are uniform.
    coarsening : int
        Threadgroups that each block runs.
    """

    dimensions: tuple[int, int, int, int, int, int]
    data: tuple[int, ...]
    coarsening: int = 1


def launches_of(
    grid: Size, group: Size, lanes_in_order: bool = True, coarsening: int = 1
) -> list[SubGrid]:
    """The launches that run `grid` in threadgroups of `group`, usually one.

    Without `lanes_in_order` threads compute their positions themselves, as thread i is not lane
    i % 32. With `coarsening` each block may run as many full threadgroups, adjacent in x;
    additional launches run the rest in x.

    Examples
    --------
    >>> launches_of((1000, 70000, 1), (32, 1, 1))[1].dimensions
    (32, 4465, 1, 32, 1, 1)
    >>> [sub_grid.dimensions[0] for sub_grid in launches_of((1000, 1, 1), (32, 1, 1), coarsening=4)]
    [7, 4]
    """
    block = group if group[2] <= _MAX_DEPTH else (group[0] * group[1] * group[2], 1, 1)
    partial = [extent % size != 0 for extent, size in zip(grid, group, strict=True)]
    same_shape = lanes_in_order and block == group  # CUDA's thread indices are Metal's
    x, y, z = (-(-extent // size) for extent, size in zip(grid, group, strict=True))
    coarsened = 0
    if coarsening > 1 and same_shape and not any(partial[1:]):
        coarsened = grid[0] // group[0] // coarsening
    left = x - coarsened * coarsening
    sub_grids = []
    for k, j in itertools.product(range(0, z, _MAX_BLOCKS), range(0, y, _MAX_BLOCKS)):
        rest = (min(y - j, _MAX_BLOCKS), min(z - k, _MAX_BLOCKS), *block)
        if coarsened:
            sub_grids.append(SubGrid((coarsened, *rest), (*grid, *group, 0, j, k, 1), coarsening))
        if left:
            is_uniform = int(same_shape and not any(partial))
            sub_grids.append(SubGrid((left, *rest), (*grid, *group, x - left, j, k, is_uniform)))
    return sub_grids
