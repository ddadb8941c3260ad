"""A small structured program: what a kernel computes, without C++.

Variables have function scope and names of their own, functions are inlined, expressions have no
side effects, and a loop ends by its condition alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from metalloid.differentiate.program.types import Type
from metalloid.msl.portable.syntax_tree import SourceLocation


@dataclass(frozen=True)
class Expression:
    """A value, or an object in memory if it is a target.

    Attributes
    ----------
    op : str
        ``"constant"``, ``"variable"``, ``"element"`` (of an array or buffer: base, indices),
        ``"member"`` (of a struct in memory), ``"component"`` (of a vector, `name` are the lanes),
        ``"aggregate"`` (members of a struct, or columns, only while it is read), ``"cast"``,
        ``"construct"``, ``"unary"``, ``"binary"``, ``"select"``, ``"call"``, ``"method"`` (of a
        texture: the texture, arguments), ``"option"`` of a sample or ``"texel"`` (that is written:
        the texture, indices).
    type : Type
    name : str
        Text of a constant, name of a variable, operator or function.
    args : tuple of Expression
    """

    op: str
    type: Type
    name: str = ""
    args: tuple[Expression, ...] = ()

    def walk(self) -> Iterator[Expression]:
        """The expression, and all within it."""
        yield self
        for arg in self.args:
            yield from arg.walk()

    def variables(self) -> set[str]:
        """The names of all variables in it."""
        return {each.name for each in self.walk() if each.op == "variable"}

    @property
    def base(self) -> Expression:
        """The variable that a target is in."""
        return self if self.op == "variable" else self.args[0].base

    @property
    def is_buffer_element(self) -> bool:
        """Whether it is in memory of the device."""
        if self.op == "component":
            return self.args[0].is_buffer_element
        if self.op == "texel":
            return True
        is_memory = self.op in ("element", "variable")
        return is_memory and self.base.type.space in ("device", "constant")

    @property
    def is_shared(self) -> bool:
        """Whether it is in threadgroup memory."""
        return self.base.type.space == "threadgroup"


@dataclass(frozen=True)
class Assign:
    """Give a target a value."""

    target: Expression
    value: Expression
    location: SourceLocation | None = None


@dataclass(frozen=True)
class AtomicAdd:
    """Add a value to an element of a buffer that other threads may add to."""

    target: Expression
    value: Expression
    location: SourceLocation | None = None


@dataclass(frozen=True)
class If:
    """Two blocks, one of which runs."""

    condition: Expression
    then: list[Statement]
    other: list[Statement] = field(default_factory=list)


@dataclass(frozen=True)
class Loop:
    """A block that runs while a condition holds, and what ends each iteration.

    Attributes
    ----------
    step : list of Statement
        Updates of variables by values that do not change in the loop.
    own : frozenset of str
        Variables that the loop's text declares: outside of it they have no value.
    """

    condition: Expression
    body: list[Statement]
    step: list[Statement]
    own: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Barrier:
    """A barrier, with its text."""

    text: str


Statement = Assign | AtomicAdd | If | Loop | Barrier


@dataclass
class Parameter:
    """A parameter of a kernel.

    Attributes
    ----------
    name : str
    type : Type
    declaration, attributes : str
        Texts, without and with the brackets of the attributes.
    """

    name: str
    type: Type
    declaration: str
    attributes: str = ""


@dataclass(frozen=True)
class Sampler:
    """A sampler.

    Attributes
    ----------
    settings : dict or None
        By the names of the parameters of `metalloid.Sampler`; None of one that is a parameter.
    declaration : str
        What declares it in the kernel; empty if it is declared outside.
    """

    settings: dict[str, str] | None
    declaration: str = ""


@dataclass
class Program:
    """A kernel.

    Attributes
    ----------
    name : str
    parameters : list of Parameter
    variables : dict
        Types of local variables.
    body : list of Statement
    records : dict
        Members of structs with their types, by name.
    samplers : dict of Sampler
        By name.
    """

    name: str
    parameters: list[Parameter]
    variables: dict[str, Type]
    body: list[Statement]
    records: dict[str, list[tuple[str, Type]]] = field(default_factory=dict)
    samplers: dict[str, Sampler] = field(default_factory=dict)

    @property
    def threadgroup_parameters(self) -> list[Parameter]:
        """Parameters that are threadgroup memory."""
        return [p for p in self.parameters if p.type.space == "threadgroup"]

    def scalars(self, type_: Type) -> set[str]:
        """The types of the numbers in a type."""
        members = self.records.get(type_.record, ())
        return {type_.scalar}.union(*(self.scalars(each) for _, each in members)) - {""}


def assigned(statements: list[Statement]) -> set[str]:
    """The variables that statements may change."""
    names: set[str] = set()
    for statement in statements:
        match statement:
            case Assign(target=target):
                names.add(target.base.name)
            case If(then=then, other=other):
                names |= assigned(then) | assigned(other)
            case Loop(body=body, step=step):
                names |= assigned(body) | assigned(step)
    return names


def flatten(statements: list[Statement]) -> Iterator[Statement]:
    """All statements, those of blocks included."""
    for statement in statements:
        yield statement
        if isinstance(statement, If):
            yield from flatten(statement.then)
            yield from flatten(statement.other)
        elif isinstance(statement, Loop):
            yield from flatten(statement.body)
            yield from flatten(statement.step)
