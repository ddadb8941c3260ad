"""The base class of encoders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metalloid.compat.Metal.commands import Command
from metalloid.compat.Metal.conversions import instance, text
from metalloid.compat.Metal.events import MTLFence
from metalloid.compat.Metal.failures import fail
from metalloid.compat.Metal.objects import MetalObject

if TYPE_CHECKING:
    from metalloid.compat.Metal.command_buffer import MTLCommandBuffer


class CommandEncoder(MetalObject):
    """Writes commands to a command buffer until `endEncoding`."""

    __slots__ = ("_buffer", "_groups", "_is_open")

    def __init__(self, buffer: MTLCommandBuffer) -> None:
        super().__init__(buffer.device())
        self._buffer, self._is_open, self._groups = buffer, True, 0

    def add(self, command: Command) -> None:
        """Write a command."""
        self.check("encode")
        self._buffer.add(command)

    def check(self, selector: str) -> None:
        """Raise if nothing may be encoded any more."""
        if not self._is_open:
            fail(f"{type(self).__name__} {selector}", "encoding after endEncoding has been called")

    def commandBuffer(self) -> MTLCommandBuffer:
        """The command buffer it writes to."""
        return self._buffer

    def endEncoding(self) -> None:
        """Write nothing more."""
        self.check("endEncoding")
        self._is_open = False
        self._buffer.encoder_ended()

    def insertDebugSignpost_(self, string: str) -> None:
        """Insert a debug mark."""
        text(string)

    def pushDebugGroup_(self, string: str) -> None:
        """Begin a debug group."""
        text(string)
        self._groups += 1

    def popDebugGroup(self) -> None:
        """End it."""
        if not self._groups:
            fail(f"{type(self).__name__} popDebugGroup", "popDebugGroup without pushDebugGroup")
        self._groups -= 1

    def updateFence_(self, fence: MTLFence) -> None:
        """Let others wait for what is encoded so far: they do in any case."""
        self.check("updateFence:")
        instance(fence, MTLFence)

    def waitForFence_(self, fence: MTLFence) -> None:
        """Wait for what others have encoded: all do in any case."""
        self.check("waitForFence:")
        instance(fence, MTLFence)
