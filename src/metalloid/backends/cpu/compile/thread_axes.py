"""Axes of threads: the one along which lanes lie, and the one along which memory is contiguous.

Lanes lie along x, unless threadgroups are one thread wide: then along y, or z.
"""

from __future__ import annotations

from metalloid.compiler.llvm.cfg import Graph
from metalloid.compiler.llvm.ir import Function, Instruction, Value, terms_of
from metalloid.runtime.launch.program import Size


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
            for index, size in terms_of(step)[1]:
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
