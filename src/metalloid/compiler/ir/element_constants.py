"""Constants of vectors and structs, by their elements."""

from __future__ import annotations

from metalloid.compiler.ir.constants import constant_bits, constant_of
from metalloid.compiler.ir.function import Value
from metalloid.compiler.ir.instruction_parser import Line
from metalloid.compiler.ir.types import (
    Float,
    Pointer,
    Struct,
    Type,
    Unsupported,
    Vector,
    bits_of,
    plain_type,
)


def constant_members(text: str, struct: Struct) -> list[Value]:
    """Members of a constant struct, ``{ float 1.0 , i32 2 }``."""
    if text == "zeroinitializer":
        return [
            Value(type, text if isinstance(type, Vector | Struct) else zero(type))
            for type in struct.members
        ]
    if text in ("undef", "poison"):
        return [Value(type, text) for type in struct.members]
    line = Line(text, plain_type)
    line.skip("{")
    return line.values()


def constant_components(text: str, vector: Vector) -> list[str]:
    """Components of a constant vector."""
    lanes = vector.lanes
    if text in ("undef", "poison"):
        return [text] * lanes
    if text == "zeroinitializer":
        return [zero(vector.element)] * lanes
    element = str(vector.element)
    if text.startswith("splat"):
        inner = text[text.index("(") + 1 : text.rindex(")")].strip()
        return [inner.removeprefix(element).strip()] * lanes
    if text.startswith("bitcast"):
        return _cast_components(text, vector)
    if text.startswith("<"):
        inner = text[1 : text.rindex(">")]
        components = [
            component.strip().removeprefix(element).strip() for component in _split(inner)
        ]
        if len(components) == lanes:
            return components
    raise Unsupported(f"the constant {text}")


def _cast_components(text: str, vector: Vector) -> list[str]:
    """Components of ``bitcast (<2 x i64> <i64 poison, i64 1> to <4 x i32>)``."""
    line = Line(text, plain_type)
    for token in ("bitcast", "("):
        line.skip(token)
    source = line.value()
    before, given = source.type, [source.name]
    if isinstance(before, Vector):
        given, before = constant_components(source.name, before), before.element
    width, required = bits_of(before), bits_of(vector.element)
    pieces: list[int | None] = []  # of as many bits as divide both
    step = min(width, required)
    for component in given:
        bits = constant_bits(component, before)
        pieces += [
            None if bits is None else bits >> shift & (1 << step) - 1
            for shift in range(0, width, step)
        ]
    each = required // step
    return [
        constant_of(_combined(pieces[first : first + each], step), vector.element)
        for first in range(0, len(pieces), each)
    ]


def _combined(pieces: list[int | None], width: int) -> int | None:
    if all(piece is None for piece in pieces):
        return None
    return sum((piece or 0) << element * width for element, piece in enumerate(pieces))


def _split(text: str) -> list[str]:
    """`text` at the commas outside of brackets."""
    operands, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter in "([{<") - (letter in ")]}>")
        if letter == "," and depth == 0:
            operands.append(text[start:i])
            start = i + 1
    return [*operands, text[start:]]


def zero(type: Type) -> str:
    """The constant 0 of a scalar type."""
    if isinstance(type, Float):
        return "0.0"
    return "null" if isinstance(type, Pointer) else "0"
