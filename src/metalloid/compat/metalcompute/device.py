"""Devices, and the kernels compiled for them."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import metalloid as mtl
from metalloid.compat.metalcompute import failure
from metalloid.compat.metalcompute.buffer import Buffer
from metalloid.compat.metalcompute.function import Function


class metalcompute_device(NamedTuple):
    """The properties of a device.

    Attributes
    ----------
    deviceName : str
    recommendedWorkingSetSize : int
        Bytes.
    maxTransferRate : int
        0, as for GPUs that are no cards.
    hasUnifiedMemory : bool
    """

    deviceName: str
    recommendedWorkingSetSize: int
    maxTransferRate: int
    hasUnifiedMemory: bool


def get_devices() -> tuple[metalcompute_device, ...]:
    """Every device; the index is what `Device` takes."""
    infos = (device.info() for device in mtl.devices())
    return tuple(metalcompute_device(i.description, i.memory_bytes, 0, True) for i in infos)


def open_device(arguments: tuple[Any, ...], where: str) -> Any:
    """The device that the arguments of ``Device()`` or ``init()`` mean.

    Raises
    ------
    error
        If there is none of that index.
    """
    try:
        index = operator.index(*arguments) if arguments else -1
    except TypeError as wrong:
        # What Python makes of the original, which goes on although its argument is wrong.
        raise SystemError(f"{where} returned a result with an exception set") from wrong
    devices = mtl.devices()
    if not devices or index >= len(devices):
        raise failure.error("Cannot create device")
    return mtl.default_device() if index < 0 else devices[index]


class Device:
    """A device to allocate buffers on, and to compile and run kernels.

    Parameters
    ----------
    index : int, optional
        In `get_devices`; the default device without, or if it is negative.
    """

    __slots__ = ("_device",)

    def __init__(self, /, *index: Any) -> None:
        self._device = open_device(index, "<class 'metalcompute.Device'>")

    def kernel(self, source: str, /) -> Kernel:
        """Compile a text, at once.

        Raises
        ------
        error
            With what the compiler said.
        """
        return Kernel(failure.library(failure.text(source, 2), self._device))

    def buffer(self, length_or_object: Any, /) -> Buffer:
        """A buffer of so many zero bytes, or a copy of an object's bytes.

        Raises
        ------
        error
            If it is neither, or there is no room.
        """
        return Buffer(self._device, length_or_object)

    def __str__(self) -> str:
        return f"metalcompute.Device({self._device.info().description})"


class Kernel:
    """A compiled text with one or more functions."""

    __slots__ = ("_library",)

    def __init__(self, library: mtl.Library) -> None:
        self._library = library

    def function(self, name: str, /) -> Function:
        """One of its functions.

        Raises
        ------
        error
            "Function not found".
        """
        name = failure.text(name, 2)
        return Function(failure.function(self._library, name, "Function not found"))

    def __str__(self) -> str:
        return "metalcompute.Kernel"
