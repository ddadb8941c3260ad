"""Fourier transforms by cuFFT."""

from __future__ import annotations

import functools
import weakref

from metalloid.backends.cuda.libraries.bindings import (
    LibraryDevice,
    bindings,
    translate_errors,
    workspace,
)
from metalloid.runtime.devices.libraries import Fourier, Signal
from metalloid.runtime.launch.event import Event

#: By source and result type: cufftType_t, and the function.
_KINDS = {
    ("float32", "complex64"): (0x2A, "exec_r2c"),
    ("complex64", "float32"): (0x2C, "exec_c2r"),
    ("complex64", "complex64"): (0x29, "exec_c2c"),
    ("float64", "complex128"): (0x6A, "exec_d2z"),
    ("complex128", "float64"): (0x6C, "exec_z2d"),
    ("complex128", "complex128"): (0x69, "exec_z2z"),
}
_FORWARD, _INVERSE = -1, 1
#: Shapes whose plans are cached.
_MAX_PLANS = 256


class CufftFourier(Fourier):
    """cuFFT for one GPU."""

    def __init__(self, device: LibraryDevice) -> None:
        self._device = device
        self._plan = functools.lru_cache(_MAX_PLANS)(functools.partial(_Plan, device))

    def transform(self, source: Signal, result: Signal, lengths: tuple[int, ...], count: int,
                  is_inverse: bool) -> Event:  # fmt: skip
        """See `Fourier.transform`."""
        kind, name = _KINDS[source.dtype, result.dtype]
        directions: tuple[int, ...] = ()
        if source.dtype == result.dtype:
            directions = (_INVERSE if is_inverse else _FORWARD,)
        addresses = [operand.buffer.address + operand.start for operand in (source, result)]

        def work() -> None:
            cufft = bindings("cufft")
            with translate_errors("cuFFT"):
                plan = self._plan(lengths, kind, count)
                with workspace(self._device, plan.work_bytes) as space:
                    cufft.set_work_area(plan.number, space)
                    getattr(cufft, name)(plan.number, *addresses, *directions)

        return self._device.work("fft", [source.buffer, result.buffer], work)


class _Plan:
    """A plan of cuFFT for transforms of one shape.

    Attributes
    ----------
    number : int
    work_bytes : int
        Bytes of its work area.
    """

    def __init__(
        self, device: LibraryDevice, lengths: tuple[int, ...], kind: int, count: int
    ) -> None:
        cufft = bindings("cufft")
        self.number: int = cufft.create()
        # At exit the context is destroyed first.
        weakref.finalize(self, cufft.destroy, self.number).atexit = False
        cufft.set_auto_allocation(self.number, 0)
        # Without strides data is dense, and distances are ignored.
        self.work_bytes: int = cufft.make_plan_many64(
            self.number, len(lengths), lengths, 0, 1, 0, 0, 1, 0, kind, count
        )
        cufft.set_stream(self.number, device.exchange.stream_handle)
