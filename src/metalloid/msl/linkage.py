"""Give the structs of ``extern "C"`` C++ linkage.

Headers that are shared with a host of C declare their structs so. A type of C++ is the same with
either linkage, but members that are templates, which `describe_records` adds, need that of C++.
"""

from __future__ import annotations

from metalloid.msl.tokens import TokenStream


def lower_linkage(stream: TokenStream) -> None:
    """Put the structs of ``extern "C"`` into ``extern "C++"``; functions stay as they are."""
    for position in stream.where("extern"):
        language = stream.next(position)
        if stream.text(language) != '"C"':
            continue
        opening = stream.next(language)
        if stream.text(opening) == "{" and opening in stream.partner:
            _lower_block(stream, opening)
        elif _struct_of(stream, opening) is not None:
            stream.replace(language, '"C++"')


def _lower_block(stream: TokenStream, opening: int) -> None:
    start, end = stream.next(opening), stream.partner[opening]
    while start < end:
        stop = _end_of_declaration(stream, start)
        if _struct_of(stream, start) is not None:
            stream.replace(start, f'extern "C++" {{ {stream.current(start)}')
            stream.replace(stop, f"{stream.current(stop)} }}")
        start = stream.next(stop)


def _struct_of(stream: TokenStream, start: int) -> int | None:
    """The brace of the struct that the declaration at `start` defines; None if it defines none."""
    opening = stream.find_from(start, ("{", "(", "=", ";"))
    words = stream.tokens[start:opening]
    return opening if stream.text(opening) == "{" and {"struct", "class"} & {*words} else None


def _end_of_declaration(stream: TokenStream, start: int) -> int:
    """The semicolon that ends the declaration, or the brace that ends a function's body."""
    position = stream.find_from(start, ("{", ";"))
    if stream.text(position) == "{" and _struct_of(stream, start) is None:
        return stream.partner.get(position, position)
    return stream.find_from(position, (";",))
