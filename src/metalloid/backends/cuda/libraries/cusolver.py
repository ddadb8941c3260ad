"""LAPACK by cuSOLVER, and by cuBLAS for batches of small matrices.

The 64-bit interface of cuSOLVER (``X...``) is used wherever it has the function.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metalloid.backends.cuda.libraries.bindings import (
    CUDA_TYPES,
    ITEM_BYTES,
    LibraryDevice,
    bindings,
    translate_errors,
    workspace,
)
from metalloid.backends.cuda.libraries.lapack_calls import LapackCalls, address_of
from metalloid.runtime.devices.libraries import Solver, Stack
from metalloid.runtime.launch.launches import LaunchBuffer

_LOWER, _UPPER = 0, 1  # cublasFillMode_t
_NO_TRANSPOSE = 0  # cublasOperation_t
_REALS = {"complex64": "float32", "complex128": "float64"}
#: Batched functions take matrices of up to so many rows.
_MAX_BATCHED_ROWS = 512
_BATCHED = frozenset({"lu", "solve", "cholesky", "eigh"})
#: Batches of at least so many small matrices are faster than on the host.
_MIN_BATCH = 16
#: Single matrices of at least so many rows are faster than on the host.
_MIN_ROWS = 128


class CusolverSolver(Solver):
    """cuSOLVER for one GPU."""

    def __init__(self, device: LibraryDevice) -> None:
        self._device, self._calls = device, LapackCalls(device)

    def suits(self, name: str, count: int, rows: int, columns: int) -> bool:
        """See `Solver.suits`."""
        is_batched = name in _BATCHED and count >= _MIN_BATCH and rows == columns
        return is_batched or min(rows, columns) >= _MIN_ROWS

    def lu(self, a: Stack) -> tuple[np.ndarray, np.ndarray]:
        """See `Solver.lu`."""
        factor = self._lu_batched if _use_batched(a) else self._lu_each
        pivots = np.empty((a.matrices, min(a.rows, a.columns)), _pivot_type(a))

        def work() -> np.ndarray:
            with workspace(self._device, pivots.nbytes) as address:
                status = factor(a, address)
                self._device.copy_out(address, pivots.data)
            return status

        return self._work("lu", [a.buffer], work), pivots

    def solve(self, a: Stack, b: Stack) -> np.ndarray:
        """See `Solver.solve`."""
        calls, kind = self._calls, CUDA_TYPES[a.dtype]

        def batched(pivots: int) -> np.ndarray:
            outcome = ctypes.c_int()
            solve = calls.by_letter("cublas", "getrs_batched", a.dtype)
            with calls.addresses(b) as pointers:
                return self._lu_batched(a, pivots, lambda matrices: solve(
                    calls.blas, _NO_TRANSPOSE, a.rows, b.columns, matrices, a.rows, pivots,
                    pointers, b.rows, ctypes.addressof(outcome), a.matrices,
                ))  # fmt: skip

        def each(pivots: int) -> np.ndarray:
            status, solve = self._lu_each(a, pivots), bindings("cusolverDn").xgetrs
            with calls.infos(1) as (info, _):
                for k in range(a.matrices):
                    solve(calls.handle, calls.parameters, _NO_TRANSPOSE, a.rows, b.columns, kind,
                          address_of(a, k), a.rows, pivots + 8 * a.rows * k, kind, address_of(b, k),
                          b.rows, info)  # fmt: skip
            return status

        def work() -> np.ndarray:
            with workspace(self._device, a.matrices * a.rows * _pivot_type(a)().nbytes) as pivots:
                return (batched if _use_batched(a) else each)(pivots)

        return self._work("solve", [a.buffer, b.buffer], work)

    def _lu_each(self, a: Stack, pivots: int) -> np.ndarray:
        kind, steps = CUDA_TYPES[a.dtype], min(a.rows, a.columns)

        def matrix(k: int) -> tuple[int, ...]:
            return a.rows, a.columns, kind, address_of(a, k), a.rows

        return self._calls.each("xgetrf", a.matrices,
                                lambda k: (*matrix(k), pivots + 8 * steps * k, kind),
                                (*matrix(0), kind))  # fmt: skip

    def _lu_batched(
        self, a: Stack, pivots: int, then: Callable[[int], object] = lambda addresses: None
    ) -> np.ndarray:
        """Decompose all matrices; `then` adds work on them before the results are read."""
        calls = self._calls
        factor = calls.by_letter("cublas", "getrf_batched", a.dtype)
        with calls.addresses(a) as addresses, calls.infos(a.matrices) as (infos, read):
            factor(calls.blas, a.rows, addresses, a.rows, pivots, infos, a.matrices)
            then(addresses)
            return read()

    def cholesky(self, a: Stack, upper: bool) -> np.ndarray:
        """See `Solver.cholesky`."""
        calls, kind = self._calls, CUDA_TYPES[a.dtype]
        triangle = _UPPER if upper else _LOWER

        def batched() -> np.ndarray:
            factor = calls.by_letter("cusolverDn", "potrf_batched", a.dtype)
            with calls.addresses(a) as addresses, calls.infos(a.matrices) as (infos, read):
                factor(calls.handle, triangle, a.rows, addresses, a.rows, infos, a.matrices)
                return read()

        def each() -> np.ndarray:
            return calls.each(
                "xpotrf",
                a.matrices,
                lambda k: (triangle, a.rows, kind, address_of(a, k), a.rows, kind),
            )

        return self._work("cholesky", [a.buffer], batched if _use_batched(a) else each)

    def qr(self, a: Stack, q: Stack) -> np.ndarray:
        """See `Solver.qr`."""
        kind, size = CUDA_TYPES[a.dtype], ITEM_BYTES[a.dtype]
        steps = min(a.rows, a.columns)

        def work() -> np.ndarray:
            with workspace(self._device, size * steps * a.matrices) as scales:
                status = self._calls.each("xgeqrf", a.matrices, lambda k: (
                    a.rows, a.columns, kind, address_of(a, k), a.rows, kind,
                    scales + size * steps * k, kind,
                ))  # fmt: skip
                for k in range(a.matrices):
                    copied = size * a.rows * min(a.columns, q.columns)
                    self._device.copy_within(address_of(q, k), address_of(a, k), copied)
                    self._columns(q, k, steps, scales + size * steps * k)
            return status

        return self._work("qr", [a.buffer, q.buffer], work)

    def _columns(self, q: Stack, number: int, steps: int, scales: int) -> None:
        """Form the orthonormal columns of Q from the reflectors of `qr`."""
        calls = self._calls
        name = "ungqr" if q.dtype in _REALS else "orgqr"
        shape = (calls.handle, q.rows, q.columns, steps, address_of(q, number), q.rows, scales)
        count = calls.by_letter("cusolverDn", f"{name}_buffer_size", q.dtype)(*shape)
        with (
            workspace(self._device, ITEM_BYTES[q.dtype] * count) as space,
            calls.infos(1) as (info, _),
        ):
            calls.by_letter("cusolverDn", name, q.dtype)(*shape, space, count, info)

    def eigh(self, a: Stack, values: LaunchBuffer, vectors: bool) -> np.ndarray:
        """See `Solver.eigh`."""
        kind, real = CUDA_TYPES[a.dtype], _REALS.get(a.dtype, a.dtype)

        def matrix(k: int) -> tuple[int, ...]:
            eigenvalues = values.address + ITEM_BYTES[real] * a.rows * k
            return (int(vectors), _LOWER, a.rows, kind, address_of(a, k), a.rows, CUDA_TYPES[real],
                    eigenvalues, kind)  # fmt: skip

        def work() -> np.ndarray:
            if _use_batched(a):
                return self._calls.batched("xsyev_batched", a.matrices, matrix(0))
            return self._calls.each("xsyevd", a.matrices, matrix)

        return self._work("eigh", [a.buffer, values], work)

    def svd(
        self, a: Stack, values: LaunchBuffer, left: Stack | None, right: Stack | None
    ) -> np.ndarray:
        """See `Solver.svd`: by Jacobi's method, faster and more accurate than QR."""
        size, small = ITEM_BYTES[a.dtype], min(a.rows, a.columns)
        factors = [factor for factor in (left, right) if factor is not None]

        def work() -> np.ndarray:
            if left is not None and right is not None:
                addresses = [(address_of(left, k), address_of(right, k)) for k in range(a.matrices)]
                is_economic = any(factor.columns < factor.rows for factor in factors)
                return self._rotated(a, values, True, is_economic, addresses)
            # Vectors that are not requested are written all the same.
            with (
                workspace(self._device, size * a.rows * small) as unused_left,
                workspace(self._device, size * a.columns * small) as unused_right,
            ):
                return self._rotated(
                    a, values, False, True, [(unused_left, unused_right)] * a.matrices
                )

        return self._work("svd", [a.buffer, values, *(factor.buffer for factor in factors)], work)

    def _rotated(self, a: Stack, values: LaunchBuffer, vectors: bool, is_economic: bool,
                 addresses: Sequence[tuple[int, int]]) -> np.ndarray:  # fmt: skip
        """Singular values, and vectors at the given addresses for the left and the right side."""
        calls, size = self._calls, ITEM_BYTES[_REALS.get(a.dtype, a.dtype)]
        decompose = calls.by_letter("cusolverDn", "gesvdj", a.dtype)
        question = calls.by_letter("cusolverDn", "gesvdj_buffer_size", a.dtype)

        def matrix(k: int) -> tuple[int, ...]:
            left, right = addresses[k]
            return (
                calls.handle, int(vectors), int(is_economic), a.rows, a.columns, address_of(a, k),
                a.rows, values.address + size * min(a.rows, a.columns) * k, left, a.rows, right,
                a.columns,
            )  # fmt: skip

        count = question(*matrix(0), calls.rotations)
        with (
            workspace(self._device, ITEM_BYTES[a.dtype] * count) as space,
            calls.infos(a.matrices) as (infos, read),
        ):
            for k in range(a.matrices):
                decompose(*matrix(k), space, count, infos + 4 * k, calls.rotations)
            return read()

    def _work(
        self, name: str, buffers: Sequence[LaunchBuffer], call: Callable[[], np.ndarray]
    ) -> np.ndarray:
        """Make a call in stream order with launches; return its result."""
        statuses: list[np.ndarray] = []

        def work() -> None:
            with translate_errors("cuSOLVER"):
                statuses.append(call())

        self._device.work(name, buffers, work)
        return statuses[0]


def _use_batched(a: Stack) -> bool:
    """Whether a stack is small enough for the batched functions."""
    return a.matrices > 1 and a.rows == a.columns <= _MAX_BATCHED_ROWS


def _pivot_type(a: Stack) -> Any:
    """The type of pivot indices."""
    return np.int32 if _use_batched(a) else np.int64
