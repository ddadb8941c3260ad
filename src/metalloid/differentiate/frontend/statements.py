"""Statements in clang's syntax tree: jumps, loops and labels."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from metalloid.differentiate.frontend.expressions import REFERENCE
from metalloid.differentiate.frontend.returned import Returned
from metalloid.differentiate.program.tree import Expression
from metalloid.msl.portable.syntax_tree import Node

JUMPS = {"ReturnStmt": "return", "BreakStmt": "break", "ContinueStmt": "continue"}
LOOPS = ("ForStmt", "WhileStmt", "DoStmt")


@dataclass
class Frame:
    """A function, a loop or a switch that jumps leave.

    Attributes
    ----------
    flags : dict
        By jump, the variable that says that it has happened.
    result : Expression or None
        What a function returns.
    is_switch : bool
        Whether only `break` leaves it.
    """

    flags: dict[str, Expression]
    result: Expression | Returned | None = None
    is_switch: bool = False


def moved_in(body: Node) -> set[str]:
    """Addresses of the declarations of variables that a function assigns."""
    addresses = set()
    for node in body.descendants():
        is_step = node.kind == "UnaryOperator" and ("'++'" in node.text or "'--'" in node.text)
        is_store = node.kind == "BinaryOperator" and "'='" in node.text
        if is_step or is_store or node.kind == "CompoundAssignOperator":
            target = node.children[0]
            reference = REFERENCE.search(target.text) if target.kind == "DeclRefExpr" else None
            if reference is not None:
                addresses.add(reference[2])
    return addresses


def is_assertion(node: Node) -> bool:
    """Whether a statement is an assertion, which changes nothing."""
    if node.kind not in ("ParenExpr", "ConditionalOperator", "ExprWithCleanups"):
        return False
    names = [each.text for each in node.descendants() if each.kind == "DeclRefExpr"]
    return any("'__msl_assertion_failed'" in name for name in names) and not moved_in(node)


def jumps_in(node: Node) -> set[str]:
    """The jumps out of a statement."""
    if node.kind in JUMPS:
        return {JUMPS[node.kind]}
    if node.kind == "LambdaExpr":
        return set()
    jumps = {jump for child in node.children for jump in jumps_in(child)}
    if node.kind in LOOPS:
        jumps -= {"break", "continue"}
    return jumps - {"break"} if node.kind == "SwitchStmt" else jumps


def sections_of(body: Node) -> list[tuple[list[Node], list[Node]]]:
    """The labels of each section of a switch, and its statements, also those that follow it."""
    sections: list[tuple[list[Node], list[Node]]] = []
    for child in body.children:
        labels: list[Node] = []
        while child.kind in ("CaseStmt", "DefaultStmt"):
            labels.append(child)
            child = child.children[-1]
        if labels:
            sections.append((labels, [child]))
        elif sections:
            sections[-1][1].append(child)
    for (_, statements), (_, following) in list(pairwise(sections))[::-1]:
        if statements[-1].kind not in JUMPS:
            statements += following  # it falls through
    return sections


def is_default(labels: list[Node]) -> bool:
    """Whether one of the labels of a section of a switch is the default."""
    return any(label.kind == "DefaultStmt" for label in labels)


def header_of(node: Node) -> tuple[list[Node], Node, list[Node]]:
    """Declarations in the header of an if statement or a switch, its condition, and its blocks."""
    count = ("has_init" in node.text) + ("has_var" in node.text)
    return node.children[:count], node.children[count], node.children[count + 1 :]


def parts_of_loop(node: Node) -> tuple[Node | None, list[Node], Node | None, Node]:
    """The initial statement, the condition after what it declares, the step and the body."""
    children = node.children
    if node.kind == "ForStmt":
        first, declared, condition, step, body = children
        given = [None if part.kind == "Missing" else part for part in (first, step)]
        test = [part for part in (declared, condition) if part.kind != "Missing"]
        return given[0], test, given[1], body
    if node.kind == "DoStmt":
        return None, [children[1]], None, children[0]
    return None, children[:-1], None, children[-1]
