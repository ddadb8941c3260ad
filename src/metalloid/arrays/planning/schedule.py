"""The steps of a plan: kernels that are generated, and calls of what others wrote."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from metalloid.arrays.ir.dtypes import DType
from metalloid.arrays.ir.layout import Ints, Layout

if TYPE_CHECKING:
    from metalloid.arrays.planning.kernel_builder import KernelOp


class MaterializeReason(Enum):
    """Why a value was given memory."""

    RESULT = "asked for"
    REDUCTION = "a reduction that others need in another shape"
    LONG_ROWS = "a reduction with few, long rows: many threadgroups share a row"
    SHARED = "costly, and used by several kernels"
    REPEATED = "costly, and used at several places of one kernel"
    AGAIN = "an earlier evaluation has computed it without keeping it"
    ORDER = "its elements are needed in an order that strides cannot express"
    SIZE = "one kernel would be too large with it"
    CUSTOM_CALL = "an argument of a function or kernel of its own"
    SCATTER_SLICES = "put together from several parts"
    GATHER = "read at computed places"
    MATMUL = "a matrix product of which others need more than one element"
    FACTOR = "a factor of a product, too costly to be computed anew for every tile"


@dataclass(frozen=True)
class BufferSpec:
    """Memory that kernels read or write.

    Attributes
    ----------
    leaf : int or None
        Which of the graph's leaves it is; None: memory of the plan's own.
    dtype : numpy.dtype
    shape : tuple of int
    reason : Reason
        Why the plan gives memory to it.
    """

    leaf: int | None
    dtype: DType
    shape: Ints
    reason: MaterializeReason = MaterializeReason.RESULT


@dataclass(frozen=True)
class FusedKernel:
    """What one generated kernel does.

    Attributes
    ----------
    iteration_space, row_axes : tuple of int
    ops : tuple of Entry
    result : int
        The entry that is written.
    out : int
        Source to write to.
    strides : tuple of int
        Of what is written, along the axes of the space; one more for the chunks, if there are any.
    start : int
    chunk : int
        Elements of the first row axis that one threadgroup or thread takes; 0 for all.
    """

    iteration_space: Ints
    row_axes: Ints
    ops: tuple[KernelOp, ...]
    result: int
    out: int
    strides: Ints
    start: int = 0
    chunk: int = 0

    @property
    def is_by_element(self) -> bool:
        """Whether every place of a row is written; otherwise there is a result for each row."""
        return any(self.strides[axis] for axis in self.row_axes)


@dataclass(frozen=True)
class Factor:
    """One side of a matrix product.

    Attributes
    ----------
    iteration_space : tuple of int
    ops : tuple of Entry
    result : int
        The entry that is multiplied.
    """

    iteration_space: Ints
    ops: tuple[KernelOp, ...]
    result: int

    @property
    def dtype(self) -> DType:
        """The type of what is multiplied."""
        return self.ops[self.result].dtype


@dataclass(frozen=True)
class ProductKernel(FusedKernel):
    """A matrix product, with what its factors are made of and what is made of it.

    Among its entries one of the kind ``"product"`` stands for an element of the product.

    Attributes
    ----------
    factors : pair of Factor
    way : str
        Who multiplies, one of those of product_rule.py.
    """

    factors: tuple[Factor, ...] = ()
    way: str = ""


@dataclass(frozen=True)
class CallStep:
    """A function or a kernel of somebody else, with its arguments in memory.

    Attributes
    ----------
    index : int
        In the graph, where the call stands: that of a later graph of the same structure is another.
    """

    index: int
    args: tuple[tuple[int, Layout], ...]
    outs: tuple[int, ...]
