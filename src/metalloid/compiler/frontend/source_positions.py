"""Positions of instructions in the user's texts."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from metalloid.compiler.frontend.debug_info import location_of
from metalloid.compiler.frontend.translate import ENTRY_FILE
from metalloid.msl.clang_messages import SourceMap
from metalloid.msl.diagnostics import Diagnostic
from metalloid.msl.tokens import TokenStream

_PACKAGE = Path(__file__).parents[2]


class SourcePositions:
    """Finds positions by debug locations.

    Parameters
    ----------
    sources : mapping
        The user's texts by file name.
    cpp : str
        The text that clang compiled, in which debug locations have their columns.
    """

    def __init__(self, sources: Mapping[str, str], cpp: str) -> None:
        self._sources, self._cpp = sources, cpp

    @functools.cached_property
    def _map(self) -> SourceMap:
        return SourceMap(TokenStream(self._cpp), self._read)

    def _read(self, file: str) -> str | None:
        source, path = self._sources.get(file), Path(file)
        if source is None and path.exists():  # an included file
            return path.read_text("utf-8", "replace")
        return source

    def of(self, debug: str, ir: str) -> list[Any] | None:
        """File, line, column and text of the line, as JSON has them.

        Parameters
        ----------
        debug : str
            The ``!dbg`` attachment of an instruction.
        ir : str
            Its module; without debug locations the position is None.
        """
        location = location_of(ir, debug)
        if location is None:
            return None
        path, file = Path(location.directory, location.file), location.file
        if file not in self._sources and (str(path) in self._sources or path.exists()):
            file = str(path)
        at = self._map.localise(Diagnostic("error", file, location.line, location.column, ""))
        return [file, at.line, at.column, at.source_line]


def is_user_file(path: Path) -> bool:
    """Whether clang names it in debug information for the user's text."""
    return path.name != ENTRY_FILE and not path.resolve().is_relative_to(_PACKAGE)
