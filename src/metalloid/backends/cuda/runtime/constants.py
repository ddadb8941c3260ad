"""Small values that kernels read: kept on the device, where the same value is found again.

A number for a ``constant float&`` has to lie in the device's memory. Launches in a loop mostly give
the same ones, so each value is copied once and looked up by its bytes.
"""

from __future__ import annotations

from collections.abc import Callable

#: Bytes of a value at most, and of its place; how many places there are.
PLACE_BYTES = 256
_PLACES = 4096


class Constants(dict[bytes, int]):
    """Values on a device: their addresses, by their bytes.

    Parameters
    ----------
    address : int
        Of `ARENA_BYTES` of the device's memory.
    copy_in : callable
        Copies bytes to an address, after the launches so far: a place may be used again as soon as
        a later value wants it.
    """

    ARENA_BYTES = PLACE_BYTES * _PLACES

    def __init__(self, address: int, copy_in: Callable[[int, bytes], None]) -> None:
        super().__init__()
        self._address, self._copy_in = address, copy_in
        self._values: list[bytes | None] = [None] * _PLACES
        self._next = 0

    def __missing__(self, value: bytes) -> int:
        """Give a value that is not there a place."""
        number = self._next
        self._next = (number + 1) % _PLACES
        before = self._values[number]
        if before is not None:
            del self[before]
        address = self._address + number * PLACE_BYTES
        self._copy_in(address, value)
        self._values[number], self[value] = value, address
        return address
