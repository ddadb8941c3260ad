"""Launches under way on an NVIDIA GPU, and how long they took."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from metalloid.backends.cuda.driver import check, driver
from metalloid.errors import LaunchError, MetalloidError
from metalloid.runtime.event import Event
from metalloid.settings import settings

if TYPE_CHECKING:
    from metalloid.backends.cuda.device import CudaDevice

_FIRST_LOOKS = 64  # at once after each other, before the waiting thread sleeps between them
_LONGEST_SLEEP = 1e-3  # seconds, so that Ctrl-C is noticed


#: In the place of a pair of marks, for launches that are not timed.
NO_MARKS = (0, 0)


class Timer:
    """Marks in a device's stream, in pairs."""

    def __init__(self, device: CudaDevice) -> None:
        self._stream = device.stream
        self.is_timing = settings.timing
        self.free: list[tuple[int, int]] = []  # marks that nobody looks at any more

    def marks(self) -> tuple[int, int] | None:
        """Two marks to put around a launch; None if launches are not timed."""
        if not settings.given("timing", self.is_timing):
            return None
        try:
            return self.free.pop()
        except IndexError:
            return self._new(), self._new()

    def _new(self) -> int:
        return int(check(driver().cuEventCreate(0), "making an event"))

    def record(self, mark: int) -> None:
        """Put a mark behind everything so far."""
        check(driver().cuEventRecord(mark, self._stream), "marking a stream")


class CudaEvent(Event):
    """A launch in the stream of a device, without marks: done when all launches are."""

    __slots__ = ("_device", "_in_use", "_kernel", "_reports")

    _error: MetalloidError | None = None

    def __init__(self, device: CudaDevice, kernel: str, reports: bool, in_use: Any) -> None:
        self._device, self._kernel, self._reports = device, kernel, reports
        self._in_use: Any = in_use  # what the launch uses lives until it has ended

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
        if self._error is not None:
            raise self._error
        return self

    @property
    def done(self) -> bool:
        """See `Event.done`."""
        if self._in_use is None:
            return True
        try:
            if not self._has_ended():
                return False
        except MetalloidError as error:  # for `wait` to raise, now and again
            self._error = error
        self._in_use = None
        return True

    def _has_ended(self) -> bool:
        """Ask the driver; raises how the launch failed."""
        device = self._device
        device._enter()
        status = self._status(device._driver)
        if status == device._driver.CUresult.CUDA_ERROR_NOT_READY:
            return False
        if status:
            raise device.failure(status, self._kernel)
        if self._reports:
            device.pass_on_reports(self._kernel)
        return True

    def _status(self, bindings: Any) -> Any:
        (status,) = bindings.cuStreamQuery(self._device.stream)
        return status

    @property
    def seconds(self) -> float:
        """See `Event.seconds`."""
        self.wait()
        raise LaunchError(
            f"[{self._kernel}] was not timed. Set metalloid.config.timing = True before."
        )

    def __repr__(self) -> str:
        return f"<Event: {self._kernel}, {'done' if self.done else 'running'}>"


class TimedEvent(CudaEvent):
    """A launch between two marks."""

    __slots__ = ("_marks",)

    _seconds: float | None = None

    def __init__(
        self,
        device: CudaDevice,
        kernel: str,
        reports: bool,
        in_use: Any,
        marks: tuple[int, int],
    ) -> None:
        self._device, self._kernel, self._reports = device, kernel, reports
        self._in_use, self._marks = in_use, marks

    def __del__(self) -> None:
        # Recorded again only after what it marks, for the stream is in order.
        self._device.timer.free.append(self._marks)

    def _status(self, bindings: Any) -> Any:
        (status,) = bindings.cuEventQuery(self._marks[1])
        return status

    @property
    def seconds(self) -> float:
        """See `Event.seconds`."""
        self.wait()
        if self._seconds is None:
            elapsed = check(driver().cuEventElapsedTime(*self._marks), "reading the time")
            self._seconds = float(elapsed) / 1e3
        return self._seconds
