"""Apple's GPUs as devices: Metal kernels by Metal itself."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from metalloid.backends.metal.compile.limits import Limits
from metalloid.backends.metal.compile.programs import MetalProgram, Programs, front_end_target
from metalloid.backends.metal.pyobjc.binding import Binding, open_binding
from metalloid.backends.metal.runtime.batch import Batch, MetalEvent
from metalloid.backends.metal.runtime.capture import capturing
from metalloid.backends.metal.runtime.commands import Command
from metalloid.backends.metal.runtime.logs import Logs
from metalloid.backends.metal.runtime.memory import Heap
from metalloid.backends.metal.runtime.products import MetalLibraries, ProductCommand
from metalloid.backends.metal.runtime.resolve import command_of
from metalloid.backends.metal.runtime.samplers import Samplers
from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.errors import DeviceUnavailable, LaunchError
from metalloid.msl.entry_points import EntryPoint
from metalloid.runtime.devices.device import Device, DeviceInfo
from metalloid.runtime.devices.traits import MATRIX_UNITS
from metalloid.runtime.launch.event import Event, FinishedEvent
from metalloid.runtime.launch.launches import Arguments
from metalloid.runtime.launch.program import Size

#: A batch goes to the GPU with so many launches, or when its first has waited so many seconds.
_MAX_LAUNCHES = 64
_LONGEST_BATCH = 0.002
#: Maximum number of batches in flight: Metal's queues take 64 command buffers.
_MAX_IN_FLIGHT = 48


#: Families of GPUs that a report names.
_FAMILIES = tuple(
    f"MTLGPUFamily{name}"
    for name in (*(f"Apple{number}" for number in range(1, 11)), "Mac2", "Common3", "Metal3")
)


class MetalDevice(Device):
    """One GPU, by one queue.

    Launches are collected in a batch, which becomes a command buffer when it is full or old, or
    when a result is requested.
    """

    memory = "shared"
    has_float64 = False
    traits = MATRIX_UNITS

    def __init__(self, gpu: Any, index: int, binding: Binding) -> None:
        self.gpu, self.binding = gpu, binding
        self.name = f"metal:{index}" if index else "metal"
        self.by_default = not binding.is_software
        self.target = front_end_target()
        module = binding.module
        self.queue = gpu.newCommandQueue()
        self.concurrent = module.MTLDispatchTypeConcurrent
        self.buffers_scope = module.MTLBarrierScopeBuffers
        read, write = module.MTLResourceUsageRead, module.MTLResourceUsageWrite
        #: Of resources that kernels only read, and of others.
        self.usages = (read, read | write)
        self.completed = module.MTLCommandBufferStatusCompleted
        self.is_exact = _runs_partial_threadgroups(gpu, module)
        self.heap = Heap(gpu, binding)
        self.samplers = Samplers(gpu, module)
        self.logs = Logs(gpu, module)
        self.limits = Limits(gpu, module)
        self._programs = Programs(gpu, binding, self.target, self.limits)
        self.libraries = MetalLibraries(self)
        self._open: Batch | None = None
        self._in_flight: deque[Batch] = deque()
        self._lock = threading.RLock()
        os.register_at_fork(after_in_child=self._forget_in_flight)

    def info(self) -> DeviceInfo:
        """See `Device.info`."""
        kind = "software Metal device on " if self.binding.is_software else ""
        memory = "unified memory" if self.gpu.hasUnifiedMemory() else "memory of its own"
        return DeviceInfo(
            self.name,
            f"{kind}{self.gpu.name()}, {memory}",
            int(self.gpu.recommendedMaxWorkingSetSize()),
            1,
        )

    def details(self) -> dict[str, str]:
        """See `Device.details`."""
        gpu, module = self.gpu, self.binding.module
        families = [
            name.removeprefix("MTLGPUFamily")
            for name in _FAMILIES
            if gpu.supportsFamily_(getattr(module, name))
        ]
        return {
            "GPU": str(gpu.name()),
            "macOS": platform.mac_ver()[0] or "none",
            "families": ", ".join(families) or "none that is known",
            "partial threadgroups": "yes" if self.is_exact else "no",
            "threadgroup memory": f"{gpu.maxThreadgroupMemoryLength()} bytes",
            "largest buffer": f"{gpu.maxBufferLength()} bytes",
            "working set": f"{gpu.recommendedMaxWorkingSetSize()} bytes",
            "in use": f"{gpu.currentAllocatedSize()} bytes",
        }

    def compile(
        self, unit: TranslationUnit, entry: EntryPoint, constants: Mapping[int, str]
    ) -> MetalProgram:
        """See `Device.compile`."""
        return self._programs.make(unit, entry, constants)

    @property
    def can_check_accesses(self) -> bool:
        """See `Device.can_check_accesses`: Metal makes the checks."""
        return self._programs.can_validate

    def allocate(self, nbytes: int) -> int:
        """See `Device.allocate`."""
        return self.heap.allocate(nbytes).address

    def free(self, address: int, nbytes: int) -> None:
        """See `Device.free`."""
        self.heap.free(address)

    def copy_in(self, address: int, source: memoryview) -> None:
        """See `Device.copy_in`."""
        self._settle_memory(address)
        view = (ctypes.c_char * source.nbytes).from_address(address)
        memoryview(view).cast("B")[:] = source.cast("B")

    def copy_out(self, address: int, destination: memoryview) -> None:
        """See `Device.copy_out`."""
        self._settle_memory(address)
        view = (ctypes.c_char * destination.nbytes).from_address(address)
        destination.cast("B")[:] = memoryview(view).cast("B")

    def _settle_memory(self, address: int) -> None:
        """Let the launches end that use the memory of an address."""
        holder = self.heap.holding(address)
        if holder is not None and holder.batch is not None:
            holder.batch.wait(None)
            holder.batch = None

    def launch(
        self, program: MetalProgram, arguments: Arguments, grid: Size, group: Size, wait: bool
    ) -> Event:
        """See `Device.launch`."""
        if 0 in grid:
            return FinishedEvent(0.0)
        if group not in program.groups:
            self.limits.check_group(program.signature.name, group)
            program.groups.add(group)
        if not self.is_exact and any(n % g for n, g in zip(grid, group, strict=True)):
            raise LaunchError(
                f"[{program.signature.name}] {self.gpu.name()} runs whole threadgroups only: "
                f"{grid} threads do not divide into threadgroups of {group}. "
                "Choose threads= and group_size= so that they do."
            )
        with self._lock:
            batch = self._add(command_of(program, arguments, grid, group, self), wait)
        event = MetalEvent(batch, program.signature.name)
        return event.wait() if wait else event

    def _add(self, command: Command | ProductCommand, wait: bool) -> Batch:
        """Put a command into the open batch, which goes to the GPU when it must; locked."""
        batch = self._open
        if batch is None:
            batch = self._open = Batch(self, self.flush, self.finish_through)
        batch.add(command)
        if wait or batch.count >= _MAX_LAUNCHES or batch.is_old(_LONGEST_BATCH):
            self._commit(batch)
        return batch

    def enqueue(self, make: Callable[[], ProductCommand]) -> Event:
        """Put what is no kernel into the open batch."""
        with self._lock:
            command = make()
            return MetalEvent(self._add(command, False), command.name)

    def dispatch_of(self, encoder: Any) -> Callable[[Size, Size], Any]:
        """The encoder's method to dispatch a grid of threads."""
        if self.is_exact:
            dispatch: Callable[[Size, Size], Any] = encoder.dispatchThreads_threadsPerThreadgroup_
            return dispatch

        def dispatch_groups(grid: Size, group: Size) -> None:
            groups = tuple(n // g for n, g in zip(grid, group, strict=True))
            encoder.dispatchThreadgroups_threadsPerThreadgroup_(groups, group)

        return dispatch_groups

    def flush(self, batch: Batch) -> None:
        """Commit a batch, if it is still open."""
        with self._lock:
            if not batch.is_committed:
                self._commit(batch)

    def _commit(self, batch: Batch) -> None:
        self._open = None
        while len(self._in_flight) >= _MAX_IN_FLIGHT:
            self._in_flight.popleft().wait(None)
        while self._in_flight and self._in_flight[0].is_over():
            self._in_flight.popleft().finish()
        self._in_flight.append(batch)
        batch.commit()

    def finish_through(self, batch: Batch) -> None:
        """Take what batches have left up to one that has ended: those before it have, too."""
        with self._lock:
            while batch in self._in_flight:
                earlier = self._in_flight[0]
                if earlier is not batch:
                    earlier.wait(None)
                else:
                    self._in_flight.popleft()
        batch.finish()

    def synchronize(self) -> None:
        """See `Device.synchronize`."""
        with self._lock:
            if self._open is not None:
                self._commit(self._open)
            batches = list(self._in_flight)
        for batch in batches:
            batch.wait(None)

    @contextlib.contextmanager
    def capture(self, path: str) -> Iterator[None]:
        """Write what the GPU does within a ``with`` block to a file that Xcode shows."""
        self.synchronize()
        with capturing(self.gpu, self.binding, path):
            yield
            self.synchronize()

    def _forget_in_flight(self) -> None:
        """In a forked child: the parent's launches are not ours, and Metal does not work there."""
        self._open, self._in_flight, self._lock = None, deque(), threading.RLock()


def _runs_partial_threadgroups(gpu: Any, module: Any) -> bool:
    """Whether a grid need not be a whole number of threadgroups."""
    families = ("Apple4", "Mac2", "Common3", "Metal3")
    return any(gpu.supportsFamily_(getattr(module, f"MTLGPUFamily{name}")) for name in families)


def _gpus(binding: Binding) -> list[Any]:
    """Every GPU, the system's default first."""
    module = binding.module
    default = module.MTLCreateSystemDefaultDevice()
    if default is None:
        raise DeviceUnavailable("[metal] this machine has no GPU that supports Metal.")
    others = [gpu for gpu in module.MTLCopyAllDevices() or () if
              gpu.registryID() != default.registryID()]  # fmt: skip
    return [default, *others]


def count_devices() -> int:
    """The number of GPUs.

    Raises
    ------
    DeviceUnavailable
        Where there is no Metal, with the reason.
    """
    return len(_gpus(open_binding()))


def open_device(index: int) -> MetalDevice:
    """A GPU.

    Raises
    ------
    DeviceUnavailable
    """
    binding = open_binding()
    return MetalDevice(_gpus(binding)[index], index, binding)
