"""Selection of the accesses of a kernel that become vectors of four elements."""

from __future__ import annotations

from collections.abc import Sequence

from metalloid.arrays.ir.dtypes import DType, complex64, complex128
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.planning.loop_axes import RESULT, VECTOR_WIDTH, Axes
from metalloid.arrays.planning.schedule import BufferSpec, FusedKernel

_NO_VECTORS = {complex64, complex128}


def packed_accesses(
    kernel: FusedKernel, sources: Sequence[BufferSpec], axes: Axes
) -> frozenset[int]:
    """The accesses that are vectors along the inner axis; none unless all can be.

    Strided and unaligned accesses are faster with one element per thread, coalesced.
    """
    strides = {}
    for index, access in axes.accesses.items():
        if axes.form == "row":
            strides[index] = (*access.outer, *access.row[:-1]), access.row[-1]
            continue
        along = (access.outer or (0,))[-1]
        is_result = index == RESULT and axes.form == "column"
        if is_result and (along != 1 or not _is_packable(sources[kernel.out].dtype)):
            continue  # few elements: their layout does not matter
        strides[index] = (*access.outer[:-1], *access.row), along
    return _packed(kernel, sources, strides)


def packed_factor(factor: FusedKernel, sources: Sequence[BufferSpec], axes: Axes, is_down: bool,
                  each: int = VECTOR_WIDTH) -> frozenset[int]:  # fmt: skip
    """The vector accesses of a factor that is read along rows or columns, `each` elements each."""
    return _packed(factor, sources, {
        index: ((*access.outer, access.row[is_down]), access.row[1 - is_down])
        for index, access in axes.accesses.items()
    }, each)  # fmt: skip


def _packed(
    kernel: FusedKernel,
    sources: Sequence[BufferSpec],
    strides: dict[int, tuple[Ints, int]],
    each: int = VECTOR_WIDTH,
) -> frozenset[int]:
    packed = set()
    for index, (outer, along) in strides.items():
        if (index >= 0 and kernel.ops[index].kind != "load") or along == 0:
            continue
        source, offset = kernel.accessed(index)
        dtype = sources[source].dtype
        if along != 1 or not _is_packable(dtype):
            return frozenset()
        if any(step % each for step in (*outer, offset)):
            return frozenset()
        packed.add(index)
    return frozenset(packed)


def _is_packable(dtype: DType) -> bool:
    return dtype not in _NO_VECTORS and not dtype.names


def leaves_of(
    packed: frozenset[int],
    kernel: FusedKernel,
    sources: Sequence[BufferSpec],
    each: int = VECTOR_WIDTH,
) -> tuple[tuple[int, int], ...]:
    """Buffers of leaves that are read as vectors, and the bytes of a vector."""
    read = {kernel.ops[index].data for index in packed if index >= 0}
    return tuple(
        (source, each * sources[source].dtype.itemsize)
        for source in sorted(read)
        if sources[source].leaf is not None
    )
