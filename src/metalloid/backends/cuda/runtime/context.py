"""The context and the stream of a GPU: memory, copies, errors and launches in flight.

The other modules of this folder use the device through `ContextDevice`; `device` extends it.
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any, Protocol

from metalloid.backends.cuda.runtime.driver import check, describe, driver
from metalloid.backends.cuda.runtime.launcher import native
from metalloid.backends.cuda.runtime.pinned_memory import PinnedMemory
from metalloid.backends.cuda.runtime.program import CudaProgram
from metalloid.backends.cuda.runtime.timing_events import NO_EVENTS, Timer
from metalloid.errors import KernelFault, LaunchError, MetalloidError, OutOfMemory
from metalloid.runtime.devices.device import Device
from metalloid.runtime.launch.fault_records import FaultRecords
from metalloid.runtime.launch.launches import Arguments
from metalloid.runtime.launch.printf_buffer import (
    BUFFER_BYTES,
    HEAD_BYTES,
    deliver,
    read_head,
)
from metalloid.runtime.launch.program import Size
from metalloid.runtime.memory.constants import Constants

if TYPE_CHECKING:
    import numpy as np

_MAX_IN_FLIGHT = 4096  # launches; the driver queues fewer
_STAGING_BYTES = 2**16  # of copies to the host that are small
_NOT_READY = 600  # CUDA_ERROR_NOT_READY
_RELEASE_THRESHOLD = 2**64 - 1  # bytes of freed memory that the driver keeps: all


class InFlight(Protocol):
    """A launch in the stream, as waiting and cancellation see it (`events.CudaEvent`)."""

    @property
    def name(self) -> str:
        """The kernel's name."""

    @property
    def done(self) -> bool:
        """Whether it has ended."""

    @property
    def limit(self) -> float:
        """Seconds that it may run; 0.0 for no limit."""

    def is_overdue(self) -> bool:
        """Whether it has run for longer than its limit."""

    def end(self, timeout: float | None = None) -> bool:
        """Wait until it has ended, up to a timeout."""

    def fail(self, error: MetalloidError) -> None:
        """Record how it failed."""


class Cancels(Protocol):
    """Ends all launches in flight (`cancellation.Cancellation`)."""

    flags: list[int]
    is_pending: bool

    def start(self, timed_out: InFlight | None = None, limit: float = 0.0) -> None:
        """Set the flags that kernels poll, and wait until all launches have ended."""

    def finish(self) -> None:
        """Wait until all launches have ended, and reset the flags."""


class _Thread(threading.local):
    """State of the device in each Python thread."""

    entered = False


class ContextDevice(Device):
    """A GPU's primary context, and one stream in which all its work is ordered.

    Attributes
    ----------
    driver : module
        The driver's bindings.
    context : CUcontext
    stream, stream_handle
        The stream as the bindings and as C take it.
    lock : threading.RLock
        Held while work is added to the stream.
    constants : Constants
        Values on the device, by their bytes.
    timer : Timer
    in_flight : deque of callable
        References to the launches in the stream, in order; they give None for events that the
        program has dropped.
    cancellation : Cancels
        Set by `device`.
    """

    memory = "own"
    cancellation: Cancels

    def __init__(self, index: int) -> None:
        self.name = f"cuda:{index}"
        self.driver = bindings = driver()
        self._handle = check(bindings.cuDeviceGet(index), "opening the GPU")
        self._thread = _Thread()
        self.lock = threading.RLock()
        self._lost = ""
        self.in_flight: deque[Callable[[], InFlight | None]] = deque(maxlen=_MAX_IN_FLIGHT)
        self._visible: dict[int, Any] = {}  # functions that free visible memory, by its address
        self._printf_buffer = 0
        #: Addresses of pinned memory for copies to the host.
        self._staging: list[int] = []

    def _open_context(self) -> None:
        bindings = self.driver
        # The context that torch, CuPy and JAX use too, so that memory can be exchanged.
        self.context = check(bindings.cuDevicePrimaryCtxRetain(self._handle), "making a context")
        self._has_multiple_gpus = check(bindings.cuDeviceGetCount(), "counting GPUs") > 1
        self.enter()
        # In turn with CUDA's default stream, which other libraries use unless told otherwise.
        flags = bindings.CUstream_flags.CU_STREAM_DEFAULT
        self.stream = check(bindings.cuStreamCreate(flags), "making a stream")
        self.stream_handle = int(self.stream)
        pool = check(bindings.cuDeviceGetDefaultMemPool(self._handle), "asking for memory")
        threshold = bindings.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        check(
            bindings.cuMemPoolSetAttribute(
                pool, threshold, bindings.cuuint64_t(_RELEASE_THRESHOLD)
            ),
            "setting up memory",
        )
        self.native = native()
        arena = self.allocate_uninitialized(Constants.ARENA_BYTES)
        self.constants = Constants(arena, self.copy_value)
        self.fault_records = FaultRecords(self.allocate_visible)
        self.timer, self._pinned = Timer(self.stream), PinnedMemory(self._pin)
        os.register_at_fork(after_in_child=self._forked)

    def attribute(self, attribute: Any) -> int:
        """An attribute of the GPU."""
        value = check(self.driver.cuDeviceGetAttribute(attribute, self._handle), "asking the GPU")
        return int(value)

    def enter(self) -> None:
        """Make the context current in this thread.

        Raises
        ------
        LaunchError
            If the context is lost.
        """
        if self._lost:
            raise LaunchError(f"[{self.name}] {self._lost}")
        if self.cancellation.is_pending:
            self.cancellation.finish()
        if self._has_multiple_gpus or not self._thread.entered:
            check(self.driver.cuCtxSetCurrent(self.context), "entering the context")
            self._thread.entered = True

    @property
    def is_blocked(self) -> bool:
        """Whether the context is lost or a cancellation pending: `enter` has to come first."""
        return bool(self._lost) or self.cancellation.is_pending

    @property
    def is_entered(self) -> bool:
        """Whether a launch from this thread needs no `enter`."""
        return not (self._has_multiple_gpus or self.is_blocked) and self._thread.entered

    def _forked(self) -> None:
        self._lost = (
            "CUDA does not survive a fork. Start the process by another method: "
            "multiprocessing.set_start_method('spawn')."
        )

    def failure(self, status: Any, kernel: str) -> KernelFault | LaunchError:
        """The error for a status that a launch, or a wait for it, returned."""
        results = self.driver.CUresult
        harmless = (
            results.CUDA_ERROR_INVALID_VALUE,
            results.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
            results.CUDA_ERROR_OUT_OF_MEMORY,
            results.CUDA_ERROR_NOT_SUPPORTED,
        )
        if status in harmless:
            return LaunchError(f"[{kernel}] {self.name} cannot launch it: {describe(status)}.")
        self._lost = (
            f"its context is lost: {kernel}, or a kernel before it, failed ({describe(status)}). "
            "What its buffers held is gone, and CUDA gives no other context in this process. "
            "Start the process again. On the CPU (METALLOID_DEVICE=cpu) the thread is named."
        )
        return KernelFault(f"[{kernel}] {self._lost}", kernel=kernel, reason=describe(status))

    # -- launches

    def enqueue(
        self, program: CudaProgram, arguments: Arguments, grid: Size, group: Size, stream: int,
        events: tuple[int, int] = NO_EVENTS,
    ) -> None:  # fmt: skip
        """Add a launch to a stream, with `arguments` as they are, between two timing events."""
        words: Sequence[int] = arguments.words or (0,)
        shapes = program.shapes_for(words, grid, group)
        if program.is_checked:
            words = (*arguments.words, *arguments.fault_record.words)
        (started, ended), last = events, shapes[-1]
        threadgroup_bytes = arguments.threadgroup_bytes + program.dynamic_shared_bytes
        for shape in shapes:
            launch = program.pack(
                stream, started, ended if shape is last else 0, threadgroup_bytes, *words
            )
            status = self.native.launch(shape, launch)
            if status:
                raise self.failure(self.driver.CUresult(status), program.name)
            started = 0

    def running(self) -> InFlight | None:
        """The launch that runs: the first in the stream that has not ended.

        None if that is not known, as the program has dropped its event, or another thread launches.
        """
        if not self.lock.acquire(blocking=False):
            return None
        try:
            while self.in_flight:
                event = self.in_flight[0]()
                if event is not None and not event.done:
                    return event
                self.in_flight.popleft()
            return None
        finally:
            self.lock.release()

    def printf_buffer(self) -> int:
        """Address of the buffer for messages of kernels, allocated on first use."""
        if not self._printf_buffer:
            self._printf_buffer = self.allocate(BUFFER_BYTES)
        return self._printf_buffer

    def flush_printf(self, kernel: str) -> None:
        """Deliver the messages in the printf buffer, and empty it.

        Raises
        ------
        KernelFault
            If an assertion failed.
        """
        head = bytearray(HEAD_BYTES)
        self.copy_out(self._printf_buffer, memoryview(head))
        head_fields = read_head(bytes(head))
        if head_fields is None:
            return
        messages = bytearray(head_fields.used)
        if messages:
            self.copy_out(self._printf_buffer + HEAD_BYTES, memoryview(messages))
        self.copy_in(self._printf_buffer, memoryview(bytes(HEAD_BYTES)))
        deliver(head_fields, bytes(messages), kernel)

    # -- memory

    def allocate_uninitialized(self, nbytes: int) -> int:
        """Address of `nbytes` bytes with undefined contents, in stream order."""
        address = check(
            self.driver.cuMemAllocAsync(max(nbytes, 1), self.stream),
            f"allocating {nbytes} bytes on {self.name}",
        )
        return int(address)

    def allocate(self, nbytes: int) -> int:
        """See `Device.allocate`."""
        with self.lock:
            self.enter()
            address = self.allocate_uninitialized(min(nbytes, 2**63))
            if nbytes:
                outcome = self.driver.cuMemsetD8Async(address, 0, nbytes, self.stream)
                check(outcome, "clearing memory")
        return address

    def allocate_visible(self, nbytes: int) -> int:
        """See `Device.allocate_visible`.

        It is managed memory; pinned memory of the host where the GPU does not let Python read
        managed memory while kernels run.
        """
        bindings = self.driver
        attribute = bindings.CUdevice_attribute
        size = min(max(nbytes, 1), 2**63)
        with self.lock:
            self.enter()
            if self.attribute(attribute.CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS):
                everywhere = bindings.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL
                outcome, free = bindings.cuMemAllocManaged(size, everywhere), bindings.cuMemFree
            else:
                mapped = bindings.CU_MEMHOSTALLOC_PORTABLE | bindings.CU_MEMHOSTALLOC_DEVICEMAP
                outcome, free = bindings.cuMemHostAlloc(size, mapped), bindings.cuMemFreeHost
            address = int(check(outcome, f"allocating {nbytes} bytes on {self.name}"))
            self._visible[address] = free
        ctypes.memset(address, 0, nbytes)  # its pages are the host's first
        return address

    def free(self, address: int, nbytes: int) -> None:
        """See `Device.free`."""
        if self._lost:
            return  # the memory went with the context
        self.enter()
        if address in self._visible:
            self.driver.cuStreamSynchronize(self.stream)  # kernels may use it
            self._visible.pop(address)(address)
            return
        self.driver.cuMemFreeAsync(address, self.stream)

    def host_memory(self, nbytes: int) -> np.ndarray:
        """See `Device.host_memory`: pinned."""
        return self._pinned.take(nbytes)

    def _pin(self, nbytes: int) -> int:
        self.enter()
        status, address = self.driver.cuMemHostAlloc(nbytes, self.driver.CU_MEMHOSTALLOC_PORTABLE)
        return 0 if status else int(address)

    def copy_in(self, address: int, source: memoryview) -> None:
        """See `Device.copy_in`."""
        self.enter()
        host = (ctypes.c_char * source.nbytes).from_buffer_copy(source) if source.readonly else (
            (ctypes.c_char * source.nbytes).from_buffer(source)
        )  # fmt: skip
        outcome = self.driver.cuMemcpyHtoDAsync(
            address, ctypes.addressof(host), source.nbytes, self.stream
        )
        check(outcome, "copying to the device")

    def copy_value(self, address: int, value: bytes) -> None:
        """Copy a small value to the device, after the launches so far."""
        host = ctypes.c_char_p(value)
        at = ctypes.cast(host, ctypes.c_void_p).value
        outcome = self.driver.cuMemcpyHtoDAsync(address, at, len(value), self.stream)
        check(outcome, "copying to the device")

    def copy_within(self, address: int, source: int, nbytes: int) -> None:
        """Copy memory of the device, after the launches so far."""
        outcome = self.driver.cuMemcpyDtoDAsync(address, source, nbytes, self.stream)
        check(outcome, "copying on the device")

    def copy_out(self, address: int, destination: memoryview) -> None:
        """See `Device.copy_out`."""
        nbytes = destination.nbytes
        if nbytes <= _STAGING_BYTES:
            copy = self._small_copies([(address, nbytes)], nbytes)
            (ctypes.c_char * nbytes).from_buffer(destination).raw = copy
            return
        self.enter()
        host = (ctypes.c_char * nbytes).from_buffer(destination)
        (status,) = self.driver.cuMemcpyDtoHAsync(
            ctypes.addressof(host), address, nbytes, self.stream
        )
        if status:
            raise self.failure(status, "copying from the device")
        self.synchronize()

    def copy_out_combined(self, windows: Sequence[tuple[int, int]]) -> list[np.ndarray]:
        """See `Device.copy_out_combined`: with one synchronisation."""
        import numpy as np

        starts = [0, *accumulate(nbytes for _, nbytes in windows)]
        if starts[-1] > _STAGING_BYTES:
            return super().copy_out_combined(windows)
        copies = np.frombuffer(bytearray(self._small_copies(windows, starts[-1])), np.uint8)
        return [copies[start:end] for start, end in pairwise(starts)]

    def _small_copies(self, windows: Sequence[tuple[int, int]], nbytes: int) -> bytes:
        """The bytes of windows of the device's memory, after the launches so far.

        The driver copies to pinned memory without waiting, which native code does with less delay.
        """
        self.enter()
        address = self._staging.pop() if self._staging else self._pin(_STAGING_BYTES)
        if not address:
            raise OutOfMemory(f"[{self.name}] there is no pinned memory to copy {nbytes} bytes.")
        packed = struct.pack(f"={2 * len(windows)}Q", *chain.from_iterable(windows))
        try:
            status = self.native.copy_out(packed, len(windows), address, self.stream_handle)
            if status == _NOT_READY:  # wait in Python, which Ctrl-C and time limits interrupt
                self.synchronize()
            elif status:
                raise self.failure(self.driver.CUresult(status), "copying from the device")
            if self.is_blocked:  # by a cancellation, for example
                self.enter()
            return ctypes.string_at(address, nbytes)
        finally:
            self._staging.append(address)  # later copies to it come after these, in the stream
