"""Truth values as bits of bytes, by the functions of `integers.metal`."""

from __future__ import annotations

import functools

import numpy as np

from metalloid.arrays.ir.library_call import LibraryCall, LibraryLaunch, library_call
from metalloid.arrays.ir.node import Node
from metalloid.runtime.launch.program import Size

_BYTE = np.dtype(np.uint8)
_BITS = 8


def packed_bits(flags: Node, is_little: bool) -> Node:
    """Bytes of eight truth values each, of a vector whose length is a multiple of eight."""
    count = flags.size // _BITS
    return library_call(_packing(count, is_little), [flags], _BYTE, (count,))


def unpacked_bits(packed: Node, is_little: bool) -> Node:
    """The bits of the bytes of a vector, as bytes of 0 or 1."""
    shape = (packed.size * _BITS,)
    return library_call(_unpacking(packed.size, is_little), [packed], _BYTE, shape)


@functools.lru_cache(maxsize=1024)
def _packing(count: int, is_little: bool) -> LibraryCall:
    body = (
        f"out[at.x] = numpy::pack_bits<is_aligned>((device const uchar *)x0 + {_BITS}ul * at.x,\n"
        f"    {str(is_little).lower()});"
    )
    return _call("pack_bits", body, (count, 1, 1), _BITS)


@functools.lru_cache(maxsize=1024)
def _unpacking(count: int, is_little: bool) -> LibraryCall:
    is_first = str(is_little).lower()
    body = f"((device ulong *)out)[at.x] = numpy::unpack_bits(x0[at.x], {is_first});"
    return _call("unpack_bits", body, (count, 1, 1))


def _call(name: str, body: str, threads: Size, aligned_to: int = 0) -> LibraryCall:
    launch = LibraryLaunch(
        name=name,
        body=body,
        files=("integers",),
        reads=(0,),
        writes=(1,),
        numbers=(),
        threads=threads,
        aligned_to=aligned_to,
    )
    return LibraryCall((launch,))
