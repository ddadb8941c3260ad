"""What Python sees of the memory of a buffer."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from metalloid.runtime.devices.device import Device

if TYPE_CHECKING:
    import numpy as np


class Bytes:
    """Memory that somebody owns, for ``numpy.asarray``; lives as long as any array made of it."""

    def __init__(self, owner: Any, address: int, nbytes: int) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "version": 3,
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (address, False),
        }


class HostCopy:
    """A copy of a buffer, fetched when the device's is newer.

    Python may write to what `view` returns, and nobody tells. So what has been handed out since the
    last launch, or is still held, counts as the newer one, and goes to the device first.

    Attributes
    ----------
    is_current : bool
        Whether no launch has used the buffer since it was fetched.
    is_shared : bool
        Whether others write to the device's memory, and do not tell either. Then the copy is
        fetched anew each time, and is the newer one only if it has been changed.
    """

    def __init__(self, device: Device, address: int, nbytes: int) -> None:
        self._device, self._address = device, address
        self._memory = device.host_memory(nbytes)
        self._seen: weakref.ref[Bytes] | None = None
        self.is_current = self._was_seen = self.is_shared = False
        self._fetched: np.ndarray | None = None  # of shared memory: what the device had

    def share(self) -> None:
        """From now on others write to the device's memory, too."""
        if not self.is_shared:
            self.is_shared = True
            self._fetched = self._memory.copy() if self.is_current else None

    def view(self) -> np.ndarray:
        """The bytes as they are on the device."""
        import numpy as np

        memory = self._memory
        if self.is_shared:
            self.to_device()
            self.is_current = False
        if not self.is_current and memory.nbytes:
            self._device.copy_out(self._address, memory.data)
            if self.is_shared:
                self._fetched = memory.copy()
        self.is_current = self._was_seen = True
        seen = self._seen and self._seen()
        if seen is None:
            seen = Bytes(memory, memory.__array_interface__["data"][0], memory.nbytes)
            self._seen = weakref.ref(seen)
        return np.asarray(seen)

    def to_device(self) -> None:
        """Bring over what Python may have written; called before a launch that uses the buffer."""
        is_held = self._seen is not None and self._seen() is not None
        if self.is_current and (self._was_seen or is_held) and self._may_be_newer():
            self._device.copy_in(self._address, self._memory.data)
        self._was_seen = False

    def _may_be_newer(self) -> bool:
        if self._fetched is None:
            return True
        is_newer = bool((self._fetched != self._memory).any())
        if is_newer:
            self._fetched = self._memory.copy()
        return is_newer
