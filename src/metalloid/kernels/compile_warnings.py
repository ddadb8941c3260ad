"""Show the compiler's warnings as Python's, at the line of the program that compiles a text."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

from metalloid.errors import CompileWarning
from metalloid.msl.diagnostics import Diagnostic, report

_MAX_SHOWN = 5
_PACKAGE = __name__.partition(".")[0] + "."


def show_warnings(diagnostics: Sequence[Diagnostic], *, for_program: bool = False) -> None:
    """Issue one `CompileWarning` for a text of the program's.

    Parameters
    ----------
    for_program : bool
        Whether the program compiles a text, directly or indirectly. Otherwise the text is
        taken for one of ours if a module of the package is the caller's caller.
    """
    if not diagnostics:
        return
    depth = 2
    while sys._getframe(depth).f_globals.get("__name__", "").startswith(_PACKAGE):
        if not for_program:
            return
        depth += 1
    more = len(diagnostics) - _MAX_SHOWN
    text = report(diagnostics[:_MAX_SHOWN])
    if more > 0:
        text += f"\n... and {more} more, in the library's `warnings`"
    warnings.warn(text, CompileWarning, stacklevel=depth + 1)
