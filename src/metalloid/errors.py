"""Every exception that metalloid raises on purpose, and its warning.

Texts follow one form: ``[where] what happened (the offending values). What to do.``
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metalloid.msl.diagnostics import Diagnostic
    from metalloid.runtime.launch.findings import Finding

__all__ = [
    "ArgumentError",
    "CompileError",
    "CompileWarning",
    "DeviceUnavailable",
    "KernelFault",
    "LaunchCancelled",
    "LaunchError",
    "LaunchTimeout",
    "MetalloidError",
    "OutOfMemory",
    "SanitizerError",
    "TraceError",
    "UnknownFunction",
    "UnsupportedType",
]


class MetalloidError(Exception):
    """Base class of all errors of this package."""


class CompileError(MetalloidError, SyntaxError):
    """A kernel text does not compile.

    It is a ``SyntaxError``, so Python tracebacks show the file, line and caret of the first error.
    ``str(error)`` lists all errors as ``FILE:LINE:COLUMN: error: message``, with the source line
    and a caret below it.

    Attributes
    ----------
    diagnostics : tuple of Diagnostic
        Errors, warnings and notes in the order the compiler gave them.
    """

    def __init__(self, report: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(report)
        self.report = report
        self.diagnostics = tuple(diagnostics)
        first = next((d for d in self.diagnostics if d.is_error), None)
        if first is not None:
            self.msg = first.message
            self.filename = first.file
            self.lineno = first.line
            self.offset = first.column
            self.text = first.source_line

    def __str__(self) -> str:
        return self.report

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.report, self.diagnostics))


class CompileWarning(UserWarning):
    """A compiler warning for a text that `library` or `load` compiled.

    It is issued at the call of these functions; ``Library.warnings`` has the same as objects.
    Silence it with ``warnings.filterwarnings("ignore", category=metalloid.CompileWarning)``.
    """


class UnknownFunction(MetalloidError, AttributeError, KeyError):
    """A library has no kernel of the requested name; the message lists its kernels."""

    def __str__(self) -> str:
        return str(self.args[0])


class ArgumentError(MetalloidError, TypeError, ValueError):
    """The arguments of a launch do not match the kernel's signature; nothing was run."""


class BundleError(MetalloidError, ValueError):
    """A bundle of kernels is damaged, or was made for other machines or versions."""


class UnsupportedType(MetalloidError, TypeError):
    """The device does not support the type of an array: float64 on Apple GPUs."""


class LaunchError(MetalloidError, RuntimeError):
    """The device could not run a launch although its arguments were valid."""


class LaunchTimeout(LaunchError, TimeoutError):
    """A launch exceeded its time limit and was stopped; its results are incomplete.

    Attributes
    ----------
    kernel : str
        Name of the kernel.
    timeout : float
        The limit in seconds.
    """

    def __init__(self, message: str, *, kernel: str = "", timeout: float = 0.0) -> None:
        super().__init__(message)
        self.kernel = kernel
        self.timeout = timeout


class LaunchCancelled(LaunchError):
    """A launch was stopped by Ctrl-C or `Event.cancel`; its results are incomplete."""


class OutOfMemory(MetalloidError, MemoryError):
    """The device has no memory for a buffer of the requested size."""


class KernelFault(MetalloidError, RuntimeError):
    """A kernel failed while running (bad address, trap, stack overflow, divergent barrier).

    Attributes
    ----------
    kernel : str
        Name of the kernel.
    reason : str
        What happened, without its location.
    threadgroup, thread : tuple of int or None
        Position of the threadgroup in the grid and of the thread in its threadgroup, where known.
    file, line : str and int or None
        The line of the kernel's text, where known.
    """

    def __init__(
        self,
        message: str,
        *,
        kernel: str = "",
        reason: str = "",
        threadgroup: tuple[int, int, int] | None = None,
        thread: tuple[int, int, int] | None = None,
        file: str | None = None,
        line: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kernel = kernel
        self.file, self.line = file, line
        self.reason = reason
        self.threadgroup = threadgroup
        self.thread = thread


class SanitizerError(KernelFault):
    """A checked launch has found defects of its kernel, such as data races.

    The launch has run to its end. `reason`, `file` and `line` are those of the first finding.

    Attributes
    ----------
    findings : tuple of Finding
    """

    def __init__(self, message: str, *, findings: Sequence[Finding] = (), **where: Any) -> None:
        super().__init__(message, **where)
        self.findings = tuple(findings)

    def to_json(self) -> str:
        """The findings as JSON."""
        return json.dumps([finding.as_dict() for finding in self.findings], indent=2)


class DeviceUnavailable(MetalloidError, RuntimeError):
    """The requested device does not exist on this machine; the message states the reason."""


class TraceError(MetalloidError, ValueError):
    """A function cannot be traced, differentiated, vectorised or compiled."""


class TracedArgument(TraceError):
    """A kernel is launched on an array that a transform traces."""


def unknown_attribute(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error of a name that a module does not have, with the most similar one that it has."""
    near = similar_name(name, known)
    hint = f". Did you mean {near!r}?" if near else ""
    # Without an object, as Python would add a suggestion, too.
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}", name=name, obj=None)


def unknown_keyword(function: str, name: str, known: Sequence[str]) -> TypeError:
    """The error of a keyword that a function does not have."""
    return TypeError(
        f"[{function}] unexpected keyword argument {name!r}. {keyword_hint(name, known)}"
    )


def keyword_hint(name: str, known: Sequence[str]) -> str:
    """The keyword that is most similar to an unknown one, or all."""
    near = similar_name(name, known)
    return f"Did you mean {near!r}?" if near else f"Its keywords are {', '.join(known)}."


def similar_name(name: str, known: Iterable[str]) -> str | None:
    """The name that is most similar, if one is."""
    import difflib  # here, as it is for errors

    return next(iter(difflib.get_close_matches(name, known, 1)), None)
