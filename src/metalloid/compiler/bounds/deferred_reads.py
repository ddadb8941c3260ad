"""Reads whose values are used on some paths only, which are checked where they are used.

Kernels may read past the end of an array, and use the values only where they are inside::

    T c = C[row * ld + column];
    T sum = product + c;
    if (row < rows) D[row * ld + column] = sum;

Such a read gives 0 if it is outside, and the launch ends at a *use*: a store, a branch, an address
or a call that depends on its value. All other reads are checked where they are, also those whose
value is carried by a loop.
"""

from __future__ import annotations

from dataclasses import dataclass

from metalloid.compiler.ir.cfg import Graph
from metalloid.compiler.ir.function import Function, Instruction
from metalloid.compiler.ir.opcodes import CASTS, FLOAT_BINARY, INTEGER_BINARY
from metalloid.compiler.ir.types import Vector

#: Values that are computed from a read; longer slices are checked at the read.
_MAX_VALUES = 64
_TRAPS = frozenset(("sdiv", "srem", "udiv", "urem"))
_PURE = (
    frozenset((*CASTS, *FLOAT_BINARY, *INTEGER_BINARY)) - _TRAPS
    | {"phi", "fneg", "freeze", "icmp", "fcmp", "select", "extractvalue", "insertvalue"}
    | {"extractelement", "insertelement", "shufflevector"}
)  # fmt: skip
_PURE_CALLS = (
    "@llvm.fma.", "@llvm.fmuladd.", "@llvm.fabs.", "@llvm.minnum.", "@llvm.maxnum.", "@llvm.smin.",
    "@llvm.smax.", "@llvm.umin.", "@llvm.umax.", "@llvm.abs.", "@llvm.copysign.",
)  # fmt: skip


@dataclass(frozen=True)
class DeferredRead:
    """A read, and where its value goes.

    A *source* is the read, or a phi or a select that may give a value computed from it, by name.

    Attributes
    ----------
    joins : tuple of (str, Instruction, tuple of str)
        Block of each phi and select, and the source of each operand; empty if that is another
        value.
    uses : tuple of (Instruction, str)
        A use of each source in each block.
    """

    joins: tuple[tuple[str, Instruction, tuple[str, ...]], ...]
    uses: tuple[tuple[Instruction, str], ...]


class DeferredReads:
    """Finds such reads in one function.

    Parameters
    ----------
    function : Function
    graph : Graph
        Of it.
    """

    def __init__(self, function: Function, graph: Graph) -> None:
        self._function, self._graph = function, graph
        self._users: dict[str, list[tuple[Instruction, str]]] = {}
        for block in function.blocks.values():
            for instruction in block.instructions():
                for name in dict.fromkeys(value.name for value in instruction.operands):
                    self._users.setdefault(name, []).append((instruction, block.name))

    def find(self, read: Instruction, block: str) -> DeferredRead | None:
        """Where the value of a read goes; None if the read is to be checked where it is."""
        if read.op != "load" or read.ordering or "volatile" in read.flags:
            return None
        computed = self._computed_from(read)
        if computed is None:
            return None
        sources = {read.result: read.result}
        joins: dict[str, tuple[str, Instruction]] = {}
        selected: set[str] = set()  # sources that only some threads or iterations have from it
        uses: dict[tuple[str, str], Instruction] = {}
        todo = [read.result]
        while todo:
            value = todo.pop()
            source = sources[value]
            for user, where in self._users.get(value, ()):
                if user.op == "phi" and self._is_header(where):
                    return None
                if not _is_pure(user):
                    uses.setdefault((where, source), user)
                    continue
                new = source
                if user.op == "phi" or _selects(user, computed):
                    new = user.result
                    joins[new] = (where, user)
                    if user.op == "select" or source in selected:
                        selected.add(new)
                if user.result not in sources:
                    sources[user.result] = new
                    todo.append(user.result)
                elif sources[user.result] != new:  # computed from two sources
                    return None
        certain = {where for where, source in uses if source not in selected}
        if not uses or block in certain or not (selected or self._may_miss(block, certain)):
            return None
        return DeferredRead(
            tuple(
                (where, join, tuple(sources.get(value.name, "") for value in join.operands))
                for where, join in joins.values()
            ),
            tuple((use, source) for (_, source), use in uses.items()),
        )

    def _computed_from(self, read: Instruction) -> set[str] | None:
        """The values that are computed from a read; None if they are too many."""
        todo, computed = [read.result], {read.result}
        while todo and len(computed) <= _MAX_VALUES:
            users = self._users.get(todo.pop(), ())
            new = {user.result for user, _ in users if _is_pure(user)} - computed
            computed |= new
            todo += new
        return computed if len(computed) <= _MAX_VALUES else None

    def _is_header(self, block: str) -> bool:
        loop = self._graph.loop_of.get(block)
        return loop is not None and loop.header == block

    def _may_miss(self, block: str, uses: set[str]) -> bool:
        """Whether there is a path from the block, to an end or to itself, without a use."""
        todo, seen = [block], set[str]()
        while todo:
            end = self._function.blocks[todo.pop()].end
            if end.op == "ret" or block in end.labels:
                return True
            ahead = set(end.labels) - uses - seen
            seen |= ahead
            todo += ahead
        return False


def _selects(user: Instruction, computed: set[str]) -> bool:
    """Whether a thread may select another value, by a condition that is not `computed` as well."""
    if user.op != "select" or isinstance(user.operands[0].type, Vector):
        return False
    return user.operands[0].name not in computed


def _is_pure(instruction: Instruction) -> bool:
    """Whether an instruction only computes a value."""
    if instruction.op == "call":
        return instruction.callee.startswith(_PURE_CALLS)
    return instruction.op in _PURE
