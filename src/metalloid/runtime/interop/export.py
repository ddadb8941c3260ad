"""Memory of a device, for other libraries to use in place: DLPack and CUDA's array interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metalloid.runtime.interop.dlpack import make_capsule
from metalloid.runtime.interop.exchange import HOST, Exchange
from metalloid.runtime.interop.strided import Strided

_CUDA = 2
#: What ``__dlpack__`` may be told: the default stream, and that nobody waits.
_DEFAULT_STREAM, _NO_STREAM = 1, -1


@dataclass
class Exported(Strided):
    """An array of ours, for others.

    Attributes
    ----------
    exchange : Exchange
        That of the device that has the memory.
    """

    exchange: Exchange

    def to_dlpack(
        self,
        stream: int | None,
        max_version: tuple[int, int] | None = None,
        read_only: bool = False,
        is_copied: bool = False,
    ) -> Any:
        """A capsule for a consumer that works on a stream: it waits there for the launches so far.

        Parameters
        ----------
        stream : int, optional
            As in ``__dlpack__``.
        max_version, read_only, is_copied
            See `make_capsule`.

        Raises
        ------
        ValueError
            For stream 0, which may be one of two.
        """
        if stream == 0:
            raise ValueError("[dlpack] stream 0 may be one of two: pass 1 or 2, or a stream's own.")
        if stream != _NO_STREAM:
            self.exchange.hand_over(_DEFAULT_STREAM if stream is None else stream)
        return make_capsule(
            self.owner, self.address, self.dtype, self.shape, self.strides,
            self.exchange.dlpack_device, max_version, read_only, is_copied,
        )  # fmt: skip

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


def exports_in_place(exchange: Exchange, wanted: tuple[int, int] | None, copy: bool | None) -> bool:
    """Whether ``__dlpack__`` gives the memory of a device, and not that of a copy on the host.

    Raises
    ------
    BufferError
        If it can give neither.
    """
    own = exchange.dlpack_device
    if wanted is None or tuple(wanted) == own:
        return own != HOST
    if tuple(wanted) != HOST or copy is False:
        raise BufferError(
            f"[dlpack] {exchange.device_name} is {own} to DLPack: {wanted} takes a copy."
        )
    return False


def require_cuda(exchange: Exchange) -> None:
    """Have ``__cuda_array_interface__`` only where it is true.

    Raises
    ------
    AttributeError
        Elsewhere.
    """
    if exchange.dlpack_device[0] != _CUDA:
        raise AttributeError("__cuda_array_interface__")
