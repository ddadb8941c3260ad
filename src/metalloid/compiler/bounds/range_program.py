"""Programs of operations on intervals, which each launch evaluates.

`native/bounds.c` evaluates them with the sizes of a launch and the numbers that its constant
arguments point to. An interval of w-bit integers has 64-bit ends and stands for its numbers modulo
2^w.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from metalloid.compiler.bounds.operations import Op


class Variable(enum.IntEnum):
    """A number that differs by thread or launch, in the order of bounds.c; x of three."""

    POSITION = 0
    GRID_POSITION = 3
    INDEX = 6
    GROUP = 7
    GROUP_SIZE = 10
    DISPATCHED_SIZE = 13
    GRID = 16
    GROUPS = 19


_LEAVES = frozenset((Op.FULL, Op.CONSTANT, Op.VARIABLE, Op.ARGUMENT))
#: Operations that have a bound if either operand has one, the second or the first.
_BY_EITHER = frozenset((Op.AND, Op.UMIN, Op.ULT, Op.ULE, Op.EQ))
_BY_SECOND = frozenset((Op.UREM, Op.SREM))
_BY_FIRST = frozenset(
    (
        Op.UGT, Op.UGE, Op.SLT, Op.SLE, Op.SGT, Op.SGE, Op.NE, Op.ZEXT, Op.SEXT, Op.TRUNC, Op.SPAN,
        Op.NARROW,
    )
)  # fmt: skip


@dataclass(frozen=True)
class Node:
    """An operation: its operands `a` and `b` are nodes by number, or constants."""

    op: Op
    width: int
    a: int = 0
    b: int = 0
    c: int = 0


@dataclass
class RangeProgram:
    """Operations, each after those it uses."""

    nodes: list[Node] = field(default_factory=list)
    _numbers: dict[Node, int] = field(default_factory=dict)

    def add(self, op: Op, width: int, a: int = 0, b: int = 0, c: int = 0) -> int:
        """The number of an operation."""
        node = Node(op, width, a, b, c)
        if node not in self._numbers:
            self._numbers[node] = len(self.nodes)
            self.nodes.append(node)
        return self._numbers[node]

    def is_bounded(self, number: int) -> bool:
        """Whether a launch can give it a range that is less than everything."""
        return self._is_bounded(number, {})

    def _is_bounded(self, number: int, known: dict[int, bool]) -> bool:
        if number not in known:
            node = self.nodes[number]
            if node.op in _LEAVES:
                known[number] = node.op != Op.FULL or node.width < 32
            else:
                which = all if node.op not in _BY_EITHER else any
                operands = [node.a] * (node.op not in _BY_SECOND)
                operands += [node.b] * (node.op not in _BY_FIRST)
                known[number] = which(self._is_bounded(n, known) for n in operands)
        return known[number]
