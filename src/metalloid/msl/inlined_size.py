"""Sizes of a text's functions after inlining every call, in tokens."""

from __future__ import annotations

import functools
import itertools
import re
from collections import defaultdict

from metalloid.msl.tokens import TokenStream, is_identifier

#: Functions by which lanes or threads wait for each other; they are always inlined.
_WAITS = re.compile(r"barrier|shuffle|^(?:simd|quad|simdgroup|quadgroup)_")
_NOT_A_CALL = {
    "if", "for", "while", "switch", "return", "sizeof", "alignof", "decltype", "static_assert",
}  # fmt: skip


def largest_inlined_size(stream: TokenStream, templates: bool) -> int:
    """Tokens of the largest function, with every call inlined.

    Only functions that could stay functions count: those by which no thread waits for others, and
    whose name alone tells which one is called.

    Parameters
    ----------
    stream : TokenStream
    templates : bool
        Whether those of templates count.
    """
    own, calls = _functions(stream, templates)
    waits = {name for name, called in calls.items() if any(map(_WAITS.search, called))}
    before = -1
    while before != len(waits):
        before = len(waits)
        waits |= {name for name, called in calls.items() if not waits.isdisjoint(called)}

    @functools.cache
    def size(name: str) -> int:
        if name in active or name not in own:
            return 0
        active.append(name)
        total = (0 if name in waits else own[name]) + sum(map(size, calls[name]))
        active.pop()
        return total

    active: list[str] = []
    return max((size(name) for name in calls), default=0)


def _functions(stream: TokenStream, templates: bool) -> tuple[dict[str, int], dict[str, list[str]]]:
    """Tokens of each function that is defined once; and what all call."""
    own: dict[str, int] = {}
    calls: dict[str, list[str]] = defaultdict(list)
    repeated: set[str] = set()
    end = -1
    for opening in stream.where("{"):
        name = _name_of_function(stream, opening) if opening > end else None
        if name is None:
            continue
        end = stream.partner.get(opening, opening)
        tokens = [stream.tokens[position] for position in stream.significant(opening, end)]
        if stream.text(name) in calls or (not templates and _is_template(stream, name)):
            repeated.add(stream.text(name))
        own[stream.text(name)] = len(tokens)
        calls[stream.text(name)] += [
            word
            for word, following in itertools.pairwise(tokens)
            if following == "(" and is_identifier(word) and word not in _NOT_A_CALL
        ]
    return {name: count for name, count in own.items() if name not in repeated}, dict(calls)


def _name_of_function(stream: TokenStream, opening: int) -> int | None:
    """Position of the name of the function whose body begins there, if one does."""
    closing = stream.previous(opening)
    while stream.text(closing) in ("const", "noexcept"):
        closing = stream.previous(closing)
    if stream.text(closing) != ")" or closing not in stream.partner:
        return None
    name = stream.previous(stream.partner[closing])
    word = stream.text(name)
    return name if is_identifier(word) and word not in _NOT_A_CALL else None


def _is_template(stream: TokenStream, name: int) -> bool:
    position = stream.previous(name)
    while position >= 0 and stream.text(position) not in (";", "{", "}"):
        if stream.text(position) == "template":
            return True
        position = stream.previous(position)
    return False
