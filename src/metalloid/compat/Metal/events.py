"""Events, by which queues wait for each other and for the host."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import metalloid as mtl
from metalloid.compat.Metal.conversions import instance, unsigned
from metalloid.compat.Metal.objects import MetalObject

if TYPE_CHECKING:
    from metalloid.compat.Metal.device import MTLDevice

_LONGEST_WAIT = 0.1  # seconds between checks of pending launches


class MTLEvent(MetalObject):
    """A number that grows; queues wait until it has reached a value."""

    __slots__ = ("_issued", "_signals", "_value", "queues")

    def __init__(self, device: MTLDevice) -> None:
        super().__init__(device)
        self._issued = self._value = 0
        #: Those that signal it; see `hazards`.
        self.queues: set[Any] = set()
        #: Future values, each with the pending launch before it.
        self._signals: list[tuple[int, mtl.Event | None]] = []

    def reach(self, value: int, after: mtl.Event | None) -> None:
        """Take a value once a launch has ended; queues that wait for it go on."""
        with self._device.progress:
            self._issued = value
            self._signals.append((value, after))
            self._current()  # forgets those that have ended
            self._device.progress.notify_all()
        self._device.advance()

    def is_issued(self, value: int) -> bool:
        """Whether all commands before the value have been issued."""
        return self._issued >= value

    def _current(self) -> int:
        with self._device.progress:
            while self._signals and (self._signals[0][1] is None or self._signals[0][1].done):
                self._value = self._signals.pop(0)[0]
            return self._value


class MTLSharedEvent(MTLEvent):
    """An event that the host sees too."""

    __slots__ = ()

    def signaledValue(self) -> int:
        """The value it has reached."""
        return self._current()

    def setSignaledValue_(self, value: int) -> None:
        """Give it a value from the host."""
        unsigned(value)
        with self._device.progress:
            self._signals.clear()
            self._value = value
        self.reach(value, None)

    def waitUntilSignaledValue_timeoutMS_(self, value: int, milliseconds: int) -> bool:
        """Wait for a value; whether it was reached in time."""
        deadline = time.monotonic() + unsigned(milliseconds) / 1000
        while self._current() < value:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._wait_a_moment(value, left)
        return True

    def _wait_a_moment(self, value: int, seconds: float) -> None:
        with self._device.progress:
            after = next((launch for v, launch in self._signals if v >= value), None)
            if after is None:
                self._device.progress.wait(min(seconds, _LONGEST_WAIT))
                return
        # A launch that failed has ended, too; its command buffer tells.
        with contextlib.suppress(mtl.MetalloidError, TimeoutError):
            after.wait(min(seconds, _LONGEST_WAIT))

    def notifyListener_atValue_block_(
        self, listener: MTLSharedEventListener, value: int, block: Callable[..., Any]
    ) -> None:
        """Have a function called with the event and the value when it has reached that."""
        instance(listener, MTLSharedEventListener)
        unsigned(value)

        def notify() -> None:
            while not self.waitUntilSignaledValue_timeoutMS_(value, 1000):
                pass
            block(self, value)

        threading.Thread(target=notify, name="MTLSharedEventListener", daemon=True).start()


class MTLSharedEventListener:
    """Calls functions when events have reached their values."""

    __slots__ = ()

    @classmethod
    def alloc(cls) -> MTLSharedEventListener:
        """A new one, before `init`."""
        return cls()

    new = alloc

    def init(self) -> MTLSharedEventListener:
        """Itself."""
        return self


class MTLFence(MetalObject):
    """A fence between encoders, which have no effect here because encoders run in order."""

    __slots__ = ()
