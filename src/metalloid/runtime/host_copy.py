"""What Python sees of the memory of a buffer."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from metalloid.runtime.device import Device

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
    """

    def __init__(self, device: Device, address: int, nbytes: int) -> None:
        import numpy as np

        self._device, self._address = device, address
        self._memory = np.empty(nbytes, np.uint8)
        self._seen: weakref.ref[Bytes] | None = None
        self.is_current = self._was_seen = False

    def view(self) -> np.ndarray:
        """The bytes as they are on the device."""
        import numpy as np

        memory = self._memory
        if not self.is_current and memory.nbytes:
            self._device.copy_out(self._address, memory.data)
        self.is_current = self._was_seen = True
        seen = self._seen and self._seen()
        if seen is None:
            seen = Bytes(memory, memory.__array_interface__["data"][0], memory.nbytes)
            self._seen = weakref.ref(seen)
        return np.asarray(seen)

    def to_device(self) -> None:
        """Bring over what Python may have written; called before a launch that uses the buffer."""
        is_held = self._seen is not None and self._seen() is not None
        if self.is_current and (self._was_seen or is_held):
            self._device.copy_in(self._address, self._memory.data)
        self._was_seen = False
