"""NVIDIA GPUs as devices."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from metalloid.backends.cuda.compile.pipeline import PtxKernel, compile_ptx
from metalloid.backends.cuda.compile.target import cuda_target
from metalloid.backends.cuda.libraries.cuda_libraries import CudaLibraries
from metalloid.backends.cuda.runtime.cancellation import Cancellation
from metalloid.backends.cuda.runtime.constants import Constants
from metalloid.backends.cuda.runtime.driver import check, describe, driver, version
from metalloid.backends.cuda.runtime.events import NO_MARKS, CudaEvent, TimedEvent, Timer
from metalloid.backends.cuda.runtime.exchange import CudaExchange
from metalloid.backends.cuda.runtime.fast_launch import quick_launch
from metalloid.backends.cuda.runtime.graph import CudaGraph
from metalloid.backends.cuda.runtime.host_arguments import bring, fetch
from metalloid.backends.cuda.runtime.launcher import native
from metalloid.backends.cuda.runtime.pinned_memory import PinnedMemory
from metalloid.backends.cuda.runtime.printf_buffer import (
    BLOCK_BYTES,
    HEAD_BYTES,
    pass_on,
    read_head,
)
from metalloid.backends.cuda.runtime.program import CudaProgram
from metalloid.compiler.cache import shared_cache
from metalloid.compiler.unit import TranslationUnit
from metalloid.errors import KernelFault, LaunchError
from metalloid.msl.entry_points import EntryPoint
from metalloid.runtime.device import Device, DeviceInfo
from metalloid.runtime.event import Event, FinishedEvent
from metalloid.runtime.launches import (
    NO_LIMIT,
    Arguments,
    Launch,
    PlainParameter,
    QuickLaunch,
)
from metalloid.runtime.program import Size
from metalloid.runtime.traits import MANY_THREADS, TENSOR_CORES

if TYPE_CHECKING:
    import numpy as np

    from metalloid.runtime.buffer import Buffer

_MAX_IN_FLIGHT = 4096  # launches; the driver queues fewer
_KEPT_FREE = 2**64 - 1  # bytes of freed memory that the driver keeps for the next: all


class _Thread(threading.local):
    """What the device knows of each thread of Python's."""

    entered = False


class CudaDevice(Device):
    """One NVIDIA GPU; launches run in order, in one stream."""

    memory = "own"

    def __init__(self, index: int) -> None:
        self.name = f"cuda:{index}"
        self._driver = bindings = driver()
        self._handle = check(bindings.cuDeviceGet(index), "opening the GPU")
        attribute = bindings.CUdevice_attribute
        major = self._attribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
        minor = self._attribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
        self.target = cuda_target(f"sm_{major}{minor}")
        count = attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
        self._multiprocessors = self._attribute(count)
        self.traits = TENSOR_CORES if major >= 8 else MANY_THREADS
        # The context that torch, CuPy and JAX use too, so that memory can be exchanged.
        self._context = check(bindings.cuDevicePrimaryCtxRetain(self._handle), "making a context")
        self._several = check(bindings.cuDeviceGetCount(), "counting GPUs") > 1
        self._thread = _Thread()
        self._lock = threading.RLock()
        self._lost = ""
        self.in_flight: deque[Callable[[], CudaEvent | None]] = deque(maxlen=_MAX_IN_FLIGHT)
        self.cancellation = Cancellation(self)
        self._visible: dict[int, Any] = {}  # what frees memory that Python sees, by its address
        self._reports = 0
        self._enter()
        # In turn with CUDA's default stream, which other libraries use unless told otherwise.
        flags = bindings.CUstream_flags.CU_STREAM_DEFAULT
        self.stream = check(bindings.cuStreamCreate(flags), "making a stream")
        self.stream_handle = int(self.stream)
        pool = check(bindings.cuDeviceGetDefaultMemPool(self._handle), "asking for memory")
        kept = bindings.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        check(
            bindings.cuMemPoolSetAttribute(pool, kept, bindings.cuuint64_t(_KEPT_FREE)),
            "setting up memory",
        )
        self.native = native()
        self._constants = Constants(self._take(Constants.ARENA_BYTES), self._copy_value)
        self.timer, self._pinned = Timer(self), PinnedMemory(self._pin)
        self.exchange, self.libraries = CudaExchange(self, index), CudaLibraries(self)
        os.register_at_fork(after_in_child=self._forked)

    def _attribute(self, attribute: Any) -> int:
        value = check(self._driver.cuDeviceGetAttribute(attribute, self._handle), "asking the GPU")
        return int(value)

    def _enter(self) -> None:
        """Make the context current in this thread; say so if the device is lost."""
        if self._lost:
            raise LaunchError(f"[{self.name}] {self._lost}")
        if self.cancellation.is_under_way:
            self.cancellation.finish()
        if self._several or not self._thread.entered:
            check(self._driver.cuCtxSetCurrent(self._context), "entering the context")
            self._thread.entered = True

    @property
    def needs_care(self) -> bool:
        """Whether launches cannot be made without a look at the device's state."""
        return bool(self._lost) or self.cancellation.is_under_way

    def _forked(self) -> None:
        self._lost = (
            "CUDA does not survive a fork. Start the process by another method: "
            "multiprocessing.set_start_method('spawn')."
        )

    def info(self) -> DeviceInfo:
        """See `Device.info`."""
        bindings = self._driver
        name = check(bindings.cuDeviceGetName(128, self._handle), "asking for the name")
        memory = check(bindings.cuDeviceTotalMem(self._handle), "asking for memory")
        major, minor = divmod(version() // 10, 100)
        model, count = name.split(b"\0")[0].decode(), self._multiprocessors
        return DeviceInfo(
            self.name,
            f"{model}, {self.target.name}, {count} multiprocessors, CUDA {major}.{minor}",
            int(memory),
            count,
        )

    # -- kernels

    def compile(
        self, unit: TranslationUnit, entry: EntryPoint, constants: Mapping[int, str]
    ) -> CudaProgram:
        """See `Device.compile`."""

        def with_threads(most: int) -> PtxKernel:
            return compile_ptx(unit, entry, constants, self.target, shared_cache(), most)

        self._enter()
        return CudaProgram(
            with_threads(entry.limits.most or 0), entry, self.target.name, with_threads,
            self._report_block(), self._multiprocessors, self.cancellation.flags.append,
            self._settle_all,
        )  # fmt: skip

    def _report_block(self) -> int:
        """Where kernels write messages; there from the first kernel on."""
        if not self._reports:
            self._reports = self.allocate(BLOCK_BYTES)
        return self._reports

    def pass_on_reports(self, kernel: str) -> None:
        """Hand out what kernels have said; raises what an assertion says."""
        head = bytearray(HEAD_BYTES)
        self.copy_out(self._reports, memoryview(head))
        report = read_head(bytes(head))
        if report is None:
            return
        messages = bytearray(report.used)
        if messages:
            self.copy_out(self._reports + HEAD_BYTES, memoryview(messages))
        self.copy_in(self._reports, memoryview(bytes(HEAD_BYTES)))
        pass_on(report, bytes(messages), kernel)

    def launch(
        self, program: CudaProgram, arguments: Arguments, grid: Size, group: Size, wait: bool
    ) -> Event:
        """See `Device.launch`."""
        if 0 in grid:
            return FinishedEvent(0.0)
        with self._lock:
            if self._several or self.needs_care or not self._thread.entered:
                self._enter()
            for buffer in arguments.buffers:
                if buffer.host_copy is not None:
                    buffer.host_copy.to_device()
            for position, value in arguments.constants:
                arguments.words[position] = self._constants[value]
            blocks = bring(self, arguments) if arguments.staged else ()
            try:
                marks = self.timer.marks()
                reports, stream = program.reports, self.stream_handle
                if marks is None:
                    event = CudaEvent(self, program, reports, arguments)
                    self.enqueue(program, arguments, grid, group, stream)
                else:
                    event = TimedEvent(self, program, reports, arguments, marks)
                    self.enqueue(program, arguments, grid, group, stream, marks)
                if any(block.written for block in blocks):
                    event.wait()  # as copies back cannot be interrupted
                for block in blocks:
                    fetch(self, block, program.name)
            finally:
                for block in blocks:
                    self.free(block.address - block.shift, 0)
        if wait:
            event.wait()
        return event

    def enqueue(
        self, program: CudaProgram, arguments: Arguments, grid: Size, group: Size, stream: int,
        marks: tuple[int, int] = NO_MARKS,
    ) -> None:  # fmt: skip
        """Hand a launch to the driver, with `arguments` as they are, between two marks."""
        words = arguments.words or (0,)
        shapes = program.shapes_for(words, grid, group)
        (started, ended), last = marks, shapes[-1]
        threadgroup_bytes = arguments.threadgroup_bytes + program.asked_bytes
        for shape in shapes:
            launch = program.pack(
                stream, started, ended if shape is last else 0, threadgroup_bytes, *words
            )
            status = self.native.launch(shape, launch)
            if status:
                raise self.failure(self._driver.CUresult(status), program.name)
            started = 0

    def quick(
        self, program: CudaProgram, parameters: Sequence[PlainParameter], sizes: Mapping[Any, Any]
    ) -> QuickLaunch | None:
        """See `Device.quick`."""
        return quick_launch(self, program, parameters, sizes)

    def prepare(self, launches: Sequence[Launch]) -> Callable[[], Event]:
        """See `Device.prepare`."""
        with self._lock:
            self._enter()
            return CudaGraph(self, launches).launch

    def work(self, name: str, buffers: Sequence[Buffer], call: Callable[[], None]) -> Event:
        """Have a library put work on some buffers into the stream."""
        if self.recording is not None:
            self.recording.refuse(name)
        with self._lock:
            self._enter()
            for buffer in buffers:
                if buffer.host_copy is not None:
                    buffer.host_copy.to_device()
            event = self.between_marks(name, False, buffers, call)
        for buffer in buffers:
            buffer.used_by(event)
        return event

    def between_marks(
        self, name: str, reports: bool, in_use: Any, call: Callable[[], None]
    ) -> CudaEvent:
        """The event of what a function puts into the stream."""
        marks = self.timer.marks()
        if marks is None:
            call()
            return CudaEvent(self, name, reports, in_use)
        event = TimedEvent(self, name, reports, in_use, marks)
        self.timer.record(marks[0])
        call()
        self.timer.record(marks[1])
        return event

    def failure(self, status: Any, kernel: str) -> KernelFault | LaunchError:
        """The error for a status that came up at a launch, or when one was waited for."""
        results = self._driver.CUresult
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

    # -- memory

    def _take(self, nbytes: int) -> int:
        """Memory with anything in it."""
        address = check(
            self._driver.cuMemAllocAsync(max(nbytes, 1), self.stream),
            f"allocating {nbytes} bytes on {self.name}",
        )
        return int(address)

    def allocate(self, nbytes: int) -> int:
        """See `Device.allocate`."""
        with self._lock:
            self._enter()
            address = self._take(min(nbytes, 2**63))
            if nbytes:
                outcome = self._driver.cuMemsetD8Async(address, 0, nbytes, self.stream)
                check(outcome, "clearing memory")
        return address

    def allocate_visible(self, nbytes: int) -> int:
        """See `Device.allocate_visible`.

        It is managed memory, or the host's where Python may not see that while kernels run.
        """
        bindings = self._driver
        attribute = bindings.CUdevice_attribute
        size = min(max(nbytes, 1), 2**63)
        with self._lock:
            self._enter()
            if self._attribute(attribute.CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS):
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
        self._enter()
        if address in self._visible:
            self._driver.cuStreamSynchronize(self.stream)  # kernels may use it
            self._visible.pop(address)(address)
            return
        self._driver.cuMemFreeAsync(address, self.stream)

    def host_memory(self, nbytes: int) -> np.ndarray:
        """See `Device.host_memory`: pinned."""
        return self._pinned.take(nbytes)

    def _pin(self, nbytes: int) -> int:
        self._enter()
        status, address = self._driver.cuMemHostAlloc(nbytes, self._driver.CU_MEMHOSTALLOC_PORTABLE)
        return 0 if status else int(address)

    def copy_in(self, address: int, source: memoryview) -> None:
        """See `Device.copy_in`."""
        self._enter()
        host = (ctypes.c_char * source.nbytes).from_buffer_copy(source) if source.readonly else (
            (ctypes.c_char * source.nbytes).from_buffer(source)
        )  # fmt: skip
        outcome = self._driver.cuMemcpyHtoDAsync(
            address, ctypes.addressof(host), source.nbytes, self.stream
        )
        check(outcome, "copying to the device")

    def _copy_value(self, address: int, value: bytes) -> None:
        host = ctypes.c_char_p(value)
        at = ctypes.cast(host, ctypes.c_void_p).value
        outcome = self._driver.cuMemcpyHtoDAsync(address, at, len(value), self.stream)
        check(outcome, "copying to the device")

    def copy_within(self, address: int, source: int, nbytes: int) -> None:
        """Copy memory of the device, after the launches so far."""
        outcome = self._driver.cuMemcpyDtoDAsync(address, source, nbytes, self.stream)
        check(outcome, "copying on the device")

    def copy_out(self, address: int, destination: memoryview) -> None:
        """See `Device.copy_out`."""
        self._enter()
        host = (ctypes.c_char * destination.nbytes).from_buffer(destination)
        (status,) = self._driver.cuMemcpyDtoHAsync(
            ctypes.addressof(host), address, destination.nbytes, self.stream
        )
        if status:
            raise self.failure(status, "copying from the device")
        self.synchronize()

    def synchronize(self) -> None:
        """See `Device.synchronize`."""
        event = CudaEvent(self, "synchronize", False, ())
        event.limit_ns = NO_LIMIT
        event.wait()

    def _settle_all(self) -> None:
        """Wait for the launches so far, however they end; Ctrl-C and time limits end them."""
        if self.in_flight:
            event = CudaEvent(self, "synchronize", False, ())
            event.limit_ns = NO_LIMIT
            event.settle()

    def running(self) -> CudaEvent | None:
        """The launch that runs: the first in the stream that has not ended.

        None if that is not known, as the program has dropped its event, or another thread launches.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            while self.in_flight:
                event = self.in_flight[0]()
                if event is not None and not event.done:
                    return event
                self.in_flight.popleft()
            return None
        finally:
            self._lock.release()

    def settle(self, seconds: float = 0.0) -> None:
        """See `Device.settle`."""
        deadline = time.monotonic() + seconds
        while self.in_flight and not self._lost:
            event = self.in_flight[0]()
            if event is not None and not event.end(max(deadline - time.monotonic(), 0.0)):
                break
            self.in_flight.popleft()


def count_devices() -> int:
    """GPUs that the driver shows.

    Raises
    ------
    DeviceUnavailable
        Without cuda-bindings, a driver or a GPU.
    """
    return int(check(driver().cuDeviceGetCount(), "counting GPUs"))


def open_device(index: int) -> CudaDevice:
    """The GPU of that number.

    Raises
    ------
    DeviceUnavailable
        If it is older than what MSL needs.
    """
    return CudaDevice(index)
