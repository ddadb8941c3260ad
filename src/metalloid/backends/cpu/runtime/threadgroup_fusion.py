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

from metalloid.backends.cpu.compile.lane_axes import axis_first
from metalloid.msl.signature import Signature
from metalloid.runtime.launch.program import Size, spread

#: Narrower threadgroups are fused along x.
_LONG_ROW = 64
#: Width of compact threadgroups if several rows are computed at a time.
_SHORT_ROW = 32
#: Approximate width, and maximum threads, of fused threadgroups.
_FUSED_ROW, _MAX_THREADS = 256, 4096
#: Rows of fused threadgroups if several rows are computed at a time.
_FUSED_ROWS = 32
#: Sources of parameters that do not depend on threadgroups.
_INDEPENDENT_SOURCES = {
    "memory",
    "thread_position_in_grid",
    "threads_per_grid",
    "grid_size",
    "grid_origin",
}


def sees_threadgroups(signature: Signature) -> bool:
    """Whether the parameters of a kernel depend on threadgroups."""
    return not _INDEPENDENT_SOURCES.issuperset(signature.sources)


def fused(grid: Size, group: Size, rows: int) -> tuple[int, int]:
    """The numbers of threadgroups to fuse along x and along y.

    A fused threadgroup has a multiple of `rows` rows.

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
        rows_limit = min(_FUSED_ROWS, _MAX_THREADS // (across * x * z))
        down = min(each * max(1, rows_limit // (each * y)), -(-grid[1] // y))
    return across, down


def fused_along(axis: str, grid: Size, group: Size) -> Size:
    """The numbers of threadgroups to fuse along each axis if lanes lie along `axis`.

    Examples
    --------
    >>> fused_along("y", (100, 64, 1), (1, 16, 1))
    (1, 4, 1)
    """
    across, _ = fused(axis_first(grid, axis), axis_first(group, axis), rows=1)
    x, y, z = (across if each == axis else 1 for each in "xyz")
    return x, y, z


def default_group_size(grid: Size, max_threads: int, is_compact: bool, rows: int = 1) -> Size:
    """A threadgroup of at most `max_threads` threads: whole rows of the grid, or compact.

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
        x = min(x, row * max(1, max_threads // (row * max(1, y))))
    return spread((x, y, z), max_threads)
