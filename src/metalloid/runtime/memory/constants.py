"""A cache of small constants on the device.

A number for a ``constant float&`` has to be in the device's memory. Launches in a loop mostly pass
the same numbers, so each value is copied once and looked up by its bytes.
"""

from __future__ import annotations

from collections.abc import Callable

#: Bytes of a slot; longer values take several. Number of slots.
SLOT_BYTES = 256
_SLOTS = 4096


class Constants(dict[bytes, int]):
    """Addresses of values on a device, by their bytes.

    Parameters
    ----------
    address : int
        Of `ARENA_BYTES` of the device's memory.
    copy_in : callable
        Copies bytes to an address, after the launches so far: a slot may be overwritten for a
        later value at any time.
    """

    ARENA_BYTES = SLOT_BYTES * _SLOTS

    def __init__(self, address: int, copy_in: Callable[[int, bytes], None]) -> None:
        super().__init__()
        self.address, self._copy_in = address, copy_in
        self._values: list[bytes | None] = [None] * _SLOTS
        self._next = 0

    def __missing__(self, value: bytes) -> int:
        """Copy a new value to the next slots, and evict their values."""
        count = max(1, -(-len(value) // SLOT_BYTES))
        first = self._next if self._next + count <= _SLOTS else 0
        self._next = (first + count) % _SLOTS
        for number in range(first, first + count):
            before = self._values[number]
            if before is not None:
                self.pop(before, None)  # another of its slots may have been overwritten
            self._values[number] = value
        address = self.address + first * SLOT_BYTES
        self._copy_in(address, value)
        self[value] = address
        return address
