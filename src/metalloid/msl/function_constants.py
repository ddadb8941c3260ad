"""``constant T name [[function_constant(n)]];``: values given when a kernel is made, not before.

The lowered text leaves each value to a macro, so one lowered text serves all specialisations.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from metalloid.errors import ArgumentError

if TYPE_CHECKING:
    from metalloid.msl.attributes import Attribute
    from metalloid.msl.tokens import TokenStream

_NOT_PART_OF_A_TYPE = {"constant", "constexpr", "const", "static", "inline", "extern"}


@dataclass(frozen=True)
class FunctionConstant:
    """A function constant: its name, its index in the text, its declared type as written.

    Some are declared ``constexpr``: what is computed from them may shape types.
    """

    name: str
    index: int
    type: str
    is_constexpr: bool = False

    def literal(self, value: object) -> str:
        """`value` as C++ text of the constant's type.

        Examples
        --------
        >>> FunctionConstant("scale", 0, "float").literal(0.1)
        'float(0.1)'
        >>> FunctionConstant("offset", 1, "int2").literal((1, 2))
        'int2(1, 2)'
        """
        return f"{self.type}({_literal(value)})"

    @property
    def unknown(self) -> str | None:
        """C++ text of a value that will only be known when a kernel is made."""
        return None if self.is_constexpr else f"METALLOID_UNKNOWN({self.type})"

    def definitions(self, value: str | None) -> tuple[str, ...]:
        """The ``#define`` lines that give it `value` (C++ text), or none."""
        initialiser = "{}" if value is None else f"= {value}"
        defined = "false" if value is None else "true"
        return (
            f"#define {_value_macro(self.index)} {initialiser}",
            f"#define {_defined_macro(self.index)} {defined}",
        )


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        number = float(value)
        if math.isfinite(number):
            return repr(number)
        if math.isnan(number):
            return '__builtin_nanf("")'
        return ("-" if number < 0 else "") + "__builtin_inff()"
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return ", ".join(_literal(item) for item in value)
    if hasattr(value, "item"):
        return _literal(value.item())
    raise ArgumentError(f"[function constant] expects a number or a tuple of them, got {value!r}.")


def _value_macro(index: int) -> str:
    return f"METALLOID_FUNCTION_CONSTANT_{index}"


def _defined_macro(index: int) -> str:
    return f"METALLOID_FUNCTION_CONSTANT_{index}_IS_DEFINED"


def lower_function_constants(
    stream: TokenStream, attributes: list[Attribute]
) -> list[FunctionConstant]:
    """Replace the attributes by macros; parameters that carry one (conditional arguments) stay."""
    constants: list[FunctionConstant] = []
    for attribute in attributes:
        if attribute.name != "function_constant" or attribute.index is None:
            continue
        if stream.text(stream.next(attribute.end - 1)) != ";":
            continue
        name = stream.previous(attribute.position)
        words = _declaration(stream, name)
        type_ = " ".join(word for word in words if word not in _NOT_PART_OF_A_TYPE)
        constants.append(
            FunctionConstant(stream.text(name), attribute.index, type_, "constexpr" in words)
        )
        stream.replace(attribute.position, f" {_value_macro(attribute.index)}")
    indices = {constant.name: constant.index for constant in constants}
    for position in stream.where("is_function_constant_defined"):
        opening = stream.next(position)
        if stream.text(opening) != "(":
            continue
        closing = stream.partner.get(opening, opening)
        index = indices.get(stream.joined(opening + 1, closing))
        stream.replace(position, "false" if index is None else _defined_macro(index))
        stream.blank(opening, closing + 1)
    return constants


def _declaration(stream: TokenStream, name: int) -> list[str]:
    """The words before the name."""
    words: list[str] = []
    position = stream.previous(name)
    while stream.text(position) not in (";", "{", "}", ""):
        words.insert(0, stream.text(position))
        position = stream.previous(position)
    return words
