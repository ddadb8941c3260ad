"""Texts that are right in MSL but not in C++ with address spaces, mended where clang points.

In ``c ? table[i] : Cell()`` the arms are objects in different spaces. MSL copies both; clang finds
no common type. Wrapping each arm in a function that returns its argument by value helps, but only
clang can tell which conditionals need it.

A union with a vector in it is copied as its bytes in MSL. Our vectors are classes that copy
themselves, so that C++ gives the union no copy; it gets one where clang misses it. (Every union
could not have it: one with constructors takes no ``{value}``.)
"""

from __future__ import annotations

from metalloid.msl.clang_messages import SourceMap
from metalloid.msl.diagnostics import Diagnostic
from metalloid.msl.tokens import TokenStream, is_identifier

_REPAIRABLE = ("incompatible operand types", "conditional expression is ambiguous")
_WRAPPER = "METALLOID_VALUE("
_NO_COPY = "is implicitly deleted because variant field"
_COPIES = "METALLOID_COPIED_AS_BYTES("


def repair(stream: TokenStream, source_map: SourceMap, messages: list[Diagnostic]) -> bool:
    """Mend what `messages` refuse; whether anything was changed."""
    conditionals = repair_conditionals(stream, source_map, messages)
    return repair_unions(stream, source_map, messages) or conditionals


def repair_unions(stream: TokenStream, source_map: SourceMap, messages: list[Diagnostic]) -> bool:
    """Give a copy to the unions whose members deny it; whether anything was changed."""
    changed = False
    for message in messages:
        member = source_map.token_at(message) if _NO_COPY in message.message else None
        if member is None:
            continue
        brace = _opening_brace(stream, member)
        name = stream.before(brace)
        if _COPIES in stream.current(brace) or not is_identifier(name) or name == "union":
            continue
        stream.replace(brace, f"{{ {_COPIES}{name})")
        changed = True
    return changed


def _opening_brace(stream: TokenStream, inside: int) -> int:
    """The brace of the block that a token stands in."""
    position = stream.previous(inside)
    while position > 0 and stream.text(position) != "{":
        if stream.text(position) in ("}", ")", "]"):
            position = stream.partner.get(position, position)
        position = stream.previous(position)
    return position


def repair_conditionals(
    stream: TokenStream, source_map: SourceMap, messages: list[Diagnostic]
) -> bool:
    """Wrap the arms of the conditionals that `messages` refuse; whether anything was changed."""
    changed = False
    for message in messages:
        if not message.is_error or not message.message.startswith(_REPAIRABLE):
            continue
        question = source_map.token_at(message)
        if question is None or stream.text(question) != "?":
            continue
        if _WRAPPER in stream.current(question):
            continue
        colon = _partner_colon(stream, question)
        end = _end_of_arm(stream, colon)
        if colon < 0 or end < 0:
            continue
        stream.replace(question, f"? {_WRAPPER}")
        stream.replace(colon, f") : {_WRAPPER}")
        last = end - 1
        stream.replace(last, stream.current(last) + ")")
        changed = True
    return changed


def _partner_colon(stream: TokenStream, question: int) -> int:
    depth, position = 0, stream.next(question)
    while position < len(stream):
        token = stream.text(position)
        if token in ("(", "[", "{"):
            position = stream.partner.get(position, position)
        elif token == "?":
            depth += 1
        elif token == ":":
            if depth == 0:
                return position
            depth -= 1
        elif token in (";", ")", "]", "}"):
            break
        position = stream.next(position)
    return -1


def _end_of_arm(stream: TokenStream, colon: int) -> int:
    """Token after the last one of the arm that begins after `colon`."""
    position = stream.next(colon)
    while colon >= 0 and position < len(stream):
        token = stream.text(position)
        if token in ("(", "[", "{"):
            position = stream.partner.get(position, position)
        elif token in (",", ";", ")", "]", "}", ":"):
            return position
        position = stream.next(position)
    return -1
