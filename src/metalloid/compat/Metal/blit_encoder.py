"""Blit encoders: copy and fill buffers and textures."""

from __future__ import annotations

import functools
import importlib.resources
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import byte_bounds

import metalloid as mtl
from metalloid.compat.Metal.buffer import MTLBuffer
from metalloid.compat.Metal.commands import Launch
from metalloid.compat.Metal.conversions import instance, unsigned
from metalloid.compat.Metal.encoder import CommandEncoder
from metalloid.compat.Metal.failures import fail
from metalloid.compat.Metal.structures import extents, location_and_length
from metalloid.compat.Metal.textures import MTLTexture

#: Between two rows of a buffer.
_MAX_TEXELS = 32767


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
            self._bytes(selector, buffer, offset, size)
            for buffer, offset in ((source, source_offset), (destination, destination_offset))
        ]
        kernel = _library(self.device().metalloid).copy_bytes
        self.add(Launch(kernel, ends, (size, 1, 1), None, (source, destination), (destination,)))

    def fillBuffer_range_value_(self, buffer: MTLBuffer, range_: Any, value: int) -> None:
        """Set bytes of a buffer to a value."""
        selector = "fillBuffer:range:value:"
        self.check(selector)
        location, length = location_and_length(range_)
        if unsigned(value) > 255:
            raise ValueError(f"depythonifying 'unsigned char', got {value}")
        arguments = [self._bytes(selector, buffer, location, length), value]
        kernel = _library(self.device().metalloid).fill_bytes
        self.add(Launch(kernel, arguments, (length, 1, 1), None, (buffer,), (buffer,)))

    def copyFromBuffer_sourceOffset_sourceBytesPerRow_sourceBytesPerImage_sourceSize_toTexture_destinationSlice_destinationLevel_destinationOrigin_(  # noqa: E501
        self,
        buffer: MTLBuffer,
        offset: int,
        row: int,
        image: int,
        size: Any,
        texture: MTLTexture,
        slice_: int,
        level: int,
        origin: Any,
    ) -> None:
        """Copy texels from a buffer to a part of a texture."""
        selector = (
            "copyFromBuffer:sourceOffset:sourceBytesPerRow:sourceBytesPerImage:sourceSize:"
            "toTexture:destinationSlice:destinationLevel:destinationOrigin:"
        )
        texels = self._texels(selector, texture, (origin, size), level, slice_)
        rows = self._rows(selector, buffer, offset, row, image, texels.texels)
        self._copy_texels(rows, texels)

    def copyFromTexture_sourceSlice_sourceLevel_sourceOrigin_sourceSize_toBuffer_destinationOffset_destinationBytesPerRow_destinationBytesPerImage_(  # noqa: E501
        self,
        texture: MTLTexture,
        slice_: int,
        level: int,
        origin: Any,
        size: Any,
        buffer: MTLBuffer,
        offset: int,
        row: int,
        image: int,
    ) -> None:
        """Copy texels of a part of a texture to a buffer."""
        selector = (
            "copyFromTexture:sourceSlice:sourceLevel:sourceOrigin:sourceSize:toBuffer:"
            "destinationOffset:destinationBytesPerRow:destinationBytesPerImage:"
        )
        texels = self._texels(selector, texture, (origin, size), level, slice_)
        rows = self._rows(selector, buffer, offset, row, image, texels.texels)
        self._copy_texels(texels, rows)

    def synchronizeResource_(self, resource: MTLBuffer) -> None:
        """Let the host see a managed buffer as it is: it does in any case."""
        self.check("synchronizeResource:")
        instance(resource, MTLBuffer)

    def _bytes(self, selector: str, buffer: MTLBuffer, offset: int, size: int) -> Any:
        memory = instance(buffer, MTLBuffer).memory
        if size == 0 or unsigned(offset) + size > memory.length:
            fail(
                f"MTLBlitCommandEncoder {selector}",
                f"{size} bytes from offset({offset}) must lie in [buffer length]({memory.length}).",
            )
        return memory.range(offset, size)

    def _texels(
        self, selector: str, texture: MTLTexture, region: Any, level: int, slice_: int
    ) -> _Texels:
        self.check(selector)
        name = f"MTLBlitCommandEncoder {selector}"
        if 0 in extents(region[1]):
            fail(name, f"sourceSize {extents(region[1])} has no texels.")
        return _Texels(texture, instance(texture, MTLTexture).region(name, region, level, slice_))

    def _rows(
        self,
        selector: str,
        buffer: MTLBuffer,
        offset: int,
        row: int,
        image: int,
        region: np.ndarray,
    ) -> _Texels:
        """The rows of a buffer that correspond to a region of a texture."""
        depth, height, width, texel = region.shape
        memory, name = instance(buffer, MTLBuffer).memory, f"MTLBlitCommandEncoder {selector}"
        if unsigned(offset) % texel:
            fail(name, f"offset({offset}) must be a multiple of the texel's {texel} bytes.")
        if unsigned(row) % texel or not width * texel <= row <= _MAX_TEXELS * texel:
            low, high = width * texel, _MAX_TEXELS * texel
            fail(
                name,
                f"bytesPerRow({row}) must be {low} to {high}, a multiple of {texel}.",
            )
        if unsigned(image) < row * height and depth > 1:
            fail(name, f"bytesPerImage({image}) must be >= {row * height}.")
        end = offset + (depth - 1) * image + (height - 1) * row + width * texel
        if end > memory.length:
            fail(name, f"the texels end at {end}, behind [buffer length]({memory.length}).")
        texels = np.lib.stride_tricks.as_strided(
            memory.bytes[offset:end], region.shape, (image, row, texel, 1)
        )
        return _Texels(buffer, texels)

    def _copy_texels(self, source: _Texels, destination: _Texels) -> None:
        depth, height, width, texel = source.texels.shape
        ends = [source.memory(), destination.memory()]
        strides = [*source.texels.strides[1::-1], *destination.texels.strides[1::-1]]
        kernel = _library(self.device().metalloid).copy_texels
        threads = (width * texel, height, depth)
        uses, writes = source.buffers() + destination.buffers(), destination.buffers()
        self.add(Launch(kernel, [*ends, strides], threads, None, uses, writes))


class _Texels(NamedTuple):
    """Texels by plane, row and texel, in the memory of a buffer or texture."""

    owner: MTLBuffer | MTLTexture
    texels: np.ndarray

    def memory(self) -> memoryview:
        """From the first of them to the last."""
        owner = self.owner
        memory = owner.bytes if isinstance(owner, MTLTexture) else owner.memory.bytes
        low, high = (end - memory.ctypes.data for end in byte_bounds(self.texels))
        return memoryview(memory[low:high])  # type: ignore[arg-type]

    def buffers(self) -> tuple[MTLBuffer, ...]:
        """The buffers that are checked for hazards."""
        return () if isinstance(self.owner, MTLTexture) else (self.owner,)


@functools.cache
def _library(device: Any) -> mtl.Library:
    text = importlib.resources.files("metalloid.compat.Metal") / "blit.metal"
    # The encoder checks ranges before it launches.
    return mtl.library(text.read_text("utf-8"), device=device, bounds="unchecked")
