"""Memory of the host that GPUs copy to and from directly.

Other memory goes through a small buffer of the driver's, piece by piece. To pin memory takes
longer than a copy, so what nobody holds any more is kept for the next one who asks.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable

import numpy as np

from metalloid.runtime.host_copy import Bytes

#: Smaller copies gain nothing; more than this at once would be missed by others.
_LEAST, _MOST = 2**16, 2**30


class PinnedMemory:
    """Pinned memory in blocks of powers of two.

    Parameters
    ----------
    pin : callable
        Makes pinned memory of so many bytes; its address, or 0 if there is none.
    most : int, optional
        Bytes to pin at most; beyond, there is plain memory.
    """

    def __init__(self, pin: Callable[[int], int], most: int = _MOST) -> None:
        self._pin, self._most, self.pinned = pin, most, 0
        self._free: dict[int, list[int]] = {}
        self._lock = threading.RLock()  # a collection of garbage inside gives memory back

    def take(self, nbytes: int) -> np.ndarray:
        """Bytes with anything in them, which come back when no array of them is left."""
        size = 1 << (nbytes - 1).bit_length()
        address = self._block(size) if _LEAST <= nbytes <= self._most else 0
        if not address:
            return np.empty(nbytes, np.uint8)
        holder = Bytes(self, address, nbytes)
        weakref.finalize(holder, self._give, address, size).atexit = False
        return np.asarray(holder)

    def _block(self, size: int) -> int:
        with self._lock:
            free = self._free.get(size)
            if free:
                return free.pop()
            if self.pinned + size > self._most:
                return 0
            address = self._pin(size)
            if address:
                self.pinned += size
            return address

    def _give(self, address: int, size: int) -> None:
        with self._lock:
            self._free.setdefault(size, []).append(address)
