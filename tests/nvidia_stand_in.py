"""NVIDIA's libraries without a GPU: what the bindings of nvmath-python do, by SciPy and NumPy.

The functions take the arguments that those take, in their order, and read and write memory by
address, column by column. They are strict about sizes. The device is the CPU with the manners of a
card (own_memory_device.py), so its memory can be looked at.
"""

import ctypes
import inspect
import itertools
import math
import types

import ml_dtypes
import numpy as np
import scipy.linalg.lapack as lapack

from metalloid.backends.cuda.libraries.cuda_libraries import CudaLibraries
from metalloid.runtime.launch.event import FinishedEvent
from own_memory_device import OwnMemoryDevice

DTYPES = {0: np.float32, 1: np.float64, 2: np.float16, 4: np.complex64, 5: np.complex128,
          14: ml_dtypes.bfloat16}  # fmt: skip
SCALES = {68: np.float32, 77: np.float32, 70: np.float64}
STREAM = 77
GUARD = 64  # bytes after each allocation


class Error(Exception):
    """As the bindings raise them."""

    def __init__(self, text):
        super().__init__(text)
        self.status = 7


class StandInCard(OwnMemoryDevice):
    """A card whose libraries are those below."""

    def __init__(self):
        self.guarded = {}
        super().__init__()
        self.exchange.stream_handle = STREAM
        self.libraries = CudaLibraries(self)
        self.works = []

    def work(self, name, buffers, call):
        if self.recording is not None:
            self.recording.refuse(name)
        for buffer in buffers:
            if buffer.host_copy is not None:
                buffer.host_copy.to_device()
        self.synchronize()
        self.works.append(name)
        call()
        for address in list(self.guarded):
            self.check_guard(address)
        event = FinishedEvent(0.0)
        for buffer in buffers:
            buffer.used_by(event)
        return event

    def allocate(self, nbytes):
        address = super().allocate(nbytes + GUARD)
        ctypes.memset(address + nbytes, 0xA5, GUARD)
        self.guarded[address] = nbytes
        return address

    def free(self, address, nbytes):
        self.check_guard(address)
        del self.guarded[address]
        super().free(address, nbytes)

    def check_guard(self, address):
        """See that nothing was written after an allocation."""
        guard = ctypes.string_at(address + self.guarded[address], GUARD)
        assert guard == b"\xa5" * GUARD, f"{self.works[-1:]} wrote too far"

    def allocate_uninitialized(self, nbytes):
        address = self.allocate(nbytes)
        ctypes.memset(address, 255, nbytes)  # it may hold anything
        return address

    def copy_within(self, address, source, nbytes):
        ctypes.memmove(address, source, nbytes)


def at(address, dtype, shape, strides=None):
    """An array on memory; strides in elements."""
    dtype = np.dtype(dtype)
    strides = strides or tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))
    reach = sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) + 1
    raw = np.frombuffer((ctypes.c_char * (reach * dtype.itemsize)).from_address(address), np.uint8)
    return np.lib.stride_tricks.as_strided(
        raw.view(dtype), shape, [step * dtype.itemsize for step in strides]
    )


def columns_at(address, dtype, rows, columns, leading):
    """A matrix that lies column by column."""
    if leading < max(rows, 1):
        raise Error(f"INVALID_VALUE: {leading} < {rows}")
    return at(address, dtype, (rows, columns), (1, leading))


def takes(function):
    """Return the number of parameters of a function."""
    count = getattr(function, "takes", None)
    if count is None:
        count = len(inspect.signature(function).parameters)
    return count


def module(name, *functions):
    """A module of functions that notes what was called."""
    bindings = types.ModuleType(f"nvmath.bindings.{name}")
    bindings.calls = []

    def noting(function):
        def call(*args):
            bindings.calls.append((function.__name__, *args))
            return function(*args)

        call.takes = takes(function)
        return call

    for function in functions:
        setattr(bindings, function.__name__, noting(function))
    return bindings


_handles = itertools.count(1)


def create():
    return next(_handles)


def set_stream(handle, stream):
    assert stream == STREAM


# -- cuBLAS


def set_math_mode(handle, mode):
    assert mode == 16  # sums of half floats stay in float32


def gemm_strided_batched_ex_64(
    handle, turn_a, turn_b, m, n, k, alpha, a, a_type, lda, a_step, b, b_type, ldb, b_step,
    beta, c, c_type, ldc, c_step, count, compute, algorithm,
):  # fmt: skip
    scale = SCALES[compute]
    if DTYPES[c_type] in (np.complex64, np.complex128):
        scale = np.result_type(scale, np.complex64)
    assert at(alpha, scale, (1,)) == 1
    assert at(beta, scale, (1,)) == 0
    wide = np.result_type(scale, np.float64)
    for number in range(count):
        factors = []
        for address, kind, leading, step, turn, shape in (
            (a, a_type, lda, a_step, turn_a, (m, k)), (b, b_type, ldb, b_step, turn_b, (k, n)),
        ):  # fmt: skip
            dtype = np.dtype(DTYPES[kind])
            start = address + number * step * dtype.itemsize
            lying = columns_at(start, dtype, *(shape[::-1] if turn else shape), leading)
            factors.append((lying.T if turn else lying).astype(wide))
        out = columns_at(c + number * c_step * np.dtype(DTYPES[c_type]).itemsize, DTYPES[c_type],
                         m, n, ldc)  # fmt: skip
        out[...] = factors[0] @ factors[1]


def _batched(letter):
    """LAPACK's functions for many matrices of a type."""
    dtype = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}[letter]

    def matrices(addresses, count, rows, columns, leading):
        return [columns_at(int(p), dtype, rows, columns, leading)
                for p in at(addresses, np.uint64, (count,))]  # fmt: skip

    def getrf_batched(handle, n, a, lda, pivots, infos, count):
        for k, matrix in enumerate(matrices(a, count, n, n, lda)):
            both, order, info = getattr(lapack, letter + "getrf")(matrix)
            matrix[...] = both
            at(pivots + 4 * n * k, np.int32, (n,))[...] = order + 1
            at(infos + 4 * k, np.int32, (1,))[...] = info

    def getrs_batched(handle, turn, n, nrhs, a, lda, pivots, b, ldb, info, count):
        assert turn == 0
        both = zip(matrices(a, count, n, n, lda), matrices(b, count, n, nrhs, ldb), strict=True)
        for k, (matrix, side) in enumerate(both):
            order = at(pivots + 4 * n * k, np.int32, (n,)) - 1
            side[...] = getattr(lapack, letter + "getrs")(matrix, order, side)[0]
        ctypes.c_int.from_address(info).value = 0

    def potrf_batched(handle, uplo, n, a, lda, infos, count):
        for k, matrix in enumerate(matrices(a, count, n, n, lda)):
            info = _potrf(matrix, uplo)
            at(infos + 4 * k, np.int32, (1,))[...] = info

    def orgqr_buffer_size(handle, m, n, k, a, lda, scales):
        return n * 64

    def orgqr(handle, m, n, k, a, lda, scales, work, size, info):
        assert size == n * 64
        assert m >= n >= k
        matrix, name = columns_at(a, dtype, m, n, lda), "un" if letter in "cz" else "or"
        tau = at(scales, dtype, (k,))
        matrix[...] = getattr(lapack, f"{letter}{name}gqr")(matrix, tau)[0]

    def gesvdj_buffer_size(handle, vectors, small, m, n, a, lda, values, u, ldu, v, ldv, rotations):
        return m + n

    def gesvdj(handle, vectors, small, m, n, a, lda, values, u, ldu, v, ldv, work, size, info,
               rotations):  # fmt: skip
        assert size == m + n
        at(work, dtype, (size,))[...] = np.nan
        matrix = columns_at(a, dtype, m, n, lda)
        singular_values = at(values, np.zeros(1, dtype).real.dtype, (min(m, n),))
        if np.isfinite(matrix).all():
            left, singular_values[...], right = np.linalg.svd(matrix, full_matrices=not small)
            if vectors:
                columns_at(u, dtype, *left.shape, ldu)[...] = left
                columns_at(v, dtype, *right.T.shape, ldv)[...] = right.conj().T
            else:  # they are needed all the same
                columns_at(u, dtype, m, min(m, n) if small else m, ldu)[...] = np.nan
                columns_at(v, dtype, n, min(m, n) if small else n, ldv)[...] = np.nan
        else:
            singular_values[...] = np.nan
        at(info, np.int32, (1,))[...] = 0
        matrix[...] = np.nan

    functions = [getrf_batched, getrs_batched, potrf_batched, orgqr, orgqr_buffer_size, gesvdj,
                 gesvdj_buffer_size]  # fmt: skip
    for function in functions:
        name = function.__name__.replace("or", "un", 1) if letter in "cz" else function.__name__
        function.__name__ = letter + (name if "gqr" in name else function.__name__)
    return functions


def _potrf(matrix, uplo):
    letter = _letter(matrix.dtype)
    factor, info = getattr(lapack, letter + "potrf")(matrix, lower=uplo == 0, clean=0)
    matrix[...] = factor
    return info


def _letter(dtype):
    return {"f": "s", "d": "d", "F": "c", "D": "z"}[np.dtype(dtype).char]


# -- cuSOLVER, the functions of 64 bits

ON_DEVICE, ON_HOST = 1000, 24


def create_params():
    return next(_handles)


def create_gesvdj_info():
    return next(_handles)


def _sized(function, count):
    """A function that gets memory to work in, and the one that tells how much: by its arguments."""

    def size(handle, parameters, *args):
        assert len(args) == count, (function.__name__, args)
        return ON_DEVICE, ON_HOST

    def call(handle, parameters, *args):
        *args, space, on_device, host, on_host, infos = args
        assert (on_device, on_host) == (ON_DEVICE, ON_HOST)
        at(space, np.uint8, (on_device,))[...] = 255
        ctypes.memset(host, 255, on_host)
        at(infos, np.int32, (1,))[...] = function(*args)

    call.__name__, size.__name__ = function.__name__, f"{function.__name__}_buffer_size"
    call.takes, size.takes = 2 + takes(function) + 5, 2 + count
    return call, size


def xgetrf(m, n, kind, a, lda, pivots, compute):
    assert kind == compute
    matrix = columns_at(a, DTYPES[kind], m, n, lda)
    matrix[...], order, info = getattr(lapack, _letter(matrix.dtype) + "getrf")(matrix)
    at(pivots, np.int64, (min(m, n),))[...] = order + 1
    return info


def xgetrs(handle, parameters, turn, n, nrhs, a_type, a, lda, pivots, b_type, b, ldb, info):
    assert turn == 0
    matrix, side = (columns_at(p, DTYPES[k], n, c, ld)
                    for p, k, c, ld in ((a, a_type, n, lda), (b, b_type, nrhs, ldb)))  # fmt: skip
    order = at(pivots, np.int64, (n,)).astype(np.int32) - 1
    side[...] = getattr(lapack, _letter(matrix.dtype) + "getrs")(matrix, order, side)[0]


def xpotrf(uplo, n, kind, a, lda, compute):
    assert kind == compute
    return _potrf(columns_at(a, DTYPES[kind], n, n, lda), uplo)


def xgeqrf(m, n, kind, a, lda, scale_type, scales, compute):
    assert kind == scale_type == compute
    matrix = columns_at(a, DTYPES[kind], m, n, lda)
    matrix[...], tau, _, info = getattr(lapack, _letter(matrix.dtype) + "geqrf")(matrix)
    at(scales, DTYPES[kind], (min(m, n),))[...] = tau
    return info


def xsyevd(vectors, uplo, n, kind, a, lda, real, values, compute):
    assert kind == compute
    assert uplo == 0
    matrix = columns_at(a, DTYPES[kind], n, n, lda)
    eigenvalues = at(values, DTYPES[real], (n,))
    if not np.isfinite(matrix).all():
        eigenvalues[...] = np.nan
        return 0
    eigenvalues[...], space = np.linalg.eigh(matrix)
    matrix[...] = space if vectors else np.nan
    return 0


def xsyev_batched_buffer_size(handle, parameters, *args):
    assert len(args) == 10
    return ON_DEVICE, ON_HOST


xsyev_batched_buffer_size.takes = 12


def xsyev_batched(handle, parameters, vectors, uplo, n, kind, a, lda, real, values, compute, space,
                  on_device, host, on_host, infos, count):  # fmt: skip
    size, step = np.dtype(DTYPES[kind]).itemsize, np.dtype(DTYPES[real]).itemsize
    for k in range(count):
        at(infos + 4 * k, np.int32, (1,))[...] = xsyevd(
            vectors, uplo, n, kind, a + size * n * n * k, lda, real, values + step * n * k, compute
        )


# -- cuFFT

_KINDS = {0x2A: ("r", np.float32), 0x2C: ("i", np.float32), 0x29: ("c", np.float32),
          0x6A: ("r", np.float64), 0x6C: ("i", np.float64), 0x69: ("c", np.float64)}  # fmt: skip
_plans = {}


def fourier_create():
    number = next(_handles)
    _plans[number] = {}
    return number


def set_auto_allocation(plan, is_automatic):
    assert not is_automatic


def make_plan_many64(plan, rank, lengths, inembed, istride, idist, onembed, ostride, odist, kind,
                     count):  # fmt: skip
    assert rank == len(lengths) <= 3
    assert inembed == onembed == 0
    _plans[plan] |= {"lengths": tuple(lengths), "kind": kind, "count": count}
    return 8 * count


def set_work_area(plan, address):
    _plans[plan]["area"] = address, _plans[plan]["count"]


def _run(plan, source, result, direction, expected):
    lengths, kind, count = (_plans[plan][name] for name in ("lengths", "kind", "count"))
    transform, real = _KINDS[kind]
    assert (transform, real) == expected
    assert source % 16 == result % 16 == 0
    at(_plans[plan].pop("area")[0], np.uint8, (8 * count,))[...] = 255
    wide = np.result_type(real, np.complex64)
    half = (*lengths[:-1], lengths[-1] // 2 + 1)
    axes = tuple(range(1, len(lengths) + 1))
    before = at(
        source,
        real if transform == "r" else wide,
        (count, *(half if transform == "i" else lengths)),
    )
    after = at(
        result,
        real if transform == "i" else wide,
        (count, *(half if transform == "r" else lengths)),
    )
    exact = before.astype(np.result_type(before.dtype, np.float64))
    if transform == "r":
        after[...] = np.fft.rfftn(exact, lengths, axes)
    elif transform == "i":
        assert len(lengths) == 1  # further axes would have to be symmetric
        after[...] = np.fft.irfft(exact, lengths[0], norm="forward")
        before[...] = np.nan
    else:
        function = np.fft.fftn if direction == -1 else np.fft.ifftn
        after[...] = function(
            exact, lengths, axes, norm="backward" if direction == -1 else "forward"
        )


def _execs():
    def make(name, kind):
        def exec_(plan, source, result, direction=None):
            assert (direction is None) == (kind[0] != "c")
            _run(plan, source, result, direction, kind)

        exec_.__name__, exec_.takes = name, 4 if kind[0] == "c" else 3
        return exec_

    return [make(f"exec_{name}", kind) for name, kind in (
        ("r2c", ("r", np.float32)), ("c2r", ("i", np.float32)), ("c2c", ("c", np.float32)),
        ("d2z", ("r", np.float64)), ("z2d", ("i", np.float64)), ("z2z", ("c", np.float64)),
    )]  # fmt: skip


def destroy(number):
    _plans.pop(number, None)


def stand_ins():
    """The modules by name."""
    batched = [function for letter in "sdcz" for function in _batched(letter)]
    sized = [(xgetrf, 6), (xpotrf, 6), (xgeqrf, 8), (xsyevd, 9)]
    cufft = module("cufft", set_stream, set_auto_allocation, make_plan_many64, set_work_area,
                   destroy, *_execs())  # fmt: skip
    cufft.create = fourier_create
    cufft.create.takes = 0
    return {
        "cublas": module("cublas", create, set_stream, set_math_mode, gemm_strided_batched_ex_64,
                         *(f for f in batched if "getr" in f.__name__)),
        "cusolverDn": module("cusolverDn", create, create_params, create_gesvdj_info, set_stream, xgetrs,
                             xsyev_batched, xsyev_batched_buffer_size,
                             *(f for f in batched if "getr" not in f.__name__),
                             *(f for one in sized for f in _sized(*one))),
        "cufft": cufft,
    }  # fmt: skip
