"""Matrix products by cuBLAS.

cuBLAS stores matrices in column-major order, so it reads our row-major ones as their transposes: it
multiplies the right factor by the left one, which is the transpose of the product.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from metalloid.backends.cuda.libraries.bindings import (
    CUDA_TYPES,
    ITEM_BYTES,
    LibraryDevice,
    bindings,
    has_bindings,
    translate_errors,
)
from metalloid.runtime.devices.libraries import Matrices, Products
from metalloid.runtime.launch.event import Event

_COMPUTE_32F, _COMPUTE_64F, _COMPUTE_TF32 = 68, 70, 77  # cublasComputeType_t
_DEFAULT = -1  # cublasGemmAlgo_t
_DEFAULT_MATH, _NO_REDUCED_PRECISION = 0, 16  # cublasMath_t


class CublasProducts(Products):
    """cuBLAS for one GPU."""

    name = "cublas"
    may_repeat = True

    def __init__(self, device: LibraryDevice) -> None:
        self._device = device

    @functools.cached_property
    def is_first(self) -> bool:  # type: ignore[override]
        """See `Products.is_first`: where it is installed."""
        return has_bindings("cublas")

    @property
    def dtypes(self) -> frozenset[str]:
        """See `Products.dtypes`."""
        bindings("cublas")
        return frozenset(ITEM_BYTES)

    @functools.cached_property
    def _handle(self) -> int:
        return make_handle(self._device)

    def multiply(
        self, left: Matrices, right: Matrices, result: Matrices, count: int, allow_tf32: bool
    ) -> Event:
        """See `Products.multiply`."""
        size, kind = ITEM_BYTES[result.dtype], CUDA_TYPES[result.dtype]
        compute = _COMPUTE_64F if result.dtype in ("float64", "complex128") else _COMPUTE_32F
        if allow_tf32:
            compute = _COMPUTE_TF32
        alpha, beta = _factors(result.dtype)
        factors: list[int] = []
        for factor in (right, left):
            address = factor.buffer.address + factor.start
            factors += (address, kind, factor.row_bytes // size, factor.matrix_bytes // size)
        target = (result.buffer.address + result.start, kind, result.row_bytes // size,
                  result.matrix_bytes // size)  # fmt: skip

        def work() -> None:
            with translate_errors("cuBLAS"):
                bindings("cublas").gemm_strided_batched_ex_64(
                    self._handle, int(right.is_transposed), int(left.is_transposed),
                    result.columns, result.rows, left.columns,
                    ctypes.addressof(alpha), *factors, ctypes.addressof(beta), *target,
                    count, compute, _DEFAULT,
                )  # fmt: skip

        return self._device.work("matmul", [left.buffer, right.buffer, result.buffer], work)


def make_handle(device: LibraryDevice) -> int:
    """A handle of cuBLAS for a device's stream."""
    cublas = bindings("cublas")
    with translate_errors("cuBLAS"):
        handle: int = cublas.create()
        cublas.set_stream(handle, device.exchange.stream_handle)
        cublas.set_math_mode(handle, _DEFAULT_MATH | _NO_REDUCED_PRECISION)
    return handle


@functools.cache
def _factors(dtype: str) -> tuple[Any, Any]:
    """One and zero in the scale type of a dtype (alpha and beta)."""
    real = ctypes.c_double if dtype in ("float64", "complex128") else ctypes.c_float
    return (real * 2)(1, 0), (real * 2)(0, 0)
