"""The one exception of metalcompute, and what of metalloid's errors becomes it."""

from __future__ import annotations

from typing import Any

import metalloid as mtl


class error(Exception):
    """An error; for a kernel that does not compile, with the compiler's output."""


error.__module__ = "metalcompute"


def library(source: str, device: Any) -> mtl.Library:
    """Compile a text as metalcompute does: fast arithmetic, at once.

    Raises
    ------
    error
        With ``program_source:LINE:COLUMN: error: ...``.
    """
    try:
        return mtl.library(source, math_mode="fast", device=device)
    except mtl.CompileError as failure:
        raise error(str(failure)) from None


def function(library: mtl.Library, name: str, missing: str) -> mtl.Kernel:
    """A kernel of a library; `missing` is what to say if it has none of that name."""
    try:
        return library.function(name)
    except mtl.UnknownFunction:
        raise error(missing) from None
    except mtl.MetalloidError as failure:
        raise error(str(failure)) from None


def text(value: str, position: int) -> str:
    """`value` if C code could have read it as a string."""
    if not isinstance(value, str):
        raise TypeError(f"argument {position} must be str, not {type(value).__name__}")
    if "\0" in value:
        raise ValueError("embedded null character")
    return value
