"""The names in the texts of a `metal_kernel`: which a body uses, and which cannot be given."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from metalloid.errors import ArgumentError
from metalloid.msl.signature import IDS
from metalloid.msl.tokens import TokenStream, is_identifier

#: Words of the language, which no argument can be called.
RESERVED = frozenset(
    """
    alignas alignof and and_eq asm auto bfloat bitand bitor bool break case catch char char16_t
    char32_t class compl const const_cast constant constexpr continue decltype default delete
    device do double dynamic_cast else enum explicit export extern false float for fragment
    friend goto half if inline int kernel long mutable namespace new noexcept not not_eq nullptr
    operator or or_eq private protected public register reinterpret_cast return short signed
    sizeof static static_assert static_cast struct switch template this thread thread_local
    threadgroup throw true try typedef typeid typename union unsigned using vertex virtual void
    volatile wchar_t while xor xor_eq
    """.split()  # noqa: SIM905  (a list of them takes a line for each)
)

_WORD = re.compile(r"\w+", re.ASCII)
_COMMENT_OR_LITERAL = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S
)
_MACRO = re.compile(r"[ \t]*#[ \t]*define[ \t]+(\w+)(.*)", re.S)
_SELECTS_A_MEMBER = (".", "->", "::")


@functools.lru_cache(maxsize=256)
def used_identifiers(source: str, header: str = "") -> frozenset[str]:
    """The names that a body really uses, directly or by way of macros.

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


def check_function_name(name: Any) -> None:
    """Raise ArgumentError if `name` cannot be part of a kernel's name."""
    if not isinstance(name, str) or not _WORD.fullmatch(name):
        raise ArgumentError(
            f"[metal_kernel] name wants letters, digits and underscores, got {name!r}."
        )


def check_names(
    what: str, names: Any, where: str = "metal_kernel", taken: Sequence[str] = ()
) -> tuple[str, ...]:
    """The names, if each can be declared, and once only.

    Parameters
    ----------
    taken : sequence of str
        Names that mean something else already.
    """
    if not isinstance(names, list | tuple):
        raise ArgumentError(f"[{where}] {what} wants a list of names, got {names!r}.")
    seen = set(taken)
    for name in names:
        if not isinstance(name, str) or not _WORD.fullmatch(name) or name[0].isdigit():
            raise ArgumentError(f"[{where}] {what}: {name!r} is no name that MSL could declare.")
        if name in RESERVED or name in IDS:
            kind = "a word of MSL" if name in RESERVED else "a value that Metal gives each thread"
            raise ArgumentError(f"[{where}] {what}: {name!r} is {kind}. Choose another name.")
        if name in seen:
            raise ArgumentError(f"[{where}] {what}: {name!r} is given twice.")
        seen.add(name)
    return tuple(names)
