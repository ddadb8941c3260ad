"""Moves of the elements of long rows between pivots, by `partition.metal`."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from metalloid.arrays.ir.dtypes import DType, int64, uint32
from metalloid.arrays.ir.library_call import LibraryCall, LibraryLaunch, library_call
from metalloid.arrays.ir.node import Node
from metalloid.arrays.library.long_rows import LANES, chunk_of
from metalloid.arrays.library.merge_sort import MSL_BITS, order_text

_FILES = ("sorts/order", "sorts/partition")
_ROWS, _PIVOTS, _RESULT, _COUNTS = range(4)


class _Partition(NamedTuple):
    """Parameters of a partition.

    Attributes
    ----------
    dtype : numpy.dtype
    rows, length : int
        `length` is that of a row.
    targets : int
        Pivots of each row.
    chunk : int
        Elements of a simdgroup.
    with_indices : bool
        Whether the results are indices.
    """

    dtype: DType
    rows: int
    length: int
    targets: int
    chunk: int
    with_indices: bool

    @property
    def counts(self) -> int:
        """Counts of a row, by group and chunk."""
        return (2 * self.targets + 1) * self.chunks

    @property
    def chunks(self) -> int:
        return -(-self.length // self.chunk)


def partitioned(rows: Node, pivots: Node, with_indices: bool) -> Node:
    """The elements of rows, or their indices, below, at and above pivots, which are ascending."""
    *outer, targets = pivots.shape
    count, chunk = math.prod(outer), chunk_of(rows)
    call = _call(_Partition(rows.dtype, count, rows.shape[-1], targets, chunk, with_indices))
    return library_call(call, [rows, pivots], int64 if with_indices else rows.dtype, rows.shape)


@functools.lru_cache(maxsize=1024)
def _call(s: _Partition) -> LibraryCall:
    """Count the elements of each group, sum the counts, and move the elements."""
    counting = (
        f"{_chunk_text(s, 'out')}"
        f"numpy::count_groups(values, size, order, pivots, counts, {s.chunks}, lane);"
    )
    result = f"(device {'long' if s.with_indices else _bits(s)} *)out"
    moving = (
        f"{_chunk_text(s, 'out1')}"
        f"numpy::move_groups<{str(s.with_indices).lower()}>(values, first, size, order, pivots,\n"
        f"    counts, {s.chunks}, {result} + ulong(group.y) * params.length, lane);"
    )
    sums = LibraryLaunch(
        name="partition_sums",
        body=f"numpy::sum_counts(out + ulong(group.x) * {s.counts}, {s.counts}, lane);",
        files=_FILES,
        reads=(),
        writes=(_COUNTS,),
        numbers=(),
        threads=(s.rows * LANES, 1, 1),
        group_size=(LANES, 1, 1),
    )
    launches = (_launch(s, "counts", counting, (_COUNTS,)), sums,
                _launch(s, "moves", moving, (_RESULT, _COUNTS)))  # fmt: skip
    return LibraryCall(launches, ((uint32, (s.rows, s.counts)),))


def _bits(s: _Partition) -> str:
    return MSL_BITS[s.dtype.itemsize]


def _chunk_text(s: _Partition, counts: str) -> str:
    """Statements that define the elements of a simdgroup, its counts and the pivots."""
    return (
        f"{order_text(s.dtype, is_stable=True, descending='0')}"
        f"const uint first = group.x * {s.chunk};\n"
        f"const uint size = min({s.chunk}u, params.length - first);\n"
        f"device const {_bits(s)} *values = (device const {_bits(s)} *)x0\n"
        "    + ulong(group.y) * params.length + first;\n"
        f"device uint *counts = {counts} + ulong(group.y) * {s.counts} + group.x;\n"
        f"const numpy::Pivots<{s.targets}, {_bits(s)}> pivots(\n"
        f"    (device const {_bits(s)} *)x1 + group.y * {s.targets}, order);\n"
    )


def _launch(s: _Partition, name: str, body: str, writes: tuple[int, ...]) -> LibraryLaunch:
    return LibraryLaunch(
        name=f"{'argpartition' if s.with_indices else 'partition'}_{name}",
        body=body,
        files=_FILES,
        reads=(_ROWS, _PIVOTS),
        writes=writes,
        numbers=(("length", s.length),),
        threads=(s.chunks * LANES, s.rows, 1),
        group_size=(LANES, 1, 1),
    )
