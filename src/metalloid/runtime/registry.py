"""Which devices there are, and why another is not."""

from __future__ import annotations

import difflib
import importlib
import threading

from metalloid.errors import DeviceUnavailable
from metalloid.runtime.device import Device
from metalloid.settings import settings

#: Kind of device -> module that offers ``open_device()``, best first. A module is imported when a
#: device of its kind is asked for; it raises DeviceUnavailable where there is none.
_KINDS = {"cpu": "metalloid.backends.cpu.device"}

_open: dict[str, Device] = {}
_lock = threading.Lock()


def get_device(name: str | Device | None = None) -> Device:
    """The device `name`, opened on first use; the default one without a name.

    Parameters
    ----------
    name : str or Device, optional

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
    wanted = name or settings.device
    if wanted:
        return _device(wanted)
    for kind in _KINDS:
        try:
            return _device(kind)
        except DeviceUnavailable:
            continue
    reasons = "; ".join(f"{kind}: {reason}" for kind, reason in absent_devices().items())
    raise DeviceUnavailable(f"[device] this machine has none. {reasons}")


def default_device() -> Device:
    """The device used where none is named: ``METALLOID_DEVICE``, else the first there is."""
    return get_device()


def devices() -> list[Device]:
    """Every device of this machine, best first."""
    found = []
    for kind in _KINDS:
        try:
            found.append(_device(kind))
        except DeviceUnavailable:
            continue
    return found


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
    with _lock:
        if name not in _open:
            if name not in _KINDS:
                near = difflib.get_close_matches(name, _KINDS, 1)
                hint = f" Did you mean {near[0]!r}?" if near else ""
                raise DeviceUnavailable(
                    f"[device] there is no kind of device {name!r}; known: "
                    f"{', '.join(_KINDS)}.{hint}"
                )
            _open[name] = importlib.import_module(_KINDS[name]).open_device()
        return _open[name]
