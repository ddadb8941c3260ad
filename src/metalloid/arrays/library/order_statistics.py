"""Elements at positions of the sorted order of long rows, by `order_statistics.metal`."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from metalloid.arrays.ir.dtypes import DType, uint32
from metalloid.arrays.ir.library_call import LibraryCall, LibraryLaunch, library_call
from metalloid.arrays.ir.node import Node, cast
from metalloid.arrays.library.merge_sort import MSL_BITS, order_text
from metalloid.kernels.operands import MAX_ELEMENTS

_FILES = ("sorts/order", "sorts/order_statistics")
_LANES, _DIGIT_BITS, _DIGITS = 32, 10, 1024
#: Shorter rows are sorted faster.
LONG_ROW = 2**14
#: Maximum positions of a row: each has counters in threadgroup memory.
MAX_TARGETS = 4
#: Elements of a simdgroup's chunk, and simdgroups of a threadgroup, without and with SIMT.
_CHUNK, _CHUNK_OF_SIMT, _SIMDGROUPS_OF_SIMT = 2**14, 2**11, 8


class _Selection(NamedTuple):
    """Parameters of a selection.

    Attributes
    ----------
    dtype : numpy.dtype
    rows, length : int
        `length` is that of a row.
    targets : int
        Positions of each row.
    is_simt : bool
    """

    dtype: DType
    rows: int
    length: int
    targets: int
    is_simt: bool

    @property
    def chunk(self) -> int:
        return _CHUNK_OF_SIMT if self.is_simt else _CHUNK

    @property
    def simdgroups(self) -> int:
        """Simdgroups of a threadgroup."""
        return _SIMDGROUPS_OF_SIMT if self.is_simt else 1

    @property
    def groups(self) -> int:
        """Threadgroups of a row."""
        return -(-self.length // (self.chunk * self.simdgroups))

    @property
    def passes(self) -> int:
        return -(-8 * self.dtype.itemsize // _DIGIT_BITS)


def has_launches(rows: Node, targets: int) -> bool:
    """Whether there are launches for these sizes."""
    return rows.shape[-1] >= LONG_ROW and rows.size <= MAX_ELEMENTS and targets <= MAX_TARGETS


def elements_in_order(rows: Node, positions: Node) -> Node:
    """The elements of each row that would be at its positions if it were sorted.

    Parameters
    ----------
    rows : Node
    positions : Node
        Integers, with the same axes but the last one.
    """
    *outer, targets = positions.shape
    selection = _Selection(rows.dtype, math.prod(outer), rows.shape[-1], targets,
                           rows.device.traits.is_simt)  # fmt: skip
    operands = [rows, cast(positions, uint32)]
    return library_call(_call(selection), operands, rows.dtype, positions.shape)


# Buffers: the rows, the positions, the result, then temporaries.
_ROWS, _POSITIONS, _RESULT, _COUNTS, _SOUGHT, _RANKS, _RETAINED, _LENGTHS = range(8)


@functools.lru_cache(maxsize=1024)
def _call(s: _Selection) -> LibraryCall:
    """Clear all counters; then, for each digit, count its values and find those of the results."""
    unsigned = np.dtype(f"u{s.dtype.itemsize}")
    counters = s.passes * s.rows * s.targets * _DIGITS
    temporaries = (
        (uint32, (counters,)),
        (unsigned, (s.rows, s.targets)),
        (uint32, (s.rows, s.targets)),
        (unsigned, (s.rows, s.length)),
        (uint32, (s.rows, s.groups * s.simdgroups)),
    )
    clear = LibraryLaunch(
        name="select_clears_counts",
        body="out[at.x] = 0;",
        files=(),
        reads=(),
        writes=(_COUNTS,),
        numbers=(),
        threads=(counters, 1, 1),
    )
    launches = [clear]
    for digit in range(s.passes):
        launches += [_counting(s, digit), _finding(s, digit)]
    return LibraryCall(tuple(launches), temporaries)


def _shift(s: _Selection, digit: int) -> tuple[str, int]:
    return "shift", _DIGIT_BITS * (s.passes - 1 - digit)


def _counting(s: _Selection, digit: int) -> LibraryLaunch:
    bits, threads = MSL_BITS[s.dtype.itemsize], _LANES * s.simdgroups
    is_first, is_second = str(digit == 0).lower(), str(digit == 1).lower()
    body = (
        f"{order_text(s.dtype, is_stable=True, descending='0')}"
        f"threadgroup atomic_uint counts[{s.targets * _DIGITS + _LANES}];\n"
        f"const uint own = simdgroup * {_LANES} + lane;\n"
        f"for (uint k = own; k < {s.targets * _DIGITS}; k += {threads}) {{\n"
        "  atomic_store_explicit(&counts[k], 0, memory_order_relaxed);\n"
        "}\n"
        "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
        f"const uint chunk = group.x * {s.simdgroups} + simdgroup;\n"
        f"const uint first = min(chunk * {s.chunk}, params.length);\n"
        f"device uint *length = out3 + group.y * {s.groups * s.simdgroups} + chunk;\n"
        f"const uint count = {is_first} || {is_second} ? min({s.chunk}u, params.length - first)"
        " : *length;\n"
        f"thread {bits} sought[{s.targets}];\n"
        f"for (uint t = 0; t < {s.targets}; ++t) {{\n"
        f"  sought[t] = {is_first} ? {bits}(0) : out1[group.y * {s.targets} + t];\n"
        "}\n"
        "const ulong start = ulong(group.y) * params.length + first;\n"
        f"const uint retained = numpy::count_candidates<{s.targets}, {is_first}, {is_second}>(\n"
        f"    (device const {bits} *)x0 + start, out2 + start, count, sought,\n"
        "    params.shift, order, counts, lane);\n"
        f"if (!{is_first} && lane == 0) {{\n"
        "  *length = retained;\n"
        "}\n"
        "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
        f"device uint *totals = out + (ulong(params.digit) * params.rows + group.y)"
        f" * {s.targets * _DIGITS};\n"
        f"for (uint k = own; k < {s.targets * _DIGITS}; k += {threads}) {{\n"
        "  const uint more = atomic_load_explicit(&counts[k], memory_order_relaxed);\n"
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
        writes=(_COUNTS, _SOUGHT, _RETAINED, _LENGTHS),
        numbers=(("length", s.length), ("rows", s.rows), ("digit", digit), _shift(s, digit)),
        threads=(s.groups * threads, s.rows, 1),
        group_size=(threads, 1, 1),
    )


def _finding(s: _Selection, digit: int) -> LibraryLaunch:
    bits = MSL_BITS[s.dtype.itemsize]
    body = (
        f"{order_text(s.dtype, is_stable=True, descending='0')}"
        f"const uint first = group.x * {s.targets};\n"
        f"thread {bits} sought[{s.targets}];\n"
        f"thread uint ranks[{s.targets}];\n"
        f"for (uint t = 0; t < {s.targets}; ++t) {{\n"
        f"  sought[t] = params.digit == 0 ? {bits}(0) : out2[first + t];\n"
        f"  ranks[t] = params.digit == 0 ? x0[first + t] + 1 : out3[first + t];\n"
        "}\n"
        "simdgroup_barrier(mem_flags::mem_device);\n"
        f"for (uint t = 0; t < {s.targets}; ++t) {{\n"
        "  uint leader = t;\n"
        f"  for (uint k = {s.targets}; k-- > 0;) {{\n"
        "    leader = sought[k] == sought[t] ? k : leader;\n"
        "  }\n"
        f"  device const uint *counts = out1 + ((ulong(params.digit) * params.rows + group.x)\n"
        f"      * {s.targets} + leader) * {_DIGITS};\n"
        "  const uint value = numpy::find_digit(counts, ranks[t], lane);\n"
        f"  const {bits} key = {bits}(({bits}(sought[t] << {_DIGIT_BITS})) | {bits}(value));\n"
        "  if (lane == 0) {\n"
        "    out2[first + t] = key;\n"
        "    out3[first + t] = ranks[t];\n"
        f"    if (params.digit == {s.passes - 1}) {{\n"
        f"      ((device {bits} *)out)[first + t] = order.bits(key);\n"
        "    }\n"
        "  }\n"
        "}"
    )
    return LibraryLaunch(
        name="select_finds_digits",
        body=body,
        files=_FILES,
        reads=(_POSITIONS,),
        writes=(_RESULT, _COUNTS, _SOUGHT, _RANKS),
        numbers=(("rows", s.rows), ("digit", digit)),
        threads=(s.rows * _LANES, 1, 1),
        group_size=(_LANES, 1, 1),
    )
