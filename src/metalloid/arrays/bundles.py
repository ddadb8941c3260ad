"""Which memory a thread reads and writes four elements at a time."""

from __future__ import annotations

from collections.abc import Sequence

from metalloid.arrays.access import BUNDLE, RESULT, Axes
from metalloid.arrays.steps import FusedKernel, Source
from metalloid.arrays.types import complex64, complex128

_NO_VECTORS = {complex64, complex128}


def packed_accesses(kernel: FusedKernel, sources: Sequence[Source], axes: Axes) -> frozenset[int]:
    """The accesses of a kernel that are vectors along its inner axis; none, if not all can be.

    What goes through memory in other steps, or begins at odd places, is best read one element a
    thread, neighbours by neighbours.
    """
    packed = set()
    for place, access in axes.accesses.items():
        entry = kernel.entries[place] if place != RESULT else None
        if axes.form == "map":
            outer, along = access.kept[:-1], (access.kept or (0,))[-1]
        else:
            outer, along = access.kept, access.row[-1]
        if (entry is not None and entry.kind != "load") or along == 0:
            continue
        dtype = sources[entry.data if entry else kernel.out].dtype
        start = entry.start if entry else kernel.start
        if along != 1 or dtype in _NO_VECTORS or dtype.names:
            return frozenset()
        if any(step % BUNDLE for step in (*outer, start)):
            return frozenset()
        packed.add(place)
    return frozenset(packed)


def leaves_of(
    packed: frozenset[int], kernel: FusedKernel, sources: Sequence[Source]
) -> tuple[tuple[int, int], ...]:
    """The sources of a graph's leaves that are read as vectors, and the bytes of one."""
    read = {kernel.entries[place].data for place in packed if place != RESULT}
    return tuple(
        (source, BUNDLE * sources[source].dtype.itemsize)
        for source in sorted(read)
        if sources[source].leaf is not None
    )
