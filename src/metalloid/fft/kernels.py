"""Launches of the Fourier kernels, `fourier.metal`.

A row that fits into threadgroup memory takes one pass. A longer row is processed as a table of
``a * b`` numbers (or ``a * b * c``): transform the columns, multiply by twiddle factors, transform
the rows (W. Gentleman and G. Sande, "Fast Fourier transforms: for fun and profit", 1966).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from metalloid.arrays.execution.evaluate import evaluate
from metalloid.arrays.ir.dtypes import DType, kind_of, msl_name, real_of
from metalloid.arrays.ir.memory import Memory
from metalloid.arrays.ir.node import Node
from metalloid.arrays.ir.operands import from_numpy
from metalloid.arrays.ir.views import contiguous_copy
from metalloid.fft.factors import radices_of, split
from metalloid.kernels.library import Library, library
from metalloid.kernels.sources import metal_source
from metalloid.runtime.devices.device import Device
from metalloid.runtime.memory.buffer import Buffer

#: These constants equal those of fourier.metal.
_THREADS, _CAPACITY_BYTES, _MAX_STAGES = 512, 32768, 12
#: Minimum number of adjacent rows in a threadgroup, for rows that take several passes.
_MIN_ADJACENT_ROWS = 4
#: Radices of the kernels without the rare, register-hungry stages.
_COMMON_RADICES = frozenset({2, 3, 4, 5, 8})
_PI = np.arccos(np.longdouble(-1))
_DIVISOR = np.dtype([("by", np.uint32), ("factor", np.uint32)])
_OPERAND = np.dtype(
    [(name, np.int64) for name in ("start", "batch", "middle", "row", "step")]
    + [(name, np.uint32) for name in ("index_row", "index_middle", "index_step", "count",
                                      "mirror", "by_rows", "exchanged")]
    + [("", np.uint32)],
)  # fmt: skip
_BY_ROWS = _OPERAND.names.index("by_rows") if _OPERAND.names else 0
_PASS = np.dtype(
    [("from", _OPERAND), ("to", _OPERAND)]
    + [(name, np.uint32) for name in ("rows", "around", "coarse", "fine", "fine_bits", "is_chirp",
                                      "length", "across", "tile_row", "tile_place", "stages")]
    + [("of_across", _DIVISOR), ("of_length", _DIVISOR)]
    + [("radices", np.uint32, _MAX_STAGES)]
    + [("done", _DIVISOR, _MAX_STAGES), ("many", _DIVISOR, _MAX_STAGES)]
    + [("twiddles", np.uint32, _MAX_STAGES), ("", np.uint32)],
)  # fmt: skip


class Transform(NamedTuple):
    """The transform of each row.

    Attributes
    ----------
    length : int
        Length of the transform: rows are truncated, or padded with zeros.
    is_inverse : bool
    is_mirrored : bool
        Whether the input is the first half of a row with Hermitian symmetry.
    outputs : int
        Number of results, which are real if `to_real`.
    to_real : bool
    scale : float
        Factor of the results.
    """

    length: int
    is_inverse: bool
    is_mirrored: bool
    outputs: int
    to_real: bool
    scale: float


@dataclass(frozen=True)
class _RowAccess:
    """Memory layout of the rows that a pass reads or writes: ``Side`` of fourier.metal."""

    bound: Any
    start: int = 0
    batch: int = 0
    middle: int = 0
    row: int = 0
    step: int = 1
    index_row: int = 0
    index_middle: int = 0
    index_step: int = 1
    count: int = 2**32 - 1
    mirror: int = 0
    exchanged: bool = False
    is_real: bool = False

    @property
    def by_rows(self) -> bool:
        """Whether neighbouring addresses belong to different rows."""
        along = abs(self.step) * self.index_step
        across_rows = abs(self.row) + abs(self.step) * self.index_row
        return across_rows != 0 and across_rows < along

    def record(self) -> tuple[int, ...]:
        """Return the members of the struct."""
        return (self.start, self.batch, self.middle, self.row, self.step, self.index_row,
                self.index_middle, self.index_step, self.count, self.mirror, self.by_rows,
                self.exchanged)  # fmt: skip


@dataclass(frozen=True)
class _Pass:
    """One launch: ``batches * middles * rows`` transforms."""

    length: int
    rows: int
    middles: int
    batches: int
    source: _RowAccess
    to: _RowAccess
    around: int = 0
    is_chirp: bool = False
    scale: float = 1.0


@dataclass
class _Work:
    """Launches of one transform, with a common precision."""

    device: Device
    real: DType
    held: list[Any] = field(default_factory=list)

    @property
    def capacity(self) -> int:
        """Complex numbers that fit into threadgroup memory."""
        return _CAPACITY_BYTES // (2 * self.real.itemsize)

    def new(self, elements: int, is_real: bool = False) -> Memory:
        """Allocate memory for complex or real numbers."""
        memory = Memory(self.device, elements * self.real.itemsize * (1 if is_real else 2))
        self.held.append(memory)  # must not be reused before all passes are launched
        return memory

    def launch(self, step: _Pass) -> None:
        """Launch a pass."""
        across = max(1, min(step.rows, self.capacity // step.length))
        table, *tables = _twiddles(step.length, step.around, self.real, self.device)
        numbers = _packed(
            step.length, step.rows, across, step.source.record(), step.to.record(),
            step.around, step.is_chirp, *tables, self.device,
        )  # fmt: skip
        kind = "real" if step.source.is_real else "real_from" if step.to.is_real else "complex"
        is_common = _COMMON_RADICES.issuperset(radices_of(step.length) or ())
        rare = "" if is_common and self.device.traits.is_simt else "_rare"
        kernel = _library(self.real, self.device)[f"transform_{kind}{rare}"]
        groups = math.ceil(step.rows / across)
        kernel(step.source.bound, step.to.bound, table.bound, numbers,
               self.real.type(step.scale), threads=(groups * _THREADS, step.middles,
               step.batches), group_size=(_THREADS, 1, 1), wait=False)  # fmt: skip


@functools.lru_cache(maxsize=256)
def _packed(length: int, rows: int, across: int, source: tuple[int, ...], to: tuple[int, ...],
            around: int, is_chirp: bool, coarse: int, fine: int, bits: int,
            device: Device) -> Buffer:  # fmt: skip
    """Return ``Plan`` of fourier.metal for a pass."""
    by_rows = source[_BY_ROWS] or to[_BY_ROWS]
    numbers = np.zeros((), _PASS)
    numbers["from"], numbers["to"] = (*source, 0), (*to, 0)
    radices = radices_of(length)
    assert radices is not None  # see `split`
    for name, value in {
        "rows": rows, "around": around, "coarse": coarse, "fine": fine, "fine_bits": bits,
        "is_chirp": is_chirp, "length": length, "across": across,
        "tile_row": 1 if by_rows else length, "tile_place": across if by_rows else 1,
        "stages": len(radices), "of_across": _divisor(across), "of_length": _divisor(length),
    }.items():  # fmt: skip
        numbers[name] = value
    done, twiddles = 1, length
    for stage, radix in enumerate(radices):
        numbers["radices"][stage] = radix
        numbers["done"][stage] = _divisor(done)
        numbers["many"][stage] = _divisor(length // radix)
        numbers["twiddles"][stage] = twiddles
        twiddles += (radix - 1) * done
        done *= radix
    return Buffer(numbers.reshape(1), device=device)


def transformed_rows(x: Node, transform: Transform) -> list[Memory]:
    """Transform along the last axis."""
    real = real_of(x.dtype)
    axes = _outer_axes(x)
    if len(axes) > 2:
        x = contiguous_copy(x)
        evaluate([x], wait=False)
        axes = _outer_axes(x)
    assert x.memory is not None
    rows = math.prod(x.shape[:-1])
    work = _Work(x.device, real)
    result = work.new(rows * transform.outputs, transform.to_real)
    if rows * transform.outputs == 0:
        return [result]
    half = transform.length // 2 + 1
    (middles, middle), (inner, row) = [(1, 0)] * (2 - len(axes)) + axes
    bound = x.memory.bound
    source = _RowAccess(
        bound.view(real) if isinstance(bound, np.ndarray) else bound,
        start=x.layout.offset, step=x.data[0][-1],
        count=min(x.shape[-1], half if transform.is_mirrored else transform.length),
        mirror=transform.length if transform.is_mirrored else 0, exchanged=transform.is_inverse,
        is_real=kind_of(x.dtype) != "c",
    )  # fmt: skip
    to = _RowAccess(
        result.bound, count=transform.outputs, exchanged=transform.is_inverse,
        is_real=transform.to_real,
    )  # fmt: skip
    scale, n, outputs = transform.scale, transform.length, transform.outputs
    lengths = split(n, work.capacity, work.capacity // _MIN_ADJACENT_ROWS)
    if lengths is None:
        source = replace(source, batch=middle, middle=row, index_row=1)
        to = replace(to, batch=inner * outputs, middle=outputs, index_row=1)
        _as_convolution(work, n, (middles, inner), source, to, scale)
    elif len(lengths) == 1:
        work.launch(_Pass(n, inner, middles, 1, replace(source, middle=middle, row=row),
                          replace(to, middle=inner * outputs, row=outputs),
                          scale=scale))  # fmt: skip
    else:
        _in_passes(work, lengths, (middles, inner), replace(source, batch=middle, middle=row),
                   replace(to, batch=outputs), scale)  # fmt: skip
    return [result]


def _in_passes(work: _Work, lengths: tuple[int, ...], outer: tuple[int, int], source: _RowAccess,
               to: _RowAccess, scale: float) -> None:  # fmt: skip
    """Transform rows as tables of extents `lengths`; `to` is contiguous except for its batches."""
    n, rows = math.prod(lengths), math.prod(outer)
    first, *between, last = lengths
    rest = n // first
    tables = work.new(rows * n).bound
    work.launch(_Pass(
        first, rest, outer[1], outer[0], replace(source, index_row=1, index_step=rest),
        _RowAccess(tables, batch=outer[1] * n, middle=n, index_row=1, index_step=rest), around=n,
    ))  # fmt: skip
    if between:
        (second,) = between
        transposed = work.new(rows * n).bound
        inside = _RowAccess(tables, batch=n, middle=rest, index_row=1, index_step=last)
        work.launch(_Pass(second, last, first, rows, inside, replace(inside, bound=transposed),
                          around=rest))  # fmt: skip
        tables = transposed
    middles = n // (first * last)
    work.launch(_Pass(
        last, first, middles, rows, _RowAccess(tables, batch=n, middle=last, row=rest),
        replace(to, index_row=1, index_middle=first, index_step=first * middles), scale=scale,
    ))  # fmt: skip


def _as_convolution(work: _Work, n: int, outer: tuple[int, int], source: _RowAccess, to: _RowAccess,
                    scale: float) -> None:  # fmt: skip
    """Transform rows of any length as a convolution with a chirp (Bluestein's algorithm).

    It uses j k = (j^2 + k^2 - (j - k)^2) / 2.
    """
    rows, around = math.prod(outer), 2 * n
    m = 1 << (2 * n - 2).bit_length()  # a power of two from 2 n - 1 on
    lengths = split(m, work.capacity, work.capacity // _MIN_ADJACENT_ROWS)
    assert lengths is not None
    padded, waves = work.new(rows * m).bound, work.new(rows * m).bound
    at_rows = _RowAccess(padded, batch=outer[1] * m, middle=m, index_row=1)
    count = min(source.count, n)
    work.launch(_Pass(1, n, outer[1], outer[0], replace(source, count=count), at_rows,
                      around=around, is_chirp=True))  # fmt: skip
    plain = _RowAccess(padded, count=n)
    _plain(work, lengths, rows, plain, _RowAccess(waves))
    chirp = _chirp(n, m, work.real, work.device)
    _library(work.real, work.device)["multiply_rows"](
        waves, chirp.bound, m, threads=(m, rows), wait=False
    )
    _plain(
        work, lengths, rows, _RowAccess(waves, exchanged=True), _RowAccess(padded, exchanged=True)
    )
    work.launch(_Pass(1, n, outer[1], outer[0], at_rows, to, around=around, is_chirp=True,
                      scale=scale))  # fmt: skip


def _plain(
    work: _Work, lengths: tuple[int, ...], rows: int, source: _RowAccess, to: _RowAccess
) -> None:
    """Transform contiguous rows."""
    n = math.prod(lengths)
    if len(lengths) == 1:
        work.launch(_Pass(n, rows, 1, 1, replace(source, row=n), replace(to, row=n)))
    else:
        _in_passes(work, lengths, (1, rows), replace(source, middle=n), replace(to, batch=n), 1.0)


def _outer_axes(x: Node) -> list[tuple[int, int]]:
    """Return extents and strides of all axes except the last, with contiguous axes merged."""
    axes: list[tuple[int, int]] = []
    for extent, stride in zip(x.shape[:-1], x.data[0][:-1], strict=True):
        if extent == 1:
            continue
        if axes and axes[-1][1] == extent * stride:
            axes[-1] = (axes[-1][0] * extent, stride)
        else:
            axes.append((extent, stride))
    return axes


def _divisor(number: int) -> tuple[int, int]:
    return number, -(-(2**32) // number) % 2**32


@functools.lru_cache(maxsize=64)
def _twiddles(
    length: int, around: int, real: DType, device: Device
) -> tuple[Memory, int, int, int]:
    """Return twiddle factors of a length, of each stage, and of `around`, coarse and fine."""
    tables, bits, done = [unit_roots(np.arange(length), length)], 0, 1
    for radix in radices_of(length) or ():
        steps = np.arange(1, radix)[:, None] * np.arange(done)
        tables.append(unit_roots(steps.reshape(-1), radix * done))
        done *= radix
    coarse = fine = sum(map(len, tables))
    if around:
        bits = (around - 1).bit_length() // 2
        tables += [
            unit_roots(np.arange(0, around, 2**bits), around),
            unit_roots(np.arange(2**bits), around),
        ]
        fine += len(tables[-2])
    return _on_device(np.concatenate(tables), real, device), coarse, fine, bits


def unit_roots(steps: np.ndarray, around: int) -> np.ndarray:
    """Return the powers of the first root of unity, in more than double precision."""
    angle = 2 * _PI * steps / around
    return np.asarray(np.cos(angle) - 1j * np.sin(angle), complex)


@functools.lru_cache(maxsize=16)
def _chirp(n: int, m: int, real: DType, device: Device) -> Memory:
    """Return the transform of the chirp that rows are convolved with, divided by `m`."""
    indices = np.arange(n)
    wave = np.conj(unit_roots(indices * indices % (2 * n), 2 * n))
    around = np.zeros(m, complex)
    around[:n], around[m - n + 1 :] = wave, wave[:0:-1]
    return _on_device(np.fft.fft(around) / m, real, device)


def _on_device(values: np.ndarray, real: DType, device: Device) -> Memory:
    components = np.stack([values.real, values.imag], axis=-1)
    memory = from_numpy(components.astype(real), device).memory
    assert memory is not None
    return memory


@functools.cache
def text(type_: str) -> str:
    """The Metal source for a precision."""
    body = metal_source("metalloid.fft", "fourier")
    complex_type = f"vec<{type_}, 2>"
    kinds = {
        "complex": f"{complex_type}, {complex_type}",
        "real": f"{type_}, {complex_type}",
        "real_from": f"{complex_type}, {type_}",
    }
    instances = [
        (f"transform_{kind}{name}", "transform_rows", f"{type_}, {types}, {has_rare}")
        for kind, types in kinds.items() for name, has_rare in (("", "false"), ("_rare", "true"))
    ] + [("multiply_rows", "multiply_rows", type_)]  # fmt: skip
    rows = (
        f'template [[host_name("{host}")]] [[kernel]] '
        f"decltype({kernel}<{types}>) {kernel}<{types}>;"
        for host, kernel, types in instances
    )
    return "\n".join(["#include <metal_stdlib>\nusing namespace metal;\n", body, *rows, ""])


@functools.cache
def _library(real: DType, device: Device) -> Library:
    return library(text(msl_name(real)), device=device, bounds="unchecked")
