"""The steps of a plan: generated kernels, and calls of host functions and kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, TypeGuard

from metalloid.arrays.ir.dtypes import DType
from metalloid.arrays.ir.layout import Ints, Layout
from metalloid.arrays.ir.library_call import LibraryLaunch
from metalloid.arrays.planning.kernel_op import KernelOp

#: Steps that `merge_with_earlier` looks back, which bounds the time for long plans.
_MAX_DISTANCE = 64


class MaterializeReason(Enum):
    """Why a value is materialized. The texts are what `metalloid.explain` prints."""

    RESULT = "requested"
    REDUCTION = "a reduction whose users have another shape"
    LONG_ROWS = "a reduction with few, long rows: many threadgroups share a row"
    SHARED = "costly, and used by several kernels"
    REPEATED = "costly, and used at several indices of one kernel"
    RECOMPUTED_EARLIER = "an earlier evaluation computed it without saving it"
    ORDER = "strides cannot express the order in which it is read"
    ADDITIONS = "a sum that would be added in another order with what uses it"
    SIZE = "one kernel would be too large"
    CUSTOM_CALL = "an argument of a call"
    LIBRARY_CALL = "a value that a kernel of the library reads or writes"
    SCATTER_SLICES = "assembled from several parts"
    GATHER = "read at computed indices"
    MATMUL = "a matrix product whose users need several elements"
    FACTOR = "a factor of a product, too costly to recompute for every tile"
    PACKED = "a factor of a product, in the order in which it is read"


@dataclass(frozen=True)
class BufferSpec:
    """A buffer that kernels read or write.

    Attributes
    ----------
    leaf : int or None
        Index of a leaf of the graph; None for a buffer that the plan allocates.
    dtype : numpy.dtype
    shape : tuple of int
    reason : MaterializeReason
        Why the plan allocates it.
    """

    leaf: int | None
    dtype: DType
    shape: Ints
    reason: MaterializeReason = MaterializeReason.RESULT


@dataclass(frozen=True)
class Output:
    """A value that a kernel stores.

    Attributes
    ----------
    result : int
        Index of the operation.
    out : int
        Index of the buffer.
    strides : tuple of int
        Strides of the buffer, along the axes of the iteration space.
    offset : int
    """

    result: int
    out: int
    strides: Ints
    offset: int = 0


@dataclass(frozen=True)
class FusedKernel:
    """One generated kernel.

    Attributes
    ----------
    iteration_space, row_axes : tuple of int
    ops : tuple of KernelOp
    result : int
        Index of the operation whose value is stored.
    out : int
        Index of the buffer that is written.
    strides : tuple of int
        Strides of the output, along the axes of the space, and along the chunks if any.
    offset : int
    chunk : int
        Elements of the first row axis per threadgroup or thread; 0 for all.
    interleave : int
        Threads that share a chunk, each with every `interleave`-th element of it.
    nodes : frozenset of int
        Nodes of the graph that it computes.
    other_outputs : tuple of Output
        Outputs after the first one; of a kernel with row axes, each is one result per row.
    """

    iteration_space: Ints
    row_axes: Ints
    ops: tuple[KernelOp, ...]
    result: int
    out: int
    strides: Ints
    offset: int = 0
    chunk: int = 0
    interleave: int = 1
    nodes: frozenset[int] = frozenset()
    other_outputs: tuple[Output, ...] = ()

    @property
    def outputs(self) -> tuple[Output, ...]:
        """All outputs."""
        first = Output(self.result, self.out, self.strides, self.offset)
        return (first, *self.other_outputs)

    def accessed(self, index: int) -> tuple[int, int]:
        """The buffer and the offset of an operation; of an output by -1, -2, and so on."""
        if index >= 0:
            return self.ops[index].data, self.ops[index].offset
        output = self.outputs[-1 - index]
        return output.out, output.offset

    @property
    def is_elementwise(self) -> bool:
        """Whether each index of the space is computed on its own: neither reduction nor product."""
        return not self.row_axes and not self.chunk

    @property
    def is_by_element(self) -> bool:
        """Whether each element of a row is stored; otherwise there is one result per row."""
        return any(self.strides[axis] for axis in self.row_axes)


@dataclass(frozen=True)
class LibraryKernel:
    """A launch of a kernel of the library.

    Attributes
    ----------
    launch : LibraryLaunch
    reads : tuple of (int, int)
        Buffers, and the offsets of their first elements.
    writes : tuple of int
        Buffers.
    merged : tuple of LibraryKernel
        Those that it stands for, if it stands for several.
    """

    launch: LibraryLaunch
    reads: tuple[tuple[int, int], ...]
    writes: Ints
    merged: tuple[LibraryKernel, ...] = ()
    nodes: ClassVar[frozenset[int]] = frozenset()


@dataclass(frozen=True)
class Factor:
    """One operand of a matrix product.

    Attributes
    ----------
    iteration_space : tuple of int
    ops : tuple of KernelOp
    result : int
        Index of the operation whose value is multiplied.
    is_packed : bool
        Whether it is a buffer with panels, as `pack_panel` of ``packing.metal`` writes them.
    """

    iteration_space: Ints
    ops: tuple[KernelOp, ...]
    result: int
    is_packed: bool = False

    @property
    def dtype(self) -> DType:
        """Element type of the operand."""
        return self.ops[self.result].dtype


@dataclass(frozen=True)
class ProductKernel(FusedKernel):
    """A matrix product with its fused prologues and epilogue.

    An operation of the kind ``"matmul"`` stands for an element of the product.

    Attributes
    ----------
    factors : pair of Factor
    backend : str
        One of the backends in matmul_dispatch.py.
    """

    factors: tuple[Factor, ...] = ()
    backend: str = ""

    @property
    def product_dtype(self) -> DType:
        """Element type of the factors before they were packed."""
        return next(op.dtype for op in self.ops if op.kind == "matmul")

    @property
    def is_elementwise(self) -> bool:
        """An element depends on rows and columns of the factors."""
        return False


@dataclass(frozen=True)
class HorizontalKernel:
    """Independent elementwise kernels in one launch, each for a range of the threads.

    Attributes
    ----------
    kernels : tuple of FusedKernel
    """

    kernels: tuple[FusedKernel, ...]

    @property
    def nodes(self) -> frozenset[int]:
        """Nodes of the graph that it computes."""
        return frozenset().union(*(kernel.nodes for kernel in self.kernels))


@dataclass(frozen=True)
class CallStep:
    """A call of a host function or an external kernel, with materialized arguments.

    Attributes
    ----------
    index : int
        Index of the node in the graph; later graphs of equal structure have other calls there.
    nodes : frozenset of int
        As of a `FusedKernel`; empty for nodes that are never computed twice.
    """

    index: int
    args: tuple[tuple[int, Layout], ...]
    outs: tuple[int, ...]
    nodes: frozenset[int] = frozenset()


GeneratedKernel = FusedKernel | LibraryKernel | HorizontalKernel
Step = GeneratedKernel | CallStep


def is_elementwise(step: Step) -> TypeGuard[FusedKernel]:
    """Whether a step is an elementwise kernel."""
    return isinstance(step, FusedKernel) and step.is_elementwise


def buffers_read(step: Step) -> set[int]:
    """Indices of the buffers that a step reads."""
    if isinstance(step, CallStep):
        return {source for source, _ in step.args}
    if isinstance(step, LibraryKernel):
        return {source for source, _ in step.reads}
    if isinstance(step, HorizontalKernel):
        return set().union(*map(buffers_read, step.kernels))
    ops = [*step.ops]
    if isinstance(step, ProductKernel):
        ops += [op for factor in step.factors for op in factor.ops]
    return {op.data for op in ops if op.kind in ("load", "gather")}


def buffers_written(step: Step) -> set[int]:
    """Indices of the buffers that a step writes."""
    if isinstance(step, CallStep):
        return set(step.outs)
    if isinstance(step, LibraryKernel):
        return set(step.writes)
    if isinstance(step, HorizontalKernel):
        return set().union(*map(buffers_written, step.kernels))
    return {output.out for output in step.outputs}


def merge_with_earlier(steps: list[Step], later: Step,
                       merge: Callable[[Step], Step | None]) -> bool:  # fmt: skip
    """Merge a step with one of those before it; whether that was possible.

    Parameters
    ----------
    steps : list of Step
        The merged step stands where both may run: in place of the earlier one, or at the end.
    merge : callable
        From an earlier step to the merged one; None if the two stay separate.
    """
    operands = buffers_read(later) | buffers_written(later)
    written: set[int] = set()  # by the steps between the two
    used: set[int] = set()  # read or written by them
    for position in reversed(range(max(0, len(steps) - _MAX_DISTANCE), len(steps))):
        earlier = steps[position]
        results = buffers_written(earlier)
        moves_up = not written & operands
        if moves_up or not used & results:
            merged = merge(earlier)
            if merged is not None:
                if moves_up:
                    steps[position] = merged
                else:
                    del steps[position]
                    steps.append(merged)
                return True
        written |= results
        used |= results | buffers_read(earlier)
    return False
