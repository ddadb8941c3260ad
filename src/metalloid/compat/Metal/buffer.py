"""Buffers."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from metalloid.compat.memory import SharedMemory
from metalloid.compat.Metal.constants import (
    MTLPurgeableStateNonVolatile,
    MTLStorageModeManaged,
    MTLStorageModePrivate,
)
from metalloid.compat.Metal.conversions import unsigned
from metalloid.compat.Metal.failures import fail
from metalloid.compat.Metal.hazards import check_host
from metalloid.compat.Metal.objects import MetalObject
from metalloid.compat.Metal.structures import location_and_length

if TYPE_CHECKING:
    from metalloid.compat.Metal.device import MTLDevice

_STORAGE_MODE_SHIFT = 4
_STORAGE_MODES = 3


class Contents:
    """The pointer to a buffer's memory, as PyObjC shows pointers."""

    __slots__ = ("_bytes", "_owner")

    def __init__(self, contents: np.ndarray, owner: MTLBuffer) -> None:
        self._bytes, self._owner = contents, weakref.ref(owner)

    def as_buffer(self, count: int) -> memoryview:
        """The first `count` bytes, writable, once no pending command buffer writes them."""
        owner = self._owner()
        if owner is not None:
            check_host(owner)
        if unsigned(count) > self._bytes.nbytes:
            raise ValueError(f"the buffer has {self._bytes.nbytes} bytes, not {count}")
        return memoryview(self._bytes[:count])  # type: ignore[arg-type]


class MTLBuffer(MetalObject):
    """Memory that the host and kernels see.

    Attributes
    ----------
    memory : SharedMemory
    writer : weakref.ref or None
        The last command buffer that writes it, and when that was committed; see `hazards`.
    is_synchronized : bool
        Whether an event is signalled after the commands that write it.
    written : int
    """

    __slots__ = ("_options", "is_synchronized", "memory", "writer", "written")

    def __init__(self, device: MTLDevice, memory: SharedMemory, options: int) -> None:
        super().__init__(device)
        self.memory, self._options = memory, unsigned(options)
        self.writer: weakref.ref[Any] | None = None
        self.written = 0
        self.is_synchronized = False
        device.allocated_bytes += memory.bytes.nbytes
        weakref.finalize(self, device.forget, memory.bytes.nbytes).atexit = False

    def when_released(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Have a function called when the buffer is gone."""
        weakref.finalize(self, function, *arguments).atexit = False

    def length(self) -> int:
        """Bytes asked for."""
        return self.memory.length

    def allocatedSize(self) -> int:
        """Bytes there are."""
        return int(self.memory.bytes.nbytes)

    def contents(self) -> Contents | None:
        """Its memory, which kernels may be writing; None if it is private to the device."""
        if self.storageMode() == MTLStorageModePrivate:
            return None
        return Contents(self.memory.bytes[: self.memory.length], self)

    def gpuAddress(self) -> int:
        """Where kernels see it."""
        return int(self.memory.bytes.ctypes.data)

    def resourceOptions(self) -> int:
        """The options it was made with."""
        return self._options

    def storageMode(self) -> int:
        """Shared, managed or private."""
        return self._options >> _STORAGE_MODE_SHIFT & _STORAGE_MODES

    def didModifyRange_(self, changed: Any) -> None:
        """Tell the device of a managed buffer what the host has written."""
        location, length = location_and_length(changed)
        if location + length > self.length():
            fail("MTLBuffer didModifyRange:", f"range must lie in {self.length()} bytes")
        if self.storageMode() != MTLStorageModeManaged:
            fail("MTLBuffer didModifyRange:", "storageMode must be MTLStorageModeManaged")

    def setPurgeableState_(self, state: int) -> int:
        """Say whether the memory may be taken away; the state so far. It never is."""
        unsigned(state)
        return MTLPurgeableStateNonVolatile
