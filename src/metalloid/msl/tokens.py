"""Preprocessed MSL as an immutable token stream with bracket partners and an overlay of edits.

Every pass of the lowering reads the *original* tokens and writes into the overlay, so no pass sees
the edits of another and their order does not matter. Line breaks are never edited away: a line of
the lowered text is the same line of the preprocessed text, and a column maps back token by token.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""^[ \t]*\#[^\n]*                       # a directive: line marker, #pragma, -dD's #define
    |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'  # string and character literals
    |[A-Za-z_]\w*                             # identifiers and keywords
    |\.?\d(?:[eEpP][+-]|'\w|[\w.])*           # numbers, in the preprocessor's generous grammar
    |::|->|<<=|>>=|<=>|[-+*/%&|^=!<>]=|&&|\|\||\+\+|--|\.\.\.
    |\s+|.""",
    re.S | re.M | re.X,
)
_CLOSING = {")": "(", "]": "[", "}": "{"}


def is_identifier(token: str) -> bool:
    """Whether `token` is an identifier or a keyword."""
    return token[:1].isalpha() or token[:1] == "_"


class TokenStream:
    """The tokens of a text, their neighbours, bracket partners, and the edits made to them.

    Positions are indices of tokens; -1 and ``len(stream)`` stand for "before the first" and "after
    the last", where `text` gives the empty string.
    """

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = _TOKEN.findall(text)
        self._edits: dict[int, str] = {}
        self._removed: set[int] = set()
        self._starts: list[int] = []
        self._link_neighbours()
        self._link_brackets()

    def __len__(self) -> int:
        return len(self.tokens)

    def _link_neighbours(self) -> None:
        count = len(self.tokens)
        significant = [
            not token.isspace() and not token.lstrip(" \t").startswith("#") for token in self.tokens
        ]
        self._previous = [-1] * (count + 1)
        self._next = [count] * (count + 1)
        last = -1
        for position in range(count):
            self._previous[position] = last
            if significant[position]:
                last = position
        self._previous[count] = last
        following = count
        for position in range(count - 1, -1, -1):
            self._next[position] = following
            if significant[position]:
                following = position
        self.first = following
        self._significant = significant

    def _link_brackets(self) -> None:
        self.partner: dict[int, int] = {}
        open_brackets: list[int] = []
        for position, token in enumerate(self.tokens):
            if token in ("(", "[", "{"):
                open_brackets.append(position)
            elif open_brackets and self.tokens[open_brackets[-1]] == _CLOSING.get(token):
                start = open_brackets.pop()
                self.partner[start] = position
                self.partner[position] = start

    # -- reading

    def text(self, position: int) -> str:
        """The token at `position`; empty outside the stream."""
        return self.tokens[position] if 0 <= position < len(self.tokens) else ""

    def next(self, position: int) -> int:
        """The next token that is neither white space nor a directive."""
        return self._next[position] if position >= 0 else self.first

    def previous(self, position: int) -> int:
        """The nearest such token before `position`."""
        return self._previous[position]

    def after(self, position: int) -> str:
        """Text of the next significant token."""
        return self.text(self.next(position))

    def before(self, position: int) -> str:
        """Text of the previous significant token."""
        return self.text(self.previous(position))

    def significant(self, start: int = 0, stop: int | None = None) -> Iterator[int]:
        """Positions of the significant tokens in ``[start, stop)``."""
        stop = len(self.tokens) if stop is None else min(stop, len(self.tokens))
        flags = self._significant
        return (position for position in range(max(start, 0), stop) if flags[position])

    def joined(self, start: int, stop: int, separator: str = "") -> str:
        """The significant tokens of ``[start, stop)`` as one string."""
        return separator.join(self.tokens[position] for position in self.significant(start, stop))

    def source(self, start: int, stop: int) -> str:
        """The text of ``[start, stop)`` on one line, spaced as its author spaced it."""
        parts = self.tokens[start:stop]
        return " ".join("".join(t for t in parts if not t.lstrip().startswith("#")).split())

    def find_from(self, position: int, wanted: tuple[str, ...]) -> int:
        """First position from `position` on whose token is wanted, stepping over brackets."""
        while position < len(self.tokens) and self.tokens[position] not in wanted:
            if self.tokens[position] in ("(", "[", "{"):
                position = self.partner.get(position, position)
            position = self.next(position)
        return position

    def close_angle(self, position: int) -> int:
        """Position of the ``>`` that ends the template arguments opened by the ``<`` there."""
        depth = 0
        while position < len(self.tokens):
            token = self.tokens[position]
            if token in ("(", "[", "{"):
                position = self.partner.get(position, position)
            elif token == "<":
                depth += 1
            elif token == ">":
                depth -= 1
            elif token in (";", "}"):
                break
            if depth == 0:
                return position
            position = self.next(position)
        return len(self.tokens)

    def open_angle(self, position: int) -> int:
        """Position of the ``<`` that the ``>`` at `position` ends; -1 if there is none."""
        depth = 0
        while position >= 0:
            token = self.tokens[position]
            if token in (")", "]", "}"):
                position = self.partner.get(position, position)
            elif token == ">":
                depth += 1
            elif token == "<":
                depth -= 1
                if depth == 0:
                    return position
            elif token in (";", "{"):
                break
            position = self.previous(position)
        return -1

    def split_commas(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Spans between the commas of ``[start, stop)`` outside brackets and template arguments."""
        spans, begin, depth = [], start, 0
        position = start
        while position < stop:
            token = self.tokens[position]
            if token in ("(", "[", "{"):
                position = self.partner.get(position, position)
            elif token == "<":
                depth += 1
            elif token == ">":
                depth -= 1
            elif token == "," and depth <= 0:
                spans.append((begin, position))
                begin = position + 1
            position += 1
        if any(True for _ in self.significant(begin, stop)):
            spans.append((begin, stop))
        return spans

    # -- editing

    def replace(self, position: int, text: str) -> None:
        """Put `text` in place of the token at `position`, unless it was removed."""
        if position not in self._removed:
            self._edits[position] = text
            self._starts = []

    def current(self, position: int) -> str:
        """The token at `position` as edited so far."""
        return self._edits.get(position, self.text(position))

    def remove(self, start: int, stop: int) -> None:
        """`blank`, and no later `replace` brings anything back."""
        self.blank(start, stop)
        self._removed.update(range(start, stop))

    def blank(self, start: int, stop: int) -> None:
        """Leave nothing of ``[start, stop)`` but its line breaks and directives."""
        self._starts = []
        for position in range(start, stop):
            token = self.tokens[position]
            if not token.lstrip(" \t").startswith("#"):
                self._edits[position] = "\n" * token.count("\n")

    def render(self) -> str:
        """The edited text."""
        edits = self._edits
        if not edits:
            return "".join(self.tokens)
        return "".join([edits.get(i, token) for i, token in enumerate(self.tokens)])

    def rendered_start(self, position: int) -> int:
        """Offset in the rendered text of the token at `position`."""
        if not self._starts:
            lengths = (len(self._edits.get(i, token)) for i, token in enumerate(self.tokens))
            self._starts = list(itertools.accumulate(lengths, initial=0))
        return self._starts[position]

    def locate(self, offset: int) -> int:
        """Position of the token that holds `offset` of the rendered text."""
        if offset >= self.rendered_start(len(self.tokens)):
            return len(self.tokens)
        return bisect_right(self._starts, offset) - 1
