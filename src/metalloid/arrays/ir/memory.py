"""Memory of arrays: buffers from a pool per device."""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from metalloid.arrays.ir.dtypes import DType
from metalloid.arrays.ir.native import has_native_slots, library
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


def bucket_size(nbytes: int) -> int:
    """The size class of a buffer for `nbytes`."""
    if nbytes <= _PAGE:
        return max(_SMALL, 1 << (nbytes - 1).bit_length())
    return -(-nbytes // _PAGE) * _PAGE


#: Indices of the counters of a pool, as in pool.h.
_LIVE_BYTES, _LIVE_BUFFERS, _PEAK_BYTES, _FREE_BYTES, _MAX_FREE_BYTES = range(5)


class Pool:
    """A pool of buffers of one device.

    A buffer is in use as long as its *lease* has references.

    Attributes
    ----------
    address : int
        Of the pool for native functions; 0 without them.
    memory : callable
        From a size of the pool (`bucket_size`) to new memory; faster than the class.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self._counters = (ctypes.c_int64 * 5)()
        self._counters[_MAX_FREE_BYTES] = int(device.info().memory_bytes * _MAX_FREE_FRACTION)
        self._free: dict[int, Any] = {}  # by size; native functions have other values
        self.address, self._take, self._lease, self.memory = self._functions()

    def _functions(self) -> tuple[int, Callable[[int], Buffer | None], Callable[[Buffer], Any],
                                  Callable[[int], Memory]]:  # fmt: skip
        native = library()
        if native is None:
            leases = _Leases(self._free, self._counters)
            return 0, leases.take, leases.lease, functools.partial(Memory, self.device)
        objects = ctypes.py_object(self.device), ctypes.py_object(self._free)
        is_on_host = self.device.memory != "own"
        functions: tuple[Any, Any, Any, Any] = native.mtl_new_pool(
            *objects, self._counters, is_on_host
        )
        return functions

    @property
    def live_bytes(self) -> int:
        """Bytes in use by arrays."""
        return self._counters[_LIVE_BYTES]

    @property
    def live_buffers(self) -> int:
        """Buffers in use by arrays."""
        return self._counters[_LIVE_BUFFERS]

    @property
    def free_bytes(self) -> int:
        """Bytes in buffers that are not in use."""
        return self._counters[_FREE_BYTES]

    @property
    def peak_bytes(self) -> int:
        """High-water mark of `live_bytes`."""
        return self._counters[_PEAK_BYTES]

    def reset_peak(self) -> None:
        """Set the high-water mark to the bytes that are in use."""
        self._counters[_PEAK_BYTES] = self._counters[_LIVE_BYTES]

    def acquire(self, nbytes: int) -> tuple[Buffer, Any]:
        """A buffer of at least `nbytes`, uninitialised, and its lease.

        Raises
        ------
        OutOfMemory
        """
        bucket_bytes = bucket_size(nbytes)
        # Native functions take sizes that fit a word.
        buffer = self._take(bucket_bytes) if bucket_bytes <= sys.maxsize else None
        if buffer is None:
            buffer = self._new(bucket_bytes)
        return buffer, self._lease(buffer)

    def _new(self, bucket_bytes: int) -> Buffer:
        try:
            buffer = Buffer(bucket_bytes, self.device)
        except OutOfMemory:
            self.clear()
            buffer = Buffer(bucket_bytes, self.device)
        buffer.is_fresh = False  # it belongs to arrays, which have values
        return buffer

    def clear(self) -> None:
        """Free all buffers that are not in use."""
        for bucket_bytes in list(self._free):
            while self._take(bucket_bytes) is not None:
                pass


class _Leases:
    """The functions `take` and `lease` of native/pool.c."""

    def __init__(self, free: dict[int, list[Buffer]], counters: ctypes.Array[Any]) -> None:
        self._free, self._counters = free, counters
        # It refers to buffers in use: in a garbage cycle the finalizer of a buffer would free it
        # before the destructor of the lease returns it.
        self._used: dict[int, Buffer] = {}
        self._lock = threading.RLock()  # a garbage collection inside returns buffers

    def take(self, bucket_bytes: int) -> Buffer | None:
        """A free buffer of a size, or None."""
        with self._lock:
            free = self._free.get(bucket_bytes)
            if not free:
                return None
            self._counters[_FREE_BYTES] -= bucket_bytes
            return free.pop()

    def lease(self, buffer: Buffer) -> _Lease:
        """A lease, with whose last reference the buffer returns to the pool."""
        counters = self._counters
        with self._lock:
            self._used[id(buffer)] = buffer
            counters[_LIVE_BYTES] += buffer.nbytes
            counters[_LIVE_BUFFERS] += 1
            counters[_PEAK_BYTES] = max(counters[_PEAK_BYTES], counters[_LIVE_BYTES])
        return _Lease(self, buffer)

    def end(self, buffer: Buffer) -> None:
        """Return a buffer to the pool."""
        counters, bucket_bytes = self._counters, buffer.nbytes
        with self._lock:
            del self._used[id(buffer)]
            counters[_LIVE_BYTES] -= bucket_bytes
            counters[_LIVE_BUFFERS] -= 1
            if counters[_FREE_BYTES] + bucket_bytes <= counters[_MAX_FREE_BYTES]:
                counters[_FREE_BYTES] += bucket_bytes
                self._free.setdefault(bucket_bytes, []).append(buffer)


class _Lease:
    """Returns a buffer to the pool with its last reference."""

    __slots__ = ("_buffer", "_leases")

    def __init__(self, leases: _Leases, buffer: Buffer) -> None:
        self._leases, self._buffer = leases, buffer

    def __del__(self) -> None:
        self._leases.end(self._buffer)


_pools: dict[Device, Pool] = {}


def pool_of(device: Device) -> Pool:
    """The pool of a device."""
    try:
        return _pools[device]
    except KeyError:
        return _pools.setdefault(device, Pool(device))


@has_native_slots
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

    __slots__ = ("__weakref__", "_address", "_lease", "bound", "device", "sharing")

    def __init__(self, device: Device, nbytes: int) -> None:
        self.device = device
        self.sharing = 0
        buffer, self._lease = pool_of(device).acquire(nbytes)
        self.bound: Any = buffer
        self._address: int | None = buffer.address

    @property
    def is_own(self) -> bool:
        """Whether it comes from the pool, so that arrays may write to it."""
        return self._lease is not None

    @property
    def address(self) -> int:
        """Address of the first byte."""
        if self._address is None:
            bound = self.bound
            if isinstance(bound, Buffer):
                self._address = bound.address
            else:
                self._address = bound.__array_interface__["data"][0]
        return self._address

    @classmethod
    def of(cls, device: Device, array: np.ndarray | Buffer, sharing: int = 0) -> Memory:
        """Imported contiguous memory, used in place."""
        memory = cls.__new__(cls)
        memory._lease, memory.device, memory.bound = None, device, array
        memory._address, memory.sharing = None, sharing
        return memory

    def begin_overwriting(self) -> None:
        """Wait until the host may write to memory of the pool.

        It may have been released before the launches that use it ended.
        """
        if self.device.memory != "own":  # others copy in the order of launches
            self.bound.settle()
            self.bound.failure = None

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
