"""Memory of NVIDIA GPUs that is shared with other libraries, and the order of streams.

CUDA orders our stream with its default stream, which most programs never leave. Where another
library works on a stream of its own, our stream waits for it before a launch, and it waits for ours
after that. The library tells which stream it uses: by ``__cuda_array_interface__`` (CuPy, Numba);
for torch we ask it. Libraries that support only DLPack wait for our stream before a launch, but
not after it; with them a launch has ended when it returns.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from metalloid.backends.cuda.runtime.context import ContextDevice
from metalloid.backends.cuda.runtime.driver import check
from metalloid.errors import ArgumentError
from metalloid.runtime.interop.dlpack import capsule_of, read_capsule
from metalloid.runtime.interop.exchange import Exchange
from metalloid.runtime.interop.strided import Imported

#: CUDA's default stream in DLPack and in the driver; 0 would be ambiguous.
DEFAULT_STREAM = 1
#: For DLPack: no synchronisation.
NO_STREAM = -1
_CUDA, _MANAGED = 2, 13  # types of device of DLPack


class CudaExchange(Exchange):
    """The exchange of one GPU."""

    _device: ContextDevice

    def __init__(self, device: ContextDevice, index: int) -> None:
        super().__init__(device)
        self.dlpack_device = (_CUDA, index)
        self.stream_handle = int(device.stream)
        untimed = device.driver.CUevent_flags.CU_EVENT_DISABLE_TIMING
        self._event = check(device.driver.cuEventCreate(untimed), "making an event")

    def import_memory(self, value: Any) -> Imported | None:
        """See `Exchange.import_memory`: launches wait for the work on the memory so far.

        Raises
        ------
        ArgumentError
            If it is another GPU's, or of a type that MSL does not have.
        BufferError
            If its capsule cannot be read.
        """
        if isinstance(value, type):
            return None
        torch = sys.modules.get("torch")
        is_torch = torch is not None and isinstance(value, torch.Tensor)
        # Tensors of torch have the interface without a stream; not those that require a gradient.
        interface = None if is_torch else getattr(value, "__cuda_array_interface__", None)
        if hasattr(value, "__dlpack_device__"):
            kind, number = map(int, value.__dlpack_device__())
            if kind not in (_CUDA, _MANAGED):
                return None
        elif interface is None:
            return None
        else:
            number = self.number_of_device(interface["data"][0])
        if number != self.dlpack_device[1]:
            name = self._device.name
            raise ArgumentError(f"[{name}] the {type(value).__name__} is on GPU {number}.")
        # bfloat16 has no type letter
        has_type = interface is not None and interface["typestr"][1] != "V"
        has_dlpack = hasattr(value, "__dlpack__")
        if interface is not None and has_type and (interface.get("stream") or not has_dlpack):
            return self._by_interface(value, interface)
        stream = None
        if torch is not None and is_torch:
            stream = torch.cuda.current_stream(value.device).cuda_stream or DEFAULT_STREAM
        waits_for = NO_STREAM if stream == DEFAULT_STREAM else self.stream_handle
        imported = read_capsule(capsule_of(value, stream=waits_for), value)
        imported.waits = stream is None
        imported.then = self._then(stream)
        return imported

    def _by_interface(self, value: Any, interface: dict[str, Any]) -> Imported:
        if interface.get("mask") is not None:
            raise ArgumentError(
                f"[{self._device.name}] the {type(value).__name__} has a mask, which is not "
                "supported."
            )
        # None: no synchronisation. Before version 3 it was not given, and was the default stream.
        stream = interface.get("stream") or DEFAULT_STREAM
        if stream != DEFAULT_STREAM:
            self.follow(stream)
        address, read_only = interface["data"]
        return Imported(
            address,
            np.dtype(interface["typestr"]),
            tuple(interface["shape"]),
            interface.get("strides"),
            value,
            read_only,
            self._then(stream),
        )

    def _then(self, stream: int | None) -> Callable[[], None] | None:
        if stream in (None, DEFAULT_STREAM):
            return None
        return functools.partial(self.hand_over, stream)

    def number_of_device(self, address: int) -> int:
        """The number of the GPU that owns an address."""
        bindings = self._device.driver
        attribute = bindings.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        self._device.enter()
        return int(check(bindings.cuPointerGetAttribute(attribute, address), "asking where"))

    def follow(self, stream: int) -> None:
        """Make later launches wait for the work on a stream so far."""
        self._order(stream, self._device.stream)

    def hand_over(self, stream: int) -> None:
        """See `Exchange.hand_over`."""
        if stream != DEFAULT_STREAM:  # it waits by itself
            self._order(self._device.stream, stream)

    def _order(self, first: Any, then: Any) -> None:
        bindings = self._device.driver
        with self._device.lock:
            self._device.enter()
            check(bindings.cuEventRecord(self._event, first), "marking a stream")
            check(bindings.cuStreamWaitEvent(then, self._event, 0), "waiting for a stream")
