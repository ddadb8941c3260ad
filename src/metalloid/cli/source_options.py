"""Options of the verbs that compile MSL: folders, macros, the math mode, function constants."""

from __future__ import annotations

import argparse
from typing import Any

from metalloid.errors import ArgumentError


def add_source_options(parser: argparse.ArgumentParser) -> None:
    """Add ``-I``, ``-D`` and ``--math-mode``."""
    parser.add_argument("-I", dest="include_dirs", action="append", default=[], metavar="FOLDER")
    parser.add_argument(
        "-D", dest="defines", action="append", default=[], metavar="NAME[=VALUE]",
        help="define a macro; repeatable",
    )  # fmt: skip
    parser.add_argument("--math-mode", choices=("safe", "relaxed", "fast"), default="safe")


def source_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `library` that `add_source_options` adds options for."""
    defines = {}
    for item in options.defines:
        name, equals, value = item.partition("=")
        defines[name] = value if equals else "1"
    return {
        "include_dirs": options.include_dirs, "defines": defines, "math_mode": options.math_mode,
    }  # fmt: skip


def add_constants(parser: argparse.ArgumentParser) -> None:
    """Add ``--constant``."""
    parser.add_argument(
        "--constant", dest="constants", action="append", default=[], metavar="NAME=VALUE",
        help="value of a function constant; repeatable",
    )  # fmt: skip


def function_constants(options: argparse.Namespace) -> dict[str, float | int | bool]:
    """The function constants by name.

    Raises
    ------
    ArgumentError
        If a value is not a number.
    """
    pairs = (item.partition("=") for item in options.constants)
    return {name: number(text, "true or false") for name, _, text in pairs}


def number(text: str, other: str) -> float | int | bool:
    """The number or truth value that a text is.

    Raises
    ------
    ArgumentError
        If it is neither; the message says what else it could be.
    """
    if text in ("true", "false"):
        return text == "true"
    for convert in (lambda t: int(t, 0), float):
        try:
            return convert(text)
        except ValueError:
            continue
    raise ArgumentError(f"[metalloid] {text!r} is neither a number, nor {other}.")
