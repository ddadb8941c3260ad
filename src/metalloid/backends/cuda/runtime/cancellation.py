"""Cancellation of launches in flight."""

from __future__ import annotations

import ctypes
import time

from metalloid.backends.cuda.compile.cancellation_polls import CANCEL_BYTES
from metalloid.backends.cuda.runtime.context import ContextDevice, InFlight
from metalloid.backends.cuda.runtime.driver import check
from metalloid.errors import LaunchCancelled, MetalloidError
from metalloid.runtime.launch.failures import timeout_error

_POLL_SECONDS = 1e-4  # between queries whether all launches have ended


class Cancellation:
    """Sets the flags that kernels poll, and resets them when all launches have ended.

    All launches in flight end, as all launches of a kernel share its flag (compile/
    cancellation_polls.py).

    Attributes
    ----------
    flags : list of int
        Addresses of the flags of all kernels that the device has loaded, of `CANCEL_BYTES` each.
    is_pending : bool
        Whether they are set; no kernel can be launched then.
    """

    def __init__(self, device: ContextDevice) -> None:
        self._device = device
        self._stream = 0
        self.flags: list[int] = []
        self.is_pending = False
        self._ended: list[tuple[InFlight, MetalloidError]] = []

    def start(self, timed_out: InFlight | None = None, limit: float = 0.0) -> None:
        """End all launches in flight, and wait until they have.

        Parameters
        ----------
        timed_out : InFlight, optional
            The launch that has run for longer than `limit` seconds.
        """
        device = self._device
        with device.lock:
            in_flight = (reference() for reference in device.in_flight)
            for event in [each for each in in_flight if each is not None and not each.done]:
                self._ended.append((event, _error(event, event is timed_out, limit)))
            self.is_pending = True
            self._set(1, self._own_stream())
            self.finish()

    def finish(self) -> None:
        """Wait until all launches have ended, and reset the flags."""
        device = self._device
        bindings = device.driver
        with device.lock:
            if not self.is_pending:
                return
            not_ready = bindings.CUresult.CUDA_ERROR_NOT_READY
            while (status := bindings.cuStreamQuery(device.stream)[0]) == not_ready:
                time.sleep(_POLL_SECONDS)  # kernels whose loops are bounded run to their end
            if status:
                raise device.failure(status, "a launch")
            self._set(0, device.stream)
            self.is_pending = False
            device.in_flight.clear()
            while self._ended:
                event, error = self._ended.pop()
                event.fail(error)

    def _own_stream(self) -> int:
        """A stream whose copies do not wait for kernels."""
        if not self._stream:
            bindings = self._device.driver
            flags = bindings.CUstream_flags.CU_STREAM_NON_BLOCKING
            self._stream = check(bindings.cuStreamCreate(flags), "making a stream")
        return self._stream

    def _set(self, value: int, stream: int) -> None:
        words = (ctypes.c_uint32 * (CANCEL_BYTES // 4))(*[value] * (CANCEL_BYTES // 4))
        source = ctypes.addressof(words)
        bindings = self._device.driver
        for flag in self.flags:
            # A copy needs no multiprocessor; cuMemset would wait for one.
            outcome = bindings.cuMemcpyHtoDAsync(flag, source, CANCEL_BYTES, stream)
            check(outcome, "cancelling launches")
        check(bindings.cuStreamSynchronize(stream), "cancelling launches")


def _error(event: InFlight, is_timed_out: bool, limit: float) -> MetalloidError:
    kernel = event.name
    if is_timed_out:
        return timeout_error(kernel, limit)
    return LaunchCancelled(
        f"[{kernel}] the launch was cancelled by Ctrl-C, Event.cancel or the time limit of another "
        "one; what it wrote is incomplete."
    )
