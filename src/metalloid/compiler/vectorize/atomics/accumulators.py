"""Layout of the privatised accumulators of atomic updates in the memory of a call.

An accumulator has the address that it updates, and the operand so far. An instruction has one for
all simdgroups and, for contiguous lanes, one for each simdgroup; those follow the shared ones. All
begin as zeros, which is no address.
"""

from __future__ import annotations

from dataclasses import dataclass, field

#: Bytes of an address and a number; of the header of a row, and of each of its numbers.
ONE_BYTES, LINE_BYTES, NUMBER_BYTES = 16, 64, 4


@dataclass
class Accumulators:
    """The accumulators that a function of simdgroups uses.

    Attributes
    ----------
    words : str
        The function's parameter that points to the words of the call.
    word : int
        Which of them is the address of the accumulators.
    count : int
        Number of instructions that have accumulators.
    width : int
        Lanes.
    has_rows : bool
        Whether each simdgroup has accumulators of its own.
    used : set of (bool, int, str)
        The accumulators used: whether a simdgroup's own, the offset from the first of its kind,
        and the function that flushes it to memory.
    """

    words: str
    word: int
    count: int
    width: int
    has_rows: bool
    used: set[tuple[bool, int, str]] = field(default_factory=set)

    @property
    def shared_bytes(self) -> int:
        """Bytes of the shared accumulators."""
        return _in_lines(self.count * ONE_BYTES)

    @property
    def own_bytes(self) -> int:
        """Bytes of the accumulators of one simdgroup."""
        return self.count * self.row_bytes if self.has_rows else 0

    @property
    def row_bytes(self) -> int:
        """Bytes of one accumulator of contiguous lanes."""
        return LINE_BYTES + _in_lines(self.width * NUMBER_BYTES)


def _in_lines(size: int) -> int:
    return -(-size // LINE_BYTES) * LINE_BYTES
