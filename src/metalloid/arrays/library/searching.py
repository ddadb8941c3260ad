"""Searches in sorted elements, and counts of integers, by the functions of `searching.metal`."""

from __future__ import annotations

import functools
from dataclasses import replace

from metalloid.arrays.ir.dtypes import DType, int64, kind_of, uint32
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.library_call import LibraryCall, LibraryLaunch, library_call
from metalloid.arrays.ir.node import Node
from metalloid.arrays.library.merge_sort import MSL_BITS, order_text
from metalloid.kernels.operands import MAX_ELEMENTS

_FILES = ("sorts/order", "sorts/searching")
_LANES = 32
#: Sorted elements for which values are searched from the starts of buckets, and values for each, so
#: that the buckets cost little.
_MIN_BUCKETED, _MAX_BUCKETED, _VALUES_PER_ELEMENT, _BUCKETS_PER_ELEMENT = 8, 2**15, 16, 4
#: Maximum integers that are counted in threadgroup memory.
MAX_BINS = 4096
#: Maximum threadgroups of a count, their threads, and minimum elements per thread.
_MAX_GROUPS, _COUNTING_THREADS, _NUMBERS_EACH = 64, 256, 64


def has_launches(elements: Node, values: Node) -> bool:
    """Whether there is a launch for these sizes."""
    return elements.size <= MAX_ELEMENTS and 0 < values.size <= MAX_ELEMENTS


def insertion_indices(elements: Node, values: Node, is_right: bool) -> Node:
    """The indices at which values would be inserted into sorted elements."""
    call = _search
    if (
        not values.device.traits.is_simt
        and kind_of(values.dtype) in "iuf"
        and _MIN_BUCKETED <= elements.size <= _MAX_BUCKETED
        and values.size >= _VALUES_PER_ELEMENT * elements.size
    ):
        call = _search_in_buckets
    operands = [elements, values]
    return library_call(call(values.dtype, elements.size, values.size, is_right), operands, int64,
                        values.shape)  # fmt: skip


@functools.lru_cache(maxsize=1024)
def _search(dtype: DType, count: int, values: int, is_right: bool) -> LibraryCall:
    return LibraryCall((_search_launch(dtype, count, values, is_right, (0, 1), "0, params.count"),))


@functools.lru_cache(maxsize=1024)
def _search_in_buckets(dtype: DType, count: int, values: int, is_right: bool) -> LibraryCall:
    """A search that begins at the first element of the value's bucket.

    Evenly spaced elements have a bucket each. If all are in one bucket, it is a binary search.
    """
    buckets = 1 << (_BUCKETS_PER_ELEMENT * count - 1).bit_length()
    table, longest = 3, 4
    numbers = (("count", count), ("buckets", buckets))
    constructed = (
        "const numpy::Buckets buckets(float(x0[0]), float(x0[params.count - 1]), params.buckets);\n"
    )
    fill = LibraryLaunch(
        name="searchsorted_starts_of_buckets",
        body=constructed + "out[at.x] = numpy::bucket_start(x0, params.count, buckets, at.x);",
        files=_FILES,
        reads=(0,),
        writes=(table,),
        numbers=numbers,
        threads=(buckets + 1, 1, 1),
    )
    measure = LibraryLaunch(
        name="searchsorted_longest_bucket",
        body=f"out[0] = numpy::longest_bucket(x0, params.buckets, lane, {_LANES});",
        files=_FILES,
        reads=(table,),
        writes=(longest,),
        numbers=numbers[1:],
        threads=(_LANES, 1, 1),
        group_size=(_LANES, 1, 1),
    )
    search = _search_launch(dtype, count, values, is_right, (0, 1, table, longest),
                            "x2[buckets.at(float(x1[at.x]))], x3[0]")  # fmt: skip
    search = replace(search, body=constructed + search.body, numbers=numbers)
    return LibraryCall((fill, measure, search), ((uint32, (buckets + 1,)), (uint32, (1,))))


def _search_launch(dtype: DType, count: int, values: int, is_right: bool, reads: Ints,
                   first_and_range: str) -> LibraryLaunch:  # fmt: skip
    """The launch that searches from an index, in a range, which are texts."""
    bits = MSL_BITS[dtype.itemsize]
    body = (
        f"{order_text(dtype, is_stable=True, descending='0')}"
        f"const {bits} key = order.key(((device const {bits} *)x1)[at.x]);\n"
        f"out[at.x] = numpy::insertion_index<{str(is_right).lower()}>(\n"
        f"    (device const {bits} *)x0, params.count, key, order, {first_and_range});"
    )
    return LibraryLaunch(
        name="searchsorted",
        body=body,
        files=_FILES,
        reads=reads,
        writes=(2,),
        numbers=(("count", count),),
        threads=(values, 1, 1),
    )


def bin_counts(integers: Node, bins: int) -> Node:
    """The occurrences of each integer below `bins`, with a row for each threadgroup.

    Parameters
    ----------
    integers : Node
        uint32, at least one. Larger integers are ignored.
    bins : int
        At most `MAX_BINS`.
    """
    max_groups = _MAX_GROUPS * (8 if integers.device.traits.is_simt else 1)
    groups = max(1, min(max_groups, integers.size // (_COUNTING_THREADS * _NUMBERS_EACH)))
    return library_call(_counts(integers.size, bins, groups), [integers], uint32, (groups, bins))


@functools.lru_cache(maxsize=1024)
def _counts(size: int, bins: int, groups: int) -> LibraryCall:
    body = (
        f"threadgroup atomic_uint own[{MAX_BINS + 1}];\n"
        "const uint first = min(group.x * params.each, params.size);\n"
        "numpy::count_bins(x0 + first, min(params.each, params.size - first), params.bins,\n"
        f"    out + group.x * params.bins, own, thread_.x, {_COUNTING_THREADS});"
    )
    launch = LibraryLaunch(
        name="bincount",
        body=body,
        files=_FILES,
        reads=(0,),
        writes=(1,),
        numbers=(("size", size), ("bins", bins), ("each", -(-size // groups))),
        threads=(groups * _COUNTING_THREADS, 1, 1),
        group_size=(_COUNTING_THREADS, 1, 1),
        uses_lanes=False,
    )
    return LibraryCall((launch,))
