"""Buffers of which no two threads read the same element; no atomic functions add to theirs."""

from __future__ import annotations

from collections.abc import Collection

from metalloid.differentiate.activity import all_reads, assignments_of
from metalloid.differentiate.tree import Assign, Expression, Program, flatten

_POSITION = "[[thread_position_in_grid]]"
_INTEGERS = ("int", "uint", "long", "ulong")


def own_elements(program: Program, names: Collection[str]) -> dict[str, int]:
    """The buffers that each thread of a one-dimensional grid reads at ``i * stride + k``.

    There `i` is the thread's position in the grid, and `k` a number from 0 to ``stride - 1``.

    Returns
    -------
    dict
        The stride, by name.
    """
    indices = _Indices(program)
    strides: dict[str, set[int]] = {}
    for value in all_reads(program.body):
        for each in value.walk():
            if each.op == "element" and each.base.name in names:
                strides.setdefault(each.base.name, set()).add(indices.stride(each.args[1]))
            elif each.op == "pointer":
                strides.setdefault(each.base.name, set()).add(0)
    references = {p.name for p in program.parameters if "&" in p.declaration}
    return {
        name: next(iter(each))
        for name, each in strides.items()
        if len(each) == 1 and 0 not in each and name not in references
    }


class _Indices:
    """Recognises indices that are linear functions of the position of a thread."""

    def __init__(self, program: Program) -> None:
        counts = assignments_of(program)
        self._positions = {
            p.name
            for p in program.parameters
            if _POSITION in p.attributes and not counts.get(p.name)
        }
        self._values = {
            statement.target.name: statement.value
            for statement in flatten(program.body)
            if isinstance(statement, Assign)
            and statement.target.op == "variable"
            and counts[statement.target.name] == 1
        }

    def stride(self, index: Expression) -> int:
        """The stride of ``i * stride + k``; 0 if an index is something else."""
        linear = self._linear(index, 8)
        if linear is None:
            return 0
        stride, constant = linear
        return stride if 0 <= constant < stride else 0

    def _linear(self, value: Expression, depth: int) -> tuple[int, int] | None:
        """Factor and constant of a linear function of the thread's position."""
        if depth == 0:
            return None
        if value.op == "variable" and value.name in self._positions and value.type.lanes == 1:
            return 1, 0
        if value.op == "component":
            (vector,) = value.args
            is_first = vector.op == "variable" and vector.name in self._positions
            return (1, 0) if is_first and value.name == "x" else None
        if value.op == "variable" and value.name in self._values:
            return self._linear(self._values[value.name], depth - 1)
        if value.op == "constant":
            digits = value.name.rstrip("uUlL")
            return (0, int(digits)) if digits.isdigit() else None
        if value.op == "cast" and value.type.scalar in _INTEGERS:
            return self._linear(value.args[0], depth - 1)
        if value.op == "binary" and value.name in ("+", "*"):
            pair = [self._linear(arg, depth - 1) for arg in value.args]
            if pair[0] is None or pair[1] is None:
                return None
            (a, b), (c, d) = pair[0], pair[1]
            if value.name == "+":
                return a + c, b + d
            return (a * d + b * c, b * d) if not a * c else None
        return None
