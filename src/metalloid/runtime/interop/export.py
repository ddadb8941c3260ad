"""Export memory of a device to other libraries: DLPack and CUDA's array interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metalloid.runtime.interop.dlpack import make_capsule
from metalloid.runtime.interop.exchange import HOST, Exchange
from metalloid.runtime.interop.strided import Strided

_CUDA = 2
#: Streams of ``__dlpack__``: the default stream, and no synchronisation.
_DEFAULT_STREAM, _NO_STREAM = 1, -1


@dataclass
class Exported(Strided):
    """An array that other libraries use in place.

    Attributes
    ----------
    exchange : Exchange
        Of the device that owns the memory.
    """

    exchange: Exchange

    def to_dlpack(
        self,
        stream: int | None,
        max_version: tuple[int, int] | None = None,
        read_only: bool = False,
        is_copied: bool = False,
    ) -> Any:
        """A capsule for a consumer, whose stream waits for the launches so far.

        Parameters
        ----------
        stream : int, optional
            As in ``__dlpack__``.
        max_version, read_only, is_copied
            See `make_capsule`.

        Raises
        ------
        ValueError
            For stream 0, which is ambiguous.
        """
        if stream == 0:
            raise ValueError(
                "[dlpack] stream 0 is ambiguous: pass 1 or 2, or the handle of a stream."
            )
        if stream != _NO_STREAM:
            self.exchange.hand_over(_DEFAULT_STREAM if stream is None else stream)
        return make_capsule(
            owner=self.owner,
            address=self.address,
            dtype=self.dtype,
            shape=self.shape,
            strides=self.strides,
            device=self.exchange.dlpack_device,
            max_version=max_version,
            read_only=read_only,
            is_copied=is_copied,
        )

    def to_cuda(self) -> dict[str, Any]:
        """The array interface of CUDA, version 3."""
        return {
            "version": 3,
            "shape": self.shape,
            "strides": self.strides,
            "typestr": self.dtype.str,
            "data": (self.address, False),
            "stream": self.exchange.stream_handle,
        }


def exports_in_place(
    exchange: Exchange, requested: tuple[int, int] | None, copy: bool | None
) -> bool:
    """Whether ``__dlpack__`` exports the memory of a device, rather than a copy on the host.

    Raises
    ------
    BufferError
        If it can do neither.
    """
    own = exchange.dlpack_device
    if requested is None or tuple(requested) == own:
        return own != HOST
    if tuple(requested) != HOST or copy is False:
        raise BufferError(
            f"[dlpack] {exchange.device_name} is {own} to DLPack: {requested} takes a copy."
        )
    return False


def require_cuda(exchange: Exchange) -> None:
    """Let only arrays on NVIDIA GPUs have ``__cuda_array_interface__``.

    Raises
    ------
    AttributeError
        On other devices.
    """
    if exchange.dlpack_device[0] != _CUDA:
        raise AttributeError("__cuda_array_interface__")
