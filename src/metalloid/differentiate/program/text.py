"""MSL text of expressions."""

from __future__ import annotations

import re
from collections import Counter

from metalloid.differentiate.program.tree import Expression
from metalloid.differentiate.program.types import Type

#: Of integers that are not `int`.
_SUFFIXES = {"uint": "u", "long": "l", "ulong": "ul"}


def text_of(expression: Expression) -> str:
    """An expression in MSL."""
    args = [text_of(arg) for arg in expression.args]
    match expression.op:
        case "constant":
            suffix = _SUFFIXES.get(expression.type.scalar, "")
            return expression.name + (suffix if expression.name.isdigit() else "")
        case "variable":
            return expression.name
        case "element":
            return _inner(expression.args[0]) + "".join(f"[{index}]" for index in args[1:])
        case "component" | "member":
            return f"{_inner(expression.args[0])}.{expression.name}"
        case "cast" | "construct":
            return f"{expression.type.element.msl}({', '.join(args)})"
        case "unary":
            return f"{expression.name}{_inner(expression.args[0])}"
        case "binary":
            left, right = map(_inner, expression.args)
            return f"{left} {expression.name} {right}"
        case "select":
            condition, then, other = map(_inner, expression.args)
            return f"{condition} ? {then} : {other}"
        case "call" if expression.name == "as_type":
            return f"as_type<{expression.type.element.msl}>({args[0]})"
        case "call" | "option":
            return f"{expression.name}({', '.join(args)})"
        case "method":
            return f"{args[0]}.{expression.name}({', '.join(args[1:])})"
    raise AssertionError(expression.op)


def _inner(expression: Expression) -> str:
    """An operand, in parentheses if it is an operation."""
    text = text_of(expression)
    return f"({text})" if expression.op in ("binary", "select", "unary") else text


def widened(expression: Expression) -> str:
    """A floating-point value in the type of adjoints, as an operand."""
    type_ = expression.type
    if type_.is_float and (type_.scalar != type_.adjoint.scalar or type_.is_packed):
        return f"{type_.element.adjoint.msl}({text_of(expression)})"
    return _inner(expression)


def count_name(name: str) -> str:
    """The parameter that has the number of elements of threadgroup memory that is a parameter."""
    return f"adjoint_count_{name}"


_CONSTANT = re.compile(r"\s*const \w+ (\w+) = .*;$")
_NAME = re.compile(r"[A-Za-z_]\w*")


def without_unused(lines: list[str]) -> list[str]:
    """Lines without constants that no other line reads."""
    uses = Counter(name for line in lines for name in _NAME.findall(line))
    result = []
    for line in reversed(lines):
        constant = _CONSTANT.match(line)
        if constant is not None and uses[constant[1]] == 1:
            uses.subtract(_NAME.findall(line))
        else:
            result.append(line)
    return result[::-1]


def declaration(name: str, type_: Type) -> str:
    """The declaration of a variable without a value."""
    return f"{type_.element.msl} {name}" + "".join(f"[{extent}]" for extent in type_.extents)
