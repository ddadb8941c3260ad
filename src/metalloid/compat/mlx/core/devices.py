"""Devices and streams, as far as a program can see them, and counters of memory.

All arrays are on one device of metalloid, the default one. ``mx.gpu`` is that device if it is a
GPU. Streams are names: metalloid orders launches by the memory that they use.
"""

from __future__ import annotations

import enum
import itertools
import os
import platform
import threading
from typing import Any

import metalloid as mtl
from metalloid.compat.mlx.core.array import unwrapped_leaves
from metalloid.runtime.devices.device import Device as OwnDevice
from metalloid.runtime.devices.registry import default_device as own_device

__all__ = [
    "Device", "DeviceType", "Stream", "StreamContext", "ThreadLocalStream", "clear_cache",
    "clear_streams", "cpu", "default_device", "default_stream", "device_count", "device_info",
    "get_active_memory", "get_array_buffer_size", "get_cache_memory", "get_memory_limit",
    "get_peak_memory", "gpu", "is_available", "new_stream", "new_thread_local_stream",
    "new_thread_unsafe_stream", "reset_peak_memory", "set_cache_limit", "set_default_device",
    "set_default_stream", "set_memory_limit", "set_wired_limit", "stream", "synchronize",
]  # fmt: skip


class DeviceType(enum.Enum):
    """Type of a device."""

    cpu = 0
    gpu = 1

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Device):
            return self is other.type
        return self is other

    __hash__ = enum.Enum.__hash__

    def __repr__(self) -> str:
        return f"DeviceType.{self.name}"


cpu = DeviceType.cpu
gpu = DeviceType.gpu


class Device:
    """A device.

    Attributes
    ----------
    type : DeviceType
    index : int
    """

    def __init__(self, type: DeviceType, index: int = 0) -> None:
        self._type, self.index = type, index

    @property
    def type(self) -> DeviceType:
        """Type of the device."""
        return self._type

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DeviceType):
            return self._type is other
        return isinstance(other, Device) and (self._type, self.index) == (other._type, other.index)

    def __hash__(self) -> int:
        return hash(self._type)

    def __repr__(self) -> str:
        return f"Device({self._type.name}, {self.index})"


class Stream:
    """A stream of a device."""

    def __init__(self, device: Device, index: int) -> None:
        self._device, self.index = device, index
        self._thread: int | None = None

    @property
    def device(self) -> Device:
        """Device of the stream."""
        return self._device

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.index == other.index

    def __hash__(self) -> int:
        return hash(self.index)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._device}, {self.index})"


class ThreadLocalStream(Stream):
    """A stream of a device; each thread has one of its own."""


class _Defaults(threading.local):
    """The defaults of a thread."""

    def __init__(self) -> None:
        self.device: Device | None = None
        self.streams: dict[Device, Stream] = {}


_defaults = _Defaults()
#: Errors of computations that `async_eval` has started.
failures: list[Exception] = []
_numbers = itertools.count(2)
_first_streams = {kind: Stream(Device(kind), kind.value) for kind in DeviceType}


#: Whether programs are told of an Apple GPU; see `metalloid.compat.mlx.install`.
reports_metal = [False]


def _has_gpu() -> bool:
    return reports_metal[0] or not own_device().name.startswith("cpu")


def is_available(device: Device | DeviceType) -> bool:
    """Whether there is a device."""
    kind, index = (device.type, device.index) if isinstance(device, Device) else (device, 0)
    return index < device_count(kind)


def device_count(device_type: DeviceType) -> int:
    """Number of devices of a type."""
    return 1 if device_type is cpu or _has_gpu() else 0


def default_device() -> Device:
    """The default device: a GPU if there is one."""
    return _defaults.device or Device(gpu if _has_gpu() else cpu)


def set_default_device(device: Device | DeviceType) -> None:
    """Set the default device.

    Raises
    ------
    ValueError
        If it is not available.
    """
    device = _device(device, "set_default_device")
    if not is_available(device):
        raise ValueError("[set_default_device] Cannot set gpu device without gpu backend.")
    _defaults.device = device


def _device(value: Any, where: str) -> Device:
    if isinstance(value, Device):
        return value
    if isinstance(value, DeviceType):
        return Device(value)
    raise TypeError(f"{where}(): incompatible function arguments: {value!r} is not a device.")


def default_stream(device: Device | DeviceType) -> Stream:
    """The default stream of a device."""
    device = _device(device, "default_stream")
    if not is_available(device):
        raise ValueError("[default_stream] Cannot get gpu stream without gpu backend.")
    return _defaults.streams.get(device) or _first_streams[device.type]


def set_default_stream(stream: Stream) -> None:
    """Make a stream the default one of its device."""
    if not isinstance(stream, Stream):
        raise TypeError(
            f"set_default_stream(): incompatible function arguments: {stream!r} is not a stream."
        )
    _defaults.streams[stream.device] = stream


def new_stream(device: Device | DeviceType) -> Stream:
    """A new stream of a device."""
    device = _device(device, "new_stream")
    if not is_available(device):
        raise ValueError("[new_stream] Cannot make gpu stream without gpu backend.")
    stream = Stream(device, next(_numbers))
    stream._thread = threading.get_ident()
    return stream


def new_thread_unsafe_stream(device: Device | DeviceType) -> Stream:
    """A new stream of a device, for all threads."""
    stream = new_stream(device)
    stream._thread = None
    return stream


def new_thread_local_stream(device: Device | DeviceType) -> ThreadLocalStream:
    """A new stream of a device for each thread."""
    return ThreadLocalStream(_device(device, "new_thread_local_stream"), next(_numbers))


def clear_streams() -> None:
    """Forget streams; there is nothing to free."""


class StreamContext:
    """Context in which a stream or a device is the default; see `stream`."""

    def __init__(self, s: Stream | Device | DeviceType) -> None:
        self._stream = s if isinstance(s, Stream) else default_stream(_device(s, "stream"))

    def __enter__(self) -> None:
        device = self._stream.device
        if self._stream._thread not in (None, threading.get_ident()):
            raise RuntimeError(f"There is no {self._stream} in current thread.")
        self._before = _defaults.device, _defaults.streams.get(device)
        set_default_device(device)
        set_default_stream(self._stream)

    def __exit__(self, *_: object) -> None:
        device, stream = self._before
        _defaults.device = device
        _defaults.streams.pop(self._stream.device, None)
        if stream is not None:
            set_default_stream(stream)


def stream(s: Stream | Device | DeviceType) -> StreamContext:
    """A context in which a stream or a device is the default."""
    return StreamContext(s)


def check_stream(value: Any, where: str) -> None:
    """Check the argument `stream` of an operation.

    Raises
    ------
    TypeError
        If it is neither a stream nor a device.
    ValueError
        If its device is not available.
    """
    if isinstance(value, Device | DeviceType):
        default_stream(value)
    elif not isinstance(value, Stream):
        raise TypeError(
            f"{where}(): incompatible function arguments: expected a stream or a device, got "
            f"{value!r}."
        )


def synchronize(stream: Any = None) -> None:
    """Wait for all computations.

    Raises
    ------
    RuntimeError
        If one that `async_eval` has started failed.
    """
    if stream is not None:
        check_stream(stream, "synchronize")
    _own().synchronize()
    if failures:
        message = str(failures.pop())
        failures.clear()
        raise RuntimeError(message)


def _own() -> OwnDevice:
    return own_device()


def device_info(d: Any = None) -> dict[str, Any]:
    """Properties of a device."""
    device = default_device() if d is None else _device(d, "device_info")
    if not is_available(device):
        raise ValueError(f"[device_info] {device} is not available.")
    info: dict[str, Any] = {"device_name": _own().name, "architecture": platform.machine()}
    if device.type is gpu:
        memory = _total_memory()
        info |= {"memory_size": memory, "max_recommended_working_set_size": memory * 3 // 4,
                 "max_buffer_length": memory // 2}  # fmt: skip
    return info


def _total_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


# -- memory

_limits: dict[str, int | None] = {"memory": None, "cache": None, "wired": None}
#: The peak at the last reset, of which MLX forgets what was in use.
_peak_at_reset: list[int | None] = [None]


def get_active_memory() -> int:
    """Bytes of arrays in use."""
    return mtl.get_active_memory()


def get_peak_memory() -> int:
    """Maximum of `get_active_memory` since the last `reset_peak_memory`."""
    peak = mtl.get_peak_memory()
    return 0 if peak == _peak_at_reset[0] else peak


def reset_peak_memory() -> None:
    """Restart `get_peak_memory`."""
    mtl.reset_peak_memory()
    _peak_at_reset[0] = mtl.get_peak_memory()


def get_cache_memory() -> int:
    """Bytes of memory that is held for reuse."""
    if _limits["cache"] == 0:
        mtl.clear_cache()
    return mtl.get_cache_memory()


def clear_cache() -> None:
    """Free memory that is held for reuse."""
    mtl.clear_cache()


def get_array_buffer_size(*args: Any) -> int:
    """Bytes of the memory of all arrays of trees."""
    return sum({id(a): a.nbytes for a in unwrapped_leaves(args)}.values())


def _set_limit(name: str, limit: int) -> int:
    given = _limits[name]
    before = (0 if name == "wired" else _total_memory()) if given is None else given
    _limits[name] = limit
    return before


def set_memory_limit(limit: int) -> int:
    """Record a limit and return the one before; metalloid frees its cache when memory is scarce."""
    return _set_limit("memory", limit)


def get_memory_limit() -> int:
    """The limit of `set_memory_limit`."""
    limit = _limits["memory"]
    return _total_memory() if limit is None else limit


def set_cache_limit(limit: int) -> int:
    """Record a limit of the cache and return the one before; 0 frees what it holds."""
    if limit == 0:
        clear_cache()
    return _set_limit("cache", limit)


def set_wired_limit(limit: int) -> int:
    """Record a limit of wired memory and return the one before."""
    if limit > _total_memory():
        raise ValueError(f"[set_wired_limit] {limit} is more than the memory of the system.")
    return _set_limit("wired", limit)
