"""Argument encoders: put resources and constants into the structs that kernels take them from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from metalloid.compat.Metal.buffer import MTLBuffer
from metalloid.compat.Metal.conversions import instance, unsigned
from metalloid.compat.Metal.failures import fail
from metalloid.compat.Metal.objects import MetalObject
from metalloid.compat.Metal.resource_ranges import ResourceRanges
from metalloid.compat.Metal.samplers import MTLSamplerState
from metalloid.compat.Metal.textures import MTLTexture
from metalloid.msl.layout import Layout

if TYPE_CHECKING:
    from metalloid.compat.Metal.device import MTLDevice

#: Of a pointer, a texture and a sampler in a struct.
_WORD_BYTES = 8


class PyObjCPointer:
    """A ``void *`` of which the binding knows no length.

    Attributes
    ----------
    pointerAsInteger : int
    """

    __slots__ = ("_owner", "pointerAsInteger")

    def __init__(self, address: int, owner: Any) -> None:
        self.pointerAsInteger, self._owner = address, owner


class MTLArgumentEncoder(MetalObject, ResourceRanges):
    """Writes to an argument buffer by the numbers of the struct's members.

    Parameters
    ----------
    device : MTLDevice
    struct : Layout
        Of the parameter or member that points to the argument buffer.
    """

    __slots__ = ("_buffer", "_members", "_offset", "_struct")

    def __init__(self, device: MTLDevice, struct: Layout) -> None:
        super().__init__(device)
        self._struct, self._members = struct, dict(_numbered(struct.members))
        self._buffer: MTLBuffer | None = None
        self._offset = 0

    def encodedLength(self) -> int:
        """Bytes of an argument buffer."""
        return self._struct.bytes

    def alignment(self) -> int:
        """The alignment of the offset of an argument buffer."""
        return self._struct.alignment

    def setArgumentBuffer_offset_(self, buffer: MTLBuffer | None, offset: int) -> None:
        """Choose what is written to."""
        self._choose("setArgumentBuffer:offset:", buffer, unsigned(offset))

    def setArgumentBuffer_startOffset_arrayElement_(
        self, buffer: MTLBuffer | None, offset: int, element: int
    ) -> None:
        """Choose one of several contiguous argument buffers."""
        selector = "setArgumentBuffer:startOffset:arrayElement:"
        self._choose(selector, buffer, unsigned(offset) + unsigned(element) * self._struct.bytes)

    def _choose(self, selector: str, buffer: MTLBuffer | None, offset: int) -> None:
        if buffer is not None:
            available = instance(buffer, MTLBuffer).length() - offset
            if available < self._struct.bytes:
                need = f"argument buffer of {self._struct.bytes} bytes"
                self._fail(selector, f"offset({offset}) leaves {available} bytes for an {need}.")
            if offset % self._struct.alignment:
                multiple = self._struct.alignment
                self._fail(selector, f"offset({offset}) must be a multiple of {multiple}.")
        self._buffer, self._offset = buffer, offset

    def setBuffer_offset_atIndex_(self, buffer: MTLBuffer | None, offset: int, index: int) -> None:
        """Let a pointer point into a buffer; None is the null pointer."""
        selector = "setBuffer:offset:atIndex:"
        word = self._word(selector, index, "buffer", ("pointer", "reference"))
        if buffer is None:
            word[:] = 0
            return
        length = instance(buffer, MTLBuffer).length()
        if unsigned(offset) >= length:
            self._fail(selector, f"offset({offset}) must be < [buffer length]({length}).")
        word[:] = buffer.gpuAddress() + offset

    def setTexture_atIndex_(self, texture: MTLTexture | None, index: int) -> None:
        """Put in a texture."""
        word = self._word("setTexture:atIndex:", index, "texture", ("texture",))
        word[:] = 0 if texture is None else instance(texture, MTLTexture).texture.address

    def setSamplerState_atIndex_(self, state: MTLSamplerState | None, index: int) -> None:
        """Put in a sampler."""
        word = self._word("setSamplerState:atIndex:", index, "sampler", ("sampler",))
        word[:] = 0 if state is None else instance(state, MTLSamplerState).sampler.word

    def constantDataAtIndex_(self, index: int) -> PyObjCPointer:
        """Where a value lies in the argument buffer, to be written there."""
        selector = "constantDataAtIndex:"
        offset, _ = self._member(selector, index, "constant", ("value",))
        buffer = self._chosen(selector)
        return PyObjCPointer(buffer.gpuAddress() + self._offset + offset, buffer)

    def newArgumentEncoderForBufferAtIndex_(self, index: int) -> MTLArgumentEncoder:
        """An encoder of the argument buffers that a pointer points to."""
        selector = "newArgumentEncoderForBufferAtIndex:"
        _, layout = self._member(selector, index, "buffer", ("pointer", "reference"))
        if not layout.members:
            self._fail(selector, f"index({index}) is not an argument buffer.")
        return MTLArgumentEncoder(self._device, layout)

    def _word(self, selector: str, index: int, what: str, forms: tuple[str, ...]) -> np.ndarray:
        """The word of a resource."""
        offset, _ = self._member(selector, index, what, forms)
        start = self._offset + offset
        words = self._chosen(selector).memory.bytes[start : start + _WORD_BYTES]
        return words.view(np.uint64)

    def _member(
        self, selector: str, index: int, what: str, forms: tuple[str, ...]
    ) -> tuple[int, Layout]:
        offset, layout = self._members.get(unsigned(index), (0, None))
        if layout is None or layout.form not in forms:
            self._fail(selector, f"index({index}) is not a {what} of the argument buffer.")
        return offset, layout

    def _chosen(self, selector: str) -> MTLBuffer:
        if self._buffer is None:
            self._fail(selector, "setArgumentBuffer:offset: has not been called.")
        return self._buffer

    def _fail(self, selector: str, what: str) -> NoReturn:
        fail(f"MTLArgumentEncoder {selector}", what)


def _numbered(members: Sequence[Layout]) -> Iterator[tuple[int, tuple[int, Layout]]]:
    """``id, (offset, layout)`` of the members of a struct, and of those of structs in it.

    A member without an id has the one after the last of the member before it. Elements of an array
    count, and so do members of a struct in a struct, whose own ids begin where that stands.
    """
    free = 0
    for member in members:
        number = free if member.id is None else member.id
        is_value = member.form == "value"
        step = member.bytes if is_value else _WORD_BYTES
        scalar = replace(member, count=0)
        for element in range(max(member.count, 1)):
            offset, first = member.offset + element * step, number
            inner = _numbered(member.members) if is_value and member.members else [(0, (0, scalar))]
            for below, (inside, layout) in inner:
                yield first + below, (offset + inside, layout)
                number = max(number, first + below + 1)
        free = number


def argument_encoder(
    device: MTLDevice, parameters: Sequence[Any], index: int, selector: str
) -> MTLArgumentEncoder:
    """The encoder for the parameter that has a buffer index."""
    layout = next((p.layout for p in parameters if p.index == unsigned(index)), None)
    if layout is None or not layout.members:
        fail(selector, f"buffer({index}) is not an argument buffer whose members are known.")
    return MTLArgumentEncoder(device, layout)
