"""clang's messages in the terms of the user's own text: file, line, column, caret, spelling."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import replace

from metalloid.msl.diagnostics import Diagnostic
from metalloid.msl.entry_point_parser import parse_line_marker
from metalloid.msl.tokens import TokenStream, is_identifier

_MESSAGE = re.compile(
    r"^(?P<file>[^\n]*?):(?P<line>\d+):(?P<column>\d+): "
    r"(?P<severity>fatal error|error|warning|note): (?P<message>.*)$"
)
_OPTION = re.compile(r" \[-W[^\]]*\]$")
#: Types and spaces as clang prints them after the prelude, and their names in MSL.
_SPELLINGS = (
    (re.compile(r"\bconst __global\b|\b__global const\b|\b__global\b(?!_)"), "constant"),
    (re.compile(r"\b__global_device\b|\b__device\b"), "device"),
    (re.compile(r"\b__local\b"), "threadgroup"),
    (re.compile(r"\bconst (\w[\w:<>, ]*?) constant\b"), r"constant \1"),
    (re.compile(r"\bconstant const\b|\bconst constant\b"), "constant"),
    (re.compile(r"(?<!did you mean ')\bmetal::"), ""),
    (re.compile(r"\bvec<(\w+), ([234])>"), r"\1\2"),
    (re.compile(r"\b_Float16\b"), "half"),
    (re.compile(r"\b__bf16\b"), "bfloat"),
    (re.compile(r"\bunsigned (char|short|int|long)\b"), r"u\1"),
    (re.compile(r"'([^']*)' \(aka '\1'\)"), r"'\1'"),  # once both are spelled the same
    (re.compile(r"^static assertion failed due to requirement '.*?': "), ""),
)


def parse_messages(text: str) -> list[Diagnostic]:
    """The messages in a compiler's output; quoted source and carets are left out."""
    diagnostics = []
    for line in text.splitlines():
        if match := _MESSAGE.match(line):
            severity = "error" if match["severity"].endswith("error") else match["severity"]
            diagnostics.append(
                Diagnostic(
                    severity, match["file"], int(match["line"]), int(match["column"]),
                    in_msl_words(match["message"]),
                )
            )  # fmt: skip
    return diagnostics


def without_generated_positions(
    messages: Iterable[Diagnostic], is_own: Callable[[str], bool]
) -> list[Diagnostic]:
    """Messages without those that only speak of our own headers.

    An error inside one of them is put where the user's text led there: at the first note about the
    user's text that follows it.

    Parameters
    ----------
    is_own : callable
        Whether a file belongs to the package.
    """
    reported: list[Diagnostic] = []
    homeless: Diagnostic | None = None
    for message in messages:
        if not is_own(message.file):
            if homeless is not None and message.severity == "note":
                message = replace(
                    homeless, file=message.file, line=message.line, column=message.column
                )
            homeless = None
            if message not in reported:
                reported.append(message)
        elif message.severity != "note":
            homeless = message
    return reported


def in_msl_words(message: str) -> str:
    """A message of clang's with types and spaces as MSL spells them."""
    message = _OPTION.sub("", message)
    for pattern, word in _SPELLINGS:
        message = pattern.sub(word, message)
    return message


class SourceMap:
    """Maps positions in a lowered text back to the text its author wrote.

    Lines need no mapping (line markers survive every stage). A column is found in two steps: the
    token stream knows which preprocessed token a lowered one came from, and the n-th token of a
    spelling in the preprocessed line is the n-th of it in the author's line. Where a macro was
    expanded the position is that of the macro's name.

    Parameters
    ----------
    stream : TokenStream
        The preprocessed text with its edits.
    read : callable
        From file name to its text, or None.
    """

    def __init__(self, stream: TokenStream, read: Callable[[str], str | None]) -> None:
        self._stream = stream
        self._read = read
        self._files: dict[str, list[str]] = {}
        self._rendered = stream.render()
        self._lines_from: list[tuple[int, str, int]] = []
        self._offsets = self._line_offsets()

    def _line_offsets(self) -> dict[tuple[str, int], list[tuple[int, int]]]:
        """Spans of the rendered text by the user's file and line."""
        offsets: dict[tuple[str, int], list[tuple[int, int]]] = {}
        file, line, start = "", 1, 0
        for text in self._rendered.splitlines(keepends=True):
            marker = parse_line_marker(text)
            if marker is not None:
                file, line = marker
            else:
                offsets.setdefault((file, line), []).append((start, start + len(text)))
                self._lines_from.append((start, file, line))
                line += 1
            start += len(text)
        return offsets

    def localise(self, diagnostic: Diagnostic) -> Diagnostic:
        """The diagnostic at the user's own column, with the user's own line."""
        lines = self._lines(diagnostic.file)
        if not lines:
            return diagnostic
        if diagnostic.line > len(lines):
            # Something is missing, which clang reports in the text that we append to the user's.
            end = lines[-1]
            return replace(diagnostic, line=len(lines), column=len(end) + 1, source_line=end)
        source_line = lines[diagnostic.line - 1]
        position = self.token_at(diagnostic)
        column = diagnostic.column
        if position is not None:
            column = self._column(position, diagnostic, source_line)
        column = max(1, min(column, len(source_line) + 1))
        return replace(diagnostic, column=column, source_line=source_line)

    def error_at(self, position: int, message: str) -> Diagnostic:
        """An error at the token at `position`, in the user's own numbering."""
        start = self._stream.rendered_start(position)
        index = bisect_right(self._lines_from, start, key=lambda line: line[0]) - 1
        _, file, line = self._lines_from[max(index, 0)]
        diagnostic = Diagnostic("error", file, line, 1, message)
        lines = self._lines(file)
        if not 0 < line <= len(lines):
            return diagnostic
        column = self._column(position, diagnostic, lines[line - 1])
        return replace(diagnostic, column=column, source_line=lines[line - 1])

    def _lines(self, file: str) -> list[str]:
        if file not in self._files:
            self._files[file] = (self._read(file) or "").splitlines()
        return self._files[file]

    def token_at(self, diagnostic: Diagnostic) -> int | None:
        """Position of the token a (not yet localised) diagnostic points at."""
        offset = self._offset_of(diagnostic)
        position = len(self._stream) if offset is None else self._stream.locate(offset)
        return position if position < len(self._stream) else None

    def text_at(self, diagnostic: Diagnostic) -> str:
        """The lowered text at a (not yet localised) diagnostic, up to the end of its line."""
        offset = self._offset_of(diagnostic)
        return "" if offset is None else self._rendered[offset:].partition("\n")[0]

    def _offset_of(self, diagnostic: Diagnostic) -> int | None:
        for start, end in self._offsets.get((diagnostic.file, diagnostic.line), ()):
            text = self._rendered[start:end].encode()
            if diagnostic.column <= len(text):
                return start + len(text[: diagnostic.column - 1].decode("utf-8", "ignore"))
        return None

    def _column(self, position: int, diagnostic: Diagnostic, source_line: str) -> int:
        tokens = self._stream.tokens
        spelling = tokens[position]
        first = position
        while first > 0 and "\n" not in tokens[first - 1]:
            first -= 1
        ordinal = tokens[first:position].count(spelling)
        preprocessed = set(tokens[first:position])
        after = position
        while after < len(tokens) and "\n" not in tokens[after]:
            preprocessed.add(tokens[after])
            after += 1
        written = TokenStream(source_line)
        starts, column = [], 1
        for token in written.tokens:
            starts.append(column)
            column += len(token)
        columns = [c for c, token in zip(starts, written.tokens, strict=True) if token == spelling]
        if spelling.strip() and ordinal < len(columns):
            return columns[ordinal]
        for start, token in zip(starts, written.tokens, strict=True):
            if is_identifier(token) and token not in preprocessed:
                return start  # the macro whose expansion this is
        return columns[-1] if columns and spelling.strip() else min(diagnostic.column, column)
