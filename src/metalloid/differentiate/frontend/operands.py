"""Order of operands: one that a later operand changes is read before it.

C++ leaves the order open where an operand calls a function that changes another one; compilers read
from left to right.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from metalloid.differentiate.program.tree import Expression, assigned
from metalloid.msl.portable.syntax_tree import Node


def operands(reader: Any, nodes: Iterable[Node]) -> list[Expression]:
    """Values of nodes, read from left to right."""
    values: list[Expression] = []
    for node in nodes:
        start = len(reader.statements)
        value = reader.value(node)
        changed = assigned(reader.statements[start:])
        for number, each in enumerate(values):
            if changed & each.variables():
                values[number] = _read_at(reader, each, start)
        values.append(value)
    return values


def _read_at(reader: Any, value: Expression, start: int) -> Expression:
    """A value that is read before the statements from `start` on."""
    results: list[Expression] = []
    read = reader.fixed if value.op == "pointer" else reader.bound
    reader.statements[start:start] = reader.block_of(lambda: results.append(read(value)))
    return results[0]
