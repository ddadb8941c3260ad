"""Order of operands: one that a later operand changes is read before it. Objects of references.

C++ leaves the order open where an operand calls a function that changes another one; compilers read
from left to right, but the value of an assignment before its target, as C++ 17 says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from metalloid.differentiate.analysis.activity import all_reads
from metalloid.differentiate.frontend.refused import Refused
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


def is_assignment(operator: str) -> bool:
    """Whether an operator changes its left operand."""
    return operator.endswith("=") and operator not in ("==", "!=", "<=", ">=")


def subscripted(reader: Any, node: Node) -> tuple[Expression, Expression]:
    """The operands of a subscript; refused if the index changes what its array reads."""
    base = reader.value(node.children[0])
    start = len(reader.statements)
    index = reader.value(node.children[1])
    if assigned(reader.statements[start:]) & base.variables():
        raise Refused(node.begin, "a step and a use of the same variable have no rule")
    return base, index


def target_and_value(
    reader: Any, node: Node, nodes: Sequence[Node]
) -> tuple[Expression, Expression]:
    """The operands of an assignment; refused if the target changes what the value reads."""
    start = len(reader.statements)
    target = reader.value(nodes[0])
    middle = len(reader.statements)
    value = reader.value(nodes[1])
    reads = [value, *all_reads(reader.statements[middle:])]
    if assigned(reader.statements[start:middle]) & {n for each in reads for n in each.variables()}:
        raise Refused(node.begin, "a step and a use of the same variable have no rule")
    return target, value


def check_order(reader: Any, node: Node, nodes: Sequence[Node]) -> None:
    """Refuse an assignment by a function of the text if its target changes what its value reads."""
    variables = dict(reader.variables)
    if assigned(reader.block_of(lambda: reader.value(nodes[0]))):
        reader.block_of(lambda: target_and_value(reader, node, nodes))
    reader.variables = variables


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
    while parent is not None and (
        parent.kind in _PARTS or "'[]'" in parent.text
        or (parent.kind == "ConditionalOperator" and " lvalue" in parent.text)
    ):  # fmt: skip
        parent = parent.parent
    return parent is None or parent.kind not in ("ImplicitCastExpr", "CXXConstructExpr")


def _read_at(reader: Any, value: Expression, start: int) -> Expression:
    """A value that is read before the statements from `start` on."""
    results: list[Expression] = []
    read = reader.fixed if value.op == "pointer" else reader.bound
    reader.statements[start:start] = reader.block_of(lambda: results.append(read(value)))
    return results[0]
