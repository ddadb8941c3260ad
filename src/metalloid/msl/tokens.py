"""Preprocessed MSL as an immutable token stream with bracket partners and an overlay of edits.

Every pass of the lowering reads the *original* tokens and writes into the overlay, so no pass sees
the edits of another and their order does not matter. Line breaks are never edited away: a line of
the lowered text is the same line of the preprocessed text, and a column maps back token by token.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate, chain, compress, pairwise

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


def _is_directive(token: str) -> bool:
    return token.lstrip(" \t").startswith("#")


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
        #: Positions of the directives.
        self.directives = [i for i, t in enumerate(self.tokens) if "#" in t and _is_directive(t)]
        self._edits: dict[int, str] = {}
        self._removed: set[int] = set()
        self._rendered: str | None = None
        self._starts: list[int] = []
        self._link_adjacent()
        self._link_brackets()

    def __len__(self) -> int:
        return len(self.tokens)

    def _link_adjacent(self) -> None:
        count = len(self.tokens)
        significant = [not token.isspace() for token in self.tokens]
        for position in self.directives:
            significant[position] = False
        self._significant = significant
        self._previous: list[int] = []  # of position 0 and on
        self._next: list[int] = []  # of position -1 and on
        for last, following in pairwise((-1, *compress(range(count), significant), count)):
            self._previous += [last] * (following - last)
            self._next += [following] * (following - last)
        self._next.append(count)
        self.first = self._next[0]

    def _link_brackets(self) -> None:
        self.partner: dict[int, int] = {}
        open_brackets: list[int] = []
        for position in self.where("(", ")", "[", "]", "{", "}"):
            token = self.tokens[position]
            if token in ("(", "[", "{"):
                open_brackets.append(position)
            elif open_brackets and self.tokens[open_brackets[-1]] == _CLOSING[token]:
                start = open_brackets.pop()
                self.partner[start] = position
                self.partner[position] = start

    @functools.cached_property
    def positions(self) -> dict[str, list[int]]:
        """Positions of each token by its spelling, white space and directives left out."""
        positions: dict[str, list[int]] = defaultdict(list)
        for position, token in compress(enumerate(self.tokens), self._significant):
            positions[token].append(position)
        return dict(positions)

    def where(self, *spellings: str) -> list[int]:
        """Positions of all tokens spelt so, in the order of the text."""
        return sorted(chain.from_iterable(self.positions.get(word, ()) for word in spellings))

    # -- reading

    def text(self, position: int) -> str:
        """The token at `position`; empty outside the stream."""
        return self.tokens[position] if 0 <= position < len(self.tokens) else ""

    def next(self, position: int) -> int:
        """The next token that is neither white space nor a directive."""
        return self._next[position + 1]

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
        tokens = self.tokens[start:stop]
        return " ".join("".join(t for t in tokens if not _is_directive(t)).split())

    def find_from(self, position: int, texts: tuple[str, ...]) -> int:
        """First position from `position` on with one of `texts`, stepping over brackets."""
        while position < len(self.tokens) and self.tokens[position] not in texts:
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
            self._forget_rendering()

    def current(self, position: int) -> str:
        """The token at `position` as edited so far."""
        return self._edits.get(position, self.text(position))

    def remove(self, start: int, stop: int) -> None:
        """`blank`, and no later `replace` brings anything back."""
        self.blank(start, stop)
        self._removed.update(range(start, stop))

    def blank(self, start: int, stop: int) -> None:
        """Leave nothing of ``[start, stop)`` but its line breaks and directives."""
        for position, token in enumerate(self.tokens[start:stop], start):
            if "#" not in token or not _is_directive(token):
                self._edits[position] = "\n" * token.count("\n") if "\n" in token else ""
        self._forget_rendering()

    def _forget_rendering(self) -> None:
        self._rendered, self._starts = None, []

    def render(self) -> str:
        """The edited text."""
        if self._rendered is None:
            self._rendered = "".join(self._edited())
        return self._rendered

    def _edited(self) -> list[str]:
        tokens = self.tokens.copy()
        for position, text in self._edits.items():
            tokens[position] = text
        return tokens

    def rendered_start(self, position: int) -> int:
        """Offset in the rendered text of the token at `position`."""
        if not self._starts:
            self._starts = list(accumulate(map(len, self._edited()), initial=0))
        return self._starts[position]

    def locate(self, offset: int) -> int:
        """Position of the token that holds `offset` of the rendered text."""
        if offset >= self.rendered_start(len(self.tokens)):
            return len(self.tokens)
        return bisect_right(self._starts, offset) - 1
