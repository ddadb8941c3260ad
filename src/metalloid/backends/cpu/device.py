"""The CPU as a device: Metal kernels on every thread of the processor."""

from __future__ import annotations

import ctypes
import math
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from metalloid.backends.cpu import host, native
from metalloid.backends.cpu.engines import CompiledKernel, KernelRequest, compile_kernel
from metalloid.backends.cpu.faults import INTERRUPTED, error_of, nested
from metalloid.backends.cpu.grouping import (
    default_size,
    joined,
    joined_along,
    lane_axis,
    tells_threadgroups_apart,
)
from metalloid.backends.cpu.known_textures import TextureVariants
from metalloid.backends.cpu.quick import quick_launch
from metalloid.backends.cpu.vector import exactly, variant_for
from metalloid.compiler.frontend.entry import ENTRY_SYMBOL
from metalloid.compiler.frontend.stdlib_pch import precompiled_header
from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.compiler.toolchain.cache import shared_cache
from metalloid.errors import LaunchError, MetalloidError, OutOfMemory
from metalloid.msl.entry_points import EntryPoint
from metalloid.msl.signature import build_signature
from metalloid.runtime.device import Device, DeviceInfo
from metalloid.runtime.event import Event, FinishedEvent
from metalloid.runtime.failures import Failure, record, written_buffers
from metalloid.runtime.launches import Arguments, Launch, PlainParameter, QuickLaunch
from metalloid.runtime.messages import emit
from metalloid.runtime.program import MAX_THREADS_PER_THREADGROUP, Program, Size
from metalloid.runtime.traits import FEW_CORES
from metalloid.settings import settings

_FOREVER = -1.0  # seconds
_MOST_REMEMBERED = 1024  # shapes of launches for which a kernel's variant is known
_FIBRES_BY_DEFAULT = 256  # threads per threadgroup: enough for any reduction, cheap in stacks


class CpuProgram(Program):
    """A kernel as machine code of this process."""

    def __init__(
        self,
        kernel: CompiledKernel,
        entry: EntryPoint,
        variant: Callable[[str], CompiledKernel],
        names: dict[int | None, str],
    ) -> None:
        self.signature = build_signature(entry, kernel.layouts)
        self._first = kernel
        self.logs = kernel.logs
        self._names = names
        self.entry, self.flags = code = self._load(kernel)
        self._widths, self.waits = kernel.widths, kernel.waits
        self._reads_in_loops, self._rows = kernel.reads_in_loops, kernel.rows
        self.threadgroup_bytes = kernel.threadgroup_bytes
        self._variable_bytes = kernel.variable_bytes
        self._compile_variant = variant
        self._variants = {kernel.variant: code}
        self._textures = TextureVariants(self.signature)
        # By grid, group, whether barriers are lenient, and what is known of textures.
        self._chosen: dict[tuple[Size, Size, bool, str], tuple[int, int]] = {}
        # Of strict launches, by grid and group: what stands before the words.
        self.jobs: dict[tuple[Size, Size], bytes] = {}
        self.may_join = bool(kernel.widths) and not (
            kernel.waits
            or kernel.shares
            or kernel.logs  # each message names its threadgroup
            or tells_threadgroups_apart(self.signature)
        )
        self.engine = kernel.engine
        self.max_group_size = min(
            self.signature.limits.most or MAX_THREADS_PER_THREADGROUP, MAX_THREADS_PER_THREADGROUP
        )
        # The runtime keeps the measured time per threadgroup here.
        self._cost = ctypes.c_double(0.0)
        self.cost_address = ctypes.addressof(self._cost)
        self._job = native.job_layout(len(self.signature.sources))

    @property
    def asm(self) -> Mapping[str, str]:
        """Text of each stage: the lowered C++, LLVM IR, and assembly (made when asked for)."""
        return self._first.asm()

    def default_group_size(self, grid: Size) -> Size:
        """See `Program.default_group_size`."""
        left = self.max_group_size
        if self.flags & native.FIBRES:
            left = min(left, _FIBRES_BY_DEFAULT)
        return default_size(grid, left, self._reads_in_loops and self.may_join, self._rows)

    def _code_for(
        self, grid: Size, group: Size, is_lenient: bool, textures: str
    ) -> tuple[int, int]:
        """Address and flags of the variant that a launch needs."""
        by_shape = self._first.variant.startswith(("row", "column"))
        variant = variant_for(grid, group, self._widths, self.waits, by_shape)
        if exactly(variant, grid, group) == self._first.variant:
            variant = self._first.variant
        if textures:
            variant += f"_{textures}"
        if is_lenient:
            variant += "_lenient"
        elif self._first.streamable * math.prod(grid) >= host.cache_bytes():
            variant += "_streaming"
        code = self._variants.get(variant)
        if code is None:
            kernel = self._compile_variant(variant)
            code = self._variants[variant] = self._load(kernel)
            self.engine = kernel.engine
        if len(self._chosen) >= _MOST_REMEMBERED:
            self._chosen.clear()
        self._chosen[grid, group, is_lenient, textures] = code
        return code

    def _load(self, kernel: CompiledKernel) -> tuple[int, int]:
        """Load a kernel's code, for as long as this program lives: its address and flags."""
        library = ctypes.CDLL(str(kernel.code))
        unload = weakref.finalize(self, native.runtime().unload, library._handle)
        unload.atexit = False
        symbol = getattr(library, ENTRY_SYMBOL)
        address = ctypes.cast(symbol, ctypes.c_void_p).value
        assert address is not None
        if self.logs:
            self._names[address] = self.signature.name
        return address, native.FIBRES if kernel.fibres else 0

    def _joined(self, grid: Size, group: Size) -> Size:
        """How many threadgroups run as one in each direction."""
        if not self.may_join:
            return (1, 1, 1)
        axis = lane_axis(group)
        if axis != "x" and axis == self._first.axis:
            return joined_along(axis, grid, group)
        return (*joined(grid, group, self._rows), 1)

    def failure(self, outcome: native.Outcome, grid: Size, group: Size) -> BaseException:
        """The exception for a launch that was waited for: ours, or what Ctrl-C has raised."""
        if outcome.status == INTERRUPTED:
            return native.runtime().interruption()
        return self.error(outcome, grid, group)

    def error(self, outcome: native.Outcome, grid: Size, group: Size) -> MetalloidError:
        """The exception for a launch that did not end well."""
        together = self._joined(grid, group)

        def run_as_one(position: Size) -> tuple[Size, Size]:
            x, y, z = (p * n for p, n in zip(position, together, strict=True))
            right, bottom, back = (
                min(p + n, -(-size // each)) - 1
                for p, n, size, each in zip((x, y, z), together, grid, group, strict=True)
            )
            return (x, y, z), (right, bottom, back)

        return error_of(outcome, self.signature.name, run_as_one, group)

    def job(self, arguments: Arguments, grid: Size, group: Size) -> bytes:
        """A launch as the runtime reads it."""
        words, wanted, (across, down, back) = arguments.words, group, self._joined(grid, group)
        group = (group[0] * across, group[1] * down, group[2] * back)
        entry, flags = self.entry, self.flags
        is_lenient = self.waits and not settings.strict_barriers
        if self._widths:
            textures = self._textures.of_launch(words, math.prod(grid))
            shape = grid, group, is_lenient, textures
            entry, flags = self._chosen.get(shape) or self._code_for(*shape)
        if is_lenient:
            flags |= native.LENIENT
        job = self._job.pack(
            entry, flags, len(words), *grid, *group,
            arguments.threadgroup_bytes, self._variable_bytes, self.cost_address,
            arguments.limit_ns, *words,
        )  # fmt: skip
        if not (is_lenient or arguments.limit_ns) and (grid, wanted) not in self.jobs:
            if len(self.jobs) >= _MOST_REMEMBERED:
                self.jobs.clear()
            self.jobs[grid, wanted] = job[: native.JOB_BYTES]
        return job


class QueuedEvent(Event):
    """A launch in the runtime's queue."""

    def __init__(
        self,
        device: CpuDevice,
        ticket: int,
        program: CpuProgram,
        arguments: Arguments,
        grid: Size,
        group: Size,
    ) -> None:
        self._device, self._ticket = device, ticket
        self._program, self._sizes = program, (grid, group)
        # What the launch uses must live until it has ended.
        self._in_use: Arguments | None = arguments
        self._failure: Failure | None = None
        self._kernel = program.signature.name
        self._outcome = native.Outcome()
        self._lock = threading.Lock()

    def wait(self, timeout: float | None = None) -> QueuedEvent:
        """See `Event.wait`."""
        if not self._end(_FOREVER if timeout is None else max(timeout, 0.0)):
            raise TimeoutError(f"[{self._kernel}] still running after {timeout} s")
        if self._failure is not None:
            self._failure.throw()
        return self

    def settle(self) -> None:
        """See `Event.settle`."""
        self._end(_FOREVER)

    def cancel(self) -> bool:
        """See `Event.cancel`."""
        return bool(self._device.runtime.cancel(self._ticket))

    def _end(self, seconds: float) -> bool:
        """Wait for the end of the launch, so long at most; whether it has ended."""
        if self._in_use is None:
            return True
        if not self._lock.acquire(timeout=min(seconds, threading.TIMEOUT_MAX)):
            return False  # another thread waits for the end
        try:
            if self._in_use is not None and not self._fetch_outcome(seconds):
                return False
        finally:
            self._lock.release()
        if self._program.logs:
            self._device.emit_messages()
        return True

    def _fetch_outcome(self, seconds: float) -> bool:
        runtime = self._device.runtime
        result = runtime.wait(self._ticket, seconds, self._outcome)
        if result == native.INTERRUPTED:
            raise runtime.interruption()
        if result == native.NESTED:
            raise nested(self._kernel)
        if result == native.STILL_RUNNING:
            return False
        if self._outcome.status and self._in_use is not None:
            error = self._program.error(self._outcome, *self._sizes)
            written = written_buffers(self._program.signature, self._in_use)
            self._failure = record(error, written)
        self._in_use = None  # last: other threads look at it without the lock
        return True

    @property
    def done(self) -> bool:
        """See `Event.done`."""
        return self._end(0.0)

    @property
    def seconds(self) -> float:
        """See `Event.seconds`."""
        self.wait()
        return float(self._outcome.seconds)

    def __repr__(self) -> str:
        if not self.done:
            return f"<Event: {self._kernel}, running>"
        return f"<Event: {self._kernel}, {'done' if self._failure is None else 'failed'}>"


class CpuDevice(Device):
    """The processor this program runs on."""

    name = "cpu"
    memory = "host"
    traits = FEW_CORES

    def __init__(self) -> None:
        self.target = host.host_target()
        # Both take a moment the first time on a machine; later they are found in the cache.
        with ThreadPoolExecutor(max_workers=1) as pool:
            prelude = pool.submit(precompiled_header, shared_cache(), self.target, "safe")
            self.runtime = native.runtime()
            prelude.result()
        self._run = self.runtime.run
        self._names: dict[int | None, str] = {}  # of kernels that log, by address
        self._in_flight: deque[QueuedEvent] = deque()
        self._in_flight_lock = threading.Lock()
        os.register_at_fork(after_in_child=self._forget_in_flight)

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
        first = KernelRequest(unit, entry, constants, self.target, settings.cpu_engine)

        def variant(name: str) -> CompiledKernel:
            return compile_kernel(replace(first, variant=name), shared_cache())

        return CpuProgram(variant(""), entry, variant, self._names)

    def allocate(self, nbytes: int) -> int:
        """See `Device.allocate`."""
        # What a size_t cannot hold would arrive there as something small.
        address = nbytes < 2**63 and self.runtime.allocate(max(nbytes, 1))
        if not address:
            raise OutOfMemory(
                f"[Buffer] {nbytes} bytes are more than this machine can give "
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
        job = program.job(arguments, grid, group)
        if wait:
            outcome = native.Outcome()
            status = self._run(job, outcome)
            if program.logs:
                self.emit_messages()
            if status != 0:
                raise program.failure(outcome, grid, group)
            return FinishedEvent(outcome.seconds)
        ticket = self.runtime.submit(job)
        if ticket == 0:
            raise LaunchError(f"[{program.signature.name}] there is no memory to queue the launch.")
        event = QueuedEvent(self, ticket, program, arguments, grid, group)
        with self._in_flight_lock:
            self._drop_ended()
            self._in_flight.append(event)
        return event

    def quick(
        self, program: CpuProgram, parameters: Sequence[PlainParameter], sizes: Mapping[Any, Any]
    ) -> QuickLaunch | None:
        """See `Launcher.quick`."""
        return quick_launch(self, program, parameters, sizes)

    def launch_batch(self, launches: Sequence[Launch], wait: bool) -> Sequence[Event]:
        """See `Device.launch_batch`."""
        if not wait or len(launches) == 1:
            return super().launch_batch(launches, wait)
        jobs = [one.program.job(one.arguments, one.grid, one.group) for one in launches]
        outcome = native.Outcome()
        done = self.runtime.run_row(b"".join(jobs), len(jobs), outcome)
        if any(launch.program.logs for launch in launches):
            self.emit_messages()
        if done < len(jobs):
            failed = launches[done]
            raise failed.program.failure(outcome, failed.grid, failed.group)
        return [FinishedEvent(outcome.seconds)] * len(jobs)

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
        """Let go of the launches that have ended, which notes those that failed; locked."""
        while self._in_flight and self._in_flight[0].done:
            self._in_flight.popleft()

    def emit_messages(self) -> None:
        """Hand what kernels have logged so far to Python's `logging`."""
        block, dropped = self.runtime.take_messages()
        emit(block, dropped, lambda entry: self._names.get(entry, "?"))

    def _forget_in_flight(self) -> None:
        """In a forked child: the parent's launches are not ours."""
        self._in_flight = deque()
        self._in_flight_lock = threading.Lock()


def count_devices() -> int:
    """One: all processors of the machine together."""
    return 1


def open_device(index: int) -> CpuDevice:
    """The CPU; builds the native runtime if this machine has not yet.

    Raises
    ------
    DeviceUnavailable
        Without a compiler.
    """
    return CpuDevice()
