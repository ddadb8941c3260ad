"""Launches that may run at the same time, which the sanitizer compares with each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any


class UnorderedLaunches:
    """Launches that are not ordered among each other, such as those of a concurrent encoder.

    They run one after the other. A checked launch remembers its accesses, and a later one with
    which they race is reported. A checked launch of another thread meanwhile makes it forget them.

    Attributes
    ----------
    checked : list
        What the sanitizer remembers of each launch.
    forget : callable or None
        Frees the memory for their accesses.
    """

    def __init__(self) -> None:
        self.checked: list[Any] = []
        self.forget: Callable[[], None] | None = None

    def close(self) -> None:
        """Forget the launches."""
        self.checked.clear()
        if self.forget is not None:
            self.forget()


_current: ContextVar[UnorderedLaunches | None] = ContextVar("unordered", default=None)


def current() -> UnorderedLaunches | None:
    """The launches to which those of this thread belong; None if they are ordered."""
    return _current.get()


@contextmanager
def unordered(launches: UnorderedLaunches) -> Iterator[None]:
    """Let the launches of a ``with`` block in this thread belong to `launches`."""
    token = _current.set(launches)
    try:
        yield
    finally:
        _current.reset(token)
