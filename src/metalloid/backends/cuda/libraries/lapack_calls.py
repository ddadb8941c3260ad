"""Calls of cuSOLVER and of cuBLAS's LAPACK functions, with their work memory and status.

All calls are made within `LibraryDevice.work`, in stream order with launches.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from metalloid.backends.cuda.libraries.bindings import (
    ITEM_BYTES,
    LibraryDevice,
    bindings,
    workspace,
)
from metalloid.backends.cuda.libraries.cublas import make_handle
from metalloid.runtime.devices.libraries import Stack

_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


def address_of(a: Stack, number: int) -> int:
    """The address of a matrix."""
    return a.buffer.address + number * a.rows * a.columns * ITEM_BYTES[a.dtype]


class LapackCalls:
    """The calls for one GPU."""

    def __init__(self, device: LibraryDevice) -> None:
        self._device = device

    @functools.cached_property
    def handle(self) -> int:
        """Handle of cuSOLVER for the device's stream."""
        cusolver = bindings("cusolverDn")
        handle: int = cusolver.create()
        cusolver.set_stream(handle, self._device.exchange.stream_handle)
        return handle

    @functools.cached_property
    def parameters(self) -> int:
        """Default parameters of the 64-bit functions."""
        parameters: int = bindings("cusolverDn").create_params()
        return parameters

    @functools.cached_property
    def rotations(self) -> int:
        """Default tolerance and sweeps of Jacobi's method."""
        rotations: int = bindings("cusolverDn").create_gesvdj_info()
        return rotations

    @functools.cached_property
    def blas(self) -> int:
        """cuBLAS, working in the device's stream."""
        return make_handle(self._device)

    def by_letter(self, library: str, name: str, dtype: str) -> Callable[..., Any]:
        """A function whose name starts with the letter of a type."""
        function: Callable[..., Any] = getattr(bindings(library), _LETTERS[dtype] + name)
        return function

    def each(self, name: str, count: int, arguments: Callable[[int], tuple[int, ...]],
             required: tuple[int, ...] = ()) -> np.ndarray:  # fmt: skip
        """Call a 64-bit function for each matrix; return the status of each.

        Parameters
        ----------
        arguments : callable
            The arguments for a matrix by number, up to the work memory.
        required : tuple
            Arguments of the query for the size of the work memory, if they differ.
        """
        return self._called(name, count, arguments, required or arguments(0), ())

    def batched(self, name: str, count: int, arguments: tuple[int, ...]) -> np.ndarray:
        """Call a 64-bit batched function; return the status of each matrix."""
        return self._called(name, count, lambda _: arguments, arguments, (count,))

    def _called(self, name: str, count: int, arguments: Callable[[int], tuple[int, ...]],
                required: tuple[int, ...], last: tuple[int, ...]) -> np.ndarray:  # fmt: skip
        cusolver = bindings("cusolverDn")
        call, question = getattr(cusolver, name), getattr(cusolver, f"{name}_buffer_size")
        on_device, on_host = question(self.handle, self.parameters, *required, *last)
        host = ctypes.create_string_buffer(max(on_host, 1))
        with workspace(self._device, on_device) as space, self.infos(count) as (infos, read):
            for k in range(1 if last else count):
                call(self.handle, self.parameters, *arguments(k), space, on_device,
                     ctypes.addressof(host), on_host, infos + 4 * k, *last)  # fmt: skip
            return read()

    @contextlib.contextmanager
    def infos(self, count: int) -> Iterator[tuple[int, Callable[[], np.ndarray]]]:
        """Memory for the status of so many matrices, and a function that reads it."""

        def read() -> np.ndarray:
            infos = np.empty(count, np.int32)
            self._device.copy_out(address, infos.data)
            return infos

        with workspace(self._device, 4 * count) as address:
            yield address, read

    @contextlib.contextmanager
    def addresses(self, a: Stack) -> Iterator[int]:
        """Device memory that holds the address of every matrix."""
        step = address_of(a, 1) - address_of(a, 0)
        pointers = address_of(a, 0) + step * np.arange(a.matrices, dtype=np.uint64)
        with workspace(self._device, pointers.nbytes) as address:
            self._device.copy_in(address, pointers.data)
            yield address
