"""The number of chunks that the rows of a reduction are split into."""

from __future__ import annotations

import math

from metalloid.arrays.ir.linearize import LinearizedGraph
from metalloid.arrays.planning.loop_axes import LANES, NARROW
from metalloid.runtime.devices.traits import DeviceTraits

#: Rows are split into chunks of at most this many elements.
_MAX_ROW_LENGTH = 2**17
#: Up to this many rows are split, so that more threadgroups work on them.
_FEW_ROWS = 256
#: The fewest elements of a chunk of a column; and of columns that share a simdgroup on CPUs, where
#: threadgroups and partial sums of short chunks would take much of the time.
_MIN_COLUMN, _MIN_INTERLEAVED = 64, 256


def chunk_count(graph: LinearizedGraph, index: int, traits: DeviceTraits) -> int:
    """The number of chunks of each row of a reduction."""
    node = graph.nodes[index]
    size = graph.nodes[graph.args[index][0]].size
    if size == 0:
        return 1
    rows, length = node.size, size // node.size
    chunks = -(-length // _MAX_ROW_LENGTH)
    if size >= 2**16:
        if is_by_columns(graph, index):
            is_interleaved = interleave(graph, index, traits) > 1
            shortest = _MIN_INTERLEAVED if is_interleaved else _MIN_COLUMN
            chunks = max(chunks, min(traits.threads // rows, length // shortest))
        elif rows <= _FEW_ROWS:
            chunks = max(chunks, min(traits.threadgroups // rows, length // 4096))
    return chunks


def interleave(graph: LinearizedGraph, index: int, traits: DeviceTraits) -> int:
    """The threads that share a chunk of a column, so that those of few columns fill simdgroups.

    Adjacent threads then read adjacent elements: rows of a matrix are shorter than a simdgroup.
    """
    columns = graph.nodes[index].size
    if traits.is_simt or columns >= NARROW or not is_by_columns(graph, index):
        return 1
    return LANES // math.gcd(LANES, columns)


def is_by_columns(graph: LinearizedGraph, index: int) -> bool:
    """Whether the innermost axis is not reduced."""
    node = graph.nodes[index]
    shape = graph.nodes[graph.args[index][0]].shape
    last = max((k for k, n in enumerate(shape) if n != 1), default=0)
    return last not in node.data[1]
