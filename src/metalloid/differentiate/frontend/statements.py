"""Statements in clang's syntax tree: jumps, loops and labels."""

from __future__ import annotations

from metalloid.differentiate.frontend.expressions import REFERENCE, Refused
from metalloid.msl.portable.syntax_tree import Node

JUMPS = {"ReturnStmt": "return", "BreakStmt": "break", "ContinueStmt": "continue"}
LOOPS = ("ForStmt", "WhileStmt", "DoStmt")


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


def is_default(labels: list[Node]) -> bool:
    """Whether one of the labels of a section of a switch is the default."""
    return any(label.kind == "DefaultStmt" for label in labels)


def parts_of_loop(
    node: Node,
) -> tuple[Node | None, Node | None, Node | None, list[Node]]:
    """The initial statement, the condition, the step and the body of a loop."""
    children = node.children
    if node.kind == "ForStmt":
        first, _, condition, step, body = children
        given = [None if part.kind == "Missing" else part for part in (first, condition, step)]
        return given[0], given[1], given[2], [body]
    if node.kind == "DoStmt":
        return None, children[1], None, [children[0]]
    if len(children) != 2:
        raise Refused(node.begin, "a declaration as a condition has no rule")
    return None, children[0], None, [children[1]]
