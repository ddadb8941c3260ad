"""CUDA events that time launches, in pairs that are used again."""

from __future__ import annotations

from typing import Any

from metalloid.backends.cuda.runtime.driver import check, driver
from metalloid.settings import settings

#: Stands for a pair of events at launches that are not timed.
NO_EVENTS = (0, 0)


class Timer:
    """Pairs of timing events for one stream.

    Attributes
    ----------
    free : list of tuple of int
        Pairs that no launch uses.
    is_timing, timeout
        The settings when the device was opened.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.is_timing, self.timeout = settings.timing, settings.timeout
        self.free: list[tuple[int, int]] = []

    def acquire(self) -> tuple[int, int] | None:
        """Two events to record before and after a launch; None if launches are not timed."""
        if not settings.given("timing", self.is_timing):
            return None
        try:
            return self.free.pop()
        except IndexError:
            return self._create(), self._create()

    def _create(self) -> int:
        return int(check(driver().cuEventCreate(0), "making an event"))

    def record(self, event: int) -> None:
        """Record an event after all work in the stream so far."""
        check(driver().cuEventRecord(event, self._stream), "marking a stream")
