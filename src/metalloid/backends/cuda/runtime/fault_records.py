"""Records of failed accesses, which kernels with checks write (record_fault of entry.h).

Each launch has a record of its own, in memory that the host reads without a copy.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

_RECORD = struct.Struct("=3I4x3I3IqQ")
RECORD_BYTES = 64
_RECORDS = 1024  # that are allocated together


class Fault(NamedTuple):
    """The first access of a launch that failed.

    Attributes
    ----------
    others : int
        How many more threads had one.
    site : int
        Index in the table of checks.
    threadgroup, thread : tuple of int
    offset, extent : int
        Of the site and of its object, in bytes.
    """

    others: int
    site: int
    threadgroup: tuple[int, int, int]
    thread: tuple[int, int, int]
    offset: int
    extent: int


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

    def take(self) -> Fault | None:
        """The failed access, which is forgotten; None if there was none."""
        packed = ctypes.string_at(self._address, _RECORD.size)
        failed, others, site, gx, gy, gz, x, y, z, offset, extent = _RECORD.unpack(packed)
        if not failed:
            return None
        self._clear()
        return Fault(others, site, (gx, gy, gz), (x, y, z), offset, extent)

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
