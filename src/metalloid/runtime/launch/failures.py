"""Failures of asynchronous launches.

A launch that returns at once may fail later. Then each read of a buffer that it wrote to raises
the failure, until another launch writes to the buffer. A failure that the program never sees is
reported when the process ends.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from typing import NoReturn, Protocol

from metalloid.errors import LaunchCancelled, LaunchTimeout, MetalloidError

_MAX_REPORTED = 10  # failures that are reported singly
_unseen: list[Failure] = []
os.register_at_fork(after_in_child=_unseen.clear)


class Failure:
    """The failure of a launch.

    Attributes
    ----------
    error : MetalloidError
    is_seen : bool
        Whether it was raised where the program could see it.
    """

    __slots__ = ("error", "is_seen")

    def __init__(self, error: MetalloidError) -> None:
        self.error = error.with_traceback(None)  # a traceback keeps the launch's arguments alive
        self.is_seen = isinstance(error, LaunchCancelled)  # by the program or Ctrl-C

    def throw(self) -> NoReturn:
        """Raise it."""
        self.is_seen = True
        _forget_seen()
        raise self.error.with_traceback(None)


class CanFail(Protocol):
    """A buffer, whose reads raise the failure of a launch that wrote to it."""

    failure: Failure | None


def timeout_error(kernel: str, limit: float) -> LaunchTimeout:
    """The error of a launch that was ended after its time limit, in seconds."""
    return LaunchTimeout(
        f"[{kernel}] the launch was ended after its time limit (timeout={limit:g} s); what it "
        "wrote is incomplete. Look for a loop that does not end, or raise timeout= or "
        "metalloid.config.timeout.",
        kernel=kernel,
        timeout=limit,
    )


def record(error: MetalloidError, written: Iterable[CanFail]) -> Failure:
    """Record that a launch has failed, for the buffers it may have written to."""
    failure = Failure(error)
    _unseen.append(failure)
    _forget_seen()
    for buffer in written:
        buffer.failure = failure
    return failure


def _forget_seen() -> None:
    _unseen[:] = [failure for failure in _unseen if not failure.is_seen]


def report() -> None:
    """Log failures that were never raised and warn about them, at the end of the process."""
    if not _unseen:
        return
    import logging  # here, as most programs have no failures

    logger = logging.getLogger("metalloid")
    errors = [str(failure.error) for failure in _unseen]
    _unseen.clear()
    for error in errors[:_MAX_REPORTED]:
        logger.error("a launch failed and the program did not wait for it: %s", error)
    if len(errors) > _MAX_REPORTED:
        logger.error("%d more launches failed", len(errors) - _MAX_REPORTED)
    for error in errors[:_MAX_REPORTED]:
        warnings.warn(f"failed launch never waited for: {error}", ResourceWarning, stacklevel=1)
