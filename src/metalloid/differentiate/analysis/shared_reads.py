"""Elements of memory that a block reads several times: their adjoints are added to it once."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from metalloid.differentiate.analysis.activity import indices_of
from metalloid.differentiate.program.tree import (
    Assign,
    AtomicAdd,
    Expression,
    If,
    Loop,
    Statement,
    assigned,
)
from metalloid.msl.portable.syntax_tree import SourceLocation


class SharedRead(NamedTuple):
    """An element that statements of a block read, and those that read it first and last.

    Its index does not change from the first to the last one.
    """

    element: Expression
    first: int
    last: int
    location: SourceLocation | None


def shared_reads(statements: list[Statement], names: Collection[str]) -> Iterator[SharedRead]:
    """The elements of buffers that statements read more than once.

    Parameters
    ----------
    names : collection of str
        The buffers.
    """
    changed = [assigned([statement]) for statement in statements]
    reads: dict[Expression, list[tuple[int, int, SourceLocation | None]]] = {}
    for number, statement in enumerate(statements):
        counts: dict[Expression, tuple[int, SourceLocation | None]] = {}
        for element, times, location in _reads(statement, names, 1):
            before, first = counts.get(element, (0, location))
            counts[element] = before + times, first
        for element, (times, location) in counts.items():
            reads.setdefault(element, []).append((number, times, location))
    for element, where in reads.items():
        if len(where) == 1 and _is_in_branch(statements[where[0][0]], element):
            continue  # the branch adds them up
        indices = {name for index in indices_of(element) for name in index.variables()}
        group: list[tuple[int, int, SourceLocation | None]] = []
        position = 0
        for read in where:
            if any(indices & each for each in changed[position : read[0]]):
                yield from _of(element, group)
                group = []
            position = read[0]
            if not indices & changed[position]:
                group.append(read)
        yield from _of(element, group)


def _is_in_branch(statement: Statement, element: Expression) -> bool:
    """Whether one branch of a statement has all of its reads of an element."""
    if not isinstance(statement, If):
        return False
    names = {element.base.name}
    branches = [
        any(each == element for inner in branch for each, _, _ in _reads(inner, names, 1))
        for branch in (statement.then, statement.other)
    ]
    return branches.count(True) == 1


def _of(
    element: Expression, group: list[tuple[int, int, SourceLocation | None]]
) -> Iterator[SharedRead]:
    if sum(times for _, times, _ in group) > 1:
        yield SharedRead(element, group[0][0], group[-1][0], group[0][2])


def _elements(value: Expression) -> Iterator[Expression]:
    """The elements of buffers, and scalars in memory, that a value reads."""
    is_object = value.op in ("element", "member", "variable")
    if is_object and value.is_buffer_element:
        yield value
    for arg in indices_of(value) if is_object else value.args:
        yield from _elements(arg)


def _reads(
    statement: Statement, names: Collection[str], times: int
) -> Iterator[tuple[Expression, int, SourceLocation | None]]:
    """Elements, how often they are read, at least 2 in loops, and where."""
    match statement:
        case Assign(value=value, location=location) | AtomicAdd(value=value, location=location):
            for each in _elements(value):
                if each.base.name in names and each.type.is_float:
                    yield each, times, location
        case If(then=then, other=other):
            for inner in (*then, *other):
                yield from _reads(inner, names, times)
        case Loop(body=body):
            for inner in body:
                yield from _reads(inner, names, 2)
