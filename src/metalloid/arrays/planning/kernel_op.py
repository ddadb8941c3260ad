"""The operations of one generated kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metalloid.arrays.ir.dtypes import DType
from metalloid.arrays.ir.layout import Ints


@dataclass(frozen=True)
class KernelOp:
    """The value that one operation has at each index of the iteration space.

    Attributes
    ----------
    kind : str
        ``"load"``, ``"iota"``, ``"constant"``, ``"elementwise"``, ``"gather"``, ``"reduce"`` or
        ``"matmul"``.
    data : object
        The `Op` of a map, the name of a reduction, the buffer that is read.
    args : tuple of int
        Indices of the operands in the list of operations.
    dtype : numpy.dtype
    strides : tuple of int
        Strides of the buffer that is read, along the axes of the iteration space.
    offset : int
        Offset of the first element, relative to the leaf's own.
    varies : bool
        Whether the value varies along the row axes.
    steps : tuple of int
        For a gather: the stride of each index.
    """

    kind: str
    data: Any
    args: Ints
    dtype: DType
    strides: Ints = ()
    offset: int = 0
    varies: bool = False
    steps: Ints = ()

    @property
    def is_read(self) -> bool:
        """Whether it is addressed by strides: a buffer, or an iota."""
        return self.kind in ("load", "gather", "iota")
