"""Compile errors with the user's own lines: of Metal's compiler, and of what it is not asked."""

from __future__ import annotations

from pathlib import Path

from metalloid.errors import CompileError
from metalloid.msl.clang_messages import parse_messages
from metalloid.msl.diagnostics import Diagnostic, report
from metalloid.msl.entry_points import EntryPoint


def compile_error(description: str, file: str, source: str) -> CompileError:
    """The error for what Metal's compiler refused, with the user's own lines."""
    lines = {file: source.splitlines()}
    diagnostics = []
    for message in parse_messages(description):
        if message.file not in lines:
            try:
                lines[message.file] = Path(message.file).read_text("utf-8").splitlines()
            except (OSError, UnicodeDecodeError):
                lines[message.file] = []
        of_file = lines[message.file]
        line = of_file[message.line - 1] if 0 < message.line <= len(of_file) else ""
        diagnostics.append(
            Diagnostic(
                message.severity, message.file, message.line, message.column, message.message, line
            )
        )
    if not any(message.is_error for message in diagnostics):
        return CompileError(f"[metal] the compiler rejected the text:\n{description}", diagnostics)
    in_error = [message for message in diagnostics if message.severity != "warning"]
    return CompileError(report(in_error), diagnostics)


def error_at(entry: EntryPoint, message: str) -> CompileError:
    """The error for a kernel that Metal, or its binding, cannot take; at the kernel's line."""
    diagnostic = Diagnostic("error", entry.file, entry.line, 1, message)
    return CompileError(str(diagnostic), [diagnostic])
