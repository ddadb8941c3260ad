"""NVIDIA's libraries for a GPU, where they are installed."""

from __future__ import annotations

import functools

from metalloid.backends.cuda.libraries.bindings import LibraryDevice, has_bindings
from metalloid.runtime.devices.libraries import Fourier, Libraries, Products, Solver


class CudaLibraries(Libraries):
    """cuBLAS, cuSOLVER and cuFFT for one GPU, where they are installed."""

    def __init__(self, device: LibraryDevice) -> None:
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
