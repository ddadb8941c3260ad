"""Command queues: command buffers in order."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

import metalloid as mtl
from metalloid.compat.Metal.command_buffer import MTLCommandBuffer
from metalloid.compat.Metal.objects import MetalObject

if TYPE_CHECKING:
    from metalloid.compat.Metal.device import MTLDevice


class MTLCommandQueue(MetalObject):
    """Runs command buffers in the order in which they were enqueued or committed.

    Attributes
    ----------
    latest : Event or None
        The last launch that was handed to metalloid.
    ordered : dict
        By other queue: the turn up to which this one has waited for it; see `hazards`.
    """

    __slots__ = ("_busy_until", "_is_advancing", "_line", "latest", "ordered")

    def __init__(self, device: MTLDevice) -> None:
        super().__init__(device)
        self._line: deque[MTLCommandBuffer] = deque()
        self._busy_until, self._is_advancing = 0.0, False
        self.latest: mtl.Event | None = None
        self.ordered: dict[MTLCommandQueue | None, int] = {}

    def commandBuffer(self) -> MTLCommandBuffer:
        """A new command buffer."""
        return MTLCommandBuffer(self, True)

    def commandBufferWithUnretainedReferences(self) -> MTLCommandBuffer:
        """One whose owner promises to keep what it uses."""
        return MTLCommandBuffer(self, False)

    def insertDebugCaptureBoundary(self) -> None:
        """Insert a debug mark."""

    def append(self, buffer: MTLCommandBuffer) -> None:
        """Put a command buffer at the end of the line."""
        with self._device.lock:
            self._line.append(buffer)

    def advance(self) -> None:
        """Hand to metalloid what can be."""
        with self._device.lock:
            if self._is_advancing:
                return  # asked by a signal of the command buffer that is being issued
            self._is_advancing = True
            try:
                while self._line and self._line[0].issue():
                    self._line.popleft()
            finally:
                self._is_advancing = False
                (self._device.waiting.add if self._line else self._device.waiting.discard)(self)

    def timeline(self, seconds: float) -> tuple[float, float]:
        """Start and end of work that took so long and ended now: after all before it."""
        start = max(time.monotonic() - seconds, self._busy_until)
        self._busy_until = start + seconds
        return start, self._busy_until
