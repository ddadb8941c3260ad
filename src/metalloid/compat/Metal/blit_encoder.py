"""Blit encoders: copy and fill buffers."""

from __future__ import annotations

import functools
import importlib.resources
from typing import Any

import metalloid as mtl
from metalloid.compat.Metal.buffer import MTLBuffer
from metalloid.compat.Metal.commands import Launch
from metalloid.compat.Metal.conversions import instance, unsigned
from metalloid.compat.Metal.encoder import CommandEncoder
from metalloid.compat.Metal.failures import fail
from metalloid.compat.Metal.structures import location_and_length


class MTLBlitCommandEncoder(CommandEncoder):
    """Encodes copies."""

    __slots__ = ()

    def copyFromBuffer_sourceOffset_toBuffer_destinationOffset_size_(
        self,
        source: MTLBuffer,
        source_offset: int,
        destination: MTLBuffer,
        destination_offset: int,
        size: int,
    ) -> None:
        """Copy bytes from one buffer to another."""
        selector = "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:"
        self.check(selector)
        unsigned(size)
        ends = [
            self._part(selector, buffer, offset, size)
            for buffer, offset in ((source, source_offset), (destination, destination_offset))
        ]
        kernel = _library(self.device().metalloid).copy_bytes
        self.add(Launch(kernel, ends, (size, 1, 1), None, (source, destination), (destination,)))

    def fillBuffer_range_value_(self, buffer: MTLBuffer, part: Any, value: int) -> None:
        """Set bytes of a buffer to a value."""
        selector = "fillBuffer:range:value:"
        self.check(selector)
        location, length = location_and_length(part)
        if unsigned(value) > 255:
            raise ValueError(f"depythonifying 'unsigned char', got {value}")
        arguments = [self._part(selector, buffer, location, length), value]
        kernel = _library(self.device().metalloid).fill_bytes
        self.add(Launch(kernel, arguments, (length, 1, 1), None, (buffer,), (buffer,)))

    def synchronizeResource_(self, resource: MTLBuffer) -> None:
        """Let the host see a managed buffer as it is: it does in any case."""
        self.check("synchronizeResource:")
        instance(resource, MTLBuffer)

    def _part(self, selector: str, buffer: MTLBuffer, offset: int, size: int) -> Any:
        memory = instance(buffer, MTLBuffer).memory
        if size == 0 or unsigned(offset) + size > memory.length:
            fail(
                f"MTLBlitCommandEncoder {selector}",
                f"{size} bytes from offset({offset}) must lie in [buffer length]({memory.length}).",
            )
        return memory.part(offset, size)


@functools.cache
def _library(device: Any) -> mtl.Library:
    text = importlib.resources.files("metalloid.compat.Metal") / "blit.metal"
    return mtl.library(text.read_text("utf-8"), device=device)
