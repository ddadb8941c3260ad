"""Events of launches: whether they have ended, how they failed, and how long they took."""

from __future__ import annotations

import time
import weakref
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from metalloid.backends.cuda.runtime.context import ContextDevice
from metalloid.backends.cuda.runtime.driver import check, driver
from metalloid.backends.cuda.runtime.program import CudaProgram
from metalloid.errors import LaunchCancelled, LaunchError, MetalloidError
from metalloid.runtime.launch.event import Event
from metalloid.runtime.launch.failures import Failure, record
from metalloid.runtime.launch.launches import Arguments, Launch, LaunchBuffer, written_buffers
from metalloid.runtime.memory.buffer import Buffer
from metalloid.settings import settings

_BUSY_POLLS = 64  # before the waiting thread sleeps between polls
_MAX_SLEEP = 1e-3  # seconds, so that Ctrl-C is noticed


class CudaEvent(Event):
    """A launch without timing events: done when the whole stream is.

    Parameters
    ----------
    device : ContextDevice
    work : CudaProgram or str
        The kernel, or the name of other work.
    uses_printf : bool
        Whether its kernels log or assert.
    in_use : Arguments, or sequence of Launch or of arguments
        Objects that live until it has ended.

    Attributes
    ----------
    limit_ns : int
        How long it may run; 0: as long as `config.timeout` says.
    """

    __slots__ = ("_device", "_in_use", "_uses_printf", "_work")

    _failure: Failure | None = None
    #: When it was first seen to run; 0.0 before.
    _began = 0.0

    def __init__(
        self, device: ContextDevice, work: CudaProgram | str, uses_printf: bool, in_use: Any
    ) -> None:
        self._device, self._work, self._uses_printf = device, work, uses_printf
        self._in_use: Any = in_use
        self.limit_ns, is_watched = 0, uses_printf
        if isinstance(in_use, Arguments):
            self.limit_ns = in_use.limit_ns
            is_watched = uses_printf or in_use.fault_record is not None
        # Reports and time limits are handled even if the program has dropped the event.
        is_watched |= bool(self.limit_ns or settings.given("timeout", device.timer.timeout))
        device.in_flight.append((lambda: self) if is_watched else weakref.ref(self))

    @property
    def name(self) -> str:
        """The name of the kernel or of other work."""
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
        """Wait until it has ended, up to a timeout; return whether it has.

        An interrupt of the wait, such as Ctrl-C, ends all launches in flight. So does the time
        limit of the running launch, which may be an earlier one.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        polls = 0
        try:
            while not self.done:
                polls += 1
                if deadline is not None and time.monotonic() >= deadline:
                    return False
                if polls > _BUSY_POLLS:
                    running = self._device.running()
                    if running is not None and running.is_overdue():
                        self._device.cancellation.start(running, running.limit)
                    time.sleep(min(_MAX_SLEEP, 1e-6 * polls))
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
        """See `Event.cancel`. It also ends the launches queued after this one."""
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
        """Record how it failed, for `wait` and for reads of the buffers that it wrote."""
        self._failure = record(error, self._written())
        self._in_use = None

    def _written(self) -> Iterable[LaunchBuffer]:
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
        buffers: list[LaunchBuffer] = [v for v in in_use if isinstance(v, Buffer)]
        for launch in launches:
            buffers += written_buffers(launch.program.signature, launch.arguments)
        return buffers

    def _has_ended(self) -> bool:
        """Query the driver; raise the error of a failed launch."""
        device = self._device
        device.enter()
        status = self._status(device.driver)
        if status == device.driver.CUresult.CUDA_ERROR_NOT_READY:
            return False
        if status:
            raise device.failure(status, self.name)
        if self._uses_printf:
            device.flush_printf(self.name)
        self._require_no_fault()
        return True

    def _require_no_fault(self) -> None:
        """Raise a failed access, of kernels that check them."""
        in_use, work = self._in_use, self._work
        if isinstance(in_use, Arguments):
            if in_use.fault_record is not None and not isinstance(work, str):
                work.require_no_fault(in_use)
        elif self._uses_printf:
            for each in in_use:
                if isinstance(each, Launch):
                    each.program.require_no_fault(each.arguments)

    def has_begun(self) -> bool:
        """Whether the GPU has started it, as far as is known."""
        return True

    def _status(self, bindings: Any) -> Any:
        (status,) = bindings.cuStreamQuery(self._device.stream)
        return status

    @property
    def seconds(self) -> float:
        """See `Event.seconds`."""
        self.wait()
        raise LaunchError(
            f"[{self.name}] was not timed. Set metalloid.config.timing = True before the launch."
        )

    def __repr__(self) -> str:
        if not self.done:
            return f"<Event: {self.name}, running>"
        return f"<Event: {self.name}, {'done' if self._failure is None else 'failed'}>"


class TimedEvent(CudaEvent):
    """A launch between two timing events."""

    __slots__ = ("_events",)

    _seconds: float | None = None

    def __init__(
        self,
        device: ContextDevice,
        work: CudaProgram | str,
        uses_printf: bool,
        in_use: Any,
        events: tuple[int, int],
    ) -> None:
        self._events = events
        super().__init__(device, work, uses_printf, in_use)

    def __del__(self) -> None:
        # They are recorded again only after this launch, as the stream is in order.
        self._device.timer.free.append(self._events)

    @property
    def plain_events(self) -> tuple[int, int] | None:
        """Its timing events; None if more than they must be looked at when it has ended."""
        in_use = self._in_use
        has_record = isinstance(in_use, Arguments) and in_use.fault_record is not None
        is_plain = self._failure is None and not self._uses_printf and not has_record
        return self._events if is_plain else None

    def _status(self, bindings: Any) -> Any:
        (status,) = bindings.cuEventQuery(self._events[1])
        return status

    def has_begun(self) -> bool:
        """See `CudaEvent.has_begun`."""
        (status,) = self._device.driver.cuEventQuery(self._events[0])
        return not status

    @property
    def seconds(self) -> float:
        """See `Event.seconds`."""
        self.wait()
        if self._seconds is None:
            elapsed = check(driver().cuEventElapsedTime(*self._events), "reading the time")
            self._seconds = float(elapsed) / 1e3
        return self._seconds


def read_times(device: ContextDevice, events: Sequence[Event]) -> list[float | None]:
    """See `Launcher.read_times`."""
    timed = [
        (k, pair)
        for k, event in enumerate(events)
        if isinstance(event, TimedEvent) and (pair := event.plain_events)
    ]
    times: list[float | None] = [None] * len(events)
    handles = array("Q", [handle for _, pair in timed for handle in pair])
    milliseconds = array("f", bytes(4 * len(timed)))
    with device.lock:
        if not device.is_entered:
            device.enter()
        done = device.native.read_times(
            handles.buffer_info()[0], len(timed), milliseconds.buffer_info()[0]
        )
    for (k, _), elapsed in zip(timed[:done], milliseconds, strict=False):
        times[k] = elapsed / 1e3
    return times


def record_event(
    device: ContextDevice, name: str, uses_printf: bool, in_use: Any, call: Callable[[], None]
) -> CudaEvent:
    """Run a function that adds work to the stream; return the event of that work."""
    events = device.timer.acquire()
    if events is None:
        call()
        return CudaEvent(device, name, uses_printf, in_use)
    event = TimedEvent(device, name, uses_printf, in_use, events)
    device.timer.record(events[0])
    call()
    device.timer.record(events[1])
    return event
