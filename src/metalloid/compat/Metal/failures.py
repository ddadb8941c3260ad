"""Errors of the software device: assertions, which end a process on a Mac, and NSError objects."""

from __future__ import annotations

from typing import NoReturn


class FailedAssertion(AssertionError):
    """The message with which Metal's runtime ends the process, raised as an exception."""


def fail(selector: str, what: str) -> NoReturn:
    """Raise the failed assertion of a method."""
    raise FailedAssertion(f"-[{selector}]: failed assertion `{what}'")


class NSError:
    """An error that a method returns along with None."""

    __slots__ = ("_code", "_description", "_domain")

    def __init__(self, domain: str, code: int, description: str) -> None:
        self._domain, self._code, self._description = domain, code, description

    def domain(self) -> str:
        """Which part of the system it comes from: ``"MTLLibraryErrorDomain"``."""
        return self._domain

    def code(self) -> int:
        """The error code in its domain."""
        return self._code

    def localizedDescription(self) -> str:
        """The message; for a text that does not compile, the compiler's output."""
        return self._description

    def localizedFailureReason(self) -> str | None:
        """Nothing more than the description."""
        return None

    def userInfo(self) -> dict[str, str]:
        """The description by its key."""
        return {"NSLocalizedDescription": self._description}

    def __str__(self) -> str:
        return (
            f'Error Domain={self._domain} Code={self._code} "{self._description}" '
            f"UserInfo={{NSLocalizedDescription={self._description}}}"
        )

    __repr__ = __str__
