"""Launches under way on an NVIDIA GPU, and how long they took."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from metalloid.backends.cuda.runtime.driver import check, driver
from metalloid.errors import LaunchCancelled, LaunchError, MetalloidError
from metalloid.runtime.buffer import Buffer
from metalloid.runtime.event import Event
from metalloid.runtime.failures import Failure, record, written_buffers
from metalloid.runtime.launches import Arguments, Launch
from metalloid.settings import settings

if TYPE_CHECKING:
    from metalloid.backends.cuda.runtime.device import CudaDevice
    from metalloid.backends.cuda.runtime.program import CudaProgram

_FIRST_LOOKS = 64  # at once after each other, before the waiting thread sleeps between them
_LONGEST_SLEEP = 1e-3  # seconds, so that Ctrl-C is noticed


#: In the place of a pair of marks, for launches that are not timed.
NO_MARKS = (0, 0)


class Timer:
    """Marks in a device's stream, in pairs."""

    def __init__(self, device: CudaDevice) -> None:
        self._stream = device.stream
        self.is_timing, self.timeout = settings.timing, settings.timeout
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
    """A launch in the stream of a device, without marks: done when all launches are.

    Parameters
    ----------
    device : CudaDevice
    work : CudaProgram or str
        What runs: a kernel, or the name of something else.
    reports : bool
        Whether kernels in it log or assert.
    in_use : Arguments, or sequence of Launch or of arguments
        What lives until it has ended.

    Attributes
    ----------
    limit_ns : int
        How long it may run; 0: as long as `config.timeout` says.
    """

    __slots__ = ("_device", "_in_use", "_reports", "_work")

    _failure: Failure | None = None
    #: When it was first seen to run; 0.0 before.
    _began = 0.0

    def __init__(
        self, device: CudaDevice, work: CudaProgram | str, reports: bool, in_use: Any
    ) -> None:
        self._device, self._work, self._reports = device, work, reports
        self._in_use: Any = in_use
        self.limit_ns = in_use.limit_ns if isinstance(in_use, Arguments) else 0
        # Reports and time limits are looked at even if the program has dropped the event.
        is_watched = reports or self.limit_ns or settings.given("timeout", device.timer.timeout)
        device.in_flight.append((lambda: self) if is_watched else weakref.ref(self))

    @property
    def name(self) -> str:
        """Of the kernel, or what else it is."""
        return self._work if isinstance(self._work, str) else self._work.name

    def wait(self, timeout: float | None = None) -> CudaEvent:
        """See `Event.wait`."""
        if not self.end(timeout):
            raise TimeoutError(f"[{self.name}] still running after {timeout} s")
        if self._failure is not None:
            self._failure.throw()
        return self

    def settle(self) -> None:
        """See `Event.settle`."""
        self.end()

    def end(self, timeout: float | None = None) -> bool:
        """Wait for the end, so long at most; whether it has come.

        What interrupts the wait, as Ctrl-C does, ends all launches in flight. So does the time
        limit of the launch that runs, which may be one before this.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        looks = 0
        try:
            while not self.done:
                looks += 1
                if deadline is not None and time.monotonic() >= deadline:
                    return False
                if looks > _FIRST_LOOKS:
                    running = self._device.running()
                    if running is not None and running.is_overdue():
                        self._device.cancellation.start(running, running.limit)
                    time.sleep(min(_LONGEST_SLEEP, 1e-6 * looks))
        except BaseException as error:
            if not isinstance(error, MetalloidError):
                self._device.cancellation.start()
            raise
        return True

    @property
    def limit(self) -> float:
        """Seconds that it may run; 0.0 for no limit."""
        return self.limit_ns / 1e9 if self.limit_ns else settings.timeout

    def is_overdue(self) -> bool:
        """Whether it has run for longer than its limit, since this was first asked."""
        if not self.limit or not self.has_begun():
            return False
        self._began = self._began or time.monotonic()
        return time.monotonic() - self._began >= self.limit

    def cancel(self) -> bool:
        """See `Event.cancel`. Launches queued behind this one are ended, too."""
        if self.done:
            return False
        self._device.cancellation.start()
        return isinstance(self._failure and self._failure.error, LaunchCancelled)

    @property
    def done(self) -> bool:
        """See `Event.done`."""
        if self._in_use is None:
            return True
        try:
            if not self._has_ended():
                return False
        except MetalloidError as error:
            self.fail(error)
        self._in_use = None
        return True

    def fail(self, error: MetalloidError) -> None:
        """Note how it failed, for `wait` and for those who read what it wrote."""
        self._failure = record(error, self._written())
        self._in_use = None

    def _written(self) -> Iterable[Buffer]:
        """Buffers that it may have written to."""
        in_use = self._in_use
        if isinstance(in_use, Arguments):
            if isinstance(self._work, str):
                return in_use.buffers
            return written_buffers(self._work.signature, in_use)
        if not isinstance(self._work, str):  # arguments as they were given
            read_only = (p.layout.read_only for p in self._work.signature.arguments)
            in_use = [value for value, only in zip(in_use, read_only, strict=False) if not only]
        launches = [value for value in in_use if isinstance(value, Launch)]
        buffers = [value for value in in_use if isinstance(value, Buffer)]
        for launch in launches:
            buffers += written_buffers(launch.program.signature, launch.arguments)
        return buffers

    def _has_ended(self) -> bool:
        """Ask the driver; raises how the launch failed."""
        device = self._device
        device._enter()
        status = self._status(device._driver)
        if status == device._driver.CUresult.CUDA_ERROR_NOT_READY:
            return False
        if status:
            raise device.failure(status, self.name)
        if self._reports:
            device.pass_on_reports(self.name)
        return True

    def has_begun(self) -> bool:
        """Whether the GPU has come to it, as far as is known."""
        return True

    def _status(self, bindings: Any) -> Any:
        (status,) = bindings.cuStreamQuery(self._device.stream)
        return status

    @property
    def seconds(self) -> float:
        """See `Event.seconds`."""
        self.wait()
        raise LaunchError(
            f"[{self.name}] was not timed. Set metalloid.config.timing = True before."
        )

    def __repr__(self) -> str:
        if not self.done:
            return f"<Event: {self.name}, running>"
        return f"<Event: {self.name}, {'done' if self._failure is None else 'failed'}>"


class TimedEvent(CudaEvent):
    """A launch between two marks."""

    __slots__ = ("_marks",)

    _seconds: float | None = None

    def __init__(
        self,
        device: CudaDevice,
        work: CudaProgram | str,
        reports: bool,
        in_use: Any,
        marks: tuple[int, int],
    ) -> None:
        self._marks = marks
        super().__init__(device, work, reports, in_use)

    def __del__(self) -> None:
        # Recorded again only after what it marks, for the stream is in order.
        self._device.timer.free.append(self._marks)

    def _status(self, bindings: Any) -> Any:
        (status,) = bindings.cuEventQuery(self._marks[1])
        return status

    def has_begun(self) -> bool:
        """See `CudaEvent.has_begun`."""
        (status,) = self._device._driver.cuEventQuery(self._marks[0])
        return not status

    @property
    def seconds(self) -> float:
        """See `Event.seconds`."""
        self.wait()
        if self._seconds is None:
            elapsed = check(driver().cuEventElapsedTime(*self._marks), "reading the time")
            self._seconds = float(elapsed) / 1e3
        return self._seconds
