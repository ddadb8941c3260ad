"""Launches that the driver makes in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from metalloid.backends.cuda.runtime.constants import PLACE_BYTES
from metalloid.backends.cuda.runtime.driver import check
from metalloid.backends.cuda.runtime.events import CudaEvent
from metalloid.runtime.launches import Launch, buffers_of

if TYPE_CHECKING:
    from metalloid.backends.cuda.runtime.device import CudaDevice


class CudaGraph:
    """A CUDA graph of launches, one after the other.

    Its numbers have places of their own: those of `Constants` are used again.
    """

    def __init__(self, device: CudaDevice, launches: Sequence[Launch]) -> None:
        bindings = device._driver
        self._device, self._launches = device, list(launches)
        self._name = f"a graph of {len(launches)} launches"
        self._reports = any(launch.program.reports for launch in launches)
        self._buffers = buffers_of(launches)
        self._values = self._place_values()
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

    def _place_values(self) -> int:
        """Copy all numbers to the device, and point to them; the address of their memory."""
        places = [
            (launch.arguments.words, position, value)
            for launch in self._launches for position, value in launch.arguments.constants
        ]  # fmt: skip
        if not places:
            return 0
        address = self._device.allocate(PLACE_BYTES * len(places))
        contents = b"".join(value.ljust(PLACE_BYTES, b"\0") for _, _, value in places)
        self._device.copy_in(address, memoryview(contents))
        for number, (words, position, _) in enumerate(places):
            words[position] = address + number * PLACE_BYTES
        return address

    def launch(self) -> CudaEvent:
        """Run it behind the launches so far."""
        device = self._device
        with device._lock:
            device._enter()
            for buffer in self._buffers:
                if buffer.host_copy is not None:
                    buffer.host_copy.to_device()
            return device.between_marks(self._name, self._reports, self._launches, self._run)

    def _run(self) -> None:
        device = self._device
        (status,) = device._driver.cuGraphLaunch(self._executable, device.stream)
        if status:
            raise device.failure(status, self._name)

    def __del__(self) -> None:
        if hasattr(self, "_executable"):
            self._device._driver.cuGraphExecDestroy(self._executable)
        if getattr(self, "_values", 0):
            self._device.free(self._values, 0)
