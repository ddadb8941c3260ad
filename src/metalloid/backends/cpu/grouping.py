"""Threadgroups where nobody can tell them apart.

Independent threads that see no more than their position in the grid run the same in any
threadgroups. Narrow ones, which GPUs like as well as others, leave lanes of vector code without
work; so neighbours in x are joined, and neighbours in y where several rows are done at a time. And
where nobody says how large they shall be, threads that read in loops are near each other in both
directions: in a product of matrices each column is read for as many rows as there are before it
leaves the cache. What reads a few numbers only, as a stencil, is quickest along whole rows, as
memory is.

Lanes lie along x, unless threadgroups are one thread wide: then along y, or z.
"""

from __future__ import annotations

import math

from metalloid.compiler.ir.cfg import Graph
from metalloid.compiler.ir.function import Function, Instruction, Value, gep_terms
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


def lane_axis(group: Size) -> str:
    """The axis along which the lanes of a threadgroup lie: the first that has several threads.

    Examples
    --------
    >>> lane_axis((64, 1, 1)), lane_axis((1, 64, 4)), lane_axis((1, 1, 64)), lane_axis((1, 1, 1))
    ('x', 'y', 'z', 'x')
    """
    return next((axis for axis, size in zip("xyz", group, strict=True) if size > 1), "x")


def axis_order(axis: str) -> str:
    """The axes from `axis` on.

    Examples
    --------
    >>> axis_order("y")
    'yzx'
    """
    first = "xyz".index(axis)
    return "xyz"[first:] + "xyz"[:first]


def axis_first(size: Size, axis: str) -> Size:
    """A size with `axis` in the place of x; the index of a thread follows from it as ever.

    Examples
    --------
    >>> axis_first((1, 64, 4), "y")
    (64, 4, 1)
    """
    x, y, z = (size["xyz".index(each)] for each in axis_order(axis))
    return x, y, z


def joined_along(axis: str, grid: Size, group: Size) -> Size:
    """How many threadgroups to run as one in each direction if lanes lie along `axis`.

    Examples
    --------
    >>> joined_along("y", (100, 64, 1), (1, 16, 1))
    (1, 4, 1)
    """
    across, _ = joined(axis_first(grid, axis), axis_first(group, axis), rows=1)
    x, y, z = (across if each == axis else 1 for each in "xyz")
    return x, y, z


def contiguous_axis(function: Function) -> str:
    """The axis along which neighbouring threads access memory side by side, most often."""
    computed_by = {one.result: one for one in function.instructions() if one.result}
    accesses = [one for one in function.instructions() if one.op in ("load", "store")]

    def count(axis: str) -> int:
        steps = _Steps({f"%{axis}", f"%grid_{axis}"}, computed_by)
        return sum(steps.of_address(one.operands[-1]) == _bytes_of(one) for one in accesses)

    return max("xyz", key=count)


def _bytes_of(access: Instruction) -> int:
    return (access.type if access.op == "load" else access.operands[0].type).size


class _Steps:
    """By how much values grow from one thread to the next; None if that is not known."""

    def __init__(self, positions: set[str], computed_by: dict[str, Instruction]) -> None:
        self._computed_by = computed_by
        self._known: dict[str, int | None] = dict.fromkeys(positions, 1)

    def of_address(self, address: Value) -> int | None:
        """Of a pointer, in bytes."""
        total: int | None = 0
        while (step := self._computed_by.get(address.name)) and step.op == "getelementptr":
            for index, size in gep_terms(step)[1]:
                grows = self.of(index)
                total = None if total is None or grows is None else total + grows * size
            address = step.operands[0]
        return total if self.of(address) == 0 else None

    def of(self, value: Value) -> int | None:
        """Of a number."""
        if value.name not in self._known:
            self._known[value.name] = None  # around a loop
            one = self._computed_by.get(value.name)
            self._known[value.name] = self._computed(one) if one else 0
        return self._known[value.name]

    def _computed(self, one: Instruction) -> int | None:
        if one.op == "phi":
            return self.of(one.operands[0])
        if not one.operands:
            return 0 if one.op == "alloca" else None
        grows = [self.of(value) for value in one.operands]
        if any(step is None for step in grows):
            return None
        left, *others = (step or 0 for step in grows)
        if one.op in ("zext", "sext", "trunc", "freeze"):
            return left
        if one.op in ("add", "or"):
            return left + others[0]
        if one.op == "sub":
            return left - others[0]
        factor = one.operands[-1].integer
        if one.op in ("mul", "shl") and factor is not None:
            return left * (factor if one.op == "mul" else 1 << factor)
        return None if any(grows) else 0


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
