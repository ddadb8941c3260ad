"""Resources inside memory: Python's words in an argument buffer become the GPU's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from metalloid.backends.metal.runtime.borrowing import Borrower
from metalloid.backends.metal.runtime.textures import image_of
from metalloid.msl.layout import Layout
from metalloid.runtime.arguments.member_writers import WORD_BYTES
from metalloid.runtime.arguments.struct_binder import EncodedStruct


def translated(struct: EncodedStruct, layout: Layout, borrower: Borrower) -> np.ndarray:
    """The bytes of an argument buffer as the GPU reads them; what they lead to joins the launch."""
    memory = struct.memory.copy()
    for start in range(0, memory.nbytes, layout.bytes):
        for offset, member in _words(layout.members, start):
            word = memory[offset : offset + WORD_BYTES].view(np.uint64)
            if word[0] or member.form == "sampler":
                word[0] = _gpu_word(int(word[0]), member, borrower)
    return memory


def _words(members: tuple[Layout, ...], start: int) -> Iterator[tuple[int, Layout]]:
    """Offset and layout of each pointer, texture or sampler."""
    for member in members:
        offset = start + member.offset
        if member.form != "value":
            for number in range(max(member.count, 1)):
                yield offset + number * WORD_BYTES, member
        elif member.members:
            for number in range(max(member.count, 1)):
                yield from _words(member.members, offset + number * member.bytes)


def _gpu_word(word: int, member: Layout, borrower: Borrower) -> int:
    """The word by which the GPU addresses a resource."""
    if member.form == "sampler":
        return int(borrower.device.samplers.state(word).gpuResourceID()[0])
    if member.form == "texture":
        image = image_of(word, member, borrower)
        borrower.command.used.append((image.texture, image.is_written))
        return int(image.texture.gpuResourceID()[0])
    return _gpu_address(word, member, borrower)


def _gpu_address(address: int, pointer: Layout, borrower: Borrower) -> int:
    """Where the GPU finds what a pointer leads to."""
    command, heap = borrower.command, borrower.device.heap
    struct = borrower.struct_at(address)
    if struct is not None and pointer.holds_resources:
        allocation = borrower.take_in(translated(struct, pointer, borrower))
        command.used.append((allocation.buffer, True))
        return int(allocation.buffer.gpuAddress())
    pointee = borrower.find(address, not pointer.read_only)
    if pointee is None:
        return int(heap.nothing.buffer.gpuAddress())
    command.used.append((pointee.buffer, True))
    return int(pointee.buffer.gpuAddress()) + pointee.offset_of(address)
