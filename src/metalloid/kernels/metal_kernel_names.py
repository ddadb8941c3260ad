"""Which names the body of a `metal_kernel` uses."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from metalloid.msl.tokens import TokenStream, is_identifier

_COMMENT_OR_LITERAL = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S
)
_MACRO = re.compile(r"[ \t]*#[ \t]*define[ \t]+(\w+)(.*)", re.S)
_SELECTS_A_MEMBER = (".", "->", "::")


@functools.lru_cache(maxsize=256)
def used_identifiers(source: str, header: str = "") -> frozenset[str]:
    """The names that a body uses, directly or through macros.

    Words in comments and literals, members (``a.size``), qualified names and parts of longer words
    are not uses. Of the header only the macros count: its functions cannot see the kernel's
    parameters.

    Examples
    --------
    >>> sorted(used_identifiers("x[ID] = y; // grid_size", "#define ID grid_origin.x"))
    ['ID', 'grid_origin', 'x', 'y']
    """
    body = _tokens(source)
    used = set(_identifiers(body))
    macros: dict[str, set[str]] = {}
    for token in (*_tokens(header).tokens, *body.tokens):
        if definition := _MACRO.match(token):
            replacement = _identifiers(TokenStream(definition[2]))
            macros.setdefault(definition[1], set()).update(replacement)
    pending = list(used)
    while pending:
        new = macros.get(pending.pop(), set()) - used
        used |= new
        pending += new
    return frozenset(used)


def _tokens(text: str) -> TokenStream:
    """The tokens of a text without comments, literals and continued lines."""
    return TokenStream(_COMMENT_OR_LITERAL.sub(" ", text.replace("\\\n", "")))


def _identifiers(stream: TokenStream) -> Iterator[str]:
    for position in stream.significant():
        token = stream.text(position)
        if is_identifier(token) and stream.before(position) not in _SELECTS_A_MEMBER:
            yield token
