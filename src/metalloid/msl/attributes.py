"""``[[...]]`` attributes: which mean something to Metal, which to clang, and where they stand."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from metalloid.msl.tokens import TokenStream

_CLANG_OWN = re.compile(
    r"(?:clang|gnu|__gnu__|_Clang)\s*::(?!\s*optnone)"
    r"|(?:nodiscard|maybe_unused|fallthrough|likely|unlikely|deprecated|noreturn)\b"
)
_CALL = re.compile(r"(\w+)\s*(?:\((.*)\))?$", re.S)
_STRING = re.compile(r'"((?:\\.|[^"\\])*)"')
_OCTAL = re.compile(r"\b0(?=\d)")
_INTEGER_SUFFIX = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b")
_OPERATIONS: dict[type, Callable[..., int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.floordiv, ast.Mod: operator.mod, ast.USub: operator.neg,
}  # fmt: skip


@dataclass(frozen=True)
class Attribute:
    """One attribute of Metal, such as ``buffer(0)``.

    Attributes
    ----------
    name : str
        ``"buffer"``.
    argument : str
        Text between its parentheses, ``"0"``; empty without.
    position, end : int
        Tokens of the whole ``[[...]]`` it stands in, from the first bracket to after the last.
    """

    name: str
    argument: str
    position: int
    end: int

    @property
    def string(self) -> str:
        """The argument as a string literal (adjacent literals joined)."""
        return "".join(_STRING.findall(self.argument))

    @property
    def index(self) -> int | None:
        """The argument as an integer, if it is one."""
        return integer(self.argument)


def integer(text: str) -> int | None:
    """The value of an argument such as ``1200 + 3``; None if it is no such expression.

    Macros are expanded by then, so arithmetic on literals is what authors write there.
    """
    expression = _OCTAL.sub("0o", _INTEGER_SUFFIX.sub(r"\1", text.strip()))
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


def lower_attributes(stream: TokenStream) -> list[Attribute]:
    """Collect Metal's attributes and take them out of the text; those of clang stay."""
    found: list[Attribute] = []
    end = 0
    for position in stream.where("["):
        inner = stream.next(position)
        is_attribute = (
            position >= end
            and stream.text(inner) == "["
            and position in stream.partner
            and stream.previous(stream.partner[position]) == stream.partner.get(inner)
        )
        if not is_attribute:
            continue
        end = stream.partner[position] + 1
        kept: list[str] = []
        for start, stop in stream.split_commas(inner + 1, stream.partner[inner]):
            text = stream.source(start, stop)
            call = _CALL.match(text)
            if _CLANG_OWN.match(text):
                kept.append(text)
            elif call:
                found.append(Attribute(call[1], call[2] or "", position, end))
        # Only the first bracket may be written over: strings inside are no values.
        stream.blank(position, end)
        stream.remove(inner, end)
        if kept:
            stream.replace(position, f"[[{', '.join(kept)}]]")
    return found
