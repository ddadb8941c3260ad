"""Maps grids of Metal to grids of CUDA."""

from __future__ import annotations

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
    grid: Size, group: Size, lanes_in_order: bool = True, coarsening: int = 1, axis: int = 0
) -> list[SubGrid]:
    """The launches that run `grid` in threadgroups of `group`, usually one.

    Without `lanes_in_order` threads compute their positions themselves, as thread i is not lane
    i % 32. With `coarsening` each block may run as many full threadgroups, adjacent along `axis`,
    x or y; additional launches run the rest.

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
    coarsened = [0, 0]
    if coarsening > 1 and same_shape and not any(partial[:axis] + partial[axis + 1 :]):
        coarsened[axis] = grid[axis] // group[axis] // coarsening
    done_x, done_y = (count * coarsening for count in coarsened)
    is_uniform = int(same_shape and not any(partial))
    sub_grids = []

    def add(first: Size, blocks: tuple[int, int], is_uniform: int, factor: int = 1) -> None:
        """A launch of so many blocks in x and y, each of which runs `factor` threadgroups."""
        if all(blocks):
            dimensions = (*blocks, min(z - first[2], _MAX_BLOCKS), *block)
            data = (*grid, *group, *first, is_uniform)
            sub_grids.append(SubGrid(dimensions, data, factor))

    for k in range(0, z, _MAX_BLOCKS):
        for j in range(0, coarsened[1], _MAX_BLOCKS):
            rows = min(coarsened[1] - j, _MAX_BLOCKS)
            add((0, j * coarsening, k), (x, rows), 1, coarsening)
        for j in range(done_y, y, _MAX_BLOCKS):
            rows = min(y - j, _MAX_BLOCKS)
            add((0, j, k), (coarsened[0], rows), 1, coarsening)
            add((done_x, j, k), (x - done_x, rows), is_uniform)
    return sub_grids
