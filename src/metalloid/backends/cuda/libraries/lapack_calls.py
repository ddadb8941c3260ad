"""How functions of cuSOLVER, and of LAPACK's kind in cuBLAS, are called.

All within `CudaDevice.work`: in turn with launches, memory to work in included.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from metalloid.backends.cuda.libraries.cublas import make_handle
from metalloid.backends.cuda.libraries.cuda_libraries import SIZES, bindings, room
from metalloid.runtime.libraries import Stack

if TYPE_CHECKING:
    from metalloid.backends.cuda.runtime.device import CudaDevice

_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


def place(a: Stack, number: int) -> int:
    """The address of a matrix."""
    return a.buffer.address + number * a.rows * a.columns * SIZES[a.dtype]


class LapackCalls:
    """Those for one GPU."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device

    @functools.cached_property
    def handle(self) -> int:
        """cuSOLVER, working in the device's stream."""
        cusolver = bindings("cusolverDn")
        handle: int = cusolver.create()
        cusolver.set_stream(handle, self._device.exchange.stream_handle)
        return handle

    @functools.cached_property
    def parameters(self) -> int:
        """Those of functions of 64 bits, as they are without."""
        parameters: int = bindings("cusolverDn").create_params()
        return parameters

    @functools.cached_property
    def rotations(self) -> int:
        """How long Jacobi's rotations go on: until nothing changes."""
        rotations: int = bindings("cusolverDn").create_gesvdj_info()
        return rotations

    @functools.cached_property
    def blas(self) -> int:
        """cuBLAS, working in the device's stream."""
        return make_handle(self._device)

    def by_letter(self, library: str, name: str, dtype: str) -> Callable[..., Any]:
        """A function that there is one of for each type."""
        found: Callable[..., Any] = getattr(bindings(library), _LETTERS[dtype] + name)
        return found

    def each(self, name: str, count: int, arguments: Callable[[int], tuple[int, ...]],
             asked: tuple[int, ...] = ()) -> np.ndarray:  # fmt: skip
        """Call a function of 64 bits for one matrix after the other; what it says of each.

        Parameters
        ----------
        arguments : callable
            Those of a matrix by number, up to the memory to work in.
        asked : tuple
            With what the function is asked how much that is, if not with the same.
        """
        return self._called(name, count, arguments, asked or arguments(0), ())

    def all_at_once(self, name: str, count: int, arguments: tuple[int, ...]) -> np.ndarray:
        """Call a function of 64 bits that takes a stack; what it says of each matrix."""
        return self._called(name, count, lambda _: arguments, arguments, (count,))

    def _called(self, name: str, count: int, arguments: Callable[[int], tuple[int, ...]],
                asked: tuple[int, ...], last: tuple[int, ...]) -> np.ndarray:  # fmt: skip
        cusolver = bindings("cusolverDn")
        call, question = getattr(cusolver, name), getattr(cusolver, f"{name}_buffer_size")
        on_device, on_host = question(self.handle, self.parameters, *asked, *last)
        host = ctypes.create_string_buffer(max(on_host, 1))
        with room(self._device, on_device) as space, self.infos(count) as (infos, read):
            for k in range(1 if last else count):
                call(self.handle, self.parameters, *arguments(k), space, on_device,
                     ctypes.addressof(host), on_host, infos + 4 * k, *last)  # fmt: skip
            return read()

    @contextlib.contextmanager
    def infos(self, count: int) -> Iterator[tuple[int, Callable[[], np.ndarray]]]:
        """Memory for what a library says of so many matrices, and what reads it at the end."""

        def read() -> np.ndarray:
            infos = np.empty(count, np.int32)
            self._device.copy_out(address, infos.data)
            return infos

        with room(self._device, 4 * count) as address:
            yield address, read

    @contextlib.contextmanager
    def addresses(self, a: Stack) -> Iterator[int]:
        """Memory of the device with the address of every matrix."""
        step = place(a, 1) - place(a, 0)
        found = place(a, 0) + step * np.arange(a.matrices, dtype=np.uint64)
        with room(self._device, found.nbytes) as address:
            self._device.copy_in(address, found.data)
            yield address
