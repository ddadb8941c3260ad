"""Staging: copies of host memory that a launch uses, for devices that cannot access it."""

from __future__ import annotations

import ctypes
import struct
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from metalloid.runtime.launch.launches import Arguments, HostMemory

#: Alignment of device allocations. A copy has the same address as the original modulo this, and so
#: the same alignment.
_ALIGNMENT = 256
_POINTER = struct.Struct("=Q")


@dataclass
class Block:
    """Overlapping host memory, as one block.

    Attributes
    ----------
    start, end : int
        Addresses on the host.
    uses : list of HostMemory
    address : int
        Of its copy, once allocated.
    """

    start: int
    end: int
    uses: list[HostMemory] = field(default_factory=list)
    address: int = 0

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return self.end - self.start

    @property
    def shift(self) -> int:
        """Offset of the block in the memory allocated for it."""
        return self.start % _ALIGNMENT

    @property
    def written(self) -> list[HostMemory]:
        """The uses that a kernel may write to."""
        return [use for use in self.uses if use.written]


def blocks_of(memories: Iterable[HostMemory]) -> list[Block]:
    """Merge overlapping memory of several parameters into blocks.

    Examples
    --------
    >>> ranges = [HostMemory(4096, 64, True), HostMemory(4128, 64, False)]
    >>> [(block.start, block.nbytes) for block in blocks_of(ranges)]
    [(4096, 96)]
    """
    blocks: list[Block] = []
    for memory in sorted(memories, key=lambda memory: memory.address):
        end = memory.address + memory.nbytes
        if not blocks or memory.address >= blocks[-1].end:
            blocks.append(Block(memory.address, end))
        blocks[-1].end = max(blocks[-1].end, end)
        blocks[-1].uses.append(memory)
    return blocks


def point_words(arguments: Arguments, blocks: list[Block]) -> None:
    """Make the words of a launch point to the copies."""
    for block in blocks:
        for use in block.uses:
            if use.position >= 0:
                arguments.words[use.position] = block.address + use.address - block.start


def contents(block: Block, arguments: Arguments, blocks: list[Block]) -> bytes:
    """The contents of the copy of a block, with pointers to host memory redirected to copies."""
    copied = bytearray(ctypes.string_at(block.start, block.nbytes))
    starts = [each.start for each in blocks]
    for address in arguments.pointers:
        if block.start <= address < block.end:
            (target,) = _POINTER.unpack_from(copied, address - block.start)
            aim = blocks[bisect_right(starts, target) - 1]
            _POINTER.pack_into(copied, address - block.start, aim.address + target - aim.start)
    return bytes(copied)
