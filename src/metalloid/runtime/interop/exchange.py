"""How a device and other libraries use each other's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from metalloid.runtime.interop.strided import Imported

#: The memory of the host, as DLPack calls it: a type of device, and a number.
HOST = (1, 0)


class ExchangingDevice(Protocol):
    """What an `Exchange` uses of its device."""

    name: str

    def synchronize(self) -> None:
        """Wait for every launch made so far."""


class Exchange:
    """That of a device whose memory is the host's to them, or none of theirs.

    Attributes
    ----------
    dlpack_device : tuple of int
        Where its memory is: DLPack's type of device, and number.
    stream_handle : int
        The stream that its launches are in.
    """

    dlpack_device: tuple[int, int] = HOST
    stream_handle: int = 1

    def __init__(self, device: ExchangingDevice) -> None:
        self._device = device

    @property
    def device_name(self) -> str:
        """Name of the device, for messages."""
        return self._device.name

    def borrow(self, value: Any) -> Imported | None:
        """The memory of another library's array, if it is this device's own and not the host's.

        Launches from now on see what the library has done to it so far.

        Raises
        ------
        ArgumentError, BufferError
            If kernels cannot use it.
        """
        return None

    def hand_over(self, stream: int) -> None:
        """Let work on a stream of another library wait for the launches so far.

        Parameters
        ----------
        stream : int
            As in ``__dlpack__``.
        """
        self._device.synchronize()
