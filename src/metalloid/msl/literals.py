"""Literals that mean something else in MSL than in C++."""

from __future__ import annotations

import re

from metalloid.msl.tokens import TokenStream, is_identifier

_DECIMAL = r"(?:\d[\d']*\.?[\d']*|\.\d[\d']*)(?:[eE][+-]?\d+)?"
_HALF = re.compile(rf"({_DECIMAL})[hH]$")
_BFLOAT = re.compile(rf"({_DECIMAL})(?:bf|BF)$")
_UNSUFFIXED = re.compile(
    r"(?:\d[\d']*\.[\d']*|\.\d[\d']*|\d[\d']*(?=[eE]))(?:[eE][+-]?\d+)?$"
    r"|0[xX][0-9a-fA-F']*\.?[0-9a-fA-F']*[pP][+-]?\d+$"
)
_VALUE_FOLLOWS = ("(", ",", "=", "?", ":", "return", "{")
_BEFORE_VALUES = ("return", "else", "do", "case")
_SCALARS = {"half", "bfloat", "float", "int", "uint", "short", "ushort", "long", "ulong"}
_WANTS_PLAIN_STRING = {
    "static_assert", "asm", "__asm", "__asm__", "volatile", "__attribute__", "annotate",
    "deprecated", "nodiscard",
}  # fmt: skip


def lower_literals(stream: TokenStream) -> None:
    """Numbers and strings of MSL to those of C++.

    An unsuffixed ``2.0`` is a float in MSL. (clang's own switch for that,
    ``-cl-single-precision-constant``, is lost in templates: it silently computes in double.)
    """
    for token, positions in stream.positions.items():
        if token[0].isdigit() or (token[0] == "." and token[1:2].isdigit()):
            lowered = _lower_number(token)
            if lowered is not None:
                for position in positions:
                    stream.replace(position, lowered)
        elif token[0] == '"' or token in ("__func__", "__FUNCTION__"):
            for position in positions:
                if _is_string_value(stream, position):
                    stream.replace(position, f"((constant char*){token})")


def _lower_number(token: str) -> str | None:
    if _UNSUFFIXED.match(token):
        return token + "f"
    if match := _HALF.match(token):
        return f"((half){_with_point(match[1])}f16)"
    if match := _BFLOAT.match(token):
        return f"((bfloat){_with_point(match[1])}f)"
    return None


def _with_point(digits: str) -> str:
    return digits if re.search(r"[.eE]", digits) else digits + ".0"


def _is_string_value(stream: TokenStream, position: int) -> bool:
    """A string literal used as a value lives in ``constant`` memory."""
    if stream.before(position) not in _VALUE_FOLLOWS or not stream.current(
        position
    ):  # an attribute's
        return False
    return _callee(stream, position) not in _WANTS_PLAIN_STRING


def _callee(stream: TokenStream, position: int) -> str:
    """Name of the function in whose argument list `position` stands."""
    position = stream.previous(position)
    while position >= 0 and stream.text(position) not in (";", "{", "}"):
        if stream.text(position) == ")":
            position = stream.partner.get(position, position)
        elif stream.text(position) == "(":
            return stream.before(position)
        position = stream.previous(position)
    return ""


def lower_half_casts(stream: TokenStream) -> None:
    """``half(e)`` and ``static_cast<bfloat>(e)`` where both types occur.

    clang converts neither of its two 16-bit floats to the other; the prelude's
    ``METALLOID_CAST<T>`` goes through float.
    """
    words = stream.positions.keys()
    if not (words & {"bfloat", "bfloat16_t", "__bf16"} and words & {"half", "float16_t"}):
        return
    for position in stream.where("static_cast"):
        stream.replace(position, "METALLOID_CAST")
    for position in stream.where("half", "bfloat", *_aliases_of_16_bit_floats(stream)):
        if _is_functional_cast(stream, position):
            stream.replace(position, f"METALLOID_CAST<{stream.text(position)}>")
        elif _is_c_style_cast(stream, position):
            opening, closing = stream.previous(position), stream.next(position)
            last = _end_of_operand(stream, stream.next(closing))
            stream.replace(opening, f"{stream.current(opening)[:-1]}METALLOID_CAST<")
            stream.replace(closing, ">(")
            stream.replace(last, stream.current(last) + ")")


def _aliases_of_16_bit_floats(stream: TokenStream) -> set[str]:
    markers = set()
    for position in stream.where("typedef"):
        if stream.after(position) in ("half", "bfloat"):
            name = stream.next(stream.next(position))
            if stream.after(name) == ";":
                markers.add(stream.text(name))
    for position in stream.where("using"):
        name = stream.next(position)
        equals = stream.next(name)
        if stream.text(equals) == "=" and stream.after(equals) in ("half", "bfloat"):
            markers.add(stream.text(name))
    return markers


def _is_c_style_cast(stream: TokenStream, position: int) -> bool:
    """``(half)x``, but neither ``f(half)`` nor ``sizeof(half)``."""
    opening, closing = stream.previous(position), stream.next(position)
    if stream.text(opening) != "(" or stream.text(closing) != ")":
        return False
    before, after = stream.before(opening), stream.after(closing)
    if before in ("]", ">") or (is_identifier(before) and before not in _BEFORE_VALUES):
        return False
    return is_identifier(after) or after[:1].isdigit() or after in ("(", "-", "+", "*", "~", "!")


def _end_of_operand(stream: TokenStream, position: int) -> int:
    """Last token of the operand of a cast: unary operators, a value, and what is applied to it."""
    while stream.text(position) in ("-", "+", "*", "&", "~", "!", "++", "--"):
        position = stream.next(position)
    if stream.text(position) == "(":
        inside = stream.next(position)
        position = stream.partner.get(position, position)
        if stream.text(inside) in _SCALARS and _is_c_style_cast(stream, inside):
            return _end_of_operand(stream, stream.next(position))
    while True:
        following = stream.next(position)
        token = stream.text(following)
        if token in ("(", "["):
            position = stream.partner.get(following, following)
        elif token in (".", "->", "::"):
            position = stream.next(following)
        elif token in ("++", "--"):
            position = following
        else:
            return position


def _is_functional_cast(stream: TokenStream, position: int) -> bool:
    opening = stream.next(position)
    if stream.text(opening) != "(" or stream.after(opening) == ")":
        return False
    before = stream.before(position)
    if before in ("operator", "::", "using", "typename"):
        return False
    if is_identifier(before) and before not in _BEFORE_VALUES:
        return False  # a declaration such as `inline half(*f)(...)`
    closing = stream.partner.get(opening, opening)
    if len(stream.split_commas(opening + 1, closing)) != 1:
        return False
    return stream.after(closing) != "("
