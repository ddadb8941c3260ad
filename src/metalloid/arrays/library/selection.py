"""Selections of the first elements of rows by the functions of `selecting.metal`."""

from __future__ import annotations

import functools
import math

from metalloid.arrays.ir.dtypes import DType, kind_of, uint32
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.library_call import LibraryCall, LibraryLaunch, library_call
from metalloid.arrays.ir.node import Node
from metalloid.arrays.library.merge_sort import MSL_BITS, order_text

_LANES = 32
#: A simdgroup takes each row if rows are at most this long, or there are at least this many.
_LONG_ROW, _MANY_ROWS = 2**14, 256


def largest_of_chunks(rows: Node, k: int) -> Node:
    """The indices (uint32) of the `k` largest elements of each chunk of each row, ascending.

    Rows that have as many results as `k` are one chunk.
    """
    count = rows.shape[-1]
    has_many_rows = math.prod(rows.shape[:-1]) >= _MANY_ROWS
    chunk = count if has_many_rows else min(count, max(_LONG_ROW, 4 * k))
    chunks = -(-count // chunk)
    results = k * (chunks - 1) + min(k, count - chunk * (chunks - 1))
    shape = (*rows.shape[:-1], results)
    return library_call(_call(rows.dtype, rows.shape, k, chunk, results), [rows], uint32, shape)


@functools.lru_cache(maxsize=1024)
def _call(dtype: DType, shape: Ints, k: int, chunk: int, results: int) -> LibraryCall:
    bits = MSL_BITS[dtype.itemsize]
    # Integers seldom use all their bits.
    skips = str(kind_of(dtype) in "iu" and dtype.itemsize >= 4).lower()
    count, rows = shape[-1], math.prod(shape[:-1])
    body = (
        "threadgroup atomic_uint counts[numpy::select_digits + numpy::select_lanes];\n"
        f"{order_text(dtype, is_stable=True, descending='1')}"
        "const uint first = group.x * params.chunk;\n"
        f"numpy::select_first<{skips}>(\n"
        f"    (device const {bits} *)x0 + ulong(group.y) * params.count + first, first,\n"
        "    min(params.chunk, params.count - first), params.k, order,\n"
        "    out + ulong(group.y) * params.results + group.x * params.k, counts, lane);"
    )
    launch = LibraryLaunch(
        name="select_largest",
        body=body,
        files=("sorts/order", "sorts/selecting"),
        reads=(0,),
        writes=(1,),
        numbers=(("count", count), ("chunk", chunk), ("k", k), ("results", results)),
        threads=(-(-count // chunk) * _LANES, rows, 1),
        group_size=(_LANES, 1, 1),
    )
    return LibraryCall((launch,))
