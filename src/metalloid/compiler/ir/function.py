"""Values, instructions, blocks and functions.

Values go by name, as in the text: ``%x`` is computed in the function, ``@g`` is a global, and what
begins with neither is a constant. So an analysis is a table from names to facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from metalloid.compiler.ir.types import VOID, Array, Struct, Type, Unsupported, Vector

#: Instructions that LLVM does not have: passes make them, and the vectoriser writes code for them.
#:
#: - ``assert`` and ``assert_not`` (condition, reported...): the thread fails if the condition does
#:   not hold, or if it holds
#: - ``assert_inside`` (condition, site, offset, extent, thread, 0): the same for an access
#: - ``copy`` (source, size, target), ``fill`` (byte, size, target)
#: - ``to_matrix``, ``of_matrix``, ``load_matrix``, ``multiply_matrices``, ``join_matrices``,
#:   ``half_of_pair``: see `transforms.matrix_products`
DIALECT = frozenset(
    (
        "assert", "assert_not", "assert_inside", "copy", "fill", "to_matrix", "of_matrix",
        "load_matrix", "multiply_matrices", "join_matrices", "half_of_pair",
    )
)  # fmt: skip

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


class CallAttributes(NamedTuple):
    """Attributes of a call, as tokens; the parser keeps them with `retain_hints`.

    Attributes
    ----------
    result : tuple of str
        Calling convention and attributes of the result: ``("fastcc", "noundef")``.
    arguments : tuple of tuple of str
        Of each argument: ``(("noundef", "align", "4"), ())``.
    function : tuple of str
        Of the function: ``("#5",)``.
    """

    result: tuple[str, ...]
    arguments: tuple[tuple[str, ...], ...]
    function: tuple[str, ...]


@dataclass(slots=True, eq=False)
class Instruction:
    """One instruction; equal to itself only, so that tables can have instructions as keys.

    Attributes
    ----------
    op : str
        ``"fadd"``, ``"load"``, ``"br"`` ...
    result : str
        Name of what it computes; empty if nothing.
    type : Type
        Of the result.
    operands : list of Value
        Of ``br`` and ``switch`` the condition; of ``phi`` the value of each of `labels`; of
        ``store`` the value, then the address.
    flags : tuple of str
        ``("nuw", "nsw")``, ``("contract",)``, ``("volatile",)`` ...; ``"invariant"`` of loads from
        memory that never changes, ``"call_invariant"`` if it does not during a call;
        ``"parameter"`` of an ``alloca`` that stands for the array that its operand points to.
    labels : list of str
        Targets of ``br`` and ``switch`` (the default first), incoming blocks of ``phi``.
    callee : str
        Of a ``call``: the function with its ``@``, or inline assembly from ``asm`` on. It is empty
        if the first operand is the address of the function.
    predicate : str
        Of ``icmp`` and ``fcmp``.
    operation : str
        Of ``atomicrmw``: ``"add"``.
    ordering : str
        Of an atomic access or a fence, after its scope if that is one thread; two of ``cmpxchg``.
        Empty if a load or store is not atomic.
    cases : tuple of int
        Of ``switch``: numbers that go to the labels after the first.
    mask : tuple of int
        Of ``shufflevector``: elements of both vectors; -1 for poison.
    indices : tuple of int
        Of ``extractvalue`` the member; of ``of_matrix`` the element, of ``half_of_pair`` the half,
        of ``load_matrix`` the steps from a row to the next and from a column to the next.
    lane_step : int
        Of ``alloca`` whose elements lie side by side for all lanes: bytes from a lane's first
        element to the next lane's; 0 if a lane's elements lie side by side.
    accumulator : int or None
        Of ``atomicrmw``: the number of the accumulator to which the update may be deferred.
    source : Type
        What a ``getelementptr`` steps over, and what an ``alloca`` makes.
    align : int
        Of a memory access; 0 if the text says nothing.
    metadata : tuple of (str, str)
        Attachments: ``(("!llvm.loop", "!5"),)``. The parser keeps them with `retain_hints`.
    attributes : CallAttributes or None
        Of a call, if the parser keeps hints.
    """

    op: str
    result: str = ""
    type: Type = VOID
    operands: list[Value] = field(default_factory=list)
    flags: tuple[str, ...] = ()
    labels: list[str] = field(default_factory=list)
    callee: str = ""
    predicate: str = ""
    operation: str = ""
    ordering: str = ""
    cases: tuple[int, ...] = ()
    mask: tuple[int, ...] = ()
    indices: tuple[int, ...] = ()
    lane_step: int = 0
    accumulator: int | None = None
    source: Type = VOID
    align: int = 0
    metadata: tuple[tuple[str, str], ...] = ()
    attributes: CallAttributes | None = None

    @property
    def value(self) -> Value:
        """Its result as an operand."""
        return Value(self.type, self.result)

    @property
    def debug(self) -> str:
        """Its ``!dbg`` attachment, such as ``"!12"``; empty if it has none."""
        return next((node for name, node in self.metadata if name == "!dbg"), "")

    @property
    def operation_key(self) -> tuple[object, ...]:
        """The same for two instructions that differ in their operands only."""
        return (
            self.op, self.flags, self.callee, self.predicate, self.operation, self.ordering,
            self.cases, self.mask, self.indices, self.accumulator,
        )  # fmt: skip

    def copy(self) -> Instruction:
        """The same instruction with lists of its own."""
        return replace(self, operands=[*self.operands], labels=[*self.labels])

    @property
    def reads_the_same(self) -> bool:
        """Whether it is a load that gives the same wherever it stands in the function."""
        return "invariant" in self.flags or "call_invariant" in self.flags


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
        Its attribute groups, ``"#0"``; with `retain_hints` all that stands after its parameters.
    blocks : dict of Block by name
        The first is the entry.
    linkage : str
        ``"internal"``; empty if other modules may call it.
    tables : dict of Array by name
        Types of the module's constant arrays.
    parameter_attributes : list of list of str
        Tokens of each parameter's attributes: ``["noundef", "byval", "(", "%struct.S", ")"]``.
    qualifiers : tuple of str
        Words before the result type, linkage aside: ``("dso_local", "ptx_kernel")``. The parser
        keeps them with `retain_hints`.
    """

    name: str
    result: Type
    parameters: list[Value]
    attributes: str
    blocks: dict[str, Block]
    linkage: str = ""
    tables: dict[str, Array] = field(default_factory=dict)
    parameter_attributes: list[list[str]] = field(default_factory=list)
    qualifiers: tuple[str, ...] = ()

    @property
    def entry(self) -> Block:
        """Where it begins."""
        return next(iter(self.blocks.values()))

    def copy(self) -> Function:
        """The same function with blocks and instructions of its own."""
        blocks = {
            block.name: Block(
                block.name,
                [phi.copy() for phi in block.phis],
                [instruction.copy() for instruction in block.body],
                block.end.copy(),
            )
            for block in self.blocks.values()
        }
        return replace(self, parameters=[*self.parameters], blocks=blocks)

    def instructions(self) -> Iterator[Instruction]:
        """All of them, block by block."""
        for block in self.blocks.values():
            yield from block.instructions()


def replace_predecessor(block: Block, old: str, new: str) -> None:
    """In the phis of `block`, let what came from `old` come from `new`."""
    for phi in block.phis:
        phi.labels = [new if label == old else label for label in phi.labels]


def gep_terms(step: Instruction) -> tuple[int, list[tuple[Value, int]]]:
    """The terms that a ``getelementptr`` adds to its first operand.

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
        member_index = index.integer
        if number == 0:
            size = inside.size
        elif isinstance(inside, Struct):
            distance += inside.offset(member_index or 0)
            inside = inside.members[member_index or 0]
            continue
        elif isinstance(inside, Array | Vector):
            inside = inside.element
            size = inside.size
        else:
            raise Unsupported(f"a step into {inside}")
        if member_index is None:
            variable.append((index, size))
        else:
            distance += member_index * size
    return distance, variable


def member_type(aggregate: Type, indices: Sequence[int]) -> Type:
    """The type of a member of a member ... of a struct or array."""
    for index in indices:
        if isinstance(aggregate, Struct):
            aggregate = aggregate.members[index]
        elif isinstance(aggregate, Array):
            aggregate = aggregate.element
        else:
            raise Unsupported(f"a member of {aggregate}")
    return aggregate
