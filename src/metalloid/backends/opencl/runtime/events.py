"""Events of launches on OpenCL devices."""

from __future__ import annotations

import time
import weakref
from typing import Any

from metalloid.backends.opencl.runtime.program import OpenclProgram
from metalloid.backends.opencl.runtime.queue_device import QueueDevice
from metalloid.errors import KernelFault, MetalloidError
from metalloid.runtime.launch.event import Event
from metalloid.runtime.launch.failures import Failure, record
from metalloid.runtime.launch.fault_records import FaultRecord
from metalloid.runtime.launch.launches import Arguments, LaunchBuffer, written_buffers
from metalloid.runtime.memory.buffer import Buffer

_BUSY_POLLS = 64  # before the waiting thread sleeps between polls
_MAX_SLEEP = 1e-3  # seconds, so that Ctrl-C is noticed


class OpenclEvent(Event):
    """A launch in the queue of a device.

    Parameters
    ----------
    device : QueueDevice
    program : OpenclProgram
    in_use : Arguments or tuple
        Objects that live until it has ended: arguments, bound or as they were given.
    events : list
        The driver's events of its parts, which the launch adds; the event of a fast launch.
    """

    __slots__ = ("_device", "_events", "_in_use", "_program")

    _failure: Failure | None = None
    _fault_record: FaultRecord | None = None
    _nanoseconds = 0

    def __init__(
        self, device: QueueDevice, program: OpenclProgram, in_use: Any, events: Any
    ) -> None:
        self._device, self._program, self._events = device, program, events
        self._in_use: Any = in_use
        if program.is_checked:
            self._fault_record = in_use.fault_record
            device.watch(self)
        else:
            device.in_flight.append(weakref.ref(self))

    @property
    def done(self) -> bool:
        """See `Event.done`."""
        if self._in_use is None:
            return True
        device, name = self._device, self._program.name
        with device.lock:
            if self._in_use is None:
                return True
            status, self._nanoseconds = device.native.poll(device.queue_handle, self._events)
            if status > 0:
                return False
            try:
                if status < 0:
                    reason = f"OpenCL reports {status}"
                    text = f"[{name}] the launch failed: {reason}."
                    raise KernelFault(text, kernel=name, reason=reason)
                if self._fault_record is not None:
                    self._program.require_no_fault(self._fault_record)
            except MetalloidError as error:
                if not self.has_failed:  # by an assertion
                    self.fail(error)
            self._in_use = self._fault_record = None
            self._events = []
        return True

    @property
    def has_failed(self) -> bool:
        """Whether it is known to have failed."""
        return self._failure is not None

    def fail(self, error: MetalloidError) -> None:
        """Record how it failed, for `wait` and for reads of the buffers that it wrote."""
        self._failure = record(error, self._written())

    def _written(self) -> list[LaunchBuffer]:
        """Buffers that it may have written to."""
        in_use, signature = self._in_use, self._program.signature
        if isinstance(in_use, Arguments):
            return written_buffers(signature, in_use)
        read_only = (p.layout.read_only for p in signature.arguments)
        pairs = zip(in_use, read_only, strict=False)
        return [value for value, only in pairs if isinstance(value, Buffer) and not only]

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
        return self._nanoseconds * 1e-9

    def __repr__(self) -> str:
        if not self.done:
            return f"<Event: {self._program.name}, running>"
        return f"<Event: {self._program.name}, {'done' if self._failure is None else 'failed'}>"
