"""Which memory a thread reads and writes four elements at a time."""

from __future__ import annotations

from collections.abc import Sequence

from metalloid.arrays.access import BUNDLE, RESULT, Axes
from metalloid.arrays.layout import Ints
from metalloid.arrays.steps import FusedKernel, Source
from metalloid.arrays.types import DType, complex64, complex128

_NO_VECTORS = {complex64, complex128}


def packed_accesses(kernel: FusedKernel, sources: Sequence[Source], axes: Axes) -> frozenset[int]:
    """The accesses of a kernel that are vectors along its inner axis; none, if not all can be.

    What goes through memory in other steps, or begins at odd places, is best read one element a
    thread, neighbours by neighbours.
    """
    strides = {}
    for place, access in axes.accesses.items():
        if axes.form == "row":
            strides[place] = (*access.kept, *access.row[:-1]), access.row[-1]
            continue
        along = (access.kept or (0,))[-1]
        is_result = place == RESULT and axes.form == "column"
        if is_result and (along != 1 or not _is_packable(sources[kernel.out].dtype)):
            continue  # few elements, wherever they go
        strides[place] = (*access.kept[:-1], *access.row), along
    return _packed(kernel, sources, strides)


def packed_factor(factor: FusedKernel, sources: Sequence[Source], axes: Axes, is_down: bool,
                  each: int = BUNDLE) -> frozenset[int]:  # fmt: skip
    """The same of a matrix that is read down its columns, or along its rows, so many at a time."""
    return _packed(factor, sources, {
        place: ((*access.kept, access.row[is_down]), access.row[1 - is_down])
        for place, access in axes.accesses.items()
    }, each)  # fmt: skip


def _packed(kernel: FusedKernel, sources: Sequence[Source], strides: dict[int, tuple[Ints, int]],
            each: int = BUNDLE) -> frozenset[int]:  # fmt: skip
    packed = set()
    for place, (outer, along) in strides.items():
        entry = kernel.entries[place] if place != RESULT else None
        if (entry is not None and entry.kind != "load") or along == 0:
            continue
        dtype = sources[entry.data if entry else kernel.out].dtype
        start = entry.start if entry else kernel.start
        if along != 1 or not _is_packable(dtype):
            return frozenset()
        if any(step % each for step in (*outer, start)):
            return frozenset()
        packed.add(place)
    return frozenset(packed)


def _is_packable(dtype: DType) -> bool:
    return dtype not in _NO_VECTORS and not dtype.names


def leaves_of(
    packed: frozenset[int], kernel: FusedKernel, sources: Sequence[Source], each: int = BUNDLE
) -> tuple[tuple[int, int], ...]:
    """The sources of a graph's leaves that are read as vectors, and the bytes of one."""
    read = {kernel.entries[place].data for place in packed if place != RESULT}
    return tuple(
        (source, each * sources[source].dtype.itemsize)
        for source in sorted(read)
        if sources[source].leaf is not None
    )
