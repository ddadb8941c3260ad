"""The events of launches in the queue of the native runtime."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from metalloid.backends.cpu.runtime import native_library
from metalloid.backends.cpu.runtime.fast_launch import general_arguments, queued_outcome
from metalloid.backends.cpu.runtime.program import CpuProgram
from metalloid.runtime.launch.event import Event
from metalloid.runtime.launch.failures import Failure, record
from metalloid.runtime.launch.launches import Arguments, written_buffers
from metalloid.runtime.launch.program import Size

_FOREVER = -1.0  # seconds

#: Memory and arguments of a launch queued by the fast path; see `fast_launch.general_arguments`.
FastArguments = tuple[bytes, tuple[Any, ...]]


class QueuedEvent(Event):
    """A launch in the runtime's queue."""

    def __init__(
        self,
        runtime: native_library.Runtime,
        emit_messages: Callable[[], None],
        ticket: int,
        program: CpuProgram,
        arguments: Arguments | FastArguments,
        sizes: tuple[Size, Size],
    ) -> None:
        self._runtime, self._emit_messages, self._ticket = runtime, emit_messages, ticket
        self._program, self._sizes = program, sizes
        # The objects that the launch uses must live until it has ended.
        self._in_use: Arguments | FastArguments | None = arguments
        self._failure: Failure | None = None
        self._seconds = 0.0
        self._lock = threading.Lock()

    @property
    def _kernel(self) -> str:
        return self._program.signature.name

    def wait(self, timeout: float | None = None) -> QueuedEvent:
        """See `Event.wait`."""
        if not self._end(_FOREVER if timeout is None else max(timeout, 0.0)):
            raise TimeoutError(f"[{self._kernel}] still running after {timeout} s")
        if self._failure is not None:
            self._failure.throw()
        return self

    def settle(self) -> None:
        """See `Event.settle`."""
        self._end(_FOREVER)

    def cancel(self) -> bool:
        """See `Event.cancel`."""
        return bool(self._runtime.cancel(self._ticket))

    def _end(self, seconds: float) -> bool:
        """Wait for the end of the launch, with a time limit; whether it has ended."""
        if self._in_use is None:
            return True
        if not self._lock.acquire(timeout=min(seconds, threading.TIMEOUT_MAX)):
            return False  # another thread waits for the end
        try:
            if self._in_use is not None and not self._fetch_outcome(seconds):
                return False
        finally:
            self._lock.release()
        if self._program.logs:
            self._emit_messages()
        return True

    def end_if_done(self) -> bool:
        """See `done`; faster."""
        outcome_of = queued_outcome()
        if self._in_use is None or outcome_of is None or self._program.logs:
            return self._end(0.0)
        if not self._lock.acquire(blocking=False):
            return False  # another thread waits for the end
        try:
            outcome = None if self._in_use is None else outcome_of(self._ticket)
            if isinstance(outcome, float):
                self._seconds, self._in_use = outcome, None
            elif outcome is not None:
                self._finish(native_library.Outcome.from_buffer_copy(outcome))
            return self._in_use is None
        finally:
            self._lock.release()

    def _fetch_outcome(self, seconds: float) -> bool:
        runtime, outcome = self._runtime, native_library.Outcome()
        result = runtime.wait(self._ticket, seconds, outcome)
        if result == native_library.INTERRUPTED:
            raise runtime.interruption()
        if result == native_library.NESTED:
            from metalloid.backends.cpu.runtime.faults import nested

            raise nested(self._kernel)
        if result == native_library.STILL_RUNNING:
            return False
        self._finish(outcome)
        return True

    def _finish(self, outcome: native_library.Outcome) -> None:
        """Record the outcome; needs the lock."""
        arguments, program = self._in_use, self._program
        if outcome.status and arguments is not None:
            error = program.error(outcome, *self._sizes)
            if isinstance(arguments, tuple):
                arguments = general_arguments(program, *arguments)
            self._failure = record(error, written_buffers(program.signature, arguments))
        self._seconds = float(outcome.seconds)
        self._in_use = None  # last: other threads read it without the lock

    @property
    def done(self) -> bool:
        """See `Event.done`."""
        return self._end(0.0)

    @property
    def seconds(self) -> float:
        """See `Event.seconds`."""
        self.wait()
        return self._seconds

    def __repr__(self) -> str:
        if not self.done:
            return f"<Event: {self._kernel}, running>"
        return f"<Event: {self._kernel}, {'done' if self._failure is None else 'failed'}>"
