"""Sorts of long rows by the functions of `radix_sort.metal`, a launch for each digit."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from metalloid.arrays.ir.dtypes import DType, int64, kind_of, uint32
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.library_call import LibraryCall, LibraryLaunch, library_call
from metalloid.arrays.ir.node import Node, permute
from metalloid.arrays.library.merge_sort import MSL_BITS, order_text
from metalloid.kernels.operands import MAX_ELEMENTS

_FILES = ("sorts/order", "sorts/radix_sort")
#: Threads of a threadgroup, and values of a digit.
_THREADS = 256
#: Maximum elements of a row: words of tiles count them in 30 bits.
_MAX_LENGTH = 2**30
#: Maximum threadgroups per row that count digits.
_MAX_COUNTING_GROUPS = 1024
#: Threads on a multiprocessor that leave each of them enough registers.
_MAX_THREADS = 768


class _Sort(NamedTuple):
    """Parameters of a sort.

    Attributes
    ----------
    dtype : numpy.dtype
    rows, length : int
        `length` is that of a row.
    descending : bool
    with_indices : bool
        Whether the results are indices.
    """

    dtype: DType
    rows: int
    length: int
    descending: bool
    with_indices: bool

    @property
    def each(self) -> int:
        """Elements of a thread: a tile has room in threadgroup memory."""
        return 8 if self.dtype.itemsize > 4 else 16

    @property
    def tiles(self) -> int:
        """Tiles of a row."""
        return -(-self.length // (_THREADS * self.each))

    @property
    def passes(self) -> int:
        return self.dtype.itemsize


def has_launches(x: Node, axis: int) -> bool:
    """Whether there are launches for this type, these sizes and this device."""
    return x.device.traits.has_forward_progress and (
        0 < x.size <= MAX_ELEMENTS and x.shape[axis] < _MAX_LENGTH
    )


def sort_values(x: Node, axis: int, descending: bool) -> Node:
    """The sorted elements along an axis."""
    return _sorted(x, axis, descending, False)


def sort_indices(x: Node, axis: int, descending: bool) -> Node:
    """The indices of the elements in the order of a stable sort."""
    return _sorted(x, axis, descending, True)


def _sorted(x: Node, axis: int, descending: bool, with_indices: bool) -> Node:
    order = (*(k for k in range(len(x.shape)) if k != axis), axis)
    rows = permute(x, order)
    sort = _Sort(x.dtype, math.prod(rows.shape[:-1]), rows.shape[-1], descending, with_indices)
    result = library_call(_call(sort), [rows], int64 if with_indices else x.dtype, rows.shape)
    return permute(result, tuple(order.index(k) for k in range(len(order))))


@functools.lru_cache(maxsize=1024)
def _call(sort: _Sort) -> LibraryCall:
    """Digits are counted, then elements are moved by each digit, the lowest first."""
    rows, count, tiles, passes = sort.rows, sort.length, sort.tiles, sort.passes
    elements: tuple[DType, Ints] = sort.dtype, (rows, count)
    temporaries = [elements, elements, (uint32, (rows, count))] if sort.with_indices else [elements]
    zeros = passes + rows * passes * _THREADS
    temporaries.append((uint32, (zeros + 2 * rows * tiles * _THREADS,)))
    state, buffers = 1 + len(temporaries), tuple(range(1, 2 + len(temporaries)))
    groups = min(tiles, _MAX_COUNTING_GROUPS)
    clear = LibraryLaunch(
        name="sort_clears_counts",
        body="out[at.x] = 0;",
        files=(),
        reads=(),
        writes=(state,),
        numbers=(),
        threads=(zeros, 1, 1),
    )
    counts = _launch(sort, "counts", _count_text(sort), (state,), groups, ("groups", groups))
    moves = [
        _launch(sort, "by_digit", _move_text(sort), buffers, tiles, ("pass", digit))
        for digit in range(passes)
    ]
    return LibraryCall((clear, counts, *moves), tuple(temporaries))


def _launch(sort: _Sort, name: str, body: str, writes: Ints, groups: int,
            number: tuple[str, int]) -> LibraryLaunch:  # fmt: skip
    """A launch of so many threadgroups for each row."""
    return LibraryLaunch(
        name=f"{'argsort' if sort.with_indices else 'sort'}_{name}",
        body=body,
        files=_FILES,
        reads=(0,),
        writes=writes,
        numbers=(
            ("count", sort.length),
            ("rows", sort.rows),
            ("tiles", sort.tiles),
            ("descending", int(sort.descending)),
            number,
        ),
        threads=(groups * sort.rows * _THREADS, 1, 1),
        group_size=(_THREADS, 1, 1),
        max_threads=_MAX_THREADS,
    )


def _sort_text(sort: _Sort, pointers: str) -> str:
    """Statements that define `sort`, and the index of the thread."""
    bits = MSL_BITS[sort.dtype.itemsize]
    return (
        f"{order_text(sort.dtype, is_stable=sort.with_indices)}"
        f"const numpy::RadixSort<{bits}> sort{{order, params.count, params.rows, params.tiles,\n"
        f"    {sort.passes}, (device const {bits} *)x0, {pointers}}};\n"
        "const uint own = simdgroup * numpy::radix_lanes + lane;\n"
    )


def _count_text(sort: _Sort) -> str:
    return (
        "threadgroup atomic_uint counts[16 * numpy::radix_values];\n"
        f"{_sort_text(sort, 'nullptr, nullptr, nullptr, nullptr, nullptr, out')}"
        f"numpy::count_digits<{sort.each}, {sort.passes}>(sort, group.x / params.groups,\n"
        "    group.x % params.groups, params.groups, counts, own);"
    )


def _move_text(sort: _Sort) -> str:
    size, bits = sort.dtype.itemsize, MSL_BITS[sort.dtype.itemsize]
    pointers = f"(device {bits} *)out, (device {bits} *)out1, nullptr, nullptr, nullptr, out2"
    if sort.with_indices:  # the memory of the results serves for other indices before
        pointers = (
            f"(device {bits} *)out2, (device {bits} *)out1, (device uint *)out, out3, out, out4"
        )
    skips = str(kind_of(sort.dtype) in "iu" and size >= 4).lower()
    words = sort.each * _THREADS * (max(size, 4) if sort.with_indices else size) // 4
    return (
        f"threadgroup ulong storage[{words // 2}];\n"
        "threadgroup uint next[numpy::radix_simdgroups * numpy::radix_values];\n"
        "threadgroup uint shifts[numpy::radix_values];\n"
        f"{_sort_text(sort, pointers)}"
        f"numpy::sort_by_digit<{sort.each}, {str(sort.with_indices).lower()}, {skips}>(\n"
        f"    sort, params.pass, (threadgroup {bits} *)storage, next, shifts, own);"
    )
