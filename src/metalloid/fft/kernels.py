"""Launches of the Fourier kernels, `fourier.metal`.

A row that fits into threadgroup memory takes one pass. A longer row is processed as a table of
``a * b`` numbers (or ``a * b * c``): transform the columns, multiply by twiddle factors, transform
the rows (W. Gentleman and G. Sande, "Fast Fourier transforms: for fun and profit", 1966).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from metalloid.arrays.execution.evaluate import evaluate
from metalloid.arrays.ir.dtypes import DType, kind_of, msl_name, real_of
from metalloid.arrays.ir.host_arrays import from_numpy
from metalloid.arrays.ir.memory import Memory
from metalloid.arrays.ir.node import Node
from metalloid.arrays.ir.views import contiguous_copy
from metalloid.arrays.metal import metal_source as array_source
from metalloid.fft.factors import radices_of, split
from metalloid.fft.tables import chirp, components, twiddles
from metalloid.kernels.library import Library, generated_library
from metalloid.kernels.sources import metal_source
from metalloid.runtime.devices.device import Device
from metalloid.runtime.memory.buffer import Buffer

#: These constants equal those of fourier.metal.
THREADS, _CAPACITY_BYTES, _MAX_STAGES = 512, 32768, 12
#: Minimum number of adjacent rows in a threadgroup, for rows that take several passes.
_MIN_ADJACENT_ROWS = 4
#: Radices of the kernels without the rare, register-hungry stages.
_COMMON_RADICES = frozenset({2, 3, 4, 5, 8})
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
    """Memory layout of the rows that a pass reads or writes: ``Operand`` of fourier.metal.

    Buffers are numbered: the source, the result, then temporary ones.
    """

    buffer: int
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
class Pass:
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

    @property
    def kind(self) -> str:
        """The types of what is read and written."""
        return "real" if self.source.is_real else "real_from" if self.to.is_real else "complex"

    def has_rare_stages(self, device: Device) -> bool:
        """Whether the kernel needs stages that take many registers."""
        is_common = _COMMON_RADICES.issuperset(radices_of(self.length) or ())
        return not (is_common and device.traits.is_simt)

    def across(self, capacity: int) -> int:
        """Rows of a threadgroup."""
        return max(1, min(self.rows, capacity // self.length))

    def threads(self, capacity: int) -> tuple[int, int, int]:
        """Threads of the grid."""
        groups = math.ceil(self.rows / self.across(capacity))
        return groups * THREADS, self.middles, self.batches


class Multiplication(NamedTuple):
    """Another launch: rows of `length` numbers of a buffer times the chirp of `n`."""

    buffer: int
    n: int
    length: int
    rows: int


class Source(NamedTuple):
    """The rows to transform, in memory: `middles` times `inner` rows.

    Attributes
    ----------
    middles, middle, inner, row : int
        Extents, and strides.
    step, start : int
        Stride of the elements of a row, and the offset of the first one.
    length : int
        Elements of a row.
    is_real : bool
    """

    middles: int
    middle: int
    inner: int
    row: int
    step: int
    start: int
    length: int
    is_real: bool


@dataclass
class Schedule:
    """Launches of one transform.

    Attributes
    ----------
    capacity : int
        Complex numbers that fit into threadgroup memory.
    temporaries : list of int
        Complex numbers of each temporary buffer.
    """

    capacity: int
    steps: list[Pass | Multiplication] = field(default_factory=list)
    temporaries: list[int] = field(default_factory=list)

    def new(self, elements: int) -> int:
        """Add a temporary buffer."""
        self.temporaries.append(elements)
        return 1 + len(self.temporaries)


@functools.lru_cache(maxsize=256)
def packed(step: Pass, capacity: int) -> np.ndarray:
    """``Pass`` of fourier.metal."""
    length, across, around = step.length, step.across(capacity), step.around
    source, to = step.source.record(), step.to.record()
    _, coarse, fine, bits = twiddles(length, around)
    by_rows = source[_BY_ROWS] or to[_BY_ROWS]
    numbers = np.zeros((), _PASS)
    numbers["from"], numbers["to"] = (*source, 0), (*to, 0)
    radices = radices_of(length)
    assert radices is not None  # see `split`
    for name, value in {
        "rows": step.rows, "around": around, "coarse": coarse, "fine": fine, "fine_bits": bits,
        "is_chirp": step.is_chirp, "length": length, "across": across,
        "tile_row": 1 if by_rows else length, "tile_place": across if by_rows else 1,
        "stages": len(radices), "of_across": _divisor(across), "of_length": _divisor(length),
    }.items():  # fmt: skip
        numbers[name] = value
    done, first = 1, length
    for stage, radix in enumerate(radices):
        numbers["radices"][stage] = radix
        numbers["done"][stage] = _divisor(done)
        numbers["many"][stage] = _divisor(length // radix)
        numbers["twiddles"][stage] = first
        first += (radix - 1) * done
        done *= radix
    return numbers.reshape(1)


@functools.lru_cache(maxsize=256)
def _packed_on_device(step: Pass, capacity: int, device: Device) -> Buffer:
    return Buffer(packed(step, capacity), device=device)


def capacity_of(real: DType) -> int:
    """Complex numbers that fit into threadgroup memory."""
    return _CAPACITY_BYTES // (2 * real.itemsize)


def transformed_rows(x: Node, transform: Transform) -> list[Memory]:
    """Transform along the last axis."""
    real, device = real_of(x.dtype), x.device
    axes = _outer_axes(x)
    if len(axes) > 2:
        x = contiguous_copy(x)
        evaluate([x], wait=False)
        axes = _outer_axes(x)
    assert x.memory is not None
    elements = math.prod(x.shape[:-1]) * transform.outputs
    result = Memory(device, elements * real.itemsize * (1 if transform.to_real else 2))
    if elements == 0:
        return [result]
    (middles, middle), (inner, row) = [(1, 0)] * (2 - len(axes)) + axes
    source = Source(middles, middle, inner, row, x.data[0][-1], x.layout.offset, x.shape[-1],
                    kind_of(x.dtype) != "c")  # fmt: skip
    schedule = schedule_of(source, transform, real)
    # Must not be reused before all passes are launched.
    memories = [Memory(device, 2 * real.itemsize * count) for count in schedule.temporaries]
    bound = x.memory.bound
    buffers = [
        bound.view(real) if isinstance(bound, np.ndarray) else bound,
        *(memory.bound for memory in (result, *memories)),
    ]
    for step in schedule.steps:
        _launch(step, buffers, real, device)
    return [result]


def _launch(step: Pass | Multiplication, buffers: Sequence[Any], real: DType,
            device: Device) -> None:  # fmt: skip
    if isinstance(step, Multiplication):
        chirp = _chirp_on_device(step.n, step.length, real, device)
        _library(real, device)["multiply_rows"](
            buffers[step.buffer], chirp.bound, step.length, threads=(step.length, step.rows),
            wait=False,
        )  # fmt: skip
        return
    capacity = capacity_of(real)
    table = _twiddles_on_device(step.length, step.around, real, device)
    numbers = _packed_on_device(step, capacity, device)
    rare = "_rare" if step.has_rare_stages(device) else ""
    kernel = _library(real, device)[f"transform_{step.kind}{rare}"]
    kernel(buffers[step.source.buffer], buffers[step.to.buffer], table.bound, numbers,
           real.type(step.scale), threads=step.threads(capacity), group_size=(THREADS, 1, 1),
           wait=False)  # fmt: skip


@functools.lru_cache(maxsize=256)
def schedule_of(rows: Source, transform: Transform, real: DType) -> Schedule:
    """The launches that transform rows."""
    work, half = Schedule(capacity_of(real)), transform.length // 2 + 1
    source = _RowAccess(
        0, start=rows.start, step=rows.step,
        count=min(rows.length, half if transform.is_mirrored else transform.length),
        mirror=transform.length if transform.is_mirrored else 0, exchanged=transform.is_inverse,
        is_real=rows.is_real,
    )  # fmt: skip
    to = _RowAccess(
        1, count=transform.outputs, exchanged=transform.is_inverse, is_real=transform.to_real
    )
    scale, n, outputs = transform.scale, transform.length, transform.outputs
    middles, middle, inner, row, *_ = rows
    lengths = split(n, work.capacity, work.capacity // _MIN_ADJACENT_ROWS)
    if lengths is None:
        source = replace(source, batch=middle, middle=row, index_row=1)
        to = replace(to, batch=inner * outputs, middle=outputs, index_row=1)
        _as_convolution(work, n, (middles, inner), source, to, scale)
    elif len(lengths) == 1:
        work.steps.append(Pass(n, inner, middles, 1, replace(source, middle=middle, row=row),
                               replace(to, middle=inner * outputs, row=outputs),
                               scale=scale))  # fmt: skip
    else:
        _in_passes(work, lengths, (middles, inner), replace(source, batch=middle, middle=row),
                   replace(to, batch=outputs), scale)  # fmt: skip
    return work


def _in_passes(work: Schedule, lengths: tuple[int, ...], outer: tuple[int, int], source: _RowAccess,
               to: _RowAccess, scale: float) -> None:  # fmt: skip
    """Transform rows as tables of extents `lengths`; `to` is contiguous except for its batches."""
    n, rows = math.prod(lengths), math.prod(outer)
    first, *between, last = lengths
    rest = n // first
    tables = work.new(rows * n)
    work.steps.append(Pass(
        first, rest, outer[1], outer[0], replace(source, index_row=1, index_step=rest),
        _RowAccess(tables, batch=outer[1] * n, middle=n, index_row=1, index_step=rest), around=n,
    ))  # fmt: skip
    if between:
        (second,) = between
        transposed = work.new(rows * n)
        inside = _RowAccess(tables, batch=n, middle=rest, index_row=1, index_step=last)
        out = replace(inside, buffer=transposed)
        work.steps.append(Pass(second, last, first, rows, inside, out, around=rest))
        tables = transposed
    middles = n // (first * last)
    work.steps.append(Pass(
        last, first, middles, rows, _RowAccess(tables, batch=n, middle=last, row=rest),
        replace(to, index_row=1, index_middle=first, index_step=first * middles), scale=scale,
    ))  # fmt: skip


def _as_convolution(work: Schedule, n: int, outer: tuple[int, int], source: _RowAccess,
                    to: _RowAccess, scale: float) -> None:  # fmt: skip
    """Transform rows of any length as a convolution with a chirp (Bluestein's algorithm).

    It uses j k = (j^2 + k^2 - (j - k)^2) / 2.
    """
    rows, around = math.prod(outer), 2 * n
    m = 1 << (2 * n - 2).bit_length()  # a power of two from 2 n - 1 on
    lengths = split(m, work.capacity, work.capacity // _MIN_ADJACENT_ROWS)
    assert lengths is not None
    padded, waves = work.new(rows * m), work.new(rows * m)
    at_rows = _RowAccess(padded, batch=outer[1] * m, middle=m, index_row=1)
    count = min(source.count, n)
    work.steps.append(Pass(1, n, outer[1], outer[0], replace(source, count=count), at_rows,
                      around=around, is_chirp=True))  # fmt: skip
    plain = _RowAccess(padded, count=n)
    _plain(work, lengths, rows, plain, _RowAccess(waves))
    work.steps.append(Multiplication(waves, n, m, rows))
    _plain(
        work, lengths, rows, _RowAccess(waves, exchanged=True), _RowAccess(padded, exchanged=True)
    )
    work.steps.append(Pass(1, n, outer[1], outer[0], at_rows, to, around=around, is_chirp=True,
                      scale=scale))  # fmt: skip


def _plain(
    work: Schedule, lengths: tuple[int, ...], rows: int, source: _RowAccess, to: _RowAccess
) -> None:
    """Transform contiguous rows."""
    n = math.prod(lengths)
    if len(lengths) == 1:
        work.steps.append(Pass(n, rows, 1, 1, replace(source, row=n), replace(to, row=n)))
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
def _twiddles_on_device(length: int, around: int, real: DType, device: Device) -> Memory:
    return _on_device(twiddles(length, around)[0], real, device)


@functools.lru_cache(maxsize=16)
def _chirp_on_device(n: int, m: int, real: DType, device: Device) -> Memory:
    return _on_device(chirp(n, m), real, device)


def _on_device(values: np.ndarray, real: DType, device: Device) -> Memory:
    memory = from_numpy(components(values, real), device).memory
    assert memory is not None
    return memory


@functools.cache
def text(type_: str) -> str:
    """The Metal source for a precision."""
    body = array_source("fourier") + metal_source("metalloid.fft", "fourier_kernels")
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
    # Launches are generated from shapes: accesses are inside.
    return generated_library(text(msl_name(real)), {}, device)
