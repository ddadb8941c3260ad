"""Messages of the compiler about the user's text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Diagnostic:
    """One message of the compiler about the user's text.

    Attributes
    ----------
    severity : str
        ``"error"``, ``"warning"`` or ``"note"``.
    file : str
        The user's file, or ``"program_source"`` for a text without one.
    line, column : int
        Counted from 1.
    message : str
    source_line : str
        That line of the file; empty if it could not be read.
    """

    severity: str
    file: str
    line: int
    column: int
    message: str
    source_line: str = ""

    @property
    def is_error(self) -> bool:
        """Whether nothing was compiled because of this."""
        return self.severity == "error"

    def __str__(self) -> str:
        head = f"{self.file}:{self.line}:{self.column}: {self.severity}: {self.message}"
        if not self.source_line.strip():
            return head
        pad = "".join("\t" if c == "\t" else " " for c in self.source_line[: self.column - 1])
        return f"{head}\n{self.source_line.rstrip()}\n{pad}^"


def report(diagnostics: Iterable[Diagnostic]) -> str:
    """All messages with their frames, as a compiler prints them."""
    return "\n".join(str(diagnostic) for diagnostic in diagnostics)
