"""Memory of the host that a launch uses, brought to a device that does not see it, and back."""

from __future__ import annotations

import ctypes
import struct
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from metalloid.runtime.launch.launches import Arguments, HostMemory

#: What every address of a device's allocations is a multiple of. A copy lies as far from such an
#: address as the original does, so it is aligned like it.
_ALIGNMENT = 256
_POINTER = struct.Struct("=Q")


@dataclass
class Block:
    """Memory of the host that overlaps, as one piece.

    Attributes
    ----------
    start, end : int
        Addresses on the host.
    uses : list of HostMemory
    address : int
        Of its copy, once there is one.
    """

    start: int
    end: int
    uses: list[HostMemory] = field(default_factory=list)
    address: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of it."""
        return self.end - self.start

    @property
    def shift(self) -> int:
        """Where it begins in what is allocated for it."""
        return self.start % _ALIGNMENT

    @property
    def written(self) -> list[HostMemory]:
        """The parts that a kernel may change."""
        return [use for use in self.uses if use.written]


def blocks_of(memories: Iterable[HostMemory]) -> list[Block]:
    """Memory that is used by several parameters, or in part, as one block each.

    Examples
    --------
    >>> parts = [HostMemory(4096, 64, True), HostMemory(4128, 64, False)]
    >>> [(block.start, block.nbytes) for block in blocks_of(parts)]
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
    """Let the words of a launch point to the copies."""
    for block in blocks:
        for use in block.uses:
            if use.position >= 0:
                arguments.words[use.position] = block.address + use.address - block.start


def contents(block: Block, arguments: Arguments, blocks: list[Block]) -> bytes:
    """What the copy of a block holds: its pointers to memory of the host are to the copies."""
    found = bytearray(ctypes.string_at(block.start, block.nbytes))
    starts = [each.start for each in blocks]
    for place in arguments.pointers:
        if block.start <= place < block.end:
            (target,) = _POINTER.unpack_from(found, place - block.start)
            aim = blocks[bisect_right(starts, target) - 1]
            _POINTER.pack_into(found, place - block.start, aim.address + target - aim.start)
    return bytes(found)
