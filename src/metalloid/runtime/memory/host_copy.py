"""The host's copies of buffers whose memory Python cannot access."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from metalloid.runtime.devices.device import Device

if TYPE_CHECKING:
    import numpy as np


class Bytes:
    """Memory of an owner, for ``numpy.asarray``; arrays made from it keep the owner alive."""

    def __init__(self, owner: Any, address: int, nbytes: int) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "version": 3,
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (address, False),
        }


class HostCopy:
    """A copy of a buffer on the host, which is fetched if the device's memory is newer.

    Python may write to the array that `view` returns, without notice. So an array that was returned
    since the last launch, or is still alive, counts as newer: it is copied to the device before the
    next launch.

    Attributes
    ----------
    is_current : bool
        Whether no launch has used the buffer since the copy was fetched.
    is_shared : bool
        Whether other libraries may write to the device's memory. Then the copy is fetched for each
        view, and counts as newer only if it has changed.
    """

    def __init__(self, device: Device, address: int, nbytes: int) -> None:
        self._device, self._address = device, address
        self._memory = device.host_memory(nbytes)
        self._seen: weakref.ref[Bytes] | None = None
        self.is_current = self._was_seen = self.is_shared = False
        self._fetched: np.ndarray | None = None  # of shared memory: the bytes that were fetched

    def share(self) -> None:
        """From now on other libraries may write to the device's memory."""
        if not self.is_shared:
            self.is_shared = True
            self._fetched = self._memory.copy() if self.is_current else None

    def view(self) -> np.ndarray:
        """The bytes of the buffer."""
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
        """Copy to the device what Python may have written; called before launches on the buffer."""
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
