"""Launches that run again and again, with other addresses in some of their words."""

from __future__ import annotations

from collections.abc import Sequence

from metalloid.backends.cuda.runtime.context import ContextDevice
from metalloid.backends.cuda.runtime.events import CudaEvent, record_event
from metalloid.runtime.launch.launches import Launch, LaunchBuffer


class CudaRepeater:
    """See `Launcher.repeater`. The launches go to the stream, one after another."""

    native = None

    def __init__(self, device: ContextDevice, launches: Sequence[Launch],
                 words: Sequence[tuple[int, int, int]],
                 params: Sequence[tuple[int, int, bytearray]]) -> None:  # fmt: skip
        self._device, self._launches = device, [each for each in launches if 0 not in each.grid]
        arguments = [launch.arguments for launch in launches]
        self._words = [(arguments[k].words, position, address) for k, position, address in words]
        self._params = [(arguments[k].words, position, memory) for k, position, memory in params]
        self._name = ", ".join(dict.fromkeys(launch.program.name for launch in launches))
        self._uses_printf = any(launch.program.uses_printf for launch in launches)

    def __call__(self, addresses: Sequence[int], written: Sequence[LaunchBuffer]) -> CudaEvent:
        """Add the launches to the stream."""
        device = self._device
        with device.lock:
            if not device.is_entered:
                device.enter()
            for words, position, address in self._words:
                words[position] = addresses[address]
            for words, position, memory in self._params:
                words[position] = device.constants[bytes(memory)]
            return record_event(device, self._name, self._uses_printf, written, self._enqueue)

    def _enqueue(self) -> None:
        device = self._device
        for launch in self._launches:
            device.enqueue(*launch, device.stream_handle)
