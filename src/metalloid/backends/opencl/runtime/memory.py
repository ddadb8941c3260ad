"""Shared virtual memory: addresses that kernels and the host have in common."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from metalloid.backends.opencl.runtime.platforms import binding
from metalloid.errors import OutOfMemory

_ALIGNMENT = 128  # of the largest type of OpenCL
_PADDING = 4  # at the end of memory, as kernels update bytes by their words


class Heap:
    """The memory of a device.

    Parameters
    ----------
    context, queue
        Of pyopencl; the queue is in order.
    is_fine : bool
        Whether the host may access it without mapping it.

    Attributes
    ----------
    allocations : dict
        By address.
    """

    def __init__(self, context: Any, queue: Any, is_fine: bool) -> None:
        self._cl, self._context, self._queue, self._is_fine = binding(), context, queue, is_fine
        self.allocations: dict[int, Any] = {}
        self._lock = threading.Lock()

    def allocate(self, nbytes: int) -> int:
        """Address of uninitialised memory.

        Raises
        ------
        OutOfMemory
        """
        flags = self._cl.svm_mem_flags.READ_WRITE
        if self._is_fine:
            flags |= self._cl.svm_mem_flags.SVM_FINE_GRAIN_BUFFER
        try:
            memory = self._cl.SVMAllocation(
                self._context, nbytes + _PADDING, _ALIGNMENT, flags, queue=self._queue
            )
        except (self._cl.Error, TypeError) as error:  # of sizes beyond 64 bits
            raise OutOfMemory(f"[opencl] allocating {nbytes} bytes failed: {error}.") from None
        address = int(memory.svm_ptr)
        with self._lock:
            self.allocations[address] = memory
        return address

    def free(self, address: int) -> None:
        """Free memory, after the launches so far."""
        with self._lock:
            memory = self.allocations.pop(address)
        memory.enqueue_release()

    def fill(self, address: int, nbytes: int) -> None:
        """Write zeros to memory that was just allocated."""
        if self._is_fine:
            ctypes.memset(address, 0, nbytes)
        elif nbytes:
            self._copy(address, memoryview(bytes(nbytes)))

    def write(self, address: int, source: memoryview) -> None:
        """Copy bytes of the host, after the launches so far."""
        if self._is_fine:
            self._queue.finish()
            _bytes_at(address, source.nbytes)[:] = source.cast("B")
        elif source.nbytes:
            self._copy(address, source)

    def read(self, address: int, destination: memoryview) -> None:
        """Copy bytes to the host, after the launches so far."""
        nbytes = destination.nbytes
        if self._is_fine:
            self._queue.finish()
            destination.cast("B")[:] = _bytes_at(address, nbytes)
        elif nbytes:
            source = self._cl.SVM(_bytes_at(address, nbytes))
            self._cl.enqueue_copy(self._queue, destination, source, is_blocking=True)

    def bytes_at(self, address: int, nbytes: int) -> bytes:
        """Bytes, after the launches so far."""
        copy = bytearray(nbytes)
        self.read(address, memoryview(copy))
        return bytes(copy)

    def _copy(self, address: int, source: memoryview) -> None:
        target = self._cl.SVM(_bytes_at(address, source.nbytes))
        self._cl.enqueue_copy(self._queue, target, source, is_blocking=True)


def _bytes_at(address: int, nbytes: int) -> memoryview:
    return memoryview((ctypes.c_char * nbytes).from_address(address)).cast("B")
