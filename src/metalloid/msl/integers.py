"""Integers that authors write as arguments of attributes."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable

_OCTAL = re.compile(r"\b0(?=\d)")
_SUFFIX = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b")
_OPERATIONS: dict[type, Callable[..., int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.floordiv, ast.Mod: operator.mod, ast.USub: operator.neg,
}  # fmt: skip


def integer_value(text: str) -> int | None:
    """The value of an expression of integer literals, as C++ reads it; None for any other text.

    Macros are expanded by then: what is left of ``[[buffer(BASE + 3)]]`` is arithmetic on literals.

    Examples
    --------
    >>> integer_value("0x10u"), integer_value("010"), integer_value("1200 + 3")
    (16, 8, 1203)
    >>> integer_value("n + 1") is None
    True
    """
    expression = _OCTAL.sub("0o", _SUFFIX.sub(r"\1", text.strip().replace("'", "")))
    try:
        return _value(ast.parse(expression, mode="eval").body)
    except (SyntaxError, ValueError, KeyError, ArithmeticError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr) -> int:
    if isinstance(node, ast.BinOp):
        return _OPERATIONS[type(node.op)](_value(node.left), _value(node.right))
    if isinstance(node, ast.UnaryOp):
        return _OPERATIONS[type(node.op)](_value(node.operand))
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    raise ValueError("not arithmetic on integers")
