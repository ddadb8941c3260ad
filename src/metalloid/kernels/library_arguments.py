"""The arguments of `library`: text or file, folders of includes, and macros."""

from __future__ import annotations

import numbers
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from metalloid.compiler.frontend.unit import PROGRAM_SOURCE
from metalloid.errors import ArgumentError, MetalloidError

#: Suffixes of file names, which are a likely mistake for a text.
_FILE_NAMES = (".metal", ".h", ".msl", ".metallib")
_MACRO_NAME = re.compile(r"[A-Za-z_]\w*(?:\([\w, .]*\))?")


class SourceNotFound(MetalloidError, FileNotFoundError):
    """The file of a library does not exist or cannot be read."""

    def __str__(self) -> str:
        return str(self.args[0])


def file_and_text(source: Any, path: str | os.PathLike[str] | None) -> tuple[str, str]:
    """The file and the text of a library, of which one is given.

    Raises
    ------
    ArgumentError
        If neither or both are given.
    SourceNotFound
        If the file cannot be read.
    """
    if (source is None) == (path is None):
        raise ArgumentError("[library] expects either MSL source or path=, not both.")
    if path is not None:
        return os.fspath(path), _read(path)
    if not isinstance(source, str):
        raise ArgumentError(f"[library] expects MSL source as str, got {type(source).__name__}.")
    if "\n" not in source and source.endswith(_FILE_NAMES):
        raise ArgumentError(
            f"[library] {source!r} is the name of a file, not MSL source. Write path={source!r}."
        )
    return PROGRAM_SOURCE, source.removeprefix("\ufeff")


def _read(path: str | os.PathLike[str]) -> str:
    try:
        return Path(path).read_text("utf-8-sig")
    except FileNotFoundError:
        raise SourceNotFound(f"[library] no such file: {os.fspath(path)!r}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SourceNotFound(f"[library] cannot read {os.fspath(path)!r}: {error}.") from None


def include_folders(given: Any) -> tuple[str, ...]:
    """The folders of `include_dirs`.

    Raises
    ------
    ArgumentError
        For anything else.
    """
    if isinstance(given, str | os.PathLike):
        given = (given,)
    try:
        return tuple(os.fspath(folder) for folder in given)
    except TypeError:
        raise ArgumentError(
            f"[library] include_dirs must be a folder or a sequence of folders, got {given!r}."
        ) from None


def macro_definitions(defines: Any) -> tuple[tuple[str, str], ...]:
    """The macros of `defines`, sorted by name.

    Raises
    ------
    ArgumentError
        If a name or a value cannot be that of a macro.
    """
    if not isinstance(defines, Mapping):
        raise ArgumentError(
            f"[library] defines must be a mapping of macro names to values, got {defines!r}. "
            "Write {'NAME': value}; None defines a macro without a value."
        )
    for name, value in defines.items():
        if not (isinstance(name, str) and _MACRO_NAME.fullmatch(name)):
            raise ArgumentError(f"[library] defines: {name!r} is not a valid macro name.")
        if "\n" in _macro_value(value) or "\r" in _macro_value(value):
            raise ArgumentError(
                f"[library] defines: the value of {name} has several lines; a macro has one. "
                "Join them, or write #define in the source."
            )
    return tuple(sorted((name, _macro_value(value)) for name, value in defines.items()))


def _macro_value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, str | numbers.Number):
        return str(value)
    raise ArgumentError(
        f"[library] defines: a value must be a str, a number, True, False or None, got {value!r}."
    )
