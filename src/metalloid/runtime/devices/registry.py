"""The registry: opens devices by name, and explains why one is unavailable."""

from __future__ import annotations

import atexit
import importlib
import threading
from typing import Any

from metalloid.errors import DeviceUnavailable
from metalloid.runtime.devices.device import Device, set_opener
from metalloid.runtime.launch import failures
from metalloid.settings import settings

#: Kind of device -> module that offers ``count_devices()`` and ``open_device(index)``, best first.
#: A module is imported when a device of its kind is asked for; both functions raise
#: DeviceUnavailable where there is none.
_KINDS = {
    "metal": "metalloid.backends.metal.runtime.device",
    "cuda": "metalloid.backends.cuda.runtime.device",
    "cpu": "metalloid.backends.cpu.runtime.device",
    "opencl": "metalloid.backends.opencl.runtime.device",
}

#: Kinds of device by DLPack's types.
_DLPACK_KINDS = {2: "cuda", 13: "cuda"}

#: Kind of target -> module that offers ``open_target(architecture)``: kernels are compiled only.
_TARGETS = {
    "cuda": "metalloid.backends.cuda.runtime.offline",
    "cpu": "metalloid.backends.cpu.runtime.offline",
    "spirv": "metalloid.backends.opencl.runtime.offline",
}

_open: dict[str, Device] = {}
_DEFAULT = ""  # in `_open`, for the default device: searching for it takes long
_lock = threading.RLock()  # opening a device may open another
_LAST_WAIT = 0.1  # seconds to wait for launches at exit


@atexit.register
def _report_failures() -> None:
    for device in set(_open.values()):
        device.settle(_LAST_WAIT)
    failures.report()


def opened() -> list[Device]:
    """The devices that are open, each once."""
    return list(dict.fromkeys(_open.values()))


def get_device(name: str | Device | None = None) -> Device:
    """The device `name`, opened on first use; the default one without a name.

    Parameters
    ----------
    name : str or Device, optional
        A kind, ``"cpu"`` or ``"cuda"``, which is the first device of its kind; ``"cuda:1"`` is the
        second.

    Raises
    ------
    DeviceUnavailable
        If this machine has no such device, with the reason.

    Examples
    --------
    >>> get_device("cpu").name
    'cpu'
    """
    if isinstance(name, Device):
        return name
    requested = name or settings.device
    if requested:
        return _device(requested)
    known = _open.get(_DEFAULT)
    if known is not None:
        return known
    for kind in _KINDS:
        try:
            device = _device(kind)
        except DeviceUnavailable:
            continue
        if device.by_default:
            _open[_DEFAULT] = device
            return device
    reasons = "; ".join(f"{kind}: {reason}" for kind, reason in absent_devices().items())
    raise DeviceUnavailable(f"[device] no device is available. {reasons}")


set_opener(get_device)


def get_target(name: str) -> Device:
    """A device that only compiles: ``"cuda:sm_90"``, ``"cpu:aarch64"``.

    Raises
    ------
    DeviceUnavailable
        If there is no such target.

    Examples
    --------
    >>> get_target("cuda:sm_90").name
    'cuda:sm_90'
    """
    kind, _, architecture = name.partition(":")
    if kind not in _TARGETS:
        raise DeviceUnavailable(
            f"[target] unknown kind of target {name!r}; known: "
            f"{', '.join(f'{kind}:ARCHITECTURE' for kind in _TARGETS)}, such as 'cuda:sm_90'."
        )
    target: Device = importlib.import_module(_TARGETS[kind]).open_target(architecture)
    return target


def default_device() -> Device:
    """Return the default device: ``METALLOID_DEVICE``, or the first available one."""
    return get_device()


def device_at(kind: int, number: int) -> Device | None:
    """The device with a type and number of DLPack; None if the type is unknown.

    Raises
    ------
    DeviceUnavailable
        If the type is known and the device is unavailable.
    """
    default = get_device()
    if default.exchange.dlpack_device == (kind, number):
        return default
    return get_device(f"{_DLPACK_KINDS[kind]}:{number}") if kind in _DLPACK_KINDS else None


def devices() -> list[Device]:
    """Return every device of this machine, best first."""
    return [device for kind in _KINDS for device in devices_of(kind)]


def devices_of(kind: str) -> list[Device]:
    """Every device of a kind."""
    try:
        return [_device(f"{kind}:{index}") for index in range(_module(kind).count_devices())]
    except DeviceUnavailable:
        return []


def kinds() -> tuple[str, ...]:
    """All kinds of device, available or not; best first."""
    return tuple(_KINDS)


def absent_devices() -> dict[str, str]:
    """Reason by kind, of the kinds of device this machine lacks."""
    reasons = {}
    for kind in _KINDS:
        try:
            _device(kind)
        except DeviceUnavailable as error:
            reasons[kind] = str(error)
    return reasons


def _device(name: str) -> Device:
    device = _open.get(name)
    if device is not None:
        return device
    kind, _, number = name.partition(":")
    if kind not in _KINDS or not (number.isdecimal() or name == kind):
        import difflib  # here, as it is for errors

        near = difflib.get_close_matches(name, _KINDS, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise DeviceUnavailable(
            f"[device] unknown kind of device {name!r}; known: {', '.join(_KINDS)}.{hint}"
        )
    index = int(number or 0)
    canonical = f"{kind}:{index}"
    with _lock:
        if canonical not in _open:
            count = _module(kind).count_devices()
            if index >= count:
                raise DeviceUnavailable(
                    f"[device] no such device {name!r}: this machine has {count} "
                    f"device{'s' * (count != 1)} of the kind {kind!r}."
                )
            _open[canonical] = _module(kind).open_device(index)
        _open[name] = _open[canonical]
        return _open[name]


def _module(kind: str) -> Any:
    return importlib.import_module(_KINDS[kind])
