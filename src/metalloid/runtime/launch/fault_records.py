"""Records of failed accesses, which kernels with checks write (fault_record.h).

Each launch has a record of its own.
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

    def __init__(self, records: FaultRecords, address: int, extents: Sequence[int]) -> None:
        self._records, self._address = records, address
        self.words = (*extents, address)
        self._clear()

    def take(self) -> RecordedFault | None:
        """The failed access, which is forgotten; None if there was none."""
        fault = read_record(self._records.read(self._address, RECORD_BYTES))
        if fault is not None:
            self._clear()
        return fault

    def _clear(self) -> None:
        self._records.clear(self._address, RECORD_BYTES)

    def __del__(self) -> None:
        self._records.free.append(self._address)


def _write_zeros(address: int, nbytes: int) -> None:
    ctypes.memset(address, 0, nbytes)


class FaultRecords:
    """The records of a device.

    Parameters
    ----------
    allocate : callable
        Allocates so many bytes that the device can access.
    read, clear : callable
        Read so many bytes at an address, and write zeros; by default the host can access them.

    Attributes
    ----------
    free : list of int
        Addresses of records that no launch uses.
    """

    def __init__(
        self,
        allocate: Callable[[int], int],
        read: Callable[[int, int], bytes] = ctypes.string_at,
        clear: Callable[[int, int], None] = _write_zeros,
    ) -> None:
        self._allocate, self.read, self.clear = allocate, read, clear
        self.free: list[int] = []

    def new(self, extents: Sequence[int]) -> FaultRecord:
        """A record of a launch with these extents."""
        if not self.free:
            first = self._allocate(_RECORDS * RECORD_BYTES)
            self.free += range(first, first + _RECORDS * RECORD_BYTES, RECORD_BYTES)
        return FaultRecord(self, self.free.pop(), extents)
