"""Logs of command buffers: what pipelines with shader validation report."""

from __future__ import annotations

from metalloid.compat.Metal.constants import MTLFunctionLogTypeValidation
from metalloid.compat.Metal.library import MTLFunction
from metalloid.errors import KernelFault


class MTLFunctionLogDebugLocation:
    """A line of a kernel's text."""

    __slots__ = ("_function_name", "_line")

    def __init__(self, function_name: str, line: int) -> None:
        self._function_name, self._line = function_name, line

    def functionName(self) -> str:
        """The kernel's name."""
        return self._function_name

    def URL(self) -> None:
        """None: the text came from no file."""

    def line(self) -> int:
        """Its number, from 1."""
        return self._line

    def column(self) -> int:
        """0: it is not known."""
        return 0


class MTLFunctionLog:
    """The first access of a launch outside of a buffer."""

    __slots__ = ("_fault", "_function")

    def __init__(self, function: MTLFunction, fault: KernelFault) -> None:
        self._function, self._fault = function, fault

    def type(self) -> int:
        """``MTLFunctionLogTypeValidation``."""
        return MTLFunctionLogTypeValidation

    def encoderLabel(self) -> None:
        """None: labels of encoders are not logged."""

    def function(self) -> MTLFunction:
        """The kernel function."""
        return self._function

    def debugLocation(self) -> MTLFunctionLogDebugLocation | None:
        """The line; None if it is not known."""
        line = self._fault.line
        return None if line is None else MTLFunctionLogDebugLocation(self._function.name(), line)

    def description(self) -> str:
        """The access and its object."""
        return self._fault.reason
