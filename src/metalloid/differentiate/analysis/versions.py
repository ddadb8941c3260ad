"""Variables that hold several values in turn become several variables.

So what is needed of one value says nothing of the others: a sum that a loop adds to need not be
saved in each iteration because its total is read afterwards.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from metalloid.differentiate.analysis.activity import all_reads, live_in
from metalloid.differentiate.program.tree import (
    Assign,
    AtomicAdd,
    Expression,
    If,
    Loop,
    Program,
    Statement,
    assigned,
)


def split_versions(program: Program) -> Program:
    """The program with a variable for each value that a block gives a variable on all paths.

    Those are the values that statements of the block assign, and those that variables have after a
    loop. Values that depend on a branch share a variable.
    """
    splitter = _Splitter(program)
    body = splitter.block(program.body, set(program.variables), {})
    return replace(program, body=body)


class _Splitter:
    def __init__(self, program: Program) -> None:
        self._variables = program.variables
        self._known = {*program.variables, *(p.name for p in program.parameters)}
        self._known |= {name for value in all_reads(program.body) for name in value.variables()}

    def block(
        self, statements: list[Statement], own: Collection[str], names: dict[str, str]
    ) -> list[Statement]:
        """The statements with other names.

        Parameters
        ----------
        own : collection of str
            Variables that nothing outside of the block reads.
        names : dict
            Versions of variables.
        """
        result: list[Statement] = []
        names, seen = dict(names), set[str]()
        last_read = {
            name: number
            for number, statement in enumerate(statements)
            for value in all_reads([statement])
            for name in value.variables()
        }
        for number, statement in enumerate(statements):
            later = {name for name in assigned([statement]) if last_read.get(name, -1) > number}
            if isinstance(statement, Assign):
                name = statement.target.name
                is_full = statement.target.op == "variable" and name in own
                renamed = _renamed_assign(statement, names)
                if is_full and self._can_split(name) and name in seen & later:
                    names[name] = self._new(name)
                    renamed = replace(renamed, target=_renamed(statement.target, names))
                seen.add(statement.target.base.name)
                result.append(renamed)
                continue
            seen |= assigned([statement])
            result.append(self._nested(statement, names))
            if isinstance(statement, Loop):
                after = later & set(own) - statement.own
                for name in sorted(filter(self._can_split, after)):
                    value = Expression("variable", self._variables[name], names.get(name, name))
                    names[name] = self._new(name)
                    target = replace(value, name=names[name])
                    result.append(Assign(target, value))
        return result

    def _nested(self, statement: Statement, names: dict[str, str]) -> Statement:
        match statement:
            case If(condition=condition, then=then, other=other):
                blocks = [self.block(block, (), names) for block in (then, other)]
                return If(_renamed(condition, names), *blocks)
            case Loop(condition=condition, body=body, step=step, own=own):
                inner = own - assigned(step) - condition.variables() - live_in(body, own)
                before = set(self._known)
                block = self.block(body, inner, names)
                versions = {names.get(name, name) for name in own} | (self._known - before)
                steps = [_renamed_statement(each, names) for each in step]
                return Loop(_renamed(condition, names), block, steps, frozenset(versions))
            case _:
                return _renamed_statement(statement, names)

    def _can_split(self, name: str) -> bool:
        type_ = self._variables[name]
        return not type_.extents and not type_.space and not type_.is_pointer

    def _new(self, name: str) -> str:
        stem, number = name, 2
        while f"{stem}_{number}" in self._known:
            number += 1
        unique = f"{stem}_{number}"
        self._known.add(unique)
        self._variables[unique] = self._variables[name]
        return unique


def _renamed(value: Expression, names: dict[str, str]) -> Expression:
    if value.op == "variable":
        return replace(value, name=names[value.name]) if value.name in names else value
    return replace(value, args=tuple(_renamed(arg, names) for arg in value.args))


def _renamed_assign(statement: Assign, names: dict[str, str]) -> Assign:
    target, value = (_renamed(each, names) for each in (statement.target, statement.value))
    return replace(statement, target=target, value=value)


def _renamed_statement(statement: Statement, names: dict[str, str]) -> Statement:
    if isinstance(statement, Assign):
        return _renamed_assign(statement, names)
    if isinstance(statement, AtomicAdd):
        target, value = (_renamed(each, names) for each in (statement.target, statement.value))
        return replace(statement, target=target, value=value)
    return statement
