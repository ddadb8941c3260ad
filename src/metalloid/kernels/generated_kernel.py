"""Texts of kernels that we write around the user's own, and what was written where."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

from metalloid.compiler.frontend.unit import PROGRAM_SOURCE, ResolvedBounds
from metalloid.compiler.toolchain.target import MathMode
from metalloid.errors import CompileError
from metalloid.kernels.kernel import Kernel
from metalloid.kernels.library import Library, compiled_library
from metalloid.msl.diagnostics import Diagnostic, report
from metalloid.runtime.devices.device import Device

#: What the name of a piece that we wrote ends in.
SIGNATURE = ".signature"
#: Likewise, for a file of the package that precedes the text.
UTILITIES_END = ".metal"


@dataclass(frozen=True)
class GeneratedKernel:
    """A kernel's whole text, and where each line of it comes from.

    Attributes
    ----------
    function : str
        Name of the kernel in the text.
    pieces : tuple of (str, str)
        Name and text of each piece, in the order of the text.
    """

    function: str
    pieces: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """All that is compiled."""
        return "".join(text for _, text in self.pieces)

    @property
    def own_text(self) -> str:
        """The text without the utilities."""
        return "".join(text for name, text in self.pieces if not name.endswith(UTILITIES_END))

    def at_user_lines(self, error: CompileError) -> CompileError:
        """The error with its lines counted in the user's header and body."""
        relocated = [self._relocated(diagnostic) for diagnostic in error.diagnostics]
        diagnostics = [diagnostic for diagnostic in relocated if diagnostic is not None]
        if not diagnostics:
            return error
        shown, in_error = [], False
        for diagnostic in diagnostics:
            in_error = diagnostic.is_error or (in_error and diagnostic.severity == "note")
            if in_error:
                shown.append(diagnostic)
        return CompileError(report(shown), diagnostics)

    def _relocated(self, diagnostic: Diagnostic) -> Diagnostic | None:
        """The diagnostic in its own piece; None for notes about what the user did not write."""
        if diagnostic.file != PROGRAM_SOURCE:
            return diagnostic
        line = diagnostic.line
        for name, text in self.pieces[:-1]:
            lines = text.count("\n")
            if line <= lines:
                if diagnostic.severity == "note" and name.endswith(SIGNATURE):
                    return None
                return replace(diagnostic, file=name, line=line)
            line -= lines
        if diagnostic.severity == "note":
            return None
        # What is wrong at the closing brace is wrong at the end of the body.
        name, text = self.pieces[-2]
        *_, last = lines_of_body = text.splitlines() or [""]
        return replace(
            diagnostic, file=name, line=len(lines_of_body), column=len(last) + 1, source_line=last
        )


@functools.lru_cache(maxsize=256)
def compiled(
    generated: GeneratedKernel,
    function: str,
    math_mode: MathMode,
    bounds: ResolvedBounds,
    device: Device,
) -> Kernel:
    """A kernel of a text; the text decides, so that equal names never meet.

    Raises
    ------
    CompileError
        With the lines of what the user wrote.
    """
    try:
        return _library(generated.text, math_mode, bounds, device)[function]
    except CompileError as error:
        raise generated.at_user_lines(error) from None


@functools.lru_cache(maxsize=256)
def _library(text: str, math_mode: MathMode, bounds: ResolvedBounds, device: Device) -> Library:
    return compiled_library(text, math_mode, bounds, device)
