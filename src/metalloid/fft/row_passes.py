"""Launches of the functions of `fourier_rows.metal`: transforms of rows on a few cores."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from metalloid.arrays.ir.dtypes import DType, complex_of, kind_of, msl_name, real_of
from metalloid.arrays.ir.host_arrays import from_numpy
from metalloid.arrays.ir.library_call import LibraryCall, LibraryLaunch, library_call
from metalloid.arrays.ir.node import Node
from metalloid.fft.kernels import Transform
from metalloid.fft.tables import unit_roots
from metalloid.runtime.devices.device import Device

_FILES = ("complex", "fourier_rows")
_LANES = 32
#: Bytes of a row in one of the two halves of threadgroup memory.
_CAPACITY_BYTES = 2**14
_RADICES = (8, 5, 3, 4, 2)
_MAX_PASSES = 8


class _Passes(NamedTuple):
    """Radices of the passes of a transform, of which the first is 8.

    Attributes
    ----------
    length : int
    second : int
        4 or 8.
    others : tuple of int
    """

    length: int
    second: int
    others: tuple[int, ...]


@functools.lru_cache(maxsize=256)
def _passes_of(length: int) -> _Passes | None:
    """The passes of complex numbers; None if the length is not 32 times other radices."""
    for second in (8, 4):
        rest, remainder = divmod(length, 8 * second)
        if remainder or rest < 2:
            continue
        others = []
        for radix in _RADICES:
            while rest % radix == 0:
                others.append(radix)
                rest //= radix
        if rest == 1 and len(others) <= _MAX_PASSES:
            return _Passes(length, second, tuple(others))
    return None


def has_passes(length: int, is_real: bool) -> bool:
    """Whether rows of this length, of or to real numbers, are transformed by these launches."""
    if is_real:
        return length % 2 == 0 and _passes_of(length // 2) is not None
    return _passes_of(length) is not None


def transform_rows(x: Node, transform: Transform) -> Node:
    """Transform the last axis, which has the length that the transform reads."""
    real = real_of(x.dtype)
    is_real = kind_of(x.dtype) != "c"
    is_half = is_real or transform.to_real
    table = _table(transform.length, is_half, transform.scale, real, x.device)
    shape = (*x.shape[:-1], transform.outputs)
    dtype = real if transform.to_real else complex_of(real)
    rows = math.prod(x.shape[:-1])
    passes = _passes_of(transform.length // 2 if is_half else transform.length)
    assert passes is not None
    call = _call(_Rows(rows, passes, transform._replace(scale=1.0), real, is_real))
    return library_call(call, [x, table], dtype, shape)


@functools.lru_cache(maxsize=32)
def _table(length: int, is_half: bool, scale: float, real: DType, device: Device) -> Node:
    """Twiddle factors of all passes as split complex numbers, and the scale."""
    passes = _passes_of(length // 2 if is_half else length)
    assert passes is not None
    n, done, tables = passes.length, 1, []
    for radix in (8, passes.second, *passes.others):
        m = n // (done * radix)
        steps = np.arange(1, radix)[:, None] * np.arange(m) * done
        tables.append(np.repeat(steps, done, axis=1) if done == 8 else steps)
        done *= radix
    twiddles = [unit_roots(steps.reshape(-1), n) for steps in tables]
    if is_half:
        twiddles.append(unit_roots(np.arange(n + 1), 2 * n))
    values = np.concatenate(twiddles)
    planes = np.concatenate([values.real, values.imag, [scale]])
    return from_numpy(planes.astype(real), device)


def _table_size(passes: _Passes, is_half: bool) -> tuple[int, int]:
    """Numbers of the passes, and of all."""
    n, done, size = passes.length, 1, 0
    for radix in (8, passes.second, *passes.others):
        size += (radix - 1) * (n // (done * radix)) * (done if done == 8 else 1)
        done *= radix
    return size, size + (n + 1 if is_half else 0)


class _Rows(NamedTuple):
    """Rows to transform.

    Attributes
    ----------
    rows : int
    passes : _Passes
    transform : Transform
        Its scale does not matter.
    real : numpy.dtype
    is_real : bool
        Whether the operand is real.
    """

    rows: int
    passes: _Passes
    transform: Transform
    real: DType
    is_real: bool

    @property
    def type_(self) -> str:
        """The type of real and imaginary parts in MSL."""
        return msl_name(self.real)

    @property
    def split_complex(self) -> str:
        """The type of tables in MSL."""
        return f"numpy::SplitComplex<{self.type_}, device const {self.type_} *>"

    def source(self) -> str:
        """Statements that define `from`, the elements of a row."""
        inverse = "true" if self.transform.is_inverse else "false"
        values = f"(device const {self.type_} *)x0 + 2 * row * params.length"
        if self.transform.to_real:
            return (
                f"const numpy::HermitianRow<{self.type_}, {self.split_complex}> from{{\n"
                f"    {values} + 2 * row,\n"
                f"    {{x1 + params.half_start, params.size}}, params.length, {inverse}}};\n"
            )
        inverse = "false" if self.is_real else inverse
        return f"const numpy::ComplexRow<{self.type_}> from{{{values}, {inverse}}};\n"

    def result(self) -> str:
        """Statements that define `to`, a row of the result."""
        is_inverse = self.transform.is_inverse or self.transform.to_real
        kind, more = ("HermitianResult", " + 2 * row") if self.is_real else ("ComplexResult", "")
        return (
            f"const numpy::{kind}<{self.type_}> to{{\n"
            f"    (device {self.type_} *)out + 2 * row * params.length{more},\n"
            f"    x1[2 * params.size], {'true' if is_inverse else 'false'}}};\n"
        )


@functools.lru_cache(maxsize=256)
def _call(rows: _Rows) -> LibraryCall:
    """Each simdgroup transforms a row, in threadgroup memory if that is large enough."""
    type_, (n, second, others) = rows.type_, rows.passes
    capacity = _CAPACITY_BYTES // (2 * rows.real.itemsize)
    is_shared = n <= capacity
    size = capacity if is_shared else _padded(n)
    space = "threadgroup" if is_shared else "device"
    memory = f"threadgroup {type_} memory[{4 * size}];\n"
    even, odd = "memory", f"memory + {2 * size}"
    if not is_shared:
        memory, even, odd = "", "out1 + row * 2 * params.stride", "out2 + row * 2 * params.stride"
    stride = f"{size}" if is_shared else "params.stride"
    head = (
        f"{memory}const numpy::SplitComplex<{type_}, {space} {type_} *> even{{{even}, {stride}}},\n"
        f"    odd{{{odd}, {stride}}};\n"
        f"const {rows.split_complex} twiddles{{x1, params.size}};\n"
        f"{rows.source()}{rows.result()}"
    )
    last = "to" if not rows.is_real else "even" if len(others) % 2 else "odd"
    body = (
        f"numpy::transform_row<{type_}, {second}>(from, {last}, even, odd, twiddles,\n"
        "    params.length, params.radices, lane);\n"
    )
    if rows.is_real:
        body += (
            "simdgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);\n"
            f"const {rows.split_complex} half_twiddles{{x1 + params.half_start, params.size}};\n"
            f"numpy::finish_real<{type_}>({last}, to, half_twiddles, params.length,\n"
            "    lane);\n"
        )
    half_start, table_size = _table_size(rows.passes, rows.is_real or rows.transform.to_real)
    body = f"const ulong row = ulong(group.x);\n{head}{body}"
    numbers = {
        "length": n,
        "radices": sum(radix << 4 * k for k, radix in enumerate(others)),
        "size": table_size,
        "half_start": half_start,
        "stride": size,
    }
    launch = LibraryLaunch(
        name="transform_rows",
        body=body,
        files=_FILES,
        reads=(0, 1),
        writes=(2,) if is_shared else (2, 3, 4),
        numbers=tuple(item for item in numbers.items() if f"params.{item[0]}" in body),
        threads=(rows.rows * _LANES, 1, 1),
        group_size=(_LANES, 1, 1),
    )
    temporary = (rows.real, (rows.rows, 2 * size))
    return LibraryCall((launch,), () if is_shared else (temporary, temporary))


def _padded(length: int) -> int:
    """Capacity of a plane; not a power of two, so that planes use different sets of a cache."""
    return -(-length // 256) * 256 + 64
