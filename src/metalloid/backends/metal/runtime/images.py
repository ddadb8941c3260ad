"""Textures of a launch, with the copies between them and buffers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

Triple = tuple[int, int, int]


class CopyRegion(NamedTuple):
    """Texels of one slice, which lie in a buffer with the same distance from row to row."""

    buffer: Any
    offset: int
    row: int
    size: Triple
    slice: int
    level: int
    origin: Triple


@dataclass(frozen=True)
class Image:
    """A texture of one launch.

    Attributes
    ----------
    texture : MTLTexture
    regions : list of CopyRegion
        What it is filled from.
    is_written : bool
        Whether the kernel may write to it.
    """

    texture: Any
    regions: list[CopyRegion]
    is_written: bool

    def fill(self, encoder: Any) -> None:
        """Copy its texels from where the host sees them."""
        copy = encoder.copyFromBuffer_sourceOffset_sourceBytesPerRow_sourceBytesPerImage_sourceSize_toTexture_destinationSlice_destinationLevel_destinationOrigin_  # noqa: E501
        for buffer, offset, row, size, slice_, level, origin in self.regions:
            copy(buffer, offset, row, row * size[1], size, self.texture, slice_, level, origin)

    def empty(self, encoder: Any) -> None:
        """Copy them back."""
        copy = encoder.copyFromTexture_sourceSlice_sourceLevel_sourceOrigin_sourceSize_toBuffer_destinationOffset_destinationBytesPerRow_destinationBytesPerImage_  # noqa: E501
        for buffer, offset, row, size, slice_, level, origin in self.regions:
            copy(self.texture, slice_, level, origin, size, buffer, offset, row, row * size[1])
