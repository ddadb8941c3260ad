"""Threadgroups where nobody can tell them apart.

Independent threads that see no more than their position in the grid run the same in any
threadgroups. Narrow ones, which GPUs like as well as others, leave lanes of vector code without
work; so neighbours in x are joined.
"""

from __future__ import annotations

from metalloid.msl.signature import Signature
from metalloid.runtime.program import Size

#: A row of a threadgroup that has this many threads is long enough.
_LONG_ROW = 64
#: What is joined has rows about this long, and at most so many threads: all cores want some.
_JOINED_ROW, _MOST_THREADS = 256, 4096
#: Where parameters may come from without a trace of the threadgroup.
_FROM_OUTSIDE = {
    "memory",
    "thread_position_in_grid",
    "threads_per_grid",
    "grid_size",
    "grid_origin",
}


def tells_threadgroups_apart(signature: Signature) -> bool:
    """Whether its parameters let a kernel know about threadgroups."""
    return not _FROM_OUTSIDE.issuperset(signature.sources)


def joined(grid: Size, group: Size) -> int:
    """How many threadgroups, neighbours in x, to run as one."""
    x, y, z = group
    if x >= _LONG_ROW or x >= grid[0]:
        return 1
    return max(1, min(_JOINED_ROW // x, -(-grid[0] // x), _MOST_THREADS // (x * y * z)))
