"""Address spaces where MSL and clang disagree on the position of the keyword.

clang knows the spaces (as qualifiers of OpenCL) but refuses automatic variables in one, parameters
of array type in one, and member functions qualified by the space of ``this``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from metalloid.msl.tokens import TokenStream, is_identifier

SPACES = frozenset(
    ("device", "threadgroup", "thread", "constant", "threadgroup_imageblock", "ray_data",
     "object_data")
)  # fmt: skip
_DECLARATION_WORDS = ("const", "volatile", "constexpr", "alignas", "static")
_AFTER_QUALIFIERS = ("{", ";", ":", "=", "->", "override")
_NOT_A_FUNCTION = ("if", "for", "while", "switch", "alignas", "__attribute__", "decltype")
_SAME_FOR_ALL_SPACES = re.compile(
    r"\b(?:device|threadgroup|constant|threadgroup_imageblock|ray_data|object_data|const|static)\b"
)
_DIFFERENT_BODIES = (
    "its overloads for other address spaces of this have other bodies, which is not supported: "
    "give them different names"
)
_NOT_PART_OF_A_SIGNATURE = re.compile(
    r"\s+|\b(?:thread|inline|constexpr)\b|__attribute__\(\(always_inline\)\)"
)


def lower_threadgroup_variables(stream: TokenStream) -> None:
    """Make ``threadgroup float tile[32];`` static: clang allows a space on no automatic variable.

    The devices give each threadgroup its own copy afterwards, in the IR.
    """
    for position in stream.where("threadgroup"):
        start = _variable_start(stream, position)
        if start is not None and _declares_variable(stream, position):
            stream.replace(start, "static " + stream.current(start))


def _variable_start(stream: TokenStream, position: int) -> int | None:
    """First token of the statement if only declaration words stand before `position`."""
    start, before = position, stream.previous(position)
    while True:
        token = stream.text(before)
        if token == "static":
            return None
        if token == ")" and before in stream.partner:
            opening = stream.partner[before]
            if stream.before(opening) != "alignas":
                return None
            before = stream.previous(opening)
        elif token not in _DECLARATION_WORDS:
            break
        start, before = before, stream.previous(before)
    # East-side forms such as `float threadgroup x[32];` do not occur; clang names them.
    return start if token in (";", "{", "}", ":", "") else None


def _declares_variable(stream: TokenStream, position: int) -> bool:
    """A pointer, reference or function is no variable *in* threadgroup memory."""
    position = stream.next(position)
    while position < len(stream):
        token = stream.text(position)
        if token == "<":
            position = stream.close_angle(position)
        elif token in ("*", "&", "&&"):
            return False
        elif token == "(":
            if stream.before(position) not in ("alignas", "__attribute__", "decltype"):
                return False
            position = stream.partner.get(position, position)
        elif token in ("[", ";", "=", "{", ","):
            return True
        position = stream.next(position)
    return False


def lower_array_parameters(stream: TokenStream) -> None:
    """``constant T x[2]`` as a parameter means a pointer; clang expects it written as one."""
    for position in stream.where(*SPACES):
        before = stream.previous(position)
        while stream.text(before) in ("const", "volatile"):
            before = stream.previous(before)
        if stream.text(before) in ("(", ","):
            _lower_array_parameter(stream, position)


def _lower_array_parameter(stream: TokenStream, position: int) -> None:
    position = stream.next(position)
    while position < len(stream):
        token = stream.text(position)
        if token == "<":
            position = stream.close_angle(position)
        elif token in ("*", "&", "&&", ",", ")", ";", "(", "{", "="):
            return
        elif token == "[" and is_identifier(stream.before(position)) and position in stream.partner:
            name, end = stream.previous(position), stream.partner[position]
            more_dimensions = stream.after(end) == "["
            form = "(*{})" if more_dimensions else "*{}"
            stream.replace(name, form.format(stream.text(name)))
            stream.blank(position, end + 1)
            return
        position = stream.next(position)


@dataclass
class _Overload:
    """A member function, for objects of all `spaces`; `body` is empty where it is only declared."""

    start: int
    body: str
    spaces: set[str]


#: Class, signature without spaces, whether ``this`` is constant.
_Key = tuple[int, str, bool]


def lower_member_functions(stream: TokenStream) -> None:
    """Keep one of each set of member functions that differ by the space of ``this`` only.

    ``operator U() const thread`` and ``... const device`` are the same function here, where a
    reference to an unnamed space takes objects of every space. Where their bodies differ they are
    refused, as one of them would run for objects of every space.
    """
    qualified = _space_qualified_functions(stream)
    if not qualified:
        return
    overloads: dict[_Key, _Overload] = {}
    closings = {closing for _, closing, _, _ in qualified}
    for scope in {scope for *_, scope in qualified if scope >= 0}:
        overloads |= _unqualified_members(stream, scope, closings)
    done: set[int] = set()
    for position, closing, after, scope in qualified:
        stream.replace(position, "")
        if closing in done:
            continue
        done.add(closing)
        qualifiers = {stream.text(p) for p in stream.significant(closing + 1, after)}
        start = _member_start(stream, stream.partner[closing])
        key = (scope, _member_key(stream, start, closing), "const" in qualifiers)
        body = _member_body(stream, after)
        first = overloads.setdefault(key, _Overload(start, body, set()))
        first.spaces |= qualifiers & SPACES
        if first.start == start:
            continue
        stream.remove(start, member_end(stream, after) + 1)
        if body and first.body not in ("", body):
            _refuse(stream, first.start)
        first.body = first.body or body
    _refuse_mixed_constness(stream, overloads)


def _refuse_mixed_constness(stream: TokenStream, overloads: dict[_Key, _Overload]) -> None:
    """Refuse a constant function where a variable of its space would call one of another space."""
    for (scope, signature, constant), overload in overloads.items():
        variable = overloads.get((scope, signature, False))
        if not constant or variable is None or overload.body == variable.body:
            continue
        # Objects in constant memory are constant.
        if overload.spaces - variable.spaces - {"constant"}:
            _refuse(stream, overload.start)


def _refuse(stream: TokenStream, start: int) -> None:
    first = stream.next(start - 1)
    stream.replace(first, f'static_assert(false, "{_DIFFERENT_BODIES}"); {stream.current(first)}')


def _space_qualified_functions(stream: TokenStream) -> list[tuple[int, int, int, int]]:
    """``(space word, ')' of the parameters, token after the qualifiers, '{' of the class)``."""
    variables, scopes = [], []
    for position in stream.where("{", "}", *SPACES):
        token = stream.text(position)
        if token == "{":
            scopes.append(position)
        elif token == "}" and scopes:
            scopes.pop()
        elif token in SPACES:
            closing = stream.previous(position)
            while _is_function_qualifier(stream.text(closing)):
                closing = stream.previous(closing)
            if stream.text(closing) != ")" or closing not in stream.partner:
                continue
            after = stream.next(position)
            while _is_function_qualifier(stream.text(after)):
                after = stream.next(after)
            if stream.text(after) not in _AFTER_QUALIFIERS:
                continue
            if stream.before(stream.partner[closing]) in _NOT_A_FUNCTION:
                continue
            variables.append((position, closing, after, scopes[-1] if scopes else -1))
    return variables


def _is_function_qualifier(token: str) -> bool:
    return token in ("const", "volatile", "noexcept") or token in SPACES


def _unqualified_members(
    stream: TokenStream, scope: int, closings: set[int]
) -> dict[_Key, _Overload]:
    """The members of a class that name no space: each is the first of its set."""
    overloads = {}
    position, end = stream.next(scope), stream.partner.get(scope, len(stream))
    while position < end:
        token = stream.text(position)
        if token == "(" and position in stream.partner:
            closing = stream.partner[position]
            after = stream.after(closing)
            if closing not in closings and after in ("{", ";", ":", "=", "const", "noexcept"):
                start = _member_start(stream, position)
                key = (scope, _member_key(stream, start, closing), after == "const")
                body = _member_body(stream, stream.next(closing))
                overloads[key] = _Overload(start, body, {"thread"})
            position = closing
        elif token in ("{", "["):
            position = stream.partner.get(position, position)
        position = stream.next(position)
    return overloads


def _member_start(stream: TokenStream, opening: int) -> int:
    """First token of the member declaration whose parameters open at `opening`."""
    position = opening
    while position > 0:
        before = position - 1
        token = stream.text(before)
        if token in (";", "{", "}") or token.lstrip(" \t").startswith("#"):
            break
        if token == ":" and stream.before(before) in ("public", "private", "protected"):
            break
        if token in (")", "]") and before in stream.partner:
            before = stream.partner[before]
        position = before
    return position


def _member_key(stream: TokenStream, start: int, closing: int) -> str:
    """Name and parameters; the spaces of the *return* type do not make two functions differ."""
    opening = stream.partner[closing]
    head = _SAME_FOR_ALL_SPACES.sub("", stream.joined(start, opening, " "))
    tail = stream.joined(opening, closing + 1, " ")
    return _NOT_PART_OF_A_SIGNATURE.sub("", head) + _NOT_PART_OF_A_SIGNATURE.sub("", tail)


def _member_body(stream: TokenStream, position: int) -> str:
    """Body of a member function, without spaces; empty where it is only declared.

    `position` is that after the parameters, or after their qualifiers.
    """
    while _is_function_qualifier(stream.text(position)):
        position = stream.next(position)
    if stream.text(position) in (";", "="):
        return ""
    body = stream.joined(position, member_end(stream, position) + 1, " ")
    return _NOT_PART_OF_A_SIGNATURE.sub("", _SAME_FOR_ALL_SPACES.sub("", body))


def member_end(stream: TokenStream, position: int) -> int:
    """Last token of the member whose body or ``;`` begins at or after `position`."""
    if stream.text(position) == ":":  # constructor initialisers
        position = stream.next(position)
        while position < len(stream):
            while stream.text(position) not in ("(", "{", ""):
                position = stream.next(position)
            position = stream.next(stream.partner.get(position, position))
            if stream.text(position) != ",":
                break
            position = stream.next(position)
    while stream.text(position) not in ("{", ";", ""):
        position = stream.next(position)
    return stream.partner.get(position, position)
