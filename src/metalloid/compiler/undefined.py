"""Functions that a kernel calls and nobody defines: known when its code is put together."""

from __future__ import annotations

import re

from metalloid.errors import CompileError

#: C++ writes ``f(float)`` as ``_Z1ff``: a name with its length before it.
_MANGLED = re.compile(r"_Z(\d+)(\w+)")


def undefined(symbol: str) -> CompileError:
    """The error for a function that is called by this name of the linker's.

    Examples
    --------
    >>> print(undefined("_Z7nowheref"))
    error: nowhere is declared and called, but nowhere defined.
    """
    mangled = _MANGLED.fullmatch(symbol)
    name = mangled[2][: int(mangled[1])] if mangled else symbol
    return CompileError(f"error: {name} is declared and called, but nowhere defined.")
