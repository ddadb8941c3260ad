"""Launches under way on an NVIDIA GPU, and how long they took."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from metalloid.backends.cuda.driver import check, driver
from metalloid.errors import LaunchError
from metalloid.runtime.device import Arguments
from metalloid.runtime.event import Event

if TYPE_CHECKING:
    from metalloid.backends.cuda.device import CudaDevice

_FIRST_LOOKS = 64  # at once after each other, before the waiting thread sleeps between them
_LONGEST_SLEEP = 1e-3  # seconds, so that Ctrl-C is noticed


class Timer:
    """Marks in a device's stream."""

    def __init__(self, device: CudaDevice) -> None:
        self._device, self._driver = device, driver()
        self._free: list[Any] = []

    def _mark(self) -> Any:
        if self._free:
            mark = self._free.pop()
        else:
            mark = check(self._driver.cuEventCreate(0), "making an event")
        self._driver.cuEventRecord(mark, self._device.stream)
        return mark

    def start(self) -> Any:
        """A mark before a launch."""
        return self._mark()

    def stop(self, started: Any) -> tuple[Any, Any]:
        """Marks around a launch; the first is None if it is not timed."""
        return started, self._mark()

    def give_back(self, marks: tuple[Any, Any]) -> None:
        """Take marks that nobody looks at any more."""
        self._free += [mark for mark in marks if mark is not None]


class CudaEvent(Event):
    """A launch in the stream of a device."""

    __slots__ = ("_device", "_in_use", "_kernel", "_marks", "_seconds")

    def __init__(
        self, device: CudaDevice, kernel: str, marks: tuple[Any, Any], arguments: Arguments
    ) -> None:
        self._device, self._kernel, self._marks = device, kernel, marks
        self._in_use: Arguments | None = arguments  # what the launch uses lives until it has ended
        self._seconds: float | None = None

    def __del__(self) -> None:
        self._device._timer.give_back(self._marks)

    def wait(self, timeout: float | None = None) -> CudaEvent:
        """See `Event.wait`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        looks = 0
        while not self.done:
            looks += 1
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"[{self._kernel}] still running after {timeout} s")
            if looks > _FIRST_LOOKS:
                time.sleep(min(_LONGEST_SLEEP, 1e-6 * looks))
        return self

    @property
    def done(self) -> bool:
        """See `Event.done`."""
        if self._in_use is None:
            return True
        device = self._device
        device._enter()
        (status,) = device._driver.cuEventQuery(self._marks[1])
        if status == device._driver.CUresult.CUDA_ERROR_NOT_READY:
            return False
        self._in_use = None
        if status:
            raise device.failure(status, self._kernel)
        return True

    @property
    def seconds(self) -> float:
        """See `Event.seconds`."""
        self.wait()
        if self._seconds is None:
            start, end = self._marks
            if start is None:
                raise LaunchError(
                    f"[{self._kernel}] was not timed. Set metalloid.config.timing = True before."
                )
            elapsed = check(driver().cuEventElapsedTime(start, end), "reading the time")
            self._seconds = float(elapsed) / 1e3
        return self._seconds

    def __repr__(self) -> str:
        return f"<Event: {self._kernel}, {'done' if self.done else 'running'}>"
