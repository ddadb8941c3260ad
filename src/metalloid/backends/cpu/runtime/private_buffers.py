"""Launches in which each worker thread adds to a copy of a buffer (native/memory/memory.c)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from metalloid.backends.cpu import host
from metalloid.runtime.launch.launches import Arguments
from metalloid.runtime.launch.program import Size

#: Fewer threads add by atomic operations.
_MIN_THREADS = 4096
#: A copy has at most so many bytes for each thread of the launch, without and with a loop that adds
#: to it: clearing and adding a copy costs about a tenth of an atomic operation for each number.
_BYTES_OF_THREAD, _BYTES_OF_LOOP = 16, 512
_MAX_BYTES = 2**29  # of all copies together
_FLOAT = 4


class PrivateBuffers:
    """The buffers of a kernel of which workers may have copies.

    Parameters
    ----------
    positions : sequence of int
        Of the words that point to them.
    in_loops : bool
        Whether loops add to them.

    Attributes
    ----------
    word_count : int
        Number of the words of a job that describe them.
    """

    def __init__(self, positions: Sequence[int], in_loops: bool) -> None:
        self._positions = positions
        self._limit = _BYTES_OF_LOOP if in_loops else _BYTES_OF_THREAD
        self.word_count = 2 * len(positions)

    def may_be_used(self, grid: Size) -> bool:
        """Whether a launch of that size may give workers copies."""
        return bool(self._positions) and math.prod(grid) >= _MIN_THREADS

    def words_of(self, arguments: Arguments, grid: Size) -> list[int]:
        """The position and the bytes of each; zeros if the launch adds by atomic operations."""
        none = [0] * self.word_count
        if not self.may_be_used(grid):
            return none
        threads = math.prod(grid)
        sizes = [arguments.extents.get(position, 0) for position in self._positions]
        total = sum(sizes)
        if total > min(threads * self._limit, _MAX_BYTES // host.usable_threads()):
            return none
        if any(size < _FLOAT or size % _FLOAT for size in sizes):
            return none
        return [word for pair in zip(self._positions, sizes, strict=True) for word in pair]
