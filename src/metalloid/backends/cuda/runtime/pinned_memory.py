"""Pinned memory of the host, which GPUs copy to and from directly.

The driver copies other memory through a small buffer, piece by piece. Pinning takes longer than a
copy, so blocks that are no longer referenced are kept for later requests.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable

import numpy as np

from metalloid.runtime.memory.host_copy import Bytes

#: Bytes below which pinning gains nothing, and bytes to pin at most.
_MIN_BYTES, _MAX_BYTES = 2**16, 2**30


class PinnedMemory:
    """Pinned memory in blocks of powers of two.

    Parameters
    ----------
    pin : callable
        Allocates that many bytes of pinned memory; returns the address, or 0 on failure.
    max_bytes : int, optional
        Bytes to pin at most; further arrays are pageable.
    """

    def __init__(self, pin: Callable[[int], int], max_bytes: int = _MAX_BYTES) -> None:
        self._pin, self._max_bytes, self.pinned = pin, max_bytes, 0
        self._free: dict[int, list[int]] = {}
        self._lock = threading.RLock()  # a garbage collection inside releases blocks

    def take(self, nbytes: int) -> np.ndarray:
        """Uninitialised bytes; their block is free again when no array refers to it."""
        size = 1 << (nbytes - 1).bit_length()
        address = self._block(size) if _MIN_BYTES <= nbytes <= self._max_bytes else 0
        if not address:
            return np.empty(nbytes, np.uint8)
        holder = Bytes(self, address, nbytes)
        weakref.finalize(holder, self._release, address, size).atexit = False
        return np.asarray(holder)

    def _block(self, size: int) -> int:
        with self._lock:
            free = self._free.get(size)
            if free:
                return free.pop()
            if self.pinned + size > self._max_bytes:
                return 0
            address = self._pin(size)
            if address:
                self.pinned += size
            return address

    def _release(self, address: int, size: int) -> None:
        with self._lock:
            self._free.setdefault(size, []).append(address)
