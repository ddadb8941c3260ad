"""Chunks of long rows, of which each simdgroup reads one."""

from __future__ import annotations

from metalloid.arrays.ir.node import Node

LANES = 32
#: Elements of a chunk, without and with SIMT.
_CHUNK, _CHUNK_OF_SIMT = 2**15, 2**11


def chunk_of(rows: Node) -> int:
    """Elements of a chunk, on the device of the rows."""
    return _CHUNK_OF_SIMT if rows.device.traits.is_simt else _CHUNK
