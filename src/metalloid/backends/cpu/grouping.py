"""Threadgroups where nobody can tell them apart.

Independent threads that see no more than their position in the grid run the same in any
threadgroups. Narrow ones, which GPUs like as well as others, leave lanes of vector code without
work; so neighbours in x are joined, and neighbours in y where several rows are done at a time. And
where nobody says how large they shall be, threads that read in loops are near each other in both
directions: in a product of matrices each column is read for as many rows as there are before it
leaves the cache. What reads a few numbers only, as a stencil, is quickest along whole rows, as
memory is.
"""

from __future__ import annotations

import math

from metalloid.compiler.llvm.cfg import Graph
from metalloid.compiler.llvm.ir import Function
from metalloid.msl.signature import Signature
from metalloid.runtime.program import Size, spread

#: A row of a threadgroup that has this many threads is long enough.
_LONG_ROW = 64
#: Where threads of several rows run as one, the more rows, the better.
_SHORT_ROW = 32
#: What is joined has rows about this long, and at most so many threads: all cores want some.
_JOINED_ROW, _MOST_THREADS = 256, 4096
#: And where several are done at a time, so many rows if there are not too many threads.
_JOINED_ROWS = 32
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


def joined(grid: Size, group: Size, rows: int) -> tuple[int, int]:
    """How many threadgroups, neighbours in x and in y, to run as one.

    Those in y make as many rows as are done at a time, or a multiple.

    Examples
    --------
    >>> joined((512, 512, 1), (16, 16, 1), rows=1)
    (16, 1)
    >>> joined((512, 512, 1), (256, 1, 1), rows=8)
    (1, 16)
    """
    x, y, z = group
    across = down = 1
    if x < min(_LONG_ROW, grid[0]):
        across = max(1, min(_JOINED_ROW // x, -(-grid[0] // x), _MOST_THREADS // (x * y * z)))
    if rows > 1:
        each = rows // math.gcd(rows, y)
        wanted = min(_JOINED_ROWS, _MOST_THREADS // (across * x * z))
        down = min(each * max(1, wanted // (each * y)), -(-grid[1] // y))
    return across, down


def reads_in_loops(function: Function) -> bool:
    """Whether threads go through memory: load again and again, and not from the same address."""
    graph = Graph(function)
    blocks = [function.blocks[name] for name in graph.order if graph.loop_of[name]]
    made = {one.result for block in blocks for one in block.instructions()}
    loads = (one for block in blocks for one in block.body if one.op == "load")
    return any(load.operands[0].name in made for load in loads)


def default_size(grid: Size, most: int, is_compact: bool, rows: int = 1) -> Size:
    """A threadgroup of at most so many threads: rows of the grid, or more that are shorter.

    Examples
    --------
    >>> default_size((512, 512, 1), 1024, is_compact=False)
    (512, 2, 1)
    >>> default_size((512, 512, 1), 1024, is_compact=True)
    (64, 16, 1)
    >>> default_size((512, 512, 1), 1024, is_compact=True, rows=8)
    (32, 32, 1)
    >>> default_size((512, 8, 1), 1024, is_compact=True)
    (128, 8, 1)
    """
    x, y, z = grid
    if is_compact:
        row = _SHORT_ROW if rows > 1 else _LONG_ROW
        x = min(x, row * max(1, most // (row * max(1, y))))
    return spread((x, y, z), most)
