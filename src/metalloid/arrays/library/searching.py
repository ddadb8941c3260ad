"""Searches in sorted elements, and counts of integers, by the functions of `searching.metal`."""

from __future__ import annotations

import functools

from metalloid.arrays.ir.dtypes import DType, int64, uint32
from metalloid.arrays.ir.library_call import LibraryCall, LibraryLaunch, library_call
from metalloid.arrays.ir.node import Node
from metalloid.arrays.library.merge_sort import MSL_BITS, order_text
from metalloid.kernels.operands import MAX_ELEMENTS

_FILES = ("sorts/order", "sorts/searching")
#: Maximum integers that are counted in threadgroup memory.
MAX_BINS = 4096
#: Maximum threadgroups of a count, their threads, and minimum elements per thread.
_MAX_GROUPS, _COUNTING_THREADS, _NUMBERS_EACH = 64, 256, 64


def has_launches(elements: Node, values: Node) -> bool:
    """Whether there is a launch for these sizes."""
    return elements.size <= MAX_ELEMENTS and 0 < values.size <= MAX_ELEMENTS


def insertion_indices(elements: Node, values: Node, is_right: bool) -> Node:
    """The indices at which values would be inserted into sorted elements."""
    call = _search(values.dtype, elements.size, values.size, is_right)
    return library_call(call, [elements, values], int64, values.shape)


@functools.lru_cache(maxsize=1024)
def _search(dtype: DType, count: int, values: int, is_right: bool) -> LibraryCall:
    bits = MSL_BITS[dtype.itemsize]
    body = (
        f"{order_text(dtype, is_stable=True, descending='0')}"
        f"const {bits} key = order.key(((device const {bits} *)x1)[at.x]);\n"
        f"out[at.x] = numpy::insertion_index<{str(is_right).lower()}>(\n"
        f"    (device const {bits} *)x0, params.count, key, order);"
    )
    launch = LibraryLaunch(
        name="searchsorted",
        body=body,
        files=_FILES,
        reads=(0, 1),
        writes=(2,),
        numbers=(("count", count),),
        threads=(values, 1, 1),
    )
    return LibraryCall((launch,))


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
