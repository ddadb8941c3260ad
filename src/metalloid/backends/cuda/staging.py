"""Arrays of the host that a launch uses: brought to the device, and back if they may change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from metalloid.runtime.device import HostMemory

#: What every address of the device's allocations is a multiple of. A copy lies as far from such an
#: address as the original does, so it is aligned like it.
_ALIGNMENT = 256


@dataclass
class Block:
    """Memory of the host that overlaps, as one piece.

    Attributes
    ----------
    start, end : int
        Addresses on the host.
    uses : list of HostMemory
    """

    start: int
    end: int
    uses: list[HostMemory] = field(default_factory=list)

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
    >>> from metalloid.runtime.device import HostMemory
    >>> parts = [HostMemory(0, 4096, 64, True), HostMemory(1, 4128, 64, False)]
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
