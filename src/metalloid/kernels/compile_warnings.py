"""Show the compiler's warnings as Python's, at the line of the program that compiles a text."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

from metalloid.errors import CompileWarning
from metalloid.msl.diagnostics import Diagnostic, report
from metalloid.runtime.devices.device import Device

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
    if not for_program and _is_of_package(2):
        return
    more = len(diagnostics) - _MAX_SHOWN
    text = report(diagnostics[:_MAX_SHOWN])
    if more > 0:
        text += f"\n... and {more} more, in the library's `warnings`"
    _warn(text)


def warn_if_unchecked(bounds: str, device: Device) -> None:
    """Issue a `CompileWarning` if ``bounds="checked"`` does nothing on a device."""
    if bounds == "checked" and not device.can_check_accesses:
        _warn(
            f"kernels on {device.name!r} do not check their accesses, bounds='checked' or not: "
            "only launches that are sure to fail are refused. Try them with device='cpu', or set "
            "METALLOID_VALIDATE=1 before the device is used: Metal checks all kernels then."
        )


def _warn(text: str) -> None:
    depth = 1
    while _is_of_package(depth):
        depth += 1
    warnings.warn(text, CompileWarning, stacklevel=depth + 1)


def _is_of_package(depth: int) -> bool:
    """Whether the function so far up the stack, from the caller on, is in this package."""
    module: str = sys._getframe(depth + 1).f_globals.get("__name__", "")
    return module.startswith(_PACKAGE)
