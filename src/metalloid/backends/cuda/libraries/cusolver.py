"""LAPACK by cuSOLVER; by cuBLAS where there are many small matrices.

Of cuSOLVER it is the interface of 64 bits (``X...``) wherever that has the function.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metalloid.backends.cuda.libraries.cuda_libraries import (
    DATA_TYPES,
    SIZES,
    bindings,
    explained,
    room,
)
from metalloid.backends.cuda.libraries.lapack_calls import LapackCalls, place
from metalloid.runtime.buffer import Buffer
from metalloid.runtime.libraries import Solver, Stack

if TYPE_CHECKING:
    from metalloid.backends.cuda.runtime.device import CudaDevice

_LOWER, _UPPER = 0, 1  # cublasFillMode_t
_AS_IT_IS = 0  # cublasOperation_t
_REALS = {"complex64": "float32", "complex128": "float64"}
#: Up to so many rows are matrices of a stack done all at once, where there is a function for that.
_SMALL = 512
_AT_ONCE = frozenset({"lu", "solve", "cholesky", "eigh"})
#: From so many on are small matrices done faster than by the host.
_MANY = 16
#: From so many rows on is a matrix done faster than by the host, if it is done alone.
_LARGE = 128


class CusolverSolver(Solver):
    """cuSOLVER for one GPU."""

    def __init__(self, device: CudaDevice) -> None:
        self._device, self._calls = device, LapackCalls(device)

    def suits(self, name: str, count: int, rows: int, columns: int) -> bool:
        """See `Solver.suits`."""
        is_at_once = name in _AT_ONCE and count >= _MANY and rows == columns
        return is_at_once or min(rows, columns) >= _LARGE

    def lu(self, a: Stack) -> tuple[np.ndarray, np.ndarray]:
        """See `Solver.lu`."""
        factor = self._lu_at_once if _are_small(a) else self._lu_each
        pivots = np.empty((a.matrices, min(a.rows, a.columns)), _pivots_of(a))

        def work() -> np.ndarray:
            with room(self._device, pivots.nbytes) as address:
                found = factor(a, address)
                self._device.copy_out(address, pivots.data)
            return found

        return self._work("lu", [a.buffer], work), pivots

    def solve(self, a: Stack, b: Stack) -> np.ndarray:
        """See `Solver.solve`."""
        calls, kind = self._calls, DATA_TYPES[a.dtype]

        def at_once(pivots: int) -> np.ndarray:
            outcome = ctypes.c_int()
            solve = calls.by_letter("cublas", "getrs_batched", a.dtype)
            with calls.addresses(b) as sides:
                return self._lu_at_once(a, pivots, lambda matrices: solve(
                    calls.blas, _AS_IT_IS, a.rows, b.columns, matrices, a.rows, pivots, sides,
                    b.rows, ctypes.addressof(outcome), a.matrices,
                ))  # fmt: skip

        def each(pivots: int) -> np.ndarray:
            found, solve = self._lu_each(a, pivots), bindings("cusolverDn").xgetrs
            with calls.infos(1) as (info, _):
                for k in range(a.matrices):
                    solve(calls.handle, calls.parameters, _AS_IT_IS, a.rows, b.columns, kind,
                          place(a, k), a.rows, pivots + 8 * a.rows * k, kind, place(b, k), b.rows,
                          info)  # fmt: skip
            return found

        def work() -> np.ndarray:
            with room(self._device, a.matrices * a.rows * _pivots_of(a)().nbytes) as pivots:
                return (at_once if _are_small(a) else each)(pivots)

        return self._work("solve", [a.buffer, b.buffer], work)

    def _lu_each(self, a: Stack, pivots: int) -> np.ndarray:
        kind, steps = DATA_TYPES[a.dtype], min(a.rows, a.columns)

        def matrix(k: int) -> tuple[int, ...]:
            return a.rows, a.columns, kind, place(a, k), a.rows

        return self._calls.each("xgetrf", a.matrices,
                                lambda k: (*matrix(k), pivots + 8 * steps * k, kind),
                                (*matrix(0), kind))  # fmt: skip

    def _lu_at_once(
        self, a: Stack, pivots: int, then: Callable[[int], object] = lambda addresses: None
    ) -> np.ndarray:
        """Decompose all; `then` adds work on them, before anybody waits for what was found."""
        calls = self._calls
        factor = calls.by_letter("cublas", "getrf_batched", a.dtype)
        with calls.addresses(a) as addresses, calls.infos(a.matrices) as (infos, read):
            factor(calls.blas, a.rows, addresses, a.rows, pivots, infos, a.matrices)
            then(addresses)
            return read()

    def cholesky(self, a: Stack, upper: bool) -> np.ndarray:
        """See `Solver.cholesky`."""
        calls, kind = self._calls, DATA_TYPES[a.dtype]
        part = _UPPER if upper else _LOWER

        def at_once() -> np.ndarray:
            factor = calls.by_letter("cusolverDn", "potrf_batched", a.dtype)
            with calls.addresses(a) as addresses, calls.infos(a.matrices) as (infos, read):
                factor(calls.handle, part, a.rows, addresses, a.rows, infos, a.matrices)
                return read()

        def each() -> np.ndarray:
            return calls.each(
                "xpotrf", a.matrices, lambda k: (part, a.rows, kind, place(a, k), a.rows, kind)
            )

        return self._work("cholesky", [a.buffer], at_once if _are_small(a) else each)

    def qr(self, a: Stack, q: Stack) -> np.ndarray:
        """See `Solver.qr`."""
        kind, size = DATA_TYPES[a.dtype], SIZES[a.dtype]
        steps = min(a.rows, a.columns)

        def work() -> np.ndarray:
            with room(self._device, size * steps * a.matrices) as scales:
                found = self._calls.each("xgeqrf", a.matrices, lambda k: (
                    a.rows, a.columns, kind, place(a, k), a.rows, kind, scales + size * steps * k,
                    kind,
                ))  # fmt: skip
                for k in range(a.matrices):
                    copied = size * a.rows * min(a.columns, q.columns)
                    self._device.copy_within(place(q, k), place(a, k), copied)
                    self._columns(q, k, steps, scales + size * steps * k)
            return found

        return self._work("qr", [a.buffer, q.buffer], work)

    def _columns(self, q: Stack, number: int, steps: int, scales: int) -> None:
        """Orthonormal columns from the reflections that `qr` has found."""
        calls = self._calls
        name = "ungqr" if q.dtype in _REALS else "orgqr"
        shape = (calls.handle, q.rows, q.columns, steps, place(q, number), q.rows, scales)
        count = calls.by_letter("cusolverDn", f"{name}_buffer_size", q.dtype)(*shape)
        with room(self._device, SIZES[q.dtype] * count) as space, calls.infos(1) as (info, _):
            calls.by_letter("cusolverDn", name, q.dtype)(*shape, space, count, info)

    def eigh(self, a: Stack, values: Buffer, vectors: bool) -> np.ndarray:
        """See `Solver.eigh`."""
        kind, real = DATA_TYPES[a.dtype], _REALS.get(a.dtype, a.dtype)

        def matrix(k: int) -> tuple[int, ...]:
            found = values.address + SIZES[real] * a.rows * k
            return (int(vectors), _LOWER, a.rows, kind, place(a, k), a.rows, DATA_TYPES[real],
                    found, kind)  # fmt: skip

        def work() -> np.ndarray:
            if _are_small(a):
                return self._calls.all_at_once("xsyev_batched", a.matrices, matrix(0))
            return self._calls.each("xsyevd", a.matrices, matrix)

        return self._work("eigh", [a.buffer, values], work)

    def svd(self, a: Stack, values: Buffer, left: Stack | None, right: Stack | None) -> np.ndarray:
        """See `Solver.svd`: by Jacobi's rotations, which are faster and nearer than iterations."""
        size, small = SIZES[a.dtype], min(a.rows, a.columns)
        sides = [side for side in (left, right) if side is not None]

        def work() -> np.ndarray:
            if left is not None and right is not None:
                places = [(place(left, k), place(right, k)) for k in range(a.matrices)]
                is_economic = any(side.columns < side.rows for side in sides)
                return self._rotated(a, values, True, is_economic, places)
            # Vectors that nobody wants are written all the same, or something in their place.
            with (
                room(self._device, size * a.rows * small) as one,
                room(self._device, size * a.columns * small) as other,
            ):
                return self._rotated(a, values, False, True, [(one, other)] * a.matrices)

        return self._work("svd", [a.buffer, values, *(side.buffer for side in sides)], work)

    def _rotated(self, a: Stack, values: Buffer, vectors: bool, is_economic: bool,
                 places: Sequence[tuple[int, int]]) -> np.ndarray:  # fmt: skip
        """Singular values, and vectors at places of the left and the right side."""
        calls, size = self._calls, SIZES[_REALS.get(a.dtype, a.dtype)]
        decompose = calls.by_letter("cusolverDn", "gesvdj", a.dtype)
        question = calls.by_letter("cusolverDn", "gesvdj_buffer_size", a.dtype)

        def matrix(k: int) -> tuple[int, ...]:
            left, right = places[k]
            return (
                calls.handle, int(vectors), int(is_economic), a.rows, a.columns, place(a, k),
                a.rows, values.address + size * min(a.rows, a.columns) * k, left, a.rows, right,
                a.columns,
            )  # fmt: skip

        count = question(*matrix(0), calls.rotations)
        with (
            room(self._device, SIZES[a.dtype] * count) as space,
            calls.infos(a.matrices) as (infos, read),
        ):
            for k in range(a.matrices):
                decompose(*matrix(k), space, count, infos + 4 * k, calls.rotations)
            return read()

    def _work(
        self, name: str, buffers: Sequence[Buffer], call: Callable[[], np.ndarray]
    ) -> np.ndarray:
        """What a call returns that is made in turn with launches."""
        found: list[np.ndarray] = []

        def work() -> None:
            with explained("cuSOLVER"):
                found.append(call())

        self._device.work(name, buffers, work)
        return found[0]


def _are_small(a: Stack) -> bool:
    """Whether all matrices are done at once."""
    return a.matrices > 1 and a.rows == a.columns <= _SMALL


def _pivots_of(a: Stack) -> Any:
    """The type of the rows that a matrix's were exchanged with."""
    return np.int32 if _are_small(a) else np.int64
