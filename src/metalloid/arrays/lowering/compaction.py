"""Elements that masks select, and their indices, by `compaction.metal`.

The host reads one number, how many there are, which is the extent of the result.
"""

from __future__ import annotations

import functools
from dataclasses import replace

from metalloid.arrays.ir.dtypes import complex64, int64, uint32
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.library_call import LibraryCall, LibraryLaunch, library_call
from metalloid.arrays.ir.node import Node

#: MSL types of elements, by size.
MSL_BITS = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}
_FILES = ("compaction",)
_LANES = 32
#: Elements of a chunk, and the maximum number of chunks, whose counts few threadgroups sum.
_MIN_CHUNK, _MAX_CHUNKS = 1024, 2**16


def counts_of_true(mask: Node) -> Node:
    """The number of true elements of each chunk of a vector."""
    return library_call(_counts_call(mask.size), [mask], uint32, (_chunks(mask.size),))


def indices_of_true(mask: Node, ends: Node, count: int) -> Node:
    """The indices of the true elements of a vector.

    Parameters
    ----------
    ends : Node
        The number of true elements up to the end of each chunk.
    """
    return library_call(_write_call(mask.size, None), [mask, ends], int64, (count,))


def elements_at_true(values: Node, mask: Node, ends: Node, count: int) -> Node:
    """The elements of a vector where another one is true; see `indices_of_true`.

    They have at most eight bytes.
    """
    call = _write_call(mask.size, MSL_BITS[values.dtype.itemsize], values.dtype == complex64)
    return library_call(call, [mask, ends, values], values.dtype, (count,))


def _chunk(size: int) -> int:
    return -(-max(_MIN_CHUNK, -(-size // _MAX_CHUNKS)) // _LANES) * _LANES


def _chunks(size: int) -> int:
    return -(-size // _chunk(size))


@functools.lru_cache(maxsize=1024)
def _counts_call(size: int) -> LibraryCall:
    body = (
        "const uint count =\n"
        "    numpy::count_true((device const bool *)x0, first, end, params.size, lane);\n"
        "if (lane == 0) {\n"
        "  ((device uint *)out)[group.x] = count;\n"
        "}"
    )
    return LibraryCall((_launch("count_true", body, (0,), (1,), size),))


@functools.lru_cache(maxsize=1024)
def _write_call(size: int, bits: str | None, is_complex: bool = False) -> LibraryCall:
    """Write elements with so many bits, or indices."""
    read = "long(k)" if bits is None else f"((device const {bits} *)x2)[k]"
    type_ = bits or "long"
    body = (
        "const uint before = group.x > 0 ? ((device const uint *)x1)[group.x - 1] : 0;\n"
        "numpy::write_true((device const bool *)x0, first, end, params.size,\n"
        f"    (device {type_} *)out + before, lane, [&](uint k) {{ return {read}; }});"
    )
    reads = (0, 1) if bits is None else (0, 1, 2)
    name = "indices_of_true" if bits is None else "elements_at_true"
    launch = _launch(name, body, reads, (len(reads),), size)
    # The type of a parameter is declared there.
    launch = replace(launch, files=("complex", *_FILES)) if is_complex else launch
    return LibraryCall((launch,))


def _launch(name: str, body: str, reads: Ints, writes: Ints, size: int) -> LibraryLaunch:
    start = "const uint first = group.x * params.chunk, end = first + params.chunk;\n"
    return LibraryLaunch(
        name=name,
        body=start + body,
        files=_FILES,
        reads=reads,
        writes=writes,
        numbers=(("chunk", _chunk(size)), ("size", size)),
        threads=(_chunks(size) * _LANES, 1, 1),
        group_size=(_LANES, 1, 1),
    )
