"""Records of failed accesses, which kernels with checks write (fault_record.h).

Each launch has a record of its own, in memory that the host reads without a copy.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

from metalloid.runtime.launch.recorded_faults import RECORD_BYTES, RecordedFault, read_record

_RECORDS = 1024  # that are allocated together


class FaultRecord:
    """The record of a launch; its memory is used again when nothing refers to it.

    Attributes
    ----------
    words : tuple of int
        Words of the launch after those of its arguments: extents, and the record's address.
    """

    def __init__(self, free: list[int], address: int, extents: Sequence[int]) -> None:
        self._free, self._address = free, address
        self.words = (*extents, address)
        self._clear()

    def take(self) -> RecordedFault | None:
        """The failed access, which is forgotten; None if there was none."""
        fault = read_record(ctypes.string_at(self._address, RECORD_BYTES))
        if fault is not None:
            self._clear()
        return fault

    def _clear(self) -> None:
        ctypes.memset(self._address, 0, RECORD_BYTES)

    def __del__(self) -> None:
        self._free.append(self._address)


class FaultRecords:
    """The records of a device.

    Parameters
    ----------
    allocate : callable
        Allocates so many bytes that the host and the device can access.
    """

    def __init__(self, allocate: Callable[[int], int]) -> None:
        self._allocate = allocate
        self._free: list[int] = []

    def new(self, extents: Sequence[int]) -> FaultRecord:
        """A record of a launch with these extents."""
        if not self._free:
            first = self._allocate(_RECORDS * RECORD_BYTES)
            self._free += range(first, first + _RECORDS * RECORD_BYTES, RECORD_BYTES)
        return FaultRecord(self._free, self._free.pop(), extents)
