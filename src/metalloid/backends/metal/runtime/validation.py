"""Reports of Metal's shader validation (macOS 15) on kernels with ``bounds="checked"``.

Metal makes the checks: what such a kernel reads outside of a buffer is zero, what it writes there
is dropped, and the command buffer has a log for each such access that it reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from metalloid.backends.metal.compile.programs import MetalProgram
from metalloid.backends.metal.runtime.commands import Command
from metalloid.backends.metal.runtime.products import ProductCommand
from metalloid.errors import KernelFault


@dataclass
class AccessReport:
    """The first report on a kernel, and the number of others.

    Attributes
    ----------
    program : MetalProgram
    reason : str
        In Metal's words.
    line, column : int
        In the user's text; 0 if Metal does not know them.
    others : int
    """

    program: MetalProgram
    reason: str
    line: int
    column: int
    others: int = 0

    @property
    def error(self) -> KernelFault:
        """The error of the launch."""
        kernel, line = self.program.signature.name, self.line
        at, shown = "", ""
        if line:
            at = f"{self.program.file}:{line}: "
            lines = self.program.text.splitlines()
            if line <= len(lines):
                caret = f"\n    {' ' * (self.column - 1)}^" if self.column else ""
                shown = f"\n    {lines[line - 1]}{caret}"
        more = f" (and {self.others} more)" if self.others else ""
        return KernelFault(
            f"[{kernel}] {at}{self.reason}{more}{shown}",
            kernel=kernel,
            reason=self.reason,
            file=self.program.file if line else None,
            line=line or None,
        )


def reports_of(
    buffer: Any, commands: Sequence[Command | ProductCommand]
) -> dict[str, AccessReport]:
    """Reports of a command buffer that has ended, by the names of kernels."""
    programs = {
        command.name: command.program
        for command in commands
        if isinstance(command, Command) and command.program.is_validated
    }
    reports: dict[str, AccessReport] = {}
    for log in (buffer.logs() or ()) if programs else ():
        function, location = log.function(), log.debugLocation()
        # Without the function's name any of them may be meant.
        names = [str(function.name())] if function is not None else list(programs)
        for name in names:
            if name in reports:
                reports[name].others += 1
            elif name in programs:
                line, column = (0, 0) if location is None else (location.line(), location.column())
                reports[name] = AccessReport(programs[name], str(log.description()), line, column)
    return reports
