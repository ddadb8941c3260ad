"""The CPU as a device: Metal kernels on every thread of the processor."""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from metalloid.backends.cpu import host
from metalloid.backends.cpu.runtime import native_library
from metalloid.backends.cpu.runtime.blas import HostBlas
from metalloid.backends.cpu.runtime.bundled import BundledVersions
from metalloid.backends.cpu.runtime.fast_launch import (
    fast_launch,
)
from metalloid.backends.cpu.runtime.host_calls import HostSorts
from metalloid.backends.cpu.runtime.program import CpuProgram
from metalloid.backends.cpu.runtime.queued_event import FastArguments, QueuedEvent
from metalloid.backends.cpu.runtime.repeater import CpuRepeater
from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.compiler.toolchain import clang
from metalloid.compiler.toolchain.cache import shared_cache
from metalloid.errors import LaunchError, OutOfMemory
from metalloid.msl.entry_points import EntryPoint
from metalloid.runtime.devices.device import Device, DeviceInfo
from metalloid.runtime.devices.libraries import Libraries
from metalloid.runtime.devices.traits import BFLOAT_DOTS, FEW_CORES
from metalloid.runtime.launch.event import Event, FinishedEvent
from metalloid.runtime.launch.launches import (
    Arguments,
    FastLaunch,
    Launch,
    LaunchRecorder,
    PlainParameter,
    Repeater,
)
from metalloid.runtime.launch.program import Size
from metalloid.settings import settings

if TYPE_CHECKING:
    from metalloid.backends.cpu.runtime.counted import CountedProgram
    from metalloid.backends.cpu.runtime.sanitizer import CheckedProgram
    from metalloid.runtime.launch.refutation import ThreadCode


class _GeneralPath(LaunchRecorder):
    """Records nothing, but keeps launches off the paths that a recorder would not see."""

    def record(self, program: Any, arguments: Arguments, grid: Size, group: Size) -> None:
        """See `LaunchRecorder.record`: the launch is to run at once."""

    def refuse(self, name: str) -> None:
        """See `LaunchRecorder.refuse`: nothing is refused."""


_GENERAL_PATH = _GeneralPath()


class CpuDevice(Device):
    """The processor of this machine."""

    name = "cpu"
    memory = "host"
    can_check = True
    checks_accesses = True
    traits = (BFLOAT_DOTS if host.has_bfloat_dots() else FEW_CORES)._replace(
        cores=host.usable_threads(),
        vector_registers=host.vector_registers(),
        vector_bytes=host.vector_bytes(),
    )

    def __init__(self) -> None:
        self.target = host.host_target()
        self.runtime = self._open_runtime()
        self._run = self.runtime.run
        self._names: dict[int | None, str] = {}  # of kernels that log, by address
        self._in_flight: deque[QueuedEvent] = deque()
        self._in_flight_lock = threading.Lock()
        settings.observe("check", self._choose_path)
        settings.observe("schedule", self._choose_path)
        os.register_at_fork(after_in_child=self._forget_in_flight)

    @functools.cached_property
    def libraries(self) -> Libraries:
        """See `Device.libraries`: the BLAS and the sorts of NumPy."""
        libraries = Libraries()
        libraries.blas = HostBlas()
        libraries.sorts = HostSorts()
        return libraries

    def _open_runtime(self) -> native_library.Runtime:
        if not clang.is_available():  # bundles and what is in the cache need none
            return native_library.runtime()
        from concurrent.futures import ThreadPoolExecutor

        from metalloid.compiler.frontend.stdlib_pch import precompiled_header

        # Both are slow the first time on a machine, and cached later.
        with ThreadPoolExecutor(max_workers=1) as pool:
            prelude = pool.submit(precompiled_header, shared_cache(), self.target, "safe")
            runtime = native_library.runtime()
        prelude.result()
        return runtime

    def info(self) -> DeviceInfo:
        """See `Device.info`."""
        model = host.cpu_description().get("model name", self.target.name)
        threads = self.runtime.threads()
        return DeviceInfo(
            self.name,
            f"{model}, {threads} thread{'s' * (threads != 1)}, {host.vector_extension()}",
            host.memory_bytes(),
            threads,
        )

    def compile(
        self, unit: TranslationUnit, entry: EntryPoint, constants: Mapping[int, str]
    ) -> CpuProgram:
        """See `Device.compile`."""
        from metalloid.backends.cpu.runtime.compiled import compile_program  # bundles need none

        return compile_program(unit, entry, constants, self.target, self._names)

    def counted(
        self, unit: TranslationUnit, entry: EntryPoint, constants: Mapping[int, str]
    ) -> CountedProgram:
        """A kernel of any device whose launches here count what they do.

        Raises
        ------
        MetalloidError
            If it does not compile for the CPU.
        """
        from metalloid.backends.cpu.runtime.compiled import compile_counted

        return compile_counted(unit, entry, constants, self.target, self._names)

    def restore(self, entry: EntryPoint, files: Mapping[str, bytes], target: str) -> CpuProgram:
        """See `Device.restore`."""
        versions = BundledVersions(files, self.target.name, shared_cache())
        return CpuProgram(versions.first, entry, versions, self._names, versions.bounds)

    @property
    def bundle_abi(self) -> str:
        """See `Device.bundle_abi`."""
        return native_library.sources_digest()

    def bundle_targets(self) -> Sequence[str]:
        """See `Device.bundle_targets`."""
        return [f"cpu:{level}" for level in host.levels()]

    def thread_code(
        self, unit: TranslationUnit, entry: EntryPoint, constants: Mapping[int, str]
    ) -> ThreadCode:
        """See `Device.thread_code`."""
        from metalloid.backends.cpu.compile.thread_code import thread_code

        return thread_code(unit, entry, constants, self.target, shared_cache())

    def _choose_path(self, _: object) -> None:
        """Keep launches off faster paths while settings ask for checks or a schedule."""
        is_general = self._needs_instrumentation()
        self.default_recorder = _GENERAL_PATH if is_general else None
        if self.recording in (None, _GENERAL_PATH):
            self.recording = self.default_recorder

    @staticmethod
    def _needs_instrumentation() -> bool:
        return settings.check or settings.schedule is not None

    def _checked(self, program: CpuProgram, arguments: Arguments) -> CheckedProgram | None:
        """The program for a launch that is to be checked or scheduled; None if it is neither."""
        if program.is_sanitized:
            return cast("CheckedProgram", program)
        if program.compile_checked is None:
            return None
        if not (arguments.check or self._needs_instrumentation()):
            return None
        return cast("CheckedProgram", program.compile_checked())

    def allocate(self, nbytes: int) -> int:
        """See `Device.allocate`."""
        # A size that does not fit a size_t would be truncated.
        address = nbytes < 2**63 and self.runtime.allocate(max(nbytes, 1))
        if not address:
            raise OutOfMemory(
                f"[Buffer] cannot allocate {nbytes} bytes on this machine "
                f"({host.memory_bytes()} bytes of memory)."
            )
        return int(address)

    def free(self, address: int, nbytes: int) -> None:
        """See `Device.free`."""
        self.runtime.free(address, max(nbytes, 1))

    def copy_in(self, address: int, source: memoryview) -> None:
        """See `Device.copy_in`."""
        self.synchronize()
        view = (ctypes.c_char * source.nbytes).from_address(address)
        memoryview(view).cast("B")[:] = source.cast("B")

    def copy_out(self, address: int, destination: memoryview) -> None:
        """See `Device.copy_out`."""
        self.synchronize()
        view = (ctypes.c_char * destination.nbytes).from_address(address)
        destination.cast("B")[:] = memoryview(view).cast("B")

    def launch(
        self, program: CpuProgram, arguments: Arguments, grid: Size, group: Size, wait: bool
    ) -> Event:
        """See `Device.launch`."""
        checked = self._checked(program, arguments)
        if checked is not None:
            self.synchronize()
            event = checked.run(arguments, grid, group)
            if program.logs:
                self.emit_messages()
            return event
        if self._in_flight and program.reads_buffers(arguments):
            self.synchronize()  # queued launches may write to them
        job = program.job(arguments, grid, group)
        if wait:
            outcome = native_library.Outcome()
            status = self._run(job, outcome)
            if program.logs:
                self.emit_messages()
            if status != 0:
                raise program.failure(outcome, grid, group)
            return FinishedEvent(outcome.seconds)
        ticket = self.runtime.submit(job)
        if ticket == 0:
            raise LaunchError(
                f"[{program.signature.name}] not enough host memory to queue the launch."
            )
        return self._queued(ticket, program, arguments, (grid, group))

    def _queued(
        self,
        ticket: int,
        program: CpuProgram,
        arguments: Arguments | FastArguments,
        sizes: tuple[Size, Size],
    ) -> QueuedEvent:
        event = QueuedEvent(self.runtime, self.emit_messages, ticket, program, arguments, sizes)
        with self._in_flight_lock:
            self._drop_ended()
            self._in_flight.append(event)
        return event

    def fast_launcher(
        self, program: CpuProgram, parameters: Sequence[PlainParameter], sizes: Mapping[Any, Any]
    ) -> FastLaunch | None:
        """See `Launcher.fast_launcher`."""

        def queued(ticket: int, memory: bytes, args: tuple[Any, ...],
                   sizes: tuple[Size, Size]) -> QueuedEvent:  # fmt: skip
            return self._queued(ticket, program, (memory, args), sizes)

        if program.is_sanitized:
            return None
        return fast_launch(self, program, parameters, sizes, queued, self.emit_messages)

    def launch_batch(self, launches: Sequence[Launch], wait: bool) -> Sequence[Event]:
        """See `Device.launch_batch`."""
        checked = any(self._checked(each.program, each.arguments) for each in launches)
        if not wait or len(launches) == 1 or checked:
            return super().launch_batch(launches, wait)
        jobs = [
            launch.program.job(launch.arguments, launch.grid, launch.group) for launch in launches
        ]
        outcome = native_library.Outcome()
        done = self.runtime.run_row(b"".join(jobs), len(jobs), outcome)
        if any(launch.program.logs for launch in launches):
            self.emit_messages()
        if done < len(jobs):
            failed = launches[done]
            raise failed.program.failure(outcome, failed.grid, failed.group)
        return [FinishedEvent(outcome.seconds)] * len(jobs)

    def repeater(
        self,
        launches: Sequence[Launch],
        words: Sequence[tuple[int, int, int]],
        params: Sequence[tuple[int, int, bytearray]],
    ) -> Repeater | None:
        """See `Launcher.repeater`."""
        if any(self._checked(each.program, each.arguments) for each in launches):
            return None
        return CpuRepeater(self.emit_messages, launches, words)

    def synchronize(self) -> None:
        """See `Device.synchronize`."""
        with self._in_flight_lock:
            last = self._in_flight[-1] if self._in_flight else None
        if last is not None:
            last.settle()
            self.settle()

    def settle(self, seconds: float = 0.0) -> None:
        """See `Device.settle`."""
        with self._in_flight_lock:
            if seconds and self._in_flight:
                self._in_flight[-1]._end(seconds)
            self._drop_ended()

    def _drop_ended(self) -> None:
        """Drop the launches that have ended, and record those that failed; needs the lock."""
        while self._in_flight and self._in_flight[0].end_if_done():
            self._in_flight.popleft()

    def emit_messages(self) -> None:
        """Log the messages of kernels so far."""
        from metalloid.runtime.launch.log_messages import emit  # here: most kernels log nothing

        block, dropped = self.runtime.take_messages()
        emit(block, dropped, lambda entry: self._names.get(entry, "?"))

    def _forget_in_flight(self) -> None:
        """Drop the launches of the parent in a forked child."""
        self._in_flight = deque()
        self._in_flight_lock = threading.Lock()


def count_devices() -> int:
    """One: all processors of the machine are one device."""
    return 1


def open_device(index: int) -> CpuDevice:
    """The CPU; builds the native runtime on first use.

    Raises
    ------
    DeviceUnavailable
        Without a compiler.
    """
    return CpuDevice()
