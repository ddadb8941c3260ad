"""The base class of the objects of a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metalloid.compat.Metal.conversions import optional_text

if TYPE_CHECKING:
    from metalloid.compat.Metal.device import MTLDevice


class MetalObject:
    """Something a device made. It has a label, which says nothing to the device.

    Parameters
    ----------
    device : MTLDevice
    """

    __slots__ = ("__weakref__", "_device", "_label")

    def __init__(self, device: MTLDevice) -> None:
        self._device = device
        device.alive.add(self)
        self._label: str | None = None

    def device(self) -> MTLDevice:
        """The device that made it."""
        return self._device

    def label(self) -> str | None:
        """The label that the program gave it."""
        return self._label

    def setLabel_(self, label: str | None) -> None:
        """Call it something."""
        self._label = optional_text(label)
