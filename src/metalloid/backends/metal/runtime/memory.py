"""Memory of the GPU: buffers that Python sees too, found again by their addresses.

Everything above the device speaks of memory by the address where Python sees it. Apple's GPUs share
their memory with the processor, so that address is one of a Metal buffer's own contents.
"""

from __future__ import annotations

import ctypes
import mmap
import threading
from bisect import bisect_right, insort
from typing import Any, Protocol

from metalloid.backends.metal.pyobjc.binding import Binding
from metalloid.errors import OutOfMemory

#: A kernel may read the last of its scalars or vectors as a whole.
_GRANULE = 256


class Pending(Protocol):
    """Launches that may still use memory."""

    def wait(self, timeout: float | None) -> bool:
        """Wait for their end."""


class Allocation:
    """A Metal buffer and where its contents lie.

    Attributes
    ----------
    buffer : MTLBuffer
    start : int
        Where they begin in the buffer.
    address : int
        Of the first byte, as Python sees it.
    nbytes : int
    stands_for : int
        The address in the process whose bytes it holds; its own, unless they were copied.
    batch : Pending or None
        The last one that uses it.
    owed : int
        How many times its contents will be copied to where it stands for.
    """

    __slots__ = ("address", "batch", "buffer", "nbytes", "owed", "stands_for", "start")

    def __init__(self, buffer: Any, address: int, nbytes: int, start: int = 0) -> None:
        self.buffer, self.address, self.nbytes = buffer, address, nbytes
        self.stands_for, self.start = address, start
        self.batch: Pending | None = None
        self.owed = 0

    def offset_of(self, address: int) -> int:
        """Where in the buffer the byte lies that has an address in the process."""
        return address - self.stands_for + self.start

    def meets(self, address: int, nbytes: int) -> bool:
        """Whether it stands for a part of some memory of the process."""
        return self.stands_for < address + nbytes and address < self.stands_for + self.nbytes

    def covers(self, address: int, nbytes: int) -> bool:
        """Whether it stands for all of some memory of the process."""
        return self.stands_for <= address and address + nbytes <= self.stands_for + self.nbytes


class Heap:
    """The buffers of one GPU."""

    def __init__(self, gpu: Any, binding: Binding) -> None:
        self._gpu, self._binding = gpu, binding
        self._options = binding.module.MTLResourceStorageModeShared
        self._max_bytes = gpu.maxBufferLength()
        #: By the address of the first byte.
        self.by_address: dict[int, Allocation] = {}
        self._starts: list[int] = []
        self._lock = threading.Lock()
        self._loans: list[Allocation] = []
        #: Bound where an array has no elements: Metal expects a buffer at every index.
        self.nothing = self.private(mmap.PAGESIZE)

    def private(self, nbytes: int, start: int = 0) -> Allocation:
        """Zeroed memory that is not registered under its address.

        Parameters
        ----------
        start : int, optional
            Where in a buffer it begins.

        Raises
        ------
        OutOfMemory
        """
        nbytes_with_padding = max(-(-(start + nbytes) // _GRANULE), 1) * _GRANULE
        with self._binding.pool():
            buffer = None
            if nbytes_with_padding <= self._max_bytes:
                buffer = self._gpu.newBufferWithLength_options_(nbytes_with_padding, self._options)
            if buffer is None:
                raise OutOfMemory(
                    f"[Buffer] cannot allocate {nbytes} bytes on {self._gpu.name()} "
                    f"({self._gpu.currentAllocatedSize()} bytes are in use, the working set is "
                    f"{self._gpu.recommendedMaxWorkingSetSize()} bytes, a buffer at most "
                    f"{self._max_bytes} bytes)."
                )
            address = _address_of(buffer, nbytes_with_padding)
        return Allocation(buffer, address + start, nbytes_with_padding - start, start)

    def copy(self, address: int, nbytes: int, start: int = 0) -> Allocation:
        """A copy of the process's memory, which it stands for."""
        allocation = self.private(nbytes, start)
        allocation.stands_for, allocation.nbytes = address, nbytes
        ctypes.memmove(allocation.address, address, nbytes)
        return allocation

    def allocate(self, nbytes: int) -> Allocation:
        """Zeroed memory."""
        allocation = self.private(nbytes)
        with self._lock:
            self.by_address[allocation.address] = allocation
            insort(self._starts, allocation.address)
        return allocation

    def free(self, address: int) -> None:
        """Forget memory; Metal keeps it as long as it is used."""
        with self._lock:
            del self.by_address[address]
            del self._starts[bisect_right(self._starts, address) - 1]

    def holding(self, address: int) -> Allocation | None:
        """The memory that an address lies in; None if it is not ours."""
        with self._lock:
            position = bisect_right(self._starts, address) - 1
            allocation = self.by_address[self._starts[position]] if position >= 0 else None
        if allocation is None or address >= allocation.address + allocation.nbytes:
            return None
        return allocation

    def add_loan(self, loan: Allocation) -> None:
        """Remember memory that stands for the process's own until its contents are copied back."""
        with self._lock:
            if loan.owed == 0:
                self._loans.append(loan)
            loan.owed += 1

    def loans_in(self, address: int, nbytes: int) -> list[Allocation]:
        """Allocations on loan that overlap a range of the process's memory."""
        with self._lock:
            return [loan for loan in self._loans if loan.meets(address, nbytes)]

    def remove_loan(self, loan: Allocation) -> None:
        """Forget what `add_loan` remembered, if that was the last time."""
        with self._lock:
            loan.owed -= 1
            if loan.owed == 0:
                self._loans.remove(loan)

    def wrapped(self, address: int, nbytes: int) -> Allocation | None:
        """The process's own memory as a buffer, without copying; None if Metal does not take it.

        It takes whole pages. NumPy's large arrays begin with a page on a Mac, as do mapped files.
        """
        nbytes_with_padding = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        if address % mmap.PAGESIZE or nbytes_with_padding > self._max_bytes:
            return None
        memory = (ctypes.c_char * nbytes_with_padding).from_address(address)
        with self._binding.pool():
            buffer = self._gpu.newBufferWithBytesNoCopy_length_options_deallocator_(
                memory, nbytes_with_padding, self._options, None
            )
            if buffer is None or _address_of(buffer, nbytes_with_padding) != address:
                return None  # a layer between us and Metal made a copy
        return Allocation(buffer, address, nbytes_with_padding)


def _address_of(buffer: Any, nbytes: int) -> int:
    """Where Python sees the contents of a Metal buffer."""
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer.contents().as_buffer(nbytes)))
