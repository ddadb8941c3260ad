"""Launches of the sort, search and histogram kernels."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from metalloid.arrays.execution.calls import to_host
from metalloid.arrays.execution.evaluate import evaluate
from metalloid.arrays.ir.dtypes import DType, kind_of
from metalloid.arrays.ir.layout import is_contiguous
from metalloid.arrays.ir.memory import Memory
from metalloid.arrays.ir.node import Node
from metalloid.arrays.ir.views import contiguous_copy
from metalloid.arrays.library.merge_sort import order_members
from metalloid.arrays.lowering.reductions import extreme
from metalloid.arrays.metal import metal_source
from metalloid.kernels.library import Library, library
from metalloid.runtime.devices.device import Device

#: These constants equal those of the .metal files.
_LANES, _DIGITS = 32, 256
MAX_BINS = 4096
_FILES = ("order", "radix_sort", "sorting", "wide_sorting", "selecting", "searching")
_WITH_INDICES = "_with_indices"
#: Rows up to this length are sorted by comparison, without a radix sort.
_SHORT_ROW = 64
#: One simdgroup sorts each row if rows are at most this long, or there are at least this many.
_LONG_ROW, _MANY_ROWS = 2**14, 256
#: Elements of a long row per simdgroup.
_CHUNK = 4096
#: Threads of a tile on SIMT devices, as in wide_sorting.metal.
_TILE_THREADS = 256
#: From this many integers on, reducing their range first saves more passes than it costs.
_RANGE_THRESHOLD = 2**13
#: Maximum threadgroups of a histogram, their threads, and minimum elements per thread.
_MAX_GROUPS, _COUNTING_THREADS, _NUMBERS_EACH = 64, 256, 64


class _Rows(NamedTuple):
    """Contiguous rows, with the original indices of their elements if they were moved."""

    rows: int
    length: int
    size: int
    memory: Memory
    offset: int
    indices: Memory | None = None

    @property
    def bits(self) -> Any:
        """The memory as an argument of a launch."""
        bound = self.memory.bound
        return bound.view(f"u{self.size}") if isinstance(bound, np.ndarray) else bound


def sorted_rows(x: Node, descending: bool, with_indices: bool) -> list[Memory]:
    """Sort along the last axis; also return the indices (uint32) if required.

    The sort is stable, in descending order as well.
    """
    passes, order = _passes(x, descending)
    return _sorted(_rows(x), x.device, passes, order, with_indices)


def top_k_rows(x: Node, k: int) -> list[Memory]:
    """Return the `k` largest elements along the last axis in order, and their indices (uint32).

    Each chunk of a row passes its own largest elements to the next iteration.
    """
    device, source = x.device, _rows(x)
    passes, order = _passes(x, True)
    if source.length <= _SHORT_ROW:
        return _sort_short_rows(source, device, k, order, with_indices=True)
    kernel = _kernel("top_chunks", source.size, device)
    chunks = 0
    while chunks != 1:
        rows, count, size, _, offset, indices = source
        chunk = count if rows >= _MANY_ROWS else max(_LONG_ROW, 4 * k)
        chunks = math.ceil(count / chunk)
        candidates = k * (chunks - 1) + min(k, count - chunk * (chunks - 1))
        top, top_indices = _new(device, rows * candidates, (size, 4))
        kernel(source.bits, (indices or top_indices).bound, top.bound, top_indices.bound, offset,
               count, chunk, k, candidates, passes, indices is not None, order,
               threads=(chunks * _LANES, rows), group_size=(_LANES, 1), wait=False)  # fmt: skip
        source = _Rows(rows, candidates, size, top, 0, top_indices)
    return _sorted(source, device, passes, order, with_indices=True)


def _sorted(source: _Rows, device: Device, passes: int, order: bytes,
            with_indices: bool) -> list[Memory]:  # fmt: skip
    rows, count, size, _, offset, indices = source
    if count <= _SHORT_ROW:
        return _sort_short_rows(source, device, count, order, with_indices)
    sizes = (size, 4) if with_indices else (size, 0)
    results, spare = _new(device, rows * count, sizes), _new(device, rows * count, sizes)
    if indices is not None:  # in the buffer that the first pass does not write
        (results, spare)[passes % 2][1] = indices
    if device.traits.is_simt and count > _TILE_THREADS:
        _sort_tiles(source, device, passes, order, results, spare, with_indices)
    elif count <= _LONG_ROW or rows >= _MANY_ROWS:
        sort_rows = _kernel("sort_rows" + _WITH_INDICES * with_indices, size, device)
        bound = [memory.bound for memory in (*results, *spare)]
        sort_rows(source.bits, *bound, offset, count, passes, indices is not None, order,
                  threads=rows * _LANES, group_size=_LANES, wait=False)  # fmt: skip
    else:
        _sort_chunks(source, device, passes, order, results, spare, with_indices)
    return results[: 1 + with_indices]


def _sort_short_rows(source: _Rows, device: Device, k: int, order: bytes,
                     with_indices: bool) -> list[Memory]:  # fmt: skip
    rows, count, size, _, offset, indices = source
    values, own_indices = _new(device, rows * k, (size, 4 if with_indices else 0))
    sort_short_rows = _kernel("sort_short_rows" + _WITH_INDICES * with_indices, size, device)
    sort_short_rows(
        source.bits, (indices or own_indices).bound, values.bound, own_indices.bound, offset, count,
        k, indices is not None, order, threads=(count, rows), wait=False,
    )  # fmt: skip
    return [values, own_indices][: 1 + with_indices]


def _sort_chunks(
    source: _Rows, device: Device, passes: int, order: bytes,
    results: list[Memory], spare: list[Memory], with_indices: bool,
) -> None:  # fmt: skip
    """Radix sort of long rows: three launches per digit."""
    rows, count, size, _, offset, indices = source
    chunks = math.ceil(count / _CHUNK)
    counts = Memory(device, 4 * rows * chunks * _DIGITS)
    starts = Memory(device, 4 * rows * _DIGITS)
    count_chunks = _kernel("count_chunks", size, device)
    scan_chunk_counts = _library(device)["scan_chunk_counts"]
    move_chunks = _kernel("move_chunks" + _WITH_INDICES * with_indices, size, device)
    grid: dict[str, Any] = {
        "threads": (chunks * _LANES, rows), "group_size": (_LANES, 1), "wait": False,
    }  # fmt: skip
    values = source.bits
    for digit in range(passes):
        to, old = (results, spare) if (passes - digit) % 2 else (spare, results)
        numbers = offset, count, _CHUNK, 8 * digit, order
        count_chunks(values, counts.bound, *numbers, **grid)
        scan_chunk_counts(counts.bound, starts.bound, chunks,
                     threads=rows * _DIGITS, group_size=_DIGITS, wait=False)  # fmt: skip
        move_chunks(values, old[1].bound, counts.bound, starts.bound, to[0].bound, to[1].bound,
                    *numbers, indices is not None, **grid)  # fmt: skip
        values, offset = to[0].bound, 0


def _sort_tiles(
    source: _Rows, device: Device, passes: int, order: bytes,
    results: list[Memory], spare: list[Memory], with_indices: bool,
) -> None:  # fmt: skip
    """Radix sort of long rows on SIMT devices."""
    rows, count, size, _, offset, indices = source
    tiles = math.ceil(count / (_TILE_THREADS * (8 if size > 4 else 16)))
    counts = Memory(device, 4 * rows * _DIGITS * tiles)
    totals = Memory(device, 4 * rows * _DIGITS)
    count_tiles = _kernel("count_tiles", size, device)
    scan_tile_counts = _library(device)["scan_tile_counts"]
    move_tiles = _kernel("move_tiles" + _WITH_INDICES * with_indices, size, device)
    grid: dict[str, Any] = {
        "threads": (tiles * _TILE_THREADS, rows), "group_size": (_TILE_THREADS, 1), "wait": False,
    }  # fmt: skip
    values = source.bits
    for digit in range(passes):
        to, old = (results, spare) if (passes - digit) % 2 else (spare, results)
        numbers = offset, count, 8 * digit, order
        count_tiles(values, counts.bound, *numbers, **grid)
        scan_tile_counts(counts.bound, totals.bound, tiles, threads=rows * _DIGITS * _TILE_THREADS,
                    group_size=_TILE_THREADS, wait=False)  # fmt: skip
        move_tiles(values, old[1].bound, counts.bound, totals.bound, to[0].bound, to[1].bound,
                   *numbers, indices is not None, **grid)  # fmt: skip
        values, offset = to[0].bound, 0


def insertion_indices(x: Node, values: Node, after_equal: bool) -> list[Memory]:
    """Return the indices (uint32) at which values would be inserted into sorted elements."""
    rows, keys, positions = _rows(x), _rows(values), Memory(x.device, 4 * values.size)
    _kernel("search", rows.size, x.device)(
        rows.bits, keys.bits, positions.bound, rows.offset, keys.offset, x.size, after_equal,
        order_of(x.dtype, False), threads=values.size, wait=False,
    )  # fmt: skip
    return [positions]


def count_groups(size: int, device: Device) -> int:
    """Return the number of threadgroups of a histogram of `size` elements."""
    max_groups = _MAX_GROUPS * (8 if device.traits.is_simt else 1)
    return max(1, min(max_groups, size // (_COUNTING_THREADS * _NUMBERS_EACH)))


def bin_counts(x: Node, bins: int) -> list[Memory]:
    """Count the occurrences of each integer below `bins` (uint32); one row per threadgroup."""
    groups, source = count_groups(x.size, x.device), _rows(x)
    counts = Memory(x.device, 4 * groups * bins)
    _library(x.device)["count_bins"](
        source.bits, counts.bound, source.offset, x.size, bins,
        threads=groups * _COUNTING_THREADS, group_size=_COUNTING_THREADS, wait=False,
    )  # fmt: skip
    return [counts]


def _passes(x: Node, descending: bool) -> tuple[int, bytes]:
    """Return the number of radix digits and the order; integers seldom use all their bits."""
    size = x.dtype.itemsize
    if kind_of(x.dtype) not in "iu" or size < 4 or x.size < _RANGE_THRESHOLD:
        return size, order_of(x.dtype, descending)
    extremes = [extreme(x, name, None, False) for name in ("min", "max")]
    evaluate(extremes)
    smallest, largest = (int(to_host(extreme_value)) for extreme_value in extremes)
    digits = math.ceil((largest - smallest).bit_length() / 8)
    return max(digits, 1), order_of(x.dtype, descending, smallest - int(np.iinfo(x.dtype).min))


@functools.lru_cache(maxsize=256)
def order_of(dtype: DType, descending: bool, smallest: int = 0) -> bytes:
    """Return ``Order`` of sorting.metal for a type, as bytes."""
    members = order_members(dtype, descending, smallest)
    return np.array(members, f"u{dtype.itemsize}").tobytes()


def _new(device: Device, elements: int, sizes: Sequence[int]) -> list[Memory]:
    return [Memory(device, elements * size) for size in sizes]


def _rows(node: Node) -> _Rows:
    """Return the rows along the last axis of a leaf, copied if they are not contiguous."""
    if not is_contiguous(node.layout):
        node = contiguous_copy(node)
        evaluate([node], wait=False)
    assert node.memory is not None
    count = node.shape[-1] if node.shape else 1
    rows = node.size // max(count, 1)
    return _Rows(rows, count, node.dtype.itemsize, node.memory, node.layout.offset)


def _kernel(name: str, size: int, device: Device) -> Any:
    return _library(device)[f"{name}_{8 * size}"]


@functools.cache
def text() -> str:
    """The Metal source."""
    return metal_source(*(f"sorts/{name}" for name in _FILES))


@functools.cache
def _library(device: Device) -> Library:
    return library(text(), device=device, bounds="unchecked")
