"""The launches of `kernels` as steps of a plan, for rows that are contiguous."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from metalloid.arrays.ir.dtypes import DType, complex_of, kind_of, msl_name, real_of
from metalloid.arrays.ir.host_arrays import from_numpy
from metalloid.arrays.ir.library_call import LibraryCall, LibraryLaunch, library_call
from metalloid.arrays.ir.node import Node
from metalloid.fft.kernels import (
    THREADS,
    Multiplication,
    Pass,
    Source,
    Transform,
    capacity_of,
    packed,
    schedule_of,
)
from metalloid.fft.tables import chirp, components, twiddles
from metalloid.runtime.devices.device import Device

_FILES = ("complex", "fourier")
#: Two threadgroups run at once.
_MAX_THREADS = 2 * THREADS


class _Launches(NamedTuple):
    """The launches of a transform.

    Attributes
    ----------
    call : LibraryCall
        Of the rows, `numbers` and `tables`.
    numbers : Node
        `Pass` of fourier.metal of all launches, in words.
    tables : Node
        Scales and twiddle factors of all launches, as real numbers.
    """

    call: LibraryCall
    numbers: Node
    tables: Node


def transform_rows(x: Node, transform: Transform) -> Node:
    """Transform the last axis."""
    real = real_of(x.dtype)
    shape = (*x.shape[:-1], transform.outputs)
    dtype = real if transform.to_real else complex_of(real)
    rows, count = math.prod(x.shape[:-1]), x.shape[-1]
    source = Source(1, 0, rows, count, 1, 0, count, kind_of(x.dtype) != "c")
    launches = _launches(source, transform, real, x.device)
    return library_call(launches.call, [x, launches.numbers, launches.tables], dtype, shape)


@functools.lru_cache(maxsize=64)
def _launches(source: Source, transform: Transform, real: DType, device: Device) -> _Launches:
    schedule, capacity = schedule_of(source, transform, real), capacity_of(real)
    tables, records, launches = [np.array([1.0, transform.scale]).view(complex)], [], []
    size, words = 1, 0
    for step in schedule.steps:
        if isinstance(step, Multiplication):
            launches.append(_multiplication(step, real, size))
            tables.append(chirp(step.n, step.length))
        else:
            launches.append(_pass(step, real, device, words, size))
            records.append(packed(step, capacity).view(np.uint32))
            tables.append(twiddles(step.length, step.around)[0])
            words += len(records[-1])
        size += len(tables[-1])
    temporaries = tuple((complex_of(real), (count,)) for count in schedule.temporaries)
    return _Launches(
        LibraryCall(tuple(launches), temporaries),
        from_numpy(np.concatenate(records), device),
        from_numpy(components(np.concatenate(tables), real).reshape(-1), device),
    )


def _buffer(number: int) -> int:
    """A buffer of a schedule among those of the call."""
    return number if number == 0 else number + 2


def _pass(step: Pass, real: DType, device: Device, words: int, table: int) -> LibraryLaunch:
    type_ = msl_name(real)
    pair, rare = f"vec<{type_}, 2>", str(step.has_rare_stages(device)).lower()
    source, to = (type_ if access.is_real else pair for access in (step.source, step.to))
    body = (
        f"threadgroup {pair} tile[fourier::capacity<{type_}>];\n"
        f"device const {type_} *tables = x2;\n"
        f"fourier::transform_tile<{type_}, {rare}>((device const {source} *)x0,\n"
        f"    (device {to} *)out, (device const {pair} *)tables + params.table,\n"
        "    *(constant fourier::Pass *)(x1 + params.words), tables[params.scale], tile,\n"
        "    group, simdgroup * 32 + lane);"
    )
    return LibraryLaunch(
        name=f"transform_{step.kind}",
        body=body,
        files=_FILES,
        reads=(_buffer(step.source.buffer), 1, 2),
        writes=(_buffer(step.to.buffer),),
        numbers=(("words", words), ("table", table), ("scale", int(step.scale != 1))),
        threads=step.threads(capacity_of(real)),
        group_size=(THREADS, 1, 1),
        constants=(1,),
        max_threads=_MAX_THREADS,
    )


def _multiplication(step: Multiplication, real: DType, table: int) -> LibraryLaunch:
    """In place: each row times the same numbers."""
    type_ = msl_name(real)
    pair = f"vec<{type_}, 2>"
    body = (
        f"device {pair} *values = (device {pair} *)out + ulong(at.y) * params.length;\n"
        f"device const {pair} *by = (device const {pair} *)x0 + params.table;\n"
        f"values[at.x] = fourier::product<{type_}>(values[at.x], by[at.x]);"
    )
    return LibraryLaunch(
        name="multiply_rows",
        body=body,
        files=_FILES,
        reads=(2,),
        writes=(_buffer(step.buffer),),
        numbers=(("length", step.length), ("table", table)),
        threads=(step.length, step.rows, 1),
    )
