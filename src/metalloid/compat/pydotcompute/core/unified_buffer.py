"""An array that is kept on the host and on the device, and which copy is newer."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

import numpy as np

import metalloid as mtl
from metalloid.compat.pydotcompute.exceptions import BufferNotAllocatedError, BufferSyncError


class BufferState(Enum):
    """Which copies there are, and whether they are alike."""

    UNINITIALIZED = 1
    HOST_ONLY = 2
    DEVICE_ONLY = 3
    SYNCHRONIZED = 4
    HOST_DIRTY = 5
    DEVICE_DIRTY = 6


class UnifiedBuffer:
    """Memory for an array, with `host` for NumPy and `metal` for kernels.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : dtype
    pinned : bool
        Of no effect.

    Examples
    --------
    >>> buffer = UnifiedBuffer((3,)).allocate()
    >>> buffer.host[:] = [1, 2, 3]
    >>> buffer.mark_host_dirty()
    >>> float(mtl.sum(buffer.metal))
    6.0
    """

    def __init__(self, shape: Any, dtype: Any = np.float32, *, pinned: bool = False) -> None:
        self.shape: tuple[int, ...] = (shape,) if isinstance(shape, int) else tuple(shape)
        self.dtype = np.dtype(dtype)
        self._pinned, self._cuda_available = pinned, False
        self.state = BufferState.UNINITIALIZED
        self._host: np.ndarray | None = None
        self._metal: mtl.Array | None = None

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * int(self.dtype.itemsize)

    @property
    def is_allocated(self) -> bool:
        """Whether there is memory."""
        return self._host is not None

    def allocate(self, *, host: bool = True, device: bool = True) -> UnifiedBuffer:
        """Take memory, if there is none."""
        if self._host is None:
            self._host = np.empty(self.shape, self.dtype)
            self.state = BufferState.HOST_ONLY
        return self

    def free(self) -> None:
        """Give all memory back."""
        self._host = self._metal = None
        self.state = BufferState.UNINITIALIZED

    # -- the two copies

    @property
    def host(self) -> np.ndarray:
        """The copy on the host, which is brought up to date. Say `mark_host_dirty` after writing.

        Raises
        ------
        BufferNotAllocatedError
        """
        host = self._memory()
        if self.state is BufferState.DEVICE_DIRTY:
            if self._metal is not None:  # else the device's copy is the host's
                try:
                    host[...] = np.asarray(self._metal).astype(self.dtype)
                except Exception as error:
                    raise BufferSyncError("metal->host", error) from error
            self.state = BufferState.SYNCHRONIZED
        return host

    @property
    def metal(self) -> mtl.Array:
        """The copy on the device, which is brought up to date; float64 is float32 there.

        Raises
        ------
        BufferNotAllocatedError, BufferSyncError
        """
        host = self._memory()
        if self._metal is None or self.state is BufferState.HOST_DIRTY:
            try:
                narrow = np.float32 if self.dtype == np.float64 else self.dtype
                self._metal = mtl.asarray(host.astype(narrow))
            except Exception as error:
                raise BufferSyncError("host->metal", error) from error
            self.state = BufferState.SYNCHRONIZED
        return self._metal

    @property
    def device(self) -> Any:
        """The copy on a CUDA device; without one, that on the host."""
        return self.host

    def _memory(self) -> np.ndarray:
        if self._host is None:
            raise BufferNotAllocatedError
        return self._host

    def mark_host_dirty(self) -> None:
        """The copy on the host has been written to."""
        self._memory()
        self.state = BufferState.HOST_DIRTY

    def mark_device_dirty(self) -> None:
        """The copy on the device has been written to."""
        self._memory()
        self.state = BufferState.DEVICE_DIRTY

    mark_metal_dirty = mark_device_dirty

    def synchronize(self) -> None:
        """Bring the older copy up to date."""
        self._memory()
        if self.state is BufferState.HOST_DIRTY and self._metal is not None:
            _ = self.metal
        elif self.state is BufferState.DEVICE_DIRTY:
            _ = self.host

    async def ensure_on_device(self) -> None:
        """Bring the device's copy up to date."""
        _ = self.metal

    async def ensure_on_host(self) -> None:
        """Bring the host's copy up to date."""
        _ = self.host

    # -- contents

    def copy_from(self, array: np.ndarray) -> None:
        """Take the contents of an array of the same shape.

        Raises
        ------
        ValueError
        """
        if array.shape != self.shape:
            raise ValueError(f"Shape mismatch: {array.shape} vs {self.shape}")
        np.copyto(self.allocate()._memory(), array)
        self.state = BufferState.HOST_DIRTY

    def copy_to(self, array: np.ndarray) -> None:
        """Put the contents into an array of the same shape."""
        np.copyto(array, self.host)

    def zeros(self) -> UnifiedBuffer:
        """Fill with zeros."""
        return self.fill(0)

    def fill(self, value: Any) -> UnifiedBuffer:
        """Fill with a value."""
        self.allocate()._memory().fill(value)
        self.state = BufferState.HOST_DIRTY
        return self

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        return self.host[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.host[key] = value
        self.mark_host_dirty()

    def __repr__(self) -> str:
        return (
            f"UnifiedBuffer(shape={self.shape}, dtype={self.dtype}, state={self.state.name}, "
            f"cuda=False, metal=True)"
        )
