"""Memory of arrays: buffers from a pool per device."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from metalloid.arrays.ir.dtypes import DType
from metalloid.errors import OutOfMemory
from metalloid.runtime.devices.device import Device
from metalloid.runtime.memory.buffer import Buffer

#: Bits of `Memory.sharing`.
SHARED = 1  # its owner may write to it
UNORDERED = 2  # without waiting for our launches

#: Maximum size of free buffers in a pool, as a fraction of the device's memory.
_MAX_FREE_FRACTION = 1 / 8
_PAGE = 4096
_SMALL = 64


def _bucket_size(nbytes: int) -> int:
    """The size class of a buffer for `nbytes`."""
    if nbytes <= _PAGE:
        return max(_SMALL, 1 << (nbytes - 1).bit_length())
    return -(-nbytes // _PAGE) * _PAGE


class Pool:
    """A pool of buffers of one device.

    Attributes
    ----------
    live_bytes, live_buffers : int
        In use by arrays.
    peak_bytes : int
        High-water mark of `live_bytes`.
    free_bytes : int
        In buffers that are not in use.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.live_bytes = self.live_buffers = self.free_bytes = self.peak_bytes = 0
        self._max_bytes = int(device.info().memory_bytes * _MAX_FREE_FRACTION)
        self._free: dict[int, list[Buffer]] = {}
        # The pool refers to buffers in use, too: in a garbage cycle the finalizer of a buffer would
        # free it before `Memory.__del__` releases it.
        self._used: dict[int, Buffer] = {}
        self._lock = threading.RLock()  # a garbage collection inside releases memory

    def acquire(self, nbytes: int) -> Buffer:
        """A buffer of at least `nbytes`, uninitialised.

        Raises
        ------
        OutOfMemory
        """
        bucket_bytes = _bucket_size(nbytes)
        with self._lock:
            self.live_bytes += bucket_bytes
            self.live_buffers += 1
            if self.live_bytes > self.peak_bytes:
                self.peak_bytes = self.live_bytes
            free = self._free.get(bucket_bytes)
            if free:
                self.free_bytes -= bucket_bytes
                buffer = free.pop()
                self._used[id(buffer)] = buffer
                return buffer
        try:
            buffer = self._new(bucket_bytes)
        except OutOfMemory:
            with self._lock:
                self.live_bytes -= bucket_bytes
                self.live_buffers -= 1
            raise
        self._used[id(buffer)] = buffer
        return buffer

    def _new(self, bucket_bytes: int) -> Buffer:
        try:
            return Buffer(bucket_bytes, self.device)
        except OutOfMemory:
            self.clear()
            return Buffer(bucket_bytes, self.device)

    def release(self, buffer: Buffer) -> None:
        """Return a buffer to the pool."""
        bucket_bytes = buffer.nbytes
        with self._lock:
            del self._used[id(buffer)]
            self.live_bytes -= bucket_bytes
            self.live_buffers -= 1
            if self.free_bytes + bucket_bytes <= self._max_bytes:
                self.free_bytes += bucket_bytes
                self._free.setdefault(bucket_bytes, []).append(buffer)

    def clear(self) -> None:
        """Free all buffers that are not in use."""
        with self._lock:
            self._free.clear()
            self.free_bytes = 0


_pools: dict[Device, Pool] = {}


def pool_of(device: Device) -> Pool:
    """The pool of a device."""
    try:
        return _pools[device]
    except KeyError:
        return _pools.setdefault(device, Pool(device))


class Memory:
    """Memory of an evaluated array, returned to the pool with its last reference.

    Attributes
    ----------
    device : Device
    bound : Buffer or ndarray
        The argument of launches. Imported memory is an ndarray or an `ImportedBuffer`.
    sharing : int
        Whether its owner may write to it: 0, or `SHARED` with or without `UNORDERED`.
    """

    __slots__ = ("__weakref__", "_pool", "bound", "device", "sharing")

    def __init__(self, device: Device, nbytes: int) -> None:
        self._pool: Pool | None = None
        self.device = device
        self.sharing = 0
        pool = pool_of(device)
        self.bound: Any = pool.acquire(nbytes)
        self._pool = pool

    @property
    def is_own(self) -> bool:
        """Whether it comes from the pool, so that arrays may write to it."""
        return self._pool is not None

    @property
    def address(self) -> int:
        """Address of the first byte."""
        bound = self.bound
        if isinstance(bound, Buffer):
            return bound.address
        address: int = bound.__array_interface__["data"][0]
        return address

    @classmethod
    def of(cls, device: Device, array: np.ndarray | Buffer, sharing: int = 0) -> Memory:
        """Imported contiguous memory, used in place."""
        memory = cls.__new__(cls)
        memory._pool, memory.device, memory.bound = None, device, array
        memory.sharing = sharing
        return memory

    def __del__(self) -> None:
        if self._pool is not None:
            self._pool.release(self.bound)

    def host_view(self, dtype: DType, shape: tuple[int, ...], strides: tuple[int, ...],
                  offset: int, read_only: bool = False) -> np.ndarray:  # fmt: skip
        """A NumPy array on the same memory, which it keeps alive.

        Parameters
        ----------
        strides, offset
            In elements.
        read_only : bool
            For good: the flag of the array cannot be set back.
        """
        if isinstance(self.bound, Buffer):
            self.bound.wait()
            address, writeable = self.bound.address, not read_only
        else:
            address = self.bound.__array_interface__["data"][0]
            writeable = self.bound.flags.writeable and not read_only
        size = dtype.itemsize
        holder = _Holder(self, address + offset * size, shape, strides, size, not writeable)
        raw = np.asarray(holder)
        return raw.view(dtype) if raw.dtype != dtype else raw


class _Holder:
    """Provides `__array_interface__` to NumPy and keeps the memory alive."""

    def __init__(self, memory: Memory, address: int, shape: tuple[int, ...],
                 strides: tuple[int, ...], size: int, read_only: bool) -> None:  # fmt: skip
        self.memory = memory
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "typestr": f"|V{size}",
            "data": (address, read_only),
            "strides": tuple(stride * size for stride in strides),
        }
