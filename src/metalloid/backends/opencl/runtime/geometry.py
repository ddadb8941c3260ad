"""Maps grids of Metal to grids of OpenCL."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from metalloid.backends.opencl.compile.compile_spirv import Form
from metalloid.runtime.launch.program import SIMDGROUP_WIDTH, Size

_MAX_EXTENT = 2**31  # of a grid, but for linear kernels


class SubGrid(NamedTuple):
    """Threadgroups of one size, as a launch of OpenCL.

    Attributes
    ----------
    form : "row", "grid" or "linear"
        Of the kernel that it wants (entry.h).
    offset, work_items, group : tuple of int
        The first work-item, their number, and that of a work-group.
    data : tuple of int
        The end of launch_data in entry.h.
    """

    form: Form
    offset: Size
    work_items: Size
    group: Size
    data: tuple[int, ...]


def sub_grids(grid: Size, group: Size, subgroup: int = SIMDGROUP_WIDTH) -> list[SubGrid]:
    """The launches that run `grid` in threadgroups of `group`: full ones, and those at the edges.

    Parameters
    ----------
    grid, group : tuple of int
    subgroup : int
        Threads of a subgroup.

    Examples
    --------
    >>> [(each.form, each.work_items, each.group) for each in sub_grids((100, 4, 1), (32, 4, 1))]
    [('grid', (96, 4, 1), (32, 4, 1)), ('linear', (16, 1, 1), (16, 1, 1))]
    """
    axes = []
    for extent, size in zip(grid, group, strict=True):
        full, left = divmod(extent, size)
        # first threadgroup, number of them, and their size
        axes.append([axis for axis in ((0, full, size), (full, 1, left)) if axis[1] and axis[2]])
    result = []
    for x, y, z in itertools.product(*axes):
        first, counts, sizes = zip(x, y, z, strict=True)
        data = (*grid, *group, *sizes, *first)
        form = _form(grid, sizes, group, subgroup)
        if form == "linear":
            threads = sizes[0] * sizes[1] * sizes[2]
            work_items = (counts[0] * threads, counts[1], counts[2])
            result.append(SubGrid(form, (0, 0, 0), work_items, (threads, 1, 1), data))
        else:
            offset = _product(first, group)
            result.append(SubGrid(form, offset, _product(counts, sizes), sizes, data))
    return result


def _product(a: Size, b: Size) -> Size:
    return (a[0] * b[0], a[1] * b[1], a[2] * b[2])


def _form(grid: Size, sizes: Size, group: Size, subgroup: int) -> Form:
    if max(grid) >= _MAX_EXTENT:
        return "linear"
    if group[1] == group[2] == 1:
        return "row"
    return "linear" if sizes[0] % subgroup else "grid"
