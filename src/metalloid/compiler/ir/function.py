"""Values, instructions, blocks and functions.

Values go by name, as in the text: ``%x`` is computed in the function, ``@g`` is a global, and what
begins with neither is a constant. So an analysis is a table from names to facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from metalloid.compiler.ir.types import VOID, Array, Struct, Type, Unsupported, Vector

#: Metadata without contents, as ``!invariant.load`` wants it.
EMPTY_NODE = "!99999"

_INTEGER = re.compile(r"-?\d+$")


class Value(NamedTuple):
    """An operand.

    Attributes
    ----------
    type : Type
    name : str
        Its name with the sign, or the text of a constant.
    """

    type: Type
    name: str

    def __str__(self) -> str:
        return f"{self.type} {self.name}"

    @property
    def is_constant(self) -> bool:
        """Whether it is the same for every thread by its text alone."""
        return self.name[0] != "%"

    @property
    def integer(self) -> int | None:
        """Its number, if it is an integer constant."""
        if _INTEGER.match(self.name):
            return int(self.name)
        return {"true": 1, "false": 0, "zeroinitializer": 0}.get(self.name)


@dataclass(slots=True)
class Instruction:
    """One instruction.

    Attributes
    ----------
    op : str
        ``"fadd"``, ``"load"``, ``"br"`` ...
    result : str
        Name of what it computes; empty if nothing.
    type : Type
        Of the result.
    operands : list of Value
        Of ``br`` and ``switch`` the condition; of ``phi`` what comes from each of `labels`; of
        ``store`` the value, then the address.
    flags : tuple of str
        ``("nuw", "nsw")``, ``("contract",)``, ``("volatile",)`` ...; ``"invariant"`` of loads from
        memory that never changes, ``"meanwhile"`` if it does not while the function runs.
    labels : list of str
        Targets of ``br`` and ``switch`` (the default first), origins of ``phi``.
    detail : str
        Predicate of a comparison, callee of a call, operation of an ``atomicrmw``, cases of a
        ``switch`` ("1,2,5"), mask of a ``shufflevector``, indices of ``extractvalue``, ordering
        of an atomic access.
    source : Type
        What a ``getelementptr`` steps over, and what an ``alloca`` makes.
    align : int
        Of a memory access; 0 if the text says nothing.
    """

    op: str
    result: str = ""
    type: Type = VOID
    operands: list[Value] = field(default_factory=list)
    flags: tuple[str, ...] = ()
    labels: list[str] = field(default_factory=list)
    detail: str = ""
    source: Type = VOID
    align: int = 0

    @property
    def value(self) -> Value:
        """Its result as an operand."""
        return Value(self.type, self.result)

    @property
    def reads_the_same(self) -> bool:
        """Whether it is a load that gives the same wherever it stands in the function."""
        return "invariant" in self.flags or "meanwhile" in self.flags


@dataclass(slots=True, eq=False)
class Block:
    """A basic block: phis, other instructions, and one that ends it.

    Attributes
    ----------
    name : str
        With its sign, as branches name it: ``%entry``.
    phis, body : list of Instruction
    end : Instruction
        ``br``, ``switch``, ``ret`` or ``unreachable``.
    """

    name: str
    phis: list[Instruction] = field(default_factory=list)
    body: list[Instruction] = field(default_factory=list)
    end: Instruction = field(default_factory=lambda: Instruction("unreachable"))

    @property
    def successors(self) -> list[str]:
        """Blocks it may go to, each once."""
        return list(dict.fromkeys(self.end.labels))

    def instructions(self) -> Iterator[Instruction]:
        """All of them in order."""
        yield from self.phis
        yield from self.body
        yield self.end


@dataclass(slots=True, eq=False)
class Function:
    """A function with a body.

    Attributes
    ----------
    name : str
        Without the ``@``.
    result : Type
    parameters : list of Value
    attributes : str
        Its attribute groups, ``"#0"``.
    blocks : dict of Block by name
        The first is the entry.
    linkage : str
        ``"internal"``; empty if other modules may call it.
    tables : dict of Array by name
        Types of the module's constant arrays.
    parameter_attributes : list of list of str
        Tokens of each parameter's attributes: ``["noundef", "byval", "(", "%struct.S", ")"]``.
    """

    name: str
    result: Type
    parameters: list[Value]
    attributes: str
    blocks: dict[str, Block]
    linkage: str = ""
    tables: dict[str, Array] = field(default_factory=dict)
    parameter_attributes: list[list[str]] = field(default_factory=list)

    @property
    def entry(self) -> Block:
        """Where it begins."""
        return next(iter(self.blocks.values()))

    def instructions(self) -> Iterator[Instruction]:
        """All of them, block by block."""
        for block in self.blocks.values():
            yield from block.instructions()


def replace_predecessor(block: Block, old: str, new: str) -> None:
    """In the phis of `block`, let what came from `old` come from `new`."""
    for phi in block.phis:
        phi.labels = [new if label == old else label for label in phi.labels]


def gep_terms(step: Instruction) -> tuple[int, list[tuple[Value, int]]]:
    """What a ``getelementptr`` adds to its first operand.

    Returns
    -------
    distance : int
        By the indices that are constants.
    variable : list of (Value, int)
        The others, and what they are multiplied with.
    """
    distance, variable = 0, []
    inside: Type = step.source
    for number, index in enumerate(step.operands[1:]):
        place = index.integer
        if number == 0:
            size = inside.size
        elif isinstance(inside, Struct):
            distance += inside.offset(place or 0)
            inside = inside.members[place or 0]
            continue
        elif isinstance(inside, Array | Vector):
            inside = inside.element
            size = inside.size
        else:
            raise Unsupported(f"a step into {inside}")
        if place is None:
            variable.append((index, size))
        else:
            distance += place * size
    return distance, variable
