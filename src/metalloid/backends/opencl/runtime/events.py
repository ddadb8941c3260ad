"""Events of launches on OpenCL devices."""

from __future__ import annotations

import time
from typing import Any

from metalloid.backends.opencl.runtime.program import OpenclProgram
from metalloid.errors import KernelFault, MetalloidError
from metalloid.runtime.launch.event import Event
from metalloid.runtime.launch.failures import Failure, record
from metalloid.runtime.launch.launches import Arguments, written_buffers

_BUSY_POLLS = 64  # before the waiting thread sleeps between polls
_MAX_SLEEP = 1e-3  # seconds, so that Ctrl-C is noticed


class OpenclEvent(Event):
    """A launch in the queue of a device.

    Parameters
    ----------
    handles : list
        pyopencl's events of its parts, in order.
    """

    __slots__ = ("_arguments", "_failure", "_handles", "_program", "_seconds")

    def __init__(self, program: OpenclProgram, arguments: Arguments, handles: list[Any]) -> None:
        self._program, self._handles = program, handles
        self._arguments: Arguments | None = arguments  # alive until it has ended
        self._failure: Failure | None = None
        self._seconds = 0.0

    @property
    def done(self) -> bool:
        """See `Event.done`."""
        if self._arguments is None:
            return True
        statuses = [int(handle.command_execution_status) for handle in self._handles]
        if any(status > 0 for status in statuses):
            return False
        failed = min(statuses, default=0)
        if failed < 0:
            self.fail(
                KernelFault(
                    f"[{self._program.name}] the launch failed: OpenCL reports {failed}.",
                    kernel=self._program.name,
                    reason=f"OpenCL reports {failed}",
                )
            )
            return True
        self._seconds = sum(handle.profile.end - handle.profile.start for handle in self._handles)
        self._arguments, self._handles = None, []
        return True

    @property
    def has_failed(self) -> bool:
        """Whether it is known to have failed."""
        return self._failure is not None

    def fail(self, error: MetalloidError) -> None:
        """Record how it failed, for `wait` and for reads of the buffers that it wrote."""
        assert self._arguments is not None
        written = written_buffers(self._program.signature, self._arguments)
        self._failure = record(error, written)
        self._arguments, self._handles = None, []

    def end(self, timeout: float | None = None) -> bool:
        """Wait until it has ended, up to a timeout; return whether it has."""
        deadline = None if timeout is None else time.monotonic() + timeout
        polls = 0
        while not self.done:
            polls += 1
            if deadline is not None and time.monotonic() >= deadline:
                return False
            if polls > _BUSY_POLLS:
                time.sleep(min(_MAX_SLEEP, 1e-6 * polls))
        return True

    def wait(self, timeout: float | None = None) -> OpenclEvent:
        """See `Event.wait`."""
        if not self.end(timeout):
            raise TimeoutError(f"[{self._program.name}] still running after {timeout} s")
        if self._failure is not None:
            self._failure.throw()
        return self

    def settle(self) -> None:
        """See `Event.settle`."""
        self.end()

    @property
    def seconds(self) -> float:
        """See `Event.seconds`."""
        self.wait()
        return self._seconds * 1e-9

    def __repr__(self) -> str:
        if not self.done:
            return f"<Event: {self._program.name}, running>"
        return f"<Event: {self._program.name}, {'done' if self._failure is None else 'failed'}>"
