"""Threadgroups where nobody can tell them apart.

Independent threads that see no more than their position in the grid run the same in any
threadgroups. Narrow ones, which GPUs like as well as others, leave lanes of vector code without
work; so neighbours in x are joined. And where nobody says how large they shall be, threads that
read in loops are near each other in both directions: in a product of matrices each column is read
for as many rows as there are before it leaves the cache, all the more where several rows are done
at a time. What reads a few numbers only, as a stencil, is quickest along whole rows, as memory is.
"""

from __future__ import annotations

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


def reads_in_loops(function: Function) -> bool:
    """Whether threads go through memory: load again and again, and not from the same address."""
    graph = Graph(function)
    blocks = [function.blocks[name] for name in graph.order if graph.loop_of[name]]
    made = {one.result for block in blocks for one in block.instructions()}
    loads = (one for block in blocks for one in block.body if one.op == "load")
    return any(load.operands[0].name in made for load in loads)


def best_row(reads: bool, rows_at_a_time: int) -> int:
    """How many threads a row of a threadgroup should have; 0 if there cannot be too many."""
    if rows_at_a_time > 1:
        return _SHORT_ROW
    return _LONG_ROW if reads else 0


def default_size(grid: Size, most: int, row: int) -> Size:
    """A threadgroup of at most so many threads: rows of the grid, or more that have `row` threads.

    Examples
    --------
    >>> default_size((512, 512, 1), 1024, row=0)
    (512, 2, 1)
    >>> default_size((512, 512, 1), 1024, row=64)
    (64, 16, 1)
    """
    x, y, z = grid
    fits = row and x > row and y >= most // row
    return spread((row, y, z) if fits else grid, most)
