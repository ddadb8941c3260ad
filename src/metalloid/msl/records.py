"""Let structs tell what members they have.

A launch may fill a struct from a mapping of its members. Where these lie and of which types they
are only clang knows; their names stand in the text. So each struct of the text gets one more
function, ``metalloid_members``, which calls its argument for each member (``parameter_layout.h``).
It stands at the end of the struct, on the line of the closing brace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from metalloid.msl.address_spaces import member_end
from metalloid.msl.attributes import Attribute
from metalloid.msl.tokens import TokenStream, is_identifier

_NO_MEMBER = frozenset(
    ("using", "typedef", "friend", "static", "constexpr", "template", "static_assert")
)
_TYPES = frozenset(("struct", "class", "union", "enum"))
_ACCESS = frozenset(("public", "private", "protected"))
_OPERATORS_OF_TYPES = frozenset(("alignas", "decltype", "__attribute__"))

#: Members by name, each with the text of its ``[[id(n)]]``, or with none.
_Members = dict[str, str]


def describe_records(stream: TokenStream, attributes: Sequence[Attribute]) -> None:
    """Add the function to the structs of `stream` whose members can be told from the tokens."""
    ids = {a.position: a.argument for a in attributes if a.name == "id"}
    for keyword, opening in _records(stream):
        names = _member_names(stream, opening, ids)
        has_base = stream.text(stream.find_from(keyword, (":", "{"))) == ":"
        closing = stream.partner[opening]
        if names is None or has_base:
            # This hides the function of a base, which knows a part of the members only.
            function = "struct metalloid_members;"
        else:
            calls = "".join(
                f"m.template member<decltype(S_::{name})>"
                f'(__builtin_offsetof(S_, {name}), "{name}"{f", 1 + ({id_})" if id_ else ""}); '
                for name, id_ in names.items()
            )
            body = f"using S_ = typename M_::self; {calls}" if calls else ""
            function = (
                "public: template <class M_> static constexpr void metalloid_members(M_& m) "
                f"{{ {body}}}"
            )
        stream.replace(closing, f" {function} {stream.current(closing)}")


def _records(stream: TokenStream) -> Iterator[tuple[int, int]]:
    """``(keyword, opening brace)`` of the structs with a name outside of functions."""
    scopes: dict[int, str] = {}
    open_scopes: list[str] = []
    for position in stream.where("{", "}", "namespace", "extern", "struct", "class", "union"):
        token = stream.text(position)
        if token == "{" and position in stream.partner:
            open_scopes.append(scopes.get(position, "function"))
        elif token == "}" and position in stream.partner:
            open_scopes.pop()
        elif token == "namespace":
            scopes[stream.find_from(position, ("{", ";", "="))] = token
        elif token == "extern":
            block = stream.next(stream.next(position))  # after the language
            if stream.text(block) == "{":
                scopes[block] = token
        elif token in ("struct", "class", "union"):
            opening = _opening(stream, position)
            if opening is None:
                continue
            scopes[opening] = token
            is_typedef = stream.before(position) == "typedef"
            is_named = stream.next(position) != opening or is_typedef
            if token != "union" and is_named and "function" not in open_scopes:
                yield position, opening


def _opening(stream: TokenStream, keyword: int) -> int | None:
    """The brace that opens the body of a type; None if `keyword` defines none."""
    if stream.before(keyword) in ("enum", "<", ","):
        return None
    position = stream.next(keyword)
    while position < len(stream):
        token = stream.text(position)
        if token == "{":
            return position if position in stream.partner else None
        if token == "<":
            position = stream.close_angle(position)
        elif token == "[" or (token == "(" and stream.before(position) in _OPERATORS_OF_TYPES):
            position = stream.partner.get(position, position)
        elif token == ":":
            position = stream.find_from(position, ("{", ";"))
            continue
        elif not (is_identifier(token) or token == "::"):
            return None
        position = stream.next(position)
    return None


def _member_names(stream: TokenStream, opening: int, ids: Mapping[int, str]) -> _Members | None:
    """The data members in order; None if there are some that cannot be named."""
    names: _Members = {}
    position, end = stream.next(opening), stream.partner[opening]
    while position < end:
        token = stream.text(position)
        if token in _ACCESS and stream.after(position) == ":":
            position = stream.next(position)
        elif token in _NO_MEMBER:
            position = _end_of_declaration(stream, position)
        elif token not in (";", "__extension__"):
            declared, position = _declared_names(stream, position, ids)
            if declared is None:
                return None
            names |= declared
        position = stream.next(position)
    return names


def _declared_names(
    stream: TokenStream, start: int, ids: Mapping[int, str]
) -> tuple[_Members | None, int]:
    """The members of one declaration, and its last token."""
    names: _Members = {}
    position, words, name, id_ = start, 0, "", ""
    while position < len(stream):
        token = stream.text(position)
        if token in (",", ";"):
            if words > 1 and name:
                names[name], id_ = id_, ""
            elif stream.text(start) not in _TYPES:
                return None, position
            if token == ";":
                return names, position
        elif token == "(" and stream.before(position) not in _OPERATORS_OF_TYPES:
            return {}, _end_of_declaration(stream, start)  # a function
        elif token == "operator":
            return {}, _end_of_declaration(stream, start)
        elif token == ":":
            if stream.text(start) not in _TYPES:
                return None, position  # a bit-field has no address
            position = stream.find_from(position, ("{", ";"))
            continue
        elif token == "<":
            position, words = stream.close_angle(position), words + 1
        elif token == "=" or (token == "{" and stream.text(start) not in _TYPES):
            position = stream.find_from(position, (",", ";"))
            continue
        elif token == "{":
            is_anonymous = stream.next(start) == position
            position = stream.partner.get(position, position)
            if stream.after(position) == ";":
                return (None if is_anonymous and stream.text(start) != "enum" else {}), position
            words, name = 1, ""
        elif token in ("[", "(") and position in stream.partner:
            id_ = ids.get(position, id_)
            position = stream.partner[position]
        elif is_identifier(token) and token not in ("alignas", "__attribute__"):
            words, name = words + 1, token
        position = stream.next(position)
    return None, position


def _end_of_declaration(stream: TokenStream, position: int) -> int:
    """Last token of the declaration at `position`: a semicolon, or the brace that ends a body."""
    while position < len(stream):
        token = stream.text(position)
        if token == ";":
            return position
        if token == "<":
            position = stream.close_angle(position)
        elif token == "(" and stream.before(position) not in _OPERATORS_OF_TYPES:
            return _end_of_function(stream, position)
        elif token == "{":
            position = stream.partner.get(position, position)
            return position if stream.after(position) != ";" else stream.next(position)
        position = stream.next(position)
    return position


def _end_of_function(stream: TokenStream, opening: int) -> int:
    """Last token of the function whose parameters, or what stands before them, open there."""
    position = stream.next(stream.partner.get(opening, opening))
    while stream.text(position) not in ("{", ";", ":", ""):
        if stream.text(position) in ("(", "["):
            position = stream.partner.get(position, position)
        position = stream.next(position)
    return member_end(stream, position)
