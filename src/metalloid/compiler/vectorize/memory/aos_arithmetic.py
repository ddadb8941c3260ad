"""Members of elements, computed in the order in which they are stored.

``y[i] = x[i] * s``, of float4s, is four products of what is taken out of a wide load, to be put in
order again for the store. What was loaded is in order already: if all members come about alike, the
arithmetic is done there, and only what lanes have one of, as s here, is spread over the members.
LLVM finds that by itself where nothing has to be spread.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from metalloid.compiler.ir.function import Instruction, Value
from metalloid.compiler.ir.opcodes import CASTS, FLOAT_BINARY, INTEGER_BINARY
from metalloid.compiler.ir.types import BFLOAT, Float, Integer
from metalloid.compiler.vectorize import elementwise
from metalloid.compiler.vectorize.builder import Builder
from metalloid.compiler.vectorize.permute import permute, shuffled

_DIVISIONS = {"udiv", "sdiv", "urem", "srem"}  # a lane that is not active must not fail
_ALIKE = {*FLOAT_BINARY, *INTEGER_BINARY, *CASTS, "fneg", "call"} - _DIVISIONS

#: Of loads of all members in order, what they load together; None if that is not there.
Loaded = Callable[[Sequence[Instruction]], str | None]


class _Unlike(Exception):
    """The members do not come about alike, or too much has to be spread."""


def interleaved_arithmetic(
    builder: Builder, members: Sequence[Value], loaded: Loaded
) -> str | None:
    """The members of the first lane, then those of the second, and so on, as one vector.

    None if it is quicker to compute each for all lanes, and to put them in order then.

    Parameters
    ----------
    builder : Builder
    members : sequence of Value
    loaded : callable
    """
    weaving = _Weaving(builder, len(members), loaded)
    try:
        write = weaving.plan(members)
    except _Unlike:
        return None
    # To put n vectors in order takes n - 1 instructions for each register of the result.
    return write() if len(weaving.spread) <= max(1, len(members) // 2) else None


class _Weaving:
    """Plans are functions that write what has been planned: nothing is written in vain."""

    def __init__(self, builder: Builder, count: int, loaded: Loaded) -> None:
        self._builder, self._count, self._loaded = builder, count, loaded
        self.spread: set[str] = set()

    def plan(self, members: Sequence[Value]) -> Callable[[], str]:
        builder, first = self._builder, members[0]
        if not isinstance(first.type, Integer | Float) or first.type == BFLOAT:
            raise _Unlike
        if any(member.type != first.type for member in members):
            raise _Unlike
        if all(map(builder.is_uniform, members)):
            return functools.partial(self._write_uniform, members)
        if all(member.name == first.name for member in members):
            self.spread.add(first.name)
            return functools.partial(self._write_spread, first)
        inst = [builder.instruction_here(member) for member in members]
        accesses = [one for one in inst if one is not None]
        if len(accesses) < len(inst) or len({i.operation_key for i in accesses}) > 1:
            raise _Unlike
        return self._plan_load(accesses) if accesses[0].op == "load" else self._plan(accesses)

    def _plan_load(self, accesses: Sequence[Instruction]) -> Callable[[], str]:
        everything = self._loaded(accesses)
        if everything is None:
            raise _Unlike
        type = accesses[0].type
        given = f"<{self._lanes} x i{8 * type.size}>"
        return lambda: self._builder.new(
            f"bitcast {given} {everything} to <{self._lanes} x {type}>"
        )

    def _plan(self, alike: Sequence[Instruction]) -> Callable[[], str]:
        first = alike[0]
        given = [i.operands for i in alike]
        values = elementwise.count_of_values(first.callee) if first.op == "call" else len(given[0])
        is_shared = any(self._builder.uses[one.result] > 1 for one in alike)
        is_alike = all(operands[values:] == given[0][values:] for operands in given)
        if first.op not in _ALIKE or not values or is_shared or not is_alike:
            raise _Unlike
        operands = [
            self.plan(each) for each in zip(*(some[:values] for some in given), strict=True)
        ]
        return lambda: elementwise.write(
            self._builder, first, [write() for write in operands], self._lanes
        )

    @property
    def _lanes(self) -> int:
        return self._count * self._builder.width

    def _write_uniform(self, members: Sequence[Value]) -> str:
        wide, vector = f"<{self._count} x {members[0].type}>", "poison"
        for offset, member in enumerate(members):
            scalar = f"{member.type} {self._builder.scalar(member)}"
            vector = self._builder.new(f"insertelement {wide} {vector}, {scalar}, i64 {offset}")
        pattern = [*range(self._count)] * self._builder.width
        return shuffled(self._builder, wide, vector, "poison", pattern)

    def _write_spread(self, value: Value) -> str:
        pattern = [lane for lane in range(self._builder.width) for _ in range(self._count)]
        return permute(self._builder, self._builder.vector(value), value.type, pattern)
