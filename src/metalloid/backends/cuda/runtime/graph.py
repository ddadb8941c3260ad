"""Sequences of launches as CUDA graphs."""

from __future__ import annotations

from collections.abc import Sequence

from metalloid.backends.cuda.runtime.context import ContextDevice
from metalloid.backends.cuda.runtime.driver import check
from metalloid.backends.cuda.runtime.events import CudaEvent, record_event
from metalloid.runtime.launch.launches import Launch, buffers_of
from metalloid.runtime.memory.constants import SLOT_BYTES


class CudaGraph:
    """A CUDA graph whose launches run in order.

    It has its own memory for constants, as the slots of `Constants` are used again.
    """

    def __init__(self, device: ContextDevice, launches: Sequence[Launch]) -> None:
        bindings = device.driver
        self._device, self._launches = device, list(launches)
        self._name = f"a graph of {len(launches)} launches"
        self._is_checked = any(launch.program.is_checked for launch in launches)
        self._uses_printf = self._is_checked or any(
            launch.program.uses_printf for launch in launches
        )
        self._last_run: CudaEvent | None = None
        for launch in launches:
            launch.program.add_record(launch.arguments)
        self._buffers = buffers_of(launches)
        self._values = self._copy_constants()
        flags = bindings.CUstream_flags.CU_STREAM_NON_BLOCKING
        stream = check(bindings.cuStreamCreate(flags), "making a stream")
        mode = bindings.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        check(bindings.cuStreamBeginCapture(stream, mode), "recording a graph")
        try:
            for launch in launches:
                device.enqueue(*launch, int(stream))
        finally:
            graph = check(bindings.cuStreamEndCapture(stream), "recording a graph")
            bindings.cuStreamDestroy(stream)
        self._executable = check(bindings.cuGraphInstantiate(graph, 0), "making a graph")
        bindings.cuGraphDestroy(graph)

    def _copy_constants(self) -> int:
        """Copy all constants to the device and point to them; return the address of the memory."""
        slots = [
            (launch.arguments.words, position, value)
            for launch in self._launches for position, value in launch.arguments.constants
        ]  # fmt: skip
        if not slots:
            return 0
        address = self._device.allocate(SLOT_BYTES * len(slots))
        contents = b"".join(value.ljust(SLOT_BYTES, b"\0") for _, _, value in slots)
        self._device.copy_in(address, memoryview(contents))
        for number, (words, position, _) in enumerate(slots):
            words[position] = address + number * SLOT_BYTES
        return address

    def launch(self) -> CudaEvent:
        """Run it after the launches so far."""
        device = self._device
        if self._last_run is not None:
            self._last_run.settle()  # all runs have the same records
        with device.lock:
            device.enter()
            for buffer in self._buffers:
                if buffer.host_copy is not None:
                    buffer.host_copy.to_device()
            event = record_event(device, self._name, self._uses_printf, self._launches, self._run)
        if self._is_checked:
            self._last_run = event
        return event

    def _run(self) -> None:
        device = self._device
        (status,) = device.driver.cuGraphLaunch(self._executable, device.stream)
        if status:
            raise device.failure(status, self._name)

    def __del__(self) -> None:
        if hasattr(self, "_executable"):
            self._device.driver.cuGraphExecDestroy(self._executable)
        if getattr(self, "_values", 0):
            self._device.free(self._values, 0)
