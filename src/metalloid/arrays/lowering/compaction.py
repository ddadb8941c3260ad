"""Indices of the true elements of masks, by `compaction.metal`, on devices of their own memory.

The host reads one number, how many there are, which is the extent of the result.
"""

from __future__ import annotations

import functools

from metalloid.arrays.ir.dtypes import int64, uint32
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.library_call import LibraryCall, LibraryLaunch, library_call
from metalloid.arrays.ir.node import Node

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
    return library_call(_indices_call(mask.size), [mask, ends], int64, (count,))


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
def _indices_call(size: int) -> LibraryCall:
    body = (
        "const uint before = group.x > 0 ? ((device const uint *)x1)[group.x - 1] : 0;\n"
        "numpy::write_true((device const bool *)x0, first, end, params.size,\n"
        "    (device long *)out + before, lane);"
    )
    return LibraryCall((_launch("indices_of_true", body, (0, 1), (2,), size),))


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
