"""Access to NVIDIA's libraries through nvmath-python, and the device as the libraries see it."""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from metalloid.errors import DeviceUnavailable, LaunchError, OutOfMemory
from metalloid.runtime.interop.exchange import Exchange
from metalloid.runtime.launch.event import Event
from metalloid.runtime.launch.launches import LaunchBuffer

#: cudaDataType_t of the libraries.
CUDA_TYPES = {
    "float32": 0, "float64": 1, "float16": 2, "complex64": 4, "complex128": 5, "bfloat16": 14,
}  # fmt: skip


#: Bytes of an element.
ITEM_BYTES = {
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "complex64": 8, "complex128": 16,
}  # fmt: skip


class LibraryDevice(Protocol):
    """A device to whose stream libraries add work (`runtime.device.CudaDevice`)."""

    @property
    def exchange(self) -> Exchange:
        """Its `stream_handle` is the stream."""

    def work(self, name: str, buffers: Sequence[LaunchBuffer], call: Callable[[], None]) -> Event:
        """Run a function that adds a library's work on some buffers to the stream."""

    def allocate_uninitialized(self, nbytes: int) -> int:
        """Address of `nbytes` bytes with undefined contents, in stream order."""

    def free(self, address: int, nbytes: int) -> None:
        """Free memory in stream order."""

    def copy_in(self, address: int, source: memoryview) -> None:
        """Copy host bytes to device memory, in stream order."""

    def copy_within(self, address: int, source: int, nbytes: int) -> None:
        """Copy memory of the device, in stream order."""

    def copy_out(self, address: int, destination: memoryview) -> None:
        """Copy device memory to host bytes, after the work so far."""


@functools.cache
def bindings(library: str) -> Any:
    """The module of nvmath-python for a library.

    Raises
    ------
    DeviceUnavailable
        If it is not installed.
    """
    try:
        return importlib.import_module(f"nvmath.bindings.{library}")
    except ImportError as error:
        raise DeviceUnavailable(
            f"[cuda] {library} is used through the package 'nvmath-python', which cannot be "
            f"imported ({error}). Run: pip install 'metalloid[cuda-math]'"
        ) from None


def has_bindings(library: str) -> bool:
    """Whether the bindings of a library are installed."""
    try:
        bindings(library)
    except DeviceUnavailable:
        return False
    return True


@contextlib.contextmanager
def translate_errors(library: str) -> Iterator[None]:
    """Raise errors of a library as exceptions of this package.

    Raises
    ------
    OutOfMemory, LaunchError
    """
    try:
        yield
    except Exception as error:
        # A status of the library, or a missing library or function.
        if not hasattr(error, "status") and not type(error).__module__.startswith("nvmath"):
            raise
        kind = OutOfMemory if "ALLOC_FAILED" in str(error) else LaunchError
        raise kind(f"[cuda] {library} failed: {error}.") from error


@contextlib.contextmanager
def workspace(device: LibraryDevice, nbytes: int) -> Iterator[int]:
    """Uninitialised memory for work that is added to the stream within a ``with`` block."""
    address = device.allocate_uninitialized(nbytes)
    try:
        yield address
    finally:
        device.free(address, nbytes)
