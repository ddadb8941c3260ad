"""The queue of a device, its memory, and the launches in flight."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from metalloid.backends.opencl.compile.target import spirv_target
from metalloid.backends.opencl.runtime.launcher import native
from metalloid.backends.opencl.runtime.memory import Heap
from metalloid.backends.opencl.runtime.platforms import binding, subgroup_size, usable_devices
from metalloid.errors import LaunchError
from metalloid.runtime.devices.device import Device, DeviceInfo
from metalloid.runtime.launch.fault_records import FaultRecords
from metalloid.runtime.memory.constants import Constants

_MAX_IN_FLIGHT = 256


class InFlight(Protocol):
    """A launch in the queue: an `OpenclEvent`."""

    def end(self, timeout: float | None = None) -> bool:
        """Wait until it has ended, up to a timeout; return whether it has."""


class QueueDevice(Device):
    """A device of OpenCL as far as its queue and memory go.

    Attributes
    ----------
    handle
        pyopencl's device.
    native : Native
    queue_handle : int
        Of the queue, which is in order.
    lock : threading.RLock
        Held while a launch is enqueued: kernels have one set of arguments. Fast launches hold the
        interpreter's lock instead, as does `Native.launch`.
    is_blocked : bool
        Whether it can run nothing in this process.
    is_system : bool
        Whether kernels may use any memory of the process, so that launches need not name theirs.
    heap : Heap
    constants : Constants
    fault_records : FaultRecords
    in_flight : deque of callable
        References to the latest events, if the program holds them.
    """

    memory = "own"
    by_default = False

    def __init__(self, index: int) -> None:
        cl = binding()
        self.name = f"opencl:{index}"
        self.handle = handle = usable_devices()[index]
        self.target = spirv_target(subgroup_size(handle))
        self.has_float64 = "cl_khr_fp64" in handle.extensions.split()
        self._context = cl.Context([handle])
        timing = cl.command_queue_properties.PROFILING_ENABLE
        self._queue = cl.CommandQueue(self._context, handle, properties=timing)
        self.native, self.queue_handle = native(), int(self._queue.int_ptr)
        capabilities, kinds = handle.svm_capabilities, cl.device_svm_capabilities
        self.is_system = bool(capabilities & kinds.FINE_GRAIN_SYSTEM)
        is_fine = bool(capabilities & kinds.FINE_GRAIN_BUFFER)
        self.heap = Heap(self._context, self._queue, is_fine)
        self.lock = threading.RLock()
        self.in_flight: deque[Callable[[], InFlight | None]] = deque(maxlen=_MAX_IN_FLIGHT)
        self._watched: deque[Callable[[], InFlight | None]] = deque()
        self.constants = Constants(self.heap.allocate(Constants.ARENA_BYTES), self._write_constant)
        self.fault_records = (
            FaultRecords(self.heap.allocate) if is_fine
            else FaultRecords(self.heap.allocate, self.heap.bytes_at, self.heap.fill)
        )  # fmt: skip
        self.is_blocked = False
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self.is_blocked = True

    def require_usable(self) -> None:
        """Raise `LaunchError` in a process that was forked."""
        if self.is_blocked:
            raise LaunchError(
                f"[{self.name}] OpenCL does not survive a fork. Start the process by another "
                "method: multiprocessing.set_start_method('spawn')."
            )

    def failure(self, status: int, kernel: str) -> LaunchError:
        """The error for a status that a launch returned."""
        text = binding().status_code.to_string(status, "error %d")
        return LaunchError(f"[{kernel}] {self.name} cannot launch it: OpenCL reports {text}.")

    def info(self) -> DeviceInfo:
        """See `Device.info`."""
        handle = self.handle
        return DeviceInfo(
            self.name,
            f"{handle.name.strip()}, {handle.platform.name.strip()}, {handle.version.strip()}",
            int(handle.global_mem_size),
            int(handle.max_compute_units),
        )

    def details(self) -> dict[str, str]:
        """See `Device.details`."""
        handle = self.handle
        return {
            "driver": handle.driver_version,
            "SPIR-V": handle.il_version,
            "shared virtual memory": str(int(handle.svm_capabilities)),
            "threadgroup memory": f"{handle.local_mem_size} bytes",
            "threads of a threadgroup": str(handle.max_work_group_size),
            "largest buffer": f"{handle.max_mem_alloc_size} bytes",
        }

    # -- launches in flight

    def watch(self, event: InFlight) -> None:
        """Let a launch end even if the program has dropped its event, as it may have failed."""
        self._watched.append(lambda: event)
        if len(self._watched) > _MAX_IN_FLIGHT:
            self._end_first(self._watched, None)

    def synchronize(self) -> None:
        """See `Device.synchronize`."""
        self._queue.finish()
        self.settle()

    def settle(self, seconds: float = 0.0) -> None:
        """See `Device.settle`."""
        for events in (self._watched, self.in_flight):
            while events and self._end_first(events, seconds):
                pass

    def _end_first(
        self, events: deque[Callable[[], InFlight | None]], timeout: float | None
    ) -> bool:
        """Wait for the first of some events, and forget it; whether it has ended."""
        with self.lock:
            reference = events[0] if events else None
        event = reference and reference()
        if event is not None and not event.end(timeout):
            return False
        with self.lock:
            if events and events[0] is reference:
                events.popleft()
        return True

    # -- memory

    def allocate(self, nbytes: int) -> int:
        """See `Device.allocate`."""
        address = self.heap.allocate(nbytes)
        self.heap.fill(address, nbytes)
        return address

    def free(self, address: int, nbytes: int) -> None:
        """See `Device.free`."""
        if not self.is_blocked:
            self.heap.free(address)

    def copy_in(self, address: int, source: memoryview) -> None:
        """See `Device.copy_in`."""
        self.heap.write(address, source)

    def copy_out(self, address: int, destination: memoryview) -> None:
        """See `Device.copy_out`."""
        self.heap.read(address, destination)

    def _write_constant(self, address: int, value: bytes) -> None:
        self.heap.write(address, memoryview(value))
