"""Recursion: functions that kernels call and that come back to themselves.

A function that ends by calling itself is a loop in other words, to compilers as well: MLX has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from metalloid.msl.portable.syntax_tree import Node
from metalloid.msl.portable.text import Text

_FUNCTIONS = ("FunctionDecl", "CXXMethodDecl")
_REFERENCES = ("DeclRefExpr", "MemberExpr")
_CALLS = ("CallExpr", "CXXMemberCallExpr", "CXXOperatorCallExpr")
_ID = re.compile(r"0x[0-9a-f]+")

#: The functions that a function names, each with the first place where it does.
Calls = dict[str, dict[str, Node]]


def check_recursion(text: Text) -> None:
    """Report calls that lead back to the function they stand in, if kernels get there."""
    functions = [node for node in text.nodes if node.kind in _FUNCTIONS]
    first = _first_declarations(functions)
    calls = _calls(functions, first)
    labels = {function.id: function.label for function in functions}
    for caller in _reached(calls, (first[node.id] for node in functions if _is_kernel(text, node))):
        way = _way_back(calls, caller)
        position = text.token(calls[caller][way[0]].begin) if way else None
        if position is not None:
            text.report(position, _message(labels[caller], [labels[other] for other in way[:-1]]))


def _message(name: str, others: list[str]) -> str:
    through = f" through {', '.join(repr(other) for other in others)}" if others else ""
    return (
        f"'{name}' calls itself{through}: recursion is not portable, Metal before 2.4 refuses it "
        "and later versions take it in compute functions only; "
        "write a loop, or keep a stack in an array"
    )


def _first_declarations(functions: Iterable[Node]) -> dict[str, str]:
    """By the id of each declaration of a function, that of its first one."""
    first: dict[str, str] = {}
    for function in functions:
        first[function.id] = first.get(function.previous, function.id)
    return first


def _calls(functions: Iterable[Node], first: dict[str, str]) -> Calls:
    found: Calls = {}
    for function in functions:
        named = found.setdefault(first[function.id], {})
        for node in _run_nodes(function):
            others = _ID.findall(node.text) if node.kind in _REFERENCES else []
            for other in others:
                if other in first and not (other == function.id and _is_last(node)):
                    named.setdefault(first[other], node)
    return found


def _run_nodes(node: Node) -> Iterable[Node]:
    """The nodes inside `node` but for what the compiler works out."""
    for child in node.children:
        is_constant = child.kind == "VarDecl" and "constexpr" in child.text.split()
        if child.kind != "ConstantExpr" and not is_constant:
            yield child
            yield from _run_nodes(child)


def _is_last(reference: Node) -> bool:
    """Whether its function has nothing to do after the call of what is named here."""
    node = reference
    for around in reference.ancestors():
        place = next(i for i, child in enumerate(around.children) if child is node)
        match around.kind:
            case "ReturnStmt":
                return True
            case "ImplicitCastExpr":
                goes_on = "<FunctionToPointerDecay>" in around.text
            case "ConditionalOperator" | "IfStmt":
                goes_on = place > 0
            case "CompoundStmt":
                goes_on = place == len(around.children) - 1
            case kind if kind in _CALLS:
                goes_on = place == 0
            case kind:
                return kind in _FUNCTIONS
        if not goes_on:
            return False
        node = around
    return False


def _is_kernel(text: Text, function: Node) -> bool:
    name = text.named(function)
    return name is not None and text.stage(name) == "kernel"


def _reached(calls: Calls, roots: Iterable[str]) -> list[str]:
    found = dict.fromkeys(roots)
    waiting = list(found)
    while waiting:
        new = [other for other in calls[waiting.pop()] if other not in found]
        found |= dict.fromkeys(new)
        waiting += new
    return list(found)


def _way_back(calls: Calls, start: str) -> list[str]:
    """The functions on the shortest way from `start` to itself; empty if there is none."""
    ways = [[other] for other in calls[start]]
    seen: set[str] = set()
    for way in ways:
        if way[-1] == start:
            return way
        if way[-1] not in seen:
            seen.add(way[-1])
            ways += [[*way, other] for other in calls[way[-1]]]
    return []
