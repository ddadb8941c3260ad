"""Show the compiler's warnings as Python's, at the line of the program that compiles a text."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

from metalloid.errors import CompileWarning
from metalloid.msl.diagnostics import Diagnostic, report

_MAX_SHOWN = 5
_PACKAGE = __name__.partition(".")[0] + "."
#: Modules that compile a program's own text for it; what others of the package compile is ours.
_LOADING = ("metalloid.kernels.load", "metalloid.arrays.io")


def show_warnings(diagnostics: Sequence[Diagnostic]) -> None:
    """Issue one `CompileWarning` if the caller's caller is the program, or loads a text for it."""
    if not diagnostics:
        return
    depth = 2
    while (name := sys._getframe(depth).f_globals.get("__name__", "")) in _LOADING:
        depth += 1
    if name.startswith(_PACKAGE):
        return
    more = len(diagnostics) - _MAX_SHOWN
    text = report(diagnostics[:_MAX_SHOWN])
    if more > 0:
        text += f"\n... and {more} more, in the library's `warnings`"
    warnings.warn(text, CompileWarning, stacklevel=depth + 1)
