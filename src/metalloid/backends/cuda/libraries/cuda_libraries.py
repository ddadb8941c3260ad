"""NVIDIA's libraries for a GPU, through the bindings of nvmath-python."""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from metalloid.errors import DeviceUnavailable, LaunchError, OutOfMemory
from metalloid.runtime.libraries import Fourier, Libraries, Products, Solver

if TYPE_CHECKING:
    from metalloid.backends.cuda.runtime.device import CudaDevice

#: Types of data as all of the libraries number them.
DATA_TYPES = {
    "float32": 0, "float64": 1, "float16": 2, "complex64": 4, "complex128": 5, "bfloat16": 14,
}  # fmt: skip


#: Bytes of an element.
SIZES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "complex64": 8, "complex128": 16}


class CudaLibraries(Libraries):
    """cuBLAS, cuSOLVER and cuFFT for one GPU, where they are installed."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device

    @functools.cached_property
    def products(self) -> Products:  # type: ignore[override]
        """CuBLAS."""
        from metalloid.backends.cuda.libraries.cublas import CublasProducts

        return CublasProducts(self._device)

    @functools.cached_property
    def solver(self) -> Solver | None:  # type: ignore[override]
        """CuSOLVER."""
        from metalloid.backends.cuda.libraries.cusolver import CusolverSolver

        is_there = has_bindings("cusolverDn") and has_bindings("cublas")
        return CusolverSolver(self._device) if is_there else None

    @functools.cached_property
    def fourier(self) -> Fourier | None:  # type: ignore[override]
        """CuFFT."""
        from metalloid.backends.cuda.libraries.cufft import CufftFourier

        return CufftFourier(self._device) if has_bindings("cufft") else None


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
    """Whether `bindings` finds them."""
    try:
        bindings(library)
    except DeviceUnavailable:
        return False
    return True


@contextlib.contextmanager
def explained(library: str) -> Iterator[None]:
    """Errors of a library as ours.

    Raises
    ------
    OutOfMemory, LaunchError
    """
    try:
        yield
    except Exception as error:
        # A status of the library's own, or a library or a function that is not there.
        if not hasattr(error, "status") and not type(error).__module__.startswith("nvmath"):
            raise
        kind = OutOfMemory if "ALLOC_FAILED" in str(error) else LaunchError
        raise kind(f"[cuda] {library} failed: {error}.") from error


@contextlib.contextmanager
def room(device: CudaDevice, nbytes: int) -> Iterator[int]:
    """Memory, with anything in it, for work put into the stream within a ``with`` block."""
    address = device._take(nbytes)
    try:
        yield address
    finally:
        device.free(address, nbytes)
