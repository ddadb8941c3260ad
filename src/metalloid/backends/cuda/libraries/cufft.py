"""Fourier transforms by cuFFT."""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING

from metalloid.backends.cuda.libraries.cuda_libraries import bindings, explained, room
from metalloid.runtime.event import Event
from metalloid.runtime.libraries import Fourier, Signal

if TYPE_CHECKING:
    from metalloid.backends.cuda.runtime.device import CudaDevice

#: By the types of both sides: cufftType_t, and the function.
_KINDS = {
    ("float32", "complex64"): (0x2A, "exec_r2c"),
    ("complex64", "float32"): (0x2C, "exec_c2r"),
    ("complex64", "complex64"): (0x29, "exec_c2c"),
    ("float64", "complex128"): (0x6A, "exec_d2z"),
    ("complex128", "float64"): (0x6C, "exec_z2d"),
    ("complex128", "complex128"): (0x69, "exec_z2z"),
}
_FORWARD, _INVERSE = -1, 1
#: Plans for so many shapes are kept.
_KEPT = 256


class CufftFourier(Fourier):
    """cuFFT for one GPU."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self._plan = functools.lru_cache(_KEPT)(functools.partial(_Plan, device))

    def transform(self, source: Signal, result: Signal, lengths: tuple[int, ...], count: int,
                  is_inverse: bool) -> Event:  # fmt: skip
        """See `Fourier.transform`."""
        kind, name = _KINDS[source.dtype, result.dtype]
        directions: tuple[int, ...] = ()
        if source.dtype == result.dtype:
            directions = (_INVERSE if is_inverse else _FORWARD,)
        addresses = [side.buffer.address + side.start for side in (source, result)]

        def work() -> None:
            cufft = bindings("cufft")
            with explained("cuFFT"):
                plan = self._plan(lengths, kind, count)
                with room(self._device, plan.room) as space:
                    cufft.set_work_area(plan.number, space)
                    getattr(cufft, name)(plan.number, *addresses, *directions)

        return self._device.work("fft", [source.buffer, result.buffer], work)


class _Plan:
    """What cuFFT has found out about transforms of a shape.

    Attributes
    ----------
    number : int
    room : int
        Bytes that it works in.
    """

    def __init__(self, device: CudaDevice, lengths: tuple[int, ...], kind: int, count: int) -> None:
        cufft = bindings("cufft")
        self.number: int = cufft.create()
        # When the process ends the context goes first.
        weakref.finalize(self, cufft.destroy, self.number).atexit = False
        cufft.set_auto_allocation(self.number, 0)
        # Without strides everything is dense, and distances are not looked at.
        self.room: int = cufft.make_plan_many64(
            self.number, len(lengths), lengths, 0, 1, 0, 0, 1, 0, kind, count
        )
        cufft.set_stream(self.number, device.exchange.stream_handle)
