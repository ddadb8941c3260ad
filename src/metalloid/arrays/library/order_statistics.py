"""Elements at positions of the sorted order of long rows, by `order_statistics.metal`."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from metalloid.arrays.ir.dtypes import DType, uint32
from metalloid.arrays.ir.library_call import LibraryCall, LibraryLaunch, library_call
from metalloid.arrays.ir.node import Node, cast
from metalloid.arrays.library.long_rows import LANES, chunk_of
from metalloid.arrays.library.merge_sort import MSL_BITS, order_text
from metalloid.kernels.operands import MAX_ELEMENTS

_FILES = ("sorts/order", "sorts/order_statistics")
_DIGIT_BITS, _DIGITS = 10, 1024
#: Shorter rows are sorted faster.
LONG_ROW = 2**14
#: Maximum positions of a row: each has counters in threadgroup memory.
MAX_TARGETS = 4
#: Simdgroups of a threadgroup, with SIMT.
_SIMDGROUPS_OF_SIMT = 8


class _Selection(NamedTuple):
    """Parameters of a selection.

    Attributes
    ----------
    dtype : numpy.dtype
    rows, length : int
        `length` is that of a row.
    targets : int
        Positions of each row.
    chunk : int
        Elements of a simdgroup.
    simdgroups : int
        Simdgroups of a threadgroup.
    """

    dtype: DType
    rows: int
    length: int
    targets: int
    chunk: int
    simdgroups: int

    @property
    def groups(self) -> int:
        """Threadgroups of a row."""
        return -(-self.length // (self.chunk * self.simdgroups))

    @property
    def passes(self) -> int:
        return -(-8 * self.dtype.itemsize // _DIGIT_BITS)

    @property
    def counters(self) -> int:
        """Counters of all digits, each for a pass over the elements."""
        return (self.passes + 1) * self.rows * self.targets * _DIGITS


def _selection(rows: Node, targets: int) -> _Selection:
    *outer, length = rows.shape
    simdgroups = _SIMDGROUPS_OF_SIMT if rows.device.traits.is_simt else 1
    return _Selection(rows.dtype, math.prod(outer), length, targets, chunk_of(rows), simdgroups)


def has_launches(rows: Node, targets: int) -> bool:
    """Whether there are launches for these sizes."""
    if rows.shape[-1] < LONG_ROW or targets > MAX_TARGETS:
        return False
    return max(rows.size, _selection(rows, targets).counters) <= MAX_ELEMENTS


def elements_in_order(rows: Node, positions: Node) -> Node:
    """The elements of each row that would be at its positions if it were sorted.

    Parameters
    ----------
    rows : Node
    positions : Node
        Integers, with the same axes but the last one.
    """
    selection = _selection(rows, positions.shape[-1])
    operands = [rows, cast(positions, uint32)]
    return library_call(_call(selection), operands, rows.dtype, positions.shape)


# Buffers: the rows, the positions, the result, then temporaries.
_ROWS, _POSITIONS, _RESULT, _COUNTS, _BOUNDS, _RANKS, _MISSED, _RETAINED, _LENGTHS = range(9)


@functools.lru_cache(maxsize=1024)
def _call(s: _Selection) -> LibraryCall:
    """Find a range of keys for each result in a sample; then narrow it, digit by digit."""
    unsigned = np.dtype(f"u{s.dtype.itemsize}")
    temporaries = (
        (uint32, (s.counters,)),
        (unsigned, (s.passes + 2, s.rows, s.targets, 2)),
        (uint32, (s.rows, s.targets)),
        (uint32, (s.rows,)),
        (unsigned, (s.rows, s.groups, s.simdgroups * s.chunk)),
        (uint32, (s.rows, s.groups, s.simdgroups * LANES)),
    )
    clear = LibraryLaunch(
        name="select_clears_counts",
        body="out[at.x] = 0;",
        files=(),
        reads=(),
        writes=(_COUNTS,),
        numbers=(),
        threads=(s.counters, 1, 1),
    )
    launches = [clear, _sampling(s), _uniting(s), _counting_ranges(s), _choosing(s)]
    for digit in range(1, s.passes + 1):
        launches += [_counting(s, digit), _finding(s, digit)]
    return LibraryCall(tuple(launches), temporaries)


def _bounds(s: _Selection, name: str, row: str, step: str) -> str:
    """The bounds of the ranges of a row; of `counts` as well, there is one for each step."""
    bits = MSL_BITS[s.dtype.itemsize]
    return f"((device {bits} *){name}) + (ulong({step}) * params.rows + {row}) * {2 * s.targets}"


def _counters(s: _Selection, name: str, row: str, step: str) -> str:
    return f"{name} + (ulong({step}) * params.rows + {row}) * {s.targets * _DIGITS}"


def _sampling(s: _Selection) -> LibraryLaunch:
    bits = MSL_BITS[s.dtype.itemsize]
    body = (
        f"threadgroup {bits} sample[numpy::sample_size];\n"
        f"threadgroup uint counts[{_DIGITS}];\n"
        f"{order_text(s.dtype, is_stable=True, descending='0')}"
        f"numpy::take_sample((device const {bits} *)x0 + ulong(group.y) * params.length,\n"
        "    params.length, order, sample, lane);\n"
        "simdgroup_barrier(mem_flags::mem_threadgroup);\n"
        f"const uint target = group.y * {s.targets} + group.x;\n"
        f"const numpy::KeyRange<{bits}> range =\n"
        "    numpy::range_of_sample(sample, x1[target], params.length, counts, lane);\n"
        "if (lane == 0) {\n"
        f"  numpy::store_range(range, (device {bits} *)out, target);\n"
        "  out1[target] = range.rank;\n"
        "}"
    )
    return LibraryLaunch(
        name="select_samples",
        body=body,
        files=_FILES,
        reads=(_ROWS, _POSITIONS),
        writes=(_BOUNDS, _RANKS),
        numbers=(("length", s.length),),
        threads=(s.targets * LANES, s.rows, 1),
        group_size=(LANES, 1, 1),
    )


def _uniting(s: _Selection) -> LibraryLaunch:
    return LibraryLaunch(
        name="select_unites_ranges",
        body=f"numpy::unite_ranges({_bounds(s, 'out', 'at.x', '0')}, params.targets);",
        files=_FILES,
        reads=(),
        writes=(_BOUNDS,),
        numbers=(("rows", s.rows), ("targets", s.targets)),
        threads=(s.rows, 1, 1),
        uses_lanes=False,
    )


def _chunk_text(s: _Selection, bounds: str, step: str, retained: str, lengths: str) -> str:
    """Statements that define ranges, a simdgroup's chunk and a lane's candidates there."""
    bits = MSL_BITS[s.dtype.itemsize]
    return (
        f"{order_text(s.dtype, is_stable=True, descending='0')}"
        f"const numpy::Ranges<{s.targets}, {bits}> ranges({_bounds(s, bounds, 'group.y', step)});\n"
        f"const uint chunk = group.x * {s.simdgroups} + simdgroup;\n"
        f"const uint first = min(chunk * {s.chunk}, params.length);\n"
        f"const uint size = min({s.chunk}u, params.length - first);\n"
        f"device const {bits} *values = (device const {bits} *)x0\n"
        "    + ulong(group.y) * params.length + first;\n"
        f"const uint chunk_of_all = group.y * {s.groups * s.simdgroups} + chunk;\n"
        f"device uint *length = {lengths} + chunk_of_all * {LANES} + lane;\n"
        f"numpy::Candidates<{bits}> candidates{{\n"
        f"    {retained} + ulong(chunk_of_all) * {s.chunk} + lane, 0}};\n"
    )


def _counting_ranges(s: _Selection) -> LibraryLaunch:
    threads = LANES * s.simdgroups
    body = (
        f"{_chunk_text(s, 'out1', '0', 'out2', 'out3')}"
        f"thread uint below[{s.targets}], inside[{s.targets}];\n"
        f"for (uint t = 0; t < {s.targets}; ++t) {{\n"
        "  below[t] = inside[t] = 0;\n"
        "}\n"
        "numpy::count_ranges(values, size, ranges, order, candidates, below, inside,\n"
        "    lane);\n"
        "*length = candidates.length;\n"
        f"device uint *counts = {_counters(s, 'out', 'group.y', '0')};\n"
        "device atomic_uint *totals = (device atomic_uint *)counts;\n"
        f"for (uint t = 0; t < {s.targets}; ++t) {{\n"
        "  const uint total_below = simd_sum(below[t]), total_inside = simd_sum(inside[t]);\n"
        "  if (lane == 0) {\n"
        f"    atomic_fetch_add_explicit(totals + t * {_DIGITS}, total_below,"
        " memory_order_relaxed);\n"
        f"    atomic_fetch_add_explicit(totals + t * {_DIGITS} + 1, total_inside,"
        " memory_order_relaxed);\n"
        "  }\n"
        "}"
    )
    return LibraryLaunch(
        name="select_counts_ranges",
        body=body,
        files=_FILES,
        reads=(_ROWS,),
        writes=(_COUNTS, _BOUNDS, _RETAINED, _LENGTHS),
        numbers=(("length", s.length), ("rows", s.rows)),
        threads=(s.groups * threads, s.rows, 1),
        group_size=(threads, 1, 1),
    )


def _choosing(s: _Selection) -> LibraryLaunch:
    bits = MSL_BITS[s.dtype.itemsize]
    body = (
        f"device const {bits} *bounds = {_bounds(s, 'out1', 'at.x', '0')};\n"
        f"device {bits} *narrowed = {_bounds(s, 'out1', 'at.x', '1')};\n"
        f"device const uint *counts = {_counters(s, 'out', 'at.x', '0')};\n"
        f"device uint *ranks = out2 + at.x * {s.targets};\n"
        "uint missed = 0;\n"
        "for (uint t = 0; t < params.targets; ++t) {\n"
        f"  device const uint *own = counts + numpy::first_same(bounds, t) * {_DIGITS};\n"
        f"  numpy::KeyRange<{bits}> range = numpy::load_range(bounds, t, ranks[t]);\n"
        "  missed |= numpy::choose_range(range, own[0], own[1]) ? 0 : 1;\n"
        "  numpy::store_range(range, narrowed, t);\n"
        "  ranks[t] = range.rank;\n"
        "}\n"
        "out3[at.x] = missed;"
    )
    return LibraryLaunch(
        name="select_chooses_ranges",
        body=body,
        files=_FILES,
        reads=(),
        writes=(_COUNTS, _BOUNDS, _RANKS, _MISSED),
        numbers=(("rows", s.rows), ("targets", s.targets)),
        threads=(s.rows, 1, 1),
        uses_lanes=False,
    )


def _counting(s: _Selection, digit: int) -> LibraryLaunch:
    bits, threads = MSL_BITS[s.dtype.itemsize], LANES * s.simdgroups
    counters = s.targets * _DIGITS
    is_empty = " || simd_max(count) == 0" if s.simdgroups == 1 else ""
    body = (
        f"threadgroup uint counts[{counters}];\n"
        f"{_chunk_text(s, 'out1', 'params.digit', 'out3', 'out4')}"
        "const bool takes_all = params.digit == 1 && out2[group.y] != 0;\n"
        f"const uint count = takes_all ? (size + {LANES - 1} - lane) / {LANES} : *length;\n"
        f"if (ranges.have_one_key(){is_empty}) {{\n"
        "  return;\n"
        "}\n"
        f"const uint own = simdgroup * {LANES} + lane;\n"
        f"for (uint k = own; k < {counters}; k += {threads}) {{\n"
        "  counts[k] = 0;\n"
        "}\n"
        "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
        "for (uint k = 0; k < count; ++k) {\n"
        f"  const {bits} key = takes_all ? order.key(values[k * {LANES} + lane])"
        " : candidates.get(k);\n"
        "  numpy::count_digits(key, ranges, candidates, counts);\n"
        "}\n"
        "*length = candidates.length;\n"
        "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
        f"device uint *totals = {_counters(s, 'out', 'group.y', 'params.digit')};\n"
        f"for (uint k = own; k < {counters}; k += {threads}) {{\n"
        "  const uint more = counts[k];\n"
        "  if (more > 0) {\n"
        "    atomic_fetch_add_explicit((device atomic_uint *)totals + k, more,"
        " memory_order_relaxed);\n"
        "  }\n"
        "}"
    )
    return LibraryLaunch(
        name="select_counts",
        body=body,
        files=_FILES,
        reads=(_ROWS,),
        writes=(_COUNTS, _BOUNDS, _MISSED, _RETAINED, _LENGTHS),
        numbers=(("length", s.length), ("rows", s.rows), ("digit", digit)),
        threads=(s.groups * threads, s.rows, 1),
        group_size=(threads, 1, 1),
    )


def _finding(s: _Selection, digit: int) -> LibraryLaunch:
    bits = MSL_BITS[s.dtype.itemsize]
    body = (
        f"{order_text(s.dtype, is_stable=True, descending='0')}"
        f"const uint target = group.y * {s.targets} + group.x;\n"
        f"device const {bits} *bounds = {_bounds(s, 'out2', 'group.y', 'params.digit')};\n"
        f"device {bits} *narrowed = {_bounds(s, 'out2', 'group.y', 'params.digit + 1')};\n"
        f"numpy::KeyRange<{bits}> range = numpy::load_range(bounds, group.x, out3[target]);\n"
        "simdgroup_barrier(mem_flags::mem_device);\n"
        "if (!range.has_one_key()) {\n"
        "  const uint shift = range.shift();\n"
        f"  device const uint *counts = {_counters(s, 'out1', 'group.y', 'params.digit')}\n"
        f"      + numpy::first_same(bounds, group.x) * {_DIGITS};\n"
        "  range.narrow(numpy::find_digit(counts, range.rank, lane), shift);\n"
        "}\n"
        "if (lane == 0) {\n"
        "  numpy::store_range(range, narrowed, group.x);\n"
        "  out3[target] = range.rank;\n"
        f"  if (params.digit == {s.passes}) {{\n"
        f"    ((device {bits} *)out)[target] = order.bits(range.least);\n"
        "  }\n"
        "}"
    )
    return LibraryLaunch(
        name="select_finds_digits",
        body=body,
        files=_FILES,
        reads=(),
        writes=(_RESULT, _COUNTS, _BOUNDS, _RANKS),
        numbers=(("rows", s.rows), ("digit", digit)),
        threads=(s.targets * LANES, s.rows, 1),
        group_size=(LANES, 1, 1),
    )
