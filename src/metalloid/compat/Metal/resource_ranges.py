"""Methods of encoders that set a range of resources."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from metalloid.compat.Metal.buffer import MTLBuffer
from metalloid.compat.Metal.samplers import MTLSamplerState
from metalloid.compat.Metal.structures import location_and_length
from metalloid.compat.Metal.textures import MTLTexture


class ResourceRanges:
    """Sets resources one index after the other, by the methods for one."""

    __slots__ = ()

    @abstractmethod
    def setBuffer_offset_atIndex_(self, buffer: MTLBuffer | None, offset: int, index: int) -> None:
        """Set a buffer."""

    @abstractmethod
    def setTexture_atIndex_(self, texture: MTLTexture | None, index: int) -> None:
        """Set a texture."""

    @abstractmethod
    def setSamplerState_atIndex_(self, state: MTLSamplerState | None, index: int) -> None:
        """Set a sampler."""

    def setBuffers_offsets_withRange_(
        self, buffers: Sequence[MTLBuffer | None], offsets: Sequence[int], indices: Any
    ) -> None:
        """Set several buffers."""
        location, length = location_and_length(indices)
        for element in range(length):
            self.setBuffer_offset_atIndex_(buffers[element], offsets[element], location + element)

    def setTextures_withRange_(self, textures: Sequence[MTLTexture | None], indices: Any) -> None:
        """Set several textures."""
        location, length = location_and_length(indices)
        for element in range(length):
            self.setTexture_atIndex_(textures[element], location + element)

    def setSamplerStates_withRange_(
        self, states: Sequence[MTLSamplerState | None], indices: Any
    ) -> None:
        """Set several samplers."""
        location, length = location_and_length(indices)
        for element in range(length):
            self.setSamplerState_atIndex_(states[element], location + element)
