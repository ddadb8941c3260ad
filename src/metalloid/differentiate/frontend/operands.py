"""Order of operands: one that a later operand changes is read before it. Objects of references.

C++ leaves the order open where an operand calls a function that changes another one; compilers read
from left to right.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from metalloid.differentiate.program.tree import Expression, assigned
from metalloid.msl.portable.syntax_tree import Node

#: Nodes of a piece of an object, or of the object itself.
_PARTS = ("ParenExpr", "MemberExpr", "ArraySubscriptExpr", "OpaqueValueExpr")


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


def referred(reader: Any, node: Node) -> Expression:
    """The object that a reference is a name of; a temporary one is a variable of its own."""
    value: Expression = reader.value(node)
    while node.kind in ("ExprWithCleanups", "ImplicitCastExpr"):
        node = node.children[-1]
    is_temporary = node.kind == "MaterializeTemporaryExpr" and value.op != "pointer"
    return reader.bound(value) if is_temporary and value.type.scalar else value


def is_changed_choice(node: Node) -> bool:
    """Whether ``c ? a : b`` is more than read: assigned, or what a reference is a name of."""
    if " lvalue" not in node.text:
        return False
    parent = node.parent
    while parent is not None and (parent.kind in _PARTS or "'[]'" in parent.text):
        parent = parent.parent
    return parent is None or parent.kind not in ("ImplicitCastExpr", "CXXConstructExpr")


def _read_at(reader: Any, value: Expression, start: int) -> Expression:
    """A value that is read before the statements from `start` on."""
    results: list[Expression] = []
    read = reader.fixed if value.op == "pointer" else reader.bound
    reader.statements[start:start] = reader.block_of(lambda: results.append(read(value)))
    return results[0]
