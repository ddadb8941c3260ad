"""Import and export of memory between a device and other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from metalloid.runtime.interop.strided import Imported

#: Host memory in DLPack: device type and number.
HOST = (1, 0)


class ExchangingDevice(Protocol):
    """The part of a device that an `Exchange` uses."""

    name: str

    def synchronize(self) -> None:
        """Wait for every launch made so far."""


class Exchange:
    """Imports nothing, and exports as host memory: for devices without memory of their own.

    Attributes
    ----------
    dlpack_device : tuple of int
        DLPack's device type and number of its memory.
    stream_handle : int
        The stream of its launches.
    """

    dlpack_device: tuple[int, int] = HOST
    stream_handle: int = 1

    def __init__(self, device: ExchangingDevice) -> None:
        self._device = device

    @property
    def device_name(self) -> str:
        """Name of the device, for messages."""
        return self._device.name

    def import_memory(self, value: Any) -> Imported | None:
        """Import the array of another library; None if it is not in memory of this device.

        Later launches see all that the library has written to it so far.

        Raises
        ------
        ArgumentError, BufferError
            If kernels cannot use the array.
        """
        return None

    def hand_over(self, stream: int) -> None:
        """Make a stream of another library wait for the launches so far.

        Parameters
        ----------
        stream : int
            As in ``__dlpack__``.
        """
        self._device.synchronize()
