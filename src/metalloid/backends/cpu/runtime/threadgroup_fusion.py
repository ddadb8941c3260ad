"""Threadgroup fusion and size selection, for kernels that do not see their threadgroups.

Independent threads that read only their position in the grid give the same results in threadgroups
of any size. Narrow threadgroups, which suit GPUs, leave lanes of vector code idle. So neighbours in
x are fused, and neighbours in y where the code computes several rows at a time.

If a launch names no threadgroup size, it depends on the kernel. Threads that load in loops get
compact threadgroups: in a matrix product each column is then used for several rows before it leaves
the cache. Threads that load a few values, as in a stencil, get whole rows, as memory is laid out.
"""

from __future__ import annotations

import math

from metalloid.backends.cpu.compile.thread_axes import axis_first
from metalloid.msl.signature import Signature
from metalloid.runtime.launch.program import Size, spread

#: A row of a threadgroup that has this many threads is long enough.
_LONG_ROW = 64
#: Where threads of several rows run as one, the more rows, the better.
_SHORT_ROW = 32
#: What is joined has rows about this long, and at most so many threads: all cores want some.
_FUSED_ROW, _MAX_THREADS = 256, 4096
#: And where several are done at a time, so many rows if there are not too many threads.
_FUSED_ROWS = 32
#: Where parameters may come from without a trace of the threadgroup.
_FROM_OUTSIDE = {
    "memory",
    "thread_position_in_grid",
    "threads_per_grid",
    "grid_size",
    "grid_origin",
}


def sees_threadgroups(signature: Signature) -> bool:
    """Whether its parameters let a kernel know about threadgroups."""
    return not _FROM_OUTSIDE.issuperset(signature.sources)


def fused(grid: Size, group: Size, rows: int) -> tuple[int, int]:
    """How many threadgroups, neighbours in x and in y, to run as one.

    Those in y make as many rows as are done at a time, or a multiple.

    Examples
    --------
    >>> fused((512, 512, 1), (16, 16, 1), rows=1)
    (16, 1)
    >>> fused((512, 512, 1), (256, 1, 1), rows=8)
    (1, 16)
    """
    x, y, z = group
    across = down = 1
    if x < min(_LONG_ROW, grid[0]):
        across = max(1, min(_FUSED_ROW // x, -(-grid[0] // x), _MAX_THREADS // (x * y * z)))
    if rows > 1:
        each = rows // math.gcd(rows, y)
        wanted = min(_FUSED_ROWS, _MAX_THREADS // (across * x * z))
        down = min(each * max(1, wanted // (each * y)), -(-grid[1] // y))
    return across, down


def fused_along(axis: str, grid: Size, group: Size) -> Size:
    """How many threadgroups to run as one in each direction if lanes lie along `axis`.

    Examples
    --------
    >>> fused_along("y", (100, 64, 1), (1, 16, 1))
    (1, 4, 1)
    """
    across, _ = fused(axis_first(grid, axis), axis_first(group, axis), rows=1)
    x, y, z = (across if each == axis else 1 for each in "xyz")
    return x, y, z


def default_group_size(grid: Size, most: int, is_compact: bool, rows: int = 1) -> Size:
    """A threadgroup of at most so many threads: rows of the grid, or more that are shorter.

    Examples
    --------
    >>> default_group_size((512, 512, 1), 1024, is_compact=False)
    (512, 2, 1)
    >>> default_group_size((512, 512, 1), 1024, is_compact=True)
    (64, 16, 1)
    >>> default_group_size((512, 512, 1), 1024, is_compact=True, rows=8)
    (32, 32, 1)
    >>> default_group_size((512, 8, 1), 1024, is_compact=True)
    (128, 8, 1)
    """
    x, y, z = grid
    if is_compact:
        row = _SHORT_ROW if rows > 1 else _LONG_ROW
        x = min(x, row * max(1, most // (row * max(1, y))))
    return spread((x, y, z), most)
