"""Sorts of rows by the functions of `merge_sort.metal`: their launches depend on shapes only."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from metalloid.arrays.ir.dtypes import DType, int64, kind_of, uint32
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.library_call import LibraryCall, LibraryLaunch, library_call
from metalloid.arrays.ir.node import Node, permute
from metalloid.arrays.lowering.sort_dispatch import cores
from metalloid.kernels.operands import MAX_ELEMENTS

_FILES = ("sorts/order", "sorts/merge_sort", "sorts/digit_sort")
_LANES, _BLOCK = 32, 256
#: Rows that one thread sorts, by words of an item; and how many fill the threads of a GPU.
_SHORT_ROW, _MANY_ROWS = (0, 32, 16, 16), 1024
#: By words: items in half of the threadgroup memory, and in all of it.
_CHUNK, _CHUNK_OF_SIMT = (0, 4096, 2048, 1024), (0, 4096, 4096, 2048)
#: From this length of a row on, a few cores sort chunks by digits, which was measured for floats;
#: and the minimum items of such a chunk that is merged with others.
_BY_DIGITS, _DIGIT_CHUNK = 512, 2**15
_SUFFIXES = {4: "u", 8: "ul"}
MSL_BITS = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}


class _Sort(NamedTuple):
    """Parameters of a sort.

    Attributes
    ----------
    dtype : numpy.dtype
    shape : tuple of int
    axis : int
    descending : bool
    results : int
        Indices of each row to return; 0 for its sorted elements.
    is_simt : bool
    cores : int
        Chunks of a row that are sorted at a time, by digits.
    """

    dtype: DType
    shape: Ints
    axis: int
    descending: bool
    results: int
    is_simt: bool
    cores: int = 1

    @property
    def length(self) -> int:
        """Elements of a row."""
        return self.shape[self.axis]

    @property
    def rows(self) -> int:
        return math.prod(self.shape) // self.length

    @property
    def words(self) -> int:
        """32-bit words of an item."""
        size = self.dtype.itemsize
        if not self.results:
            return max(size // 4, 1)
        return 1 if size <= 2 and self.length <= 2**16 else max(size // 4, 1) + 1

    @property
    def is_by_thread(self) -> bool:
        """Whether a thread sorts each row, along any axis."""
        is_short = self.length <= _SHORT_ROW[self.words]
        return is_short and (not self.is_simt or self.rows >= _MANY_ROWS)

    @property
    def fits_threadgroup(self) -> bool:
        """Whether a row fits into the threadgroup memory of SIMT devices."""
        return self.length <= _CHUNK_OF_SIMT[self.words]

    @property
    def result_dtype(self) -> DType:
        return int64 if self.results else self.dtype


def has_launches(x: Node) -> bool:
    """Whether there are launches for so many elements."""
    return 0 < x.size <= MAX_ELEMENTS


def is_fast(x: Node, axis: int, with_indices: bool) -> bool:
    """Whether no other launches are faster: on SIMT devices rows fit into threadgroup memory."""
    is_simt = x.device.traits.is_simt
    sort = _Sort(x.dtype, x.shape, axis, False, int(with_indices), is_simt)
    return has_launches(x) and (not is_simt or sort.fits_threadgroup)


def sort_values(x: Node, axis: int, descending: bool) -> Node:
    """The sorted elements along an axis."""
    return _sorted(x, axis, descending, 0)


def sort_indices(x: Node, axis: int, descending: bool, results: int | None = None) -> Node:
    """The indices of the first elements in the order of a stable sort; by default of all."""
    return _sorted(x, axis, descending, x.shape[axis] if results is None else results)


def _sorted(x: Node, axis: int, descending: bool, results: int) -> Node:
    is_simt = x.device.traits.is_simt
    sort = _Sort(x.dtype, x.shape, axis, descending, results, is_simt, cores(x.device))
    if sort.is_by_thread:
        order = tuple(range(len(x.shape)))
    else:
        order = (*(k for k in range(len(x.shape)) if k != axis), axis)
        x = permute(x, order)
        axis = len(x.shape) - 1
    shape = list(x.shape)
    if results:
        shape[axis] = results
    sort = sort._replace(shape=x.shape, axis=axis)
    result = library_call(_call(sort), [x], sort.result_dtype, tuple(shape))
    return permute(result, tuple(order.index(k) for k in range(len(order))))


@functools.lru_cache(maxsize=1024)
def _call(sort: _Sort) -> LibraryCall:
    if sort.is_by_thread:
        return _by_threads(sort)
    if sort.is_simt and sort.fits_threadgroup:
        return _by_threadgroups(sort)
    if not sort.is_simt and sort.length >= _BY_DIGITS:
        return _by_digits(sort)
    return _by_simdgroups(sort)


def _by_threads(sort: _Sort) -> LibraryCall:
    """A thread sorts each row, by a network for the next power of two."""
    inner = math.prod(sort.shape[sort.axis + 1 :])
    size = 8 if sort.length <= 8 else 16 if sort.length <= 16 else 32
    head, first, step = "", "ulong(at.x) * params.{}", "1"
    if inner > 1:
        head = "const uint outer = at.x / params.inner, column = at.x % params.inner;\n"
        first, step = "ulong(outer) * params.{} * params.inner + column", "params.inner"
    network = "\n".join(f"numpy::order_pair(rows[{i}], rows[{j}]);" for i, j in _network(size))
    loop = f"#pragma clang loop unroll(full)\nfor (uint k = 0; k < {size}; ++k) {{\n"
    body = (
        f"{head}{_source(sort, first.format('count'), '0', step)}"
        f"{_result(sort, first.format('results'), step)}"
        f"numpy::Item<{sort.words}> rows[{size}];\n"
        f"{loop}  rows[k] = numpy::last_item<{sort.words}>();\n"
        "  if (k < params.count) {\n    rows[k] = from.at(k);\n  }\n}\n"
        f"{network}\n"
        f"{loop}  if (k < params.count) {{\n    to.put(k, rows[k]);\n  }}\n}}"
    )
    return LibraryCall((_launch(sort, body, 0, (1,), name="columns", threads=None),))


def _network(size: int) -> Iterator[tuple[int, int]]:
    """Pairs to put in order: Batcher's odd-even merge sort."""
    length = 1
    while length < size:
        step = length
        while step:
            for first in range(step % length, size - step, 2 * step):
                for i in range(first, min(first + step, size - step)):
                    if i // (2 * length) == (i + step) // (2 * length):
                        yield i, i + step
            step //= 2
        length *= 2


def _by_threadgroups(sort: _Sort) -> LibraryCall:
    """A threadgroup sorts each row."""
    size = max(_BLOCK, 1 << (sort.length - 1).bit_length())
    body = (
        f"threadgroup uint memory[{sort.words * size}];\n"
        f"{_source(sort, 'ulong(group.x) * params.count')}"
        f"{_result(sort, 'ulong(group.x) * params.results')}"
        f"numpy::sort_in_threadgroup<{sort.words}, {size}>(from, params.count, to, memory,\n"
        "    simdgroup, lane);"
    )
    return LibraryCall((_launch(sort, body, 0, (1,), 1, threads=size // 8),))


def _by_simdgroups(sort: _Sort) -> LibraryCall:
    """Simdgroups sort chunks of rows, and merge them in as many launches as necessary."""
    words, count = sort.words, sort.length
    is_merged = count > _BLOCK
    size = _CHUNK[words] if is_merged else _BLOCK
    each = 2 if count <= 64 else 4 if count <= 128 else 8
    chunk = f"threadgroup uint memory[{words * (2 * size if is_merged else _LANES * each)}];\n"
    chunk += _chunk_text(str(size)) + _source(sort, "row * params.count + first", "first")
    function = f"sort_chunk<{words}, {size}>" if is_merged else f"sort_short_row<{words}, {each}>"
    sort_chunk = f"numpy::{function}(from, end - first, to, memory, lane);"
    chunks = -(-count // size)
    if chunks == 1:
        chunk += _result(sort, "row * params.results")
        return LibraryCall((_launch(sort, chunk + sort_chunk, 0, (1,), 1),))
    chunk += _to_planes(sort, " + first")
    launch = _launch(sort, chunk + sort_chunk, 0, (2,), chunks, name="chunks")
    return LibraryCall((launch, *_merges(sort, size)), _planes(sort, size))


def _by_digits(sort: _Sort) -> LibraryCall:
    """A thread sorts each chunk of a row by digits, and simdgroups merge them."""
    words, count, bits = sort.words, sort.length, MSL_BITS[sort.dtype.itemsize]
    size = max(-(-count // sort.cores), _DIGIT_CHUNK)
    size += -size % _CHUNK[words]  # merges have chunks of their own
    chunks = -(-count // size)
    result = _to_planes(sort, " + first") if chunks > 1 else _result(sort, "row * params.results")
    has_index = "true" if sort.results else "false"
    indices = ("out3 + start", "out4 + start") if sort.results else ("nullptr", "nullptr")
    items = [
        f"const numpy::DigitItems<{bits}, {has_index}> {name}{{(device {bits} *){keys} + start,\n"
        f"    {index}}};\n"
        for name, keys, index in zip(("items", "others"), ("out1", "out2"), indices, strict=True)
    ]
    text = (
        f"{_chunk_text('params.run')}const ulong start = row * params.count + first;\n"
        f"{_order(sort)}{result}{''.join(items)}"
        f"numpy::sort_by_digits<{words}>((device const {bits} *)x0 + start, order, first,\n"
        "    end - first, items, others, to);"
    )
    planes = _planes(sort, size) if chunks > 1 else ()
    elements = (sort.rows * count,)
    temporaries = [(sort.dtype, elements)] * 2 + [(uint32, elements)] * (2 * (sort.results > 0))
    first = 2 + len(planes)
    writes = (1 if chunks == 1 else 2, *range(first, first + len(temporaries)))
    launch = _launch(sort, text, 0, writes, chunks, size, threads=1, name="digits")
    merges = _merges(sort, size) if chunks > 1 else []
    return LibraryCall((launch, *merges), (*planes, *temporaries))


def _chunk_text(size: str) -> str:
    """Statements that define the row, and the items of a chunk of it."""
    return (
        "const ulong row = ulong(group.x / params.chunks);\n"
        f"const uint first = group.x % params.chunks * {size};\n"
        f"const uint end = min(first + {size}, params.count);\n"
    )


def _to_planes(sort: _Sort, first: str = "") -> str:
    """A statement that defines `to`, items in temporary memory."""
    planes = f"const numpy::Planes<device uint *, {sort.words}> to"
    return f"{planes}{{out + row * params.count{first}, params.size}};\n"


def _planes(sort: _Sort, run: int) -> tuple[tuple[DType, Ints], ...]:
    """Temporary memory of merges: none reads what it writes."""
    plane = (uint32, (sort.words, sort.rows * sort.length))
    return (plane,) * (2 if 2 * run < sort.length else 1)


def _merges(sort: _Sort, run: int) -> Iterator[LibraryLaunch]:
    """Launches that merge sorted runs of rows, from the first buffer of `_planes`."""
    words, count, size = sort.words, sort.length, _CHUNK[sort.words]
    from_row = (
        f"const numpy::Planes<device const uint *, {words}> from{{x0 + row * params.count,\n"
        "    params.size};\n"
    )
    result = _result(sort, "row * params.results")
    merge = f"numpy::merge_chunk<{words}>(from, params.count, params.run, first, end, to, lane);"
    source, other = 2, 3
    while run < count:
        is_last = 2 * run >= count
        to = _to_planes(sort) if not is_last else result if sort.results else _order(sort) + result
        target = 1 if is_last else other
        body = f"{_chunk_text(str(size))}{from_row}{to}{merge}"
        yield _launch(sort, body, source, (target,), -(-count // size), run, name="merges")
        source, other, run = other, source, 2 * run


def _launch(sort: _Sort, body: str, source: int, targets: Ints, chunks: int = 1, run: int = 0,
            threads: int | None = _LANES, name: str = "rows") -> LibraryLaunch:  # fmt: skip
    """A launch of threadgroups of so many threads for each chunk, or of one thread for each row."""
    numbers = {
        "count": sort.length,
        "results": sort.results or sort.length,
        "inner": math.prod(sort.shape[sort.axis + 1 :]),
        "chunks": chunks,
        "run": run,
        "size": sort.rows * sort.length,
        "descending": int(sort.descending),
    }
    return LibraryLaunch(
        name=f"{'argsort' if sort.results else 'sort'}_{name}",
        body=body,
        files=_FILES,
        reads=(source,),
        writes=targets,
        numbers=tuple(item for item in numbers.items() if f"params.{item[0]}" in body),
        threads=(sort.rows * chunks * (threads or 1), 1, 1),
        group_size=None if threads is None else (threads, 1, 1),
    )


def _order(sort: _Sort) -> str:
    return order_text(sort.dtype, is_stable=sort.results > 0)


def order_text(dtype: DType, is_stable: bool, descending: str = "params.descending") -> str:
    """A statement that defines `order`; zeros of both signs are equal if it is stable.

    `descending` is the text of 1 if the largest element is first, otherwise of 0.
    """
    size, kind = dtype.itemsize, kind_of(dtype)
    bits, suffix = MSL_BITS[size], _SUFFIXES.get(size, "")
    every, sign = 2 ** (8 * size) - 1, 2 ** (8 * size - 1)
    infinity, minus_zero = every, 0
    if kind == "f":
        infinity = int(np.array(np.inf, dtype).view(f"u{size}"))
        minus_zero = sign if is_stable else 0
    elif kind != "i":
        sign = 0
    flip = every if kind == "f" else sign
    values = ", ".join(f"{member}{suffix}" for member in (sign, flip, minus_zero, infinity))
    return f"const Order<{bits}> order{{{values}, {bits}(-int({descending}))}};\n"


def _source(sort: _Sort, first: str, index: str = "0", step: str = "1") -> str:
    """Statements that define `from`, the elements of a row from an index on."""
    bits, has_index = MSL_BITS[sort.dtype.itemsize], "true" if sort.results else "false"
    return (
        f"{_order(sort)}const numpy::Elements<{bits}, {sort.words}, {has_index}> from{{\n"
        f"    (device const {bits} *)x0 + {first}, order, {index}, {step}}};\n"
    )


def _result(sort: _Sort, first: str, step: str = "1") -> str:
    """Statements that define `to`, a row of the result."""
    if sort.results:
        start = f"out + {first}, params.results, {step}"
        return f"const numpy::SortedIndices<{sort.words}> to{{{start}}};\n"
    bits = MSL_BITS[sort.dtype.itemsize]
    start = f"(device {bits} *)out + {first}, order, {step}"
    return f"const numpy::SortedElements<{bits}, {sort.words}> to{{{start}}};\n"
