"""Memory of NVIDIA GPUs that other libraries have: where it lies, and whose turn it is.

Our stream is ordered with CUDA's default stream, which most programs never leave, by CUDA itself.
Where another library works on a stream of its own, ours waits for it before a launch, and it for
ours after that. The library says which stream that is: by ``__cuda_array_interface__`` (CuPy,
Numba), or when it is torch, which we ask. Who speaks only DLPack waits for us before that, and not
after; there the launch has ended when it returns.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from metalloid.errors import ArgumentError
from metalloid.runtime.borrowed import Borrowed
from metalloid.runtime.dlpack import read_capsule

#: CUDA's default stream as DLPack and the driver call it. 0 would be the same, but says not which.
DEFAULT_STREAM = 1
#: For DLPack: nobody waits.
NO_STREAM = -1
_DLPACK_TYPES = (2, 13)  # kDLCUDA, kDLCUDAManaged


class Lender(Protocol):
    """What is asked of the device."""

    name: str
    dlpack_device: tuple[int, int]

    @property
    def stream_handle(self) -> int:
        """See `Device.stream_handle`."""

    def number_of_device(self, address: int) -> int:
        """Of the GPU whose memory it is."""

    def follow(self, stream: int) -> None:
        """Let the launches from now on wait for what is under way on a stream."""

    def hand_over(self, stream: int) -> None:
        """See `Device.hand_over`."""


def borrow(device: Lender, value: Any) -> Borrowed | None:
    """The memory of `value`, if it is a GPU's; what is under way on it is waited for by launches.

    Raises
    ------
    ArgumentError
        If it is another GPU's, or of a type that MSL does not have.
    """
    if isinstance(value, type):
        return None
    torch = sys.modules.get("torch")
    is_torch = torch is not None and isinstance(value, torch.Tensor)
    # A tensor of torch's has the interface without the stream, and none that needs a gradient.
    interface = None if is_torch else getattr(value, "__cuda_array_interface__", None)
    if hasattr(value, "__dlpack_device__"):
        kind, number = map(int, value.__dlpack_device__())
        if kind not in _DLPACK_TYPES:
            return None
    elif interface is None:
        return None
    else:
        number = device.number_of_device(interface["data"][0])
    if number != device.dlpack_device[1]:
        raise ArgumentError(f"[{device.name}] the {type(value).__name__} is on GPU {number}.")
    says_type = interface is not None and interface["typestr"][1] != "V"  # bfloat16 has no letter
    has_dlpack = hasattr(value, "__dlpack__")
    if interface is not None and says_type and (interface.get("stream") or not has_dlpack):
        return _by_interface(device, value, interface)
    stream = None
    if torch is not None and is_torch:
        stream = torch.cuda.current_stream(value.device).cuda_stream or DEFAULT_STREAM
    waits_for = NO_STREAM if stream == DEFAULT_STREAM else device.stream_handle
    found = read_capsule(value.__dlpack__(stream=waits_for), value)
    found.waits = stream is None
    found.then = _then(device, stream)
    return found


def _by_interface(device: Lender, value: Any, interface: dict[str, Any]) -> Borrowed:
    if interface.get("mask") is not None:
        raise ArgumentError(f"[{device.name}] the {type(value).__name__} has a mask.")
    # None: there is nothing to wait for. Before version 3 nobody said, and all used the default.
    stream = interface.get("stream") or DEFAULT_STREAM
    if stream != DEFAULT_STREAM:
        device.follow(stream)
    address, read_only = interface["data"]
    return Borrowed(
        address,
        np.dtype(interface["typestr"]),
        tuple(interface["shape"]),
        interface.get("strides"),
        value,
        read_only,
        _then(device, stream),
    )


def _then(device: Lender, stream: int | None) -> Callable[[], None] | None:
    if stream in (None, DEFAULT_STREAM):
        return None
    return functools.partial(device.hand_over, stream)
