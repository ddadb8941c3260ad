"""NVIDIA GPUs as devices."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from metalloid.backends.cuda.compile.bundle import read_bundle
from metalloid.backends.cuda.compile.compile_ptx import (
    PtxKernel,
    bounds_with_lines,
    compile_ptx,
)
from metalloid.backends.cuda.compile.target import MIN_CAPABILITY, bundle_abi, cuda_target
from metalloid.backends.cuda.libraries.cuda_libraries import CudaLibraries
from metalloid.backends.cuda.runtime.cancellation import Cancellation
from metalloid.backends.cuda.runtime.context import ContextDevice
from metalloid.backends.cuda.runtime.driver import check, driver, version
from metalloid.backends.cuda.runtime.events import (
    CudaEvent,
    TimedEvent,
    read_times,
    record_event,
)
from metalloid.backends.cuda.runtime.exchange import CudaExchange
from metalloid.backends.cuda.runtime.fast_launch import fast_launch
from metalloid.backends.cuda.runtime.graph import CudaGraph
from metalloid.backends.cuda.runtime.host_arguments import copy_back, copy_to_device
from metalloid.backends.cuda.runtime.program import CudaProgram
from metalloid.backends.cuda.runtime.repeater import CudaRepeater
from metalloid.compiler.bounds.table import BoundsTable
from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.compiler.toolchain.cache import shared_cache
from metalloid.errors import DeviceUnavailable
from metalloid.msl.entry_points import EntryPoint
from metalloid.runtime.devices.device import DeviceInfo
from metalloid.runtime.devices.traits import CUDA_CORES, TENSOR_CORES
from metalloid.runtime.launch.event import Event, FinishedEvent
from metalloid.runtime.launch.launches import (
    NO_LIMIT,
    Arguments,
    FastLaunch,
    Launch,
    LaunchBuffer,
    PlainParameter,
    Repeater,
)
from metalloid.runtime.launch.program import Size


class CudaDevice(ContextDevice):
    """One NVIDIA GPU; launches run in order, in one stream."""

    can_check_accesses = True

    def __init__(self, index: int) -> None:
        super().__init__(index)
        attribute = self.driver.CUdevice_attribute
        major = self.attribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
        minor = self.attribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
        self.target = cuda_target(f"sm_{major}{minor}")
        count = attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
        self._multiprocessors = self.attribute(count)
        self.traits = TENSOR_CORES if major >= 8 else CUDA_CORES
        self.cancellation = Cancellation(self)
        self._open_context()
        self.exchange, self.libraries = CudaExchange(self, index), CudaLibraries(self)

    def info(self) -> DeviceInfo:
        """See `Device.info`."""
        bindings = self.driver
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

    def compile(
        self, unit: TranslationUnit, entry: EntryPoint, constants: Mapping[int, str]
    ) -> CudaProgram:
        """See `Device.compile`."""

        def with_threads(max_threads: int) -> PtxKernel:
            return compile_ptx(unit, entry, constants, self.target, shared_cache(), max_threads)

        def with_lines() -> BoundsTable:
            return bounds_with_lines(unit, entry, constants, self.target, shared_cache())

        return self._program(entry, with_threads, with_lines)

    def restore(self, entry: EntryPoint, files: Mapping[str, bytes], target: str) -> CudaProgram:
        """See `Device.restore`."""

        def with_threads(max_threads: int) -> PtxKernel:
            return read_bundle(files, max_threads, shared_cache())

        def with_lines() -> BoundsTable:
            raise DeviceUnavailable("[bundle] PTX in a bundle has no lines of the source.")

        return self._program(entry, with_threads, with_lines)

    @property
    def bundle_abi(self) -> str:
        """See `Device.bundle_abi`."""
        return bundle_abi()

    def bundle_targets(self) -> Sequence[str]:
        """See `Device.bundle_targets`: PTX is for its architecture and all later ones."""
        own = int(self.target.name.removeprefix("sm_"))
        later = [f"cuda:sm_{number}" for number in range(own, MIN_CAPABILITY - 1, -1)]
        return [f"cuda:sm_{own}a", *later]

    def _program(
        self,
        entry: EntryPoint,
        with_threads: Callable[[int], PtxKernel],
        with_lines: Callable[[], BoundsTable],
    ) -> CudaProgram:
        self.enter()
        return CudaProgram(
            kernel=with_threads(entry.limits.max_total or 0),
            entry=entry,
            architecture=self.target.name,
            with_threads=with_threads,
            printf_buffer=self.printf_buffer(),
            multiprocessors=self._multiprocessors,
            add_flag=self.cancellation.flags.append,
            wait=self._settle_all,
            bounds_with_lines=with_lines,
            records=self.fault_records,
        )

    def launch(
        self, program: CudaProgram, arguments: Arguments, grid: Size, group: Size, wait: bool
    ) -> Event:
        """See `Device.launch`."""
        if 0 in grid:
            return FinishedEvent(0.0)
        with self.lock:
            if not self.is_entered:
                self.enter()
            for buffer in arguments.buffers:
                if buffer.host_copy is not None:
                    buffer.host_copy.to_device()
            program.add_record(arguments)
            for position, value in arguments.constants:
                arguments.words[position] = self.constants[value]
            blocks = copy_to_device(self, arguments) if arguments.staged else ()
            try:
                events = self.timer.acquire()
                uses_printf, stream = program.uses_printf, self.stream_handle
                if events is None:
                    event = CudaEvent(self, program, uses_printf, arguments)
                    self.enqueue(program, arguments, grid, group, stream)
                else:
                    event = TimedEvent(self, program, uses_printf, arguments, events)
                    self.enqueue(program, arguments, grid, group, stream, events)
                if any(block.written for block in blocks):
                    event.wait()  # as copies back cannot be interrupted
                for block in blocks:
                    copy_back(self, block, program.name)
            finally:
                for block in blocks:
                    self.free(block.address - block.shift, 0)
        if wait:
            event.wait()
        return event

    def read_times(self, events: Sequence[Event]) -> Sequence[float | None]:
        """See `Launcher.read_times`."""
        return read_times(self, events)

    def fast_launcher(
        self, program: CudaProgram, parameters: Sequence[PlainParameter], sizes: Mapping[Any, Any]
    ) -> FastLaunch | None:
        """See `Device.fast_launcher`."""
        return None if program.is_checked else fast_launch(self, program, parameters, sizes)

    def repeater(
        self,
        launches: Sequence[Launch],
        words: Sequence[tuple[int, int, int]],
        params: Sequence[tuple[int, int, bytearray]],
    ) -> Repeater | None:
        """See `Launcher.repeater`."""
        if any(launch.program.is_checked for launch in launches):  # each has extents of its own
            return None
        return CudaRepeater(self, launches, words, params)

    def prepare(self, launches: Sequence[Launch]) -> Callable[[], Event]:
        """See `Device.prepare`."""
        with self.lock:
            self.enter()
            return CudaGraph(self, launches).launch

    def work(self, name: str, buffers: Sequence[LaunchBuffer], call: Callable[[], None]) -> Event:
        """Run a function that adds a library's work on some buffers to the stream."""
        if self.recording is not None:
            self.recording.refuse(name)
        with self.lock:
            self.enter()
            for buffer in buffers:
                if buffer.host_copy is not None:
                    buffer.host_copy.to_device()
            event = record_event(self, name, False, buffers, call)
        for buffer in buffers:
            buffer.used_by(event)
        return event

    def synchronize(self) -> None:
        """See `Device.synchronize`."""
        event = CudaEvent(self, "synchronize", False, ())
        event.limit_ns = NO_LIMIT
        event.wait()
        for _ in range(len(self.in_flight)):
            reference = self.in_flight.popleft()
            if reference() is not None:
                self.in_flight.append(reference)

    def _settle_all(self) -> None:
        """Wait for the launches so far, also failed ones; Ctrl-C and time limits end them."""
        if self.in_flight:
            event = CudaEvent(self, "synchronize", False, ())
            event.limit_ns = NO_LIMIT
            event.settle()

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
        If it is older than MSL requires.
    """
    return CudaDevice(index)
