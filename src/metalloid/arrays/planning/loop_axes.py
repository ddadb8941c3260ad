"""The loop axes of a kernel: as few as the strides allow, and which threads take which elements."""

from __future__ import annotations

import math
from dataclasses import dataclass

from metalloid.arrays.ir.layout import MAX_COLLAPSED_EXTENT, Ints
from metalloid.arrays.planning.schedule import FusedKernel
from metalloid.kernels.strides import collapse

#: Lanes of a simdgroup, which reduces a row together.
LANES = 32
#: An inner axis shorter than this is flattened into the next one.
NARROW = 64
#: Elements per vector access on SIMT devices: 16 bytes of floats.
VECTOR_WIDTH = 4
#: Largest distance of elements that the compiler loads as vectors.
MAX_INTERLEAVED = 16
#: Rows of up to so many elements are reduced by one thread each: on CPUs, which load interleaved
#: rows as vectors, and on SIMT devices, where threads with a row each access memory far apart.
SHORT_ROW, _SHORT_ROW_OF_SIMT = MAX_INTERLEAVED, 15
#: Rows of so many elements are added in one block, by form; blocks bound rounding errors (Higham,
#: "The accuracy of floating point summation", 1993).
MAX_UNBLOCKED = {"row": 4096, "column": 128}
#: Rows of several axes that have so many elements are spread over lanes as one axis.
_MAX_FLAT = 128
#: Fewest rows, and elements of each, that threads of SIMT devices reduce several at a time.
_MANY_ROWS, _LONG_ROW = 64, 256
#: The access of a kernel's first output, which is no operation; the second one is -2, and so on.
RESULT = -1


@dataclass
class Access:
    """A strided access to a buffer: the name of its pointer, and strides of outer and row axes."""

    pointer: str
    outer: Ints
    row: Ints


class Axes:
    """The axes of a kernel, merged where the strides allow.

    Attributes
    ----------
    outer, row : tuple of int
        Extents. The chunks of a split reduction are the first outer axis.
    accesses : dict
        By operation, and by output from `RESULT` downwards.
    form : str
        ``"row"``: a simdgroup reduces a row. ``"column"``: a thread does. ``"elementwise"``: there
        is no reduction.
    is_simt : bool
        Whether it is for a SIMT device.
    is_flat : bool
        Whether lanes take the elements of a row of several axes in order, as if it were one axis.
    has_shared_operands : bool
        On SIMT devices: whether adjacent long rows, each with one result, share operands, so that
        threads reduce several rows together.
    """

    def __init__(self, kernel: FusedKernel, is_simt: bool = False) -> None:
        self.is_simt = is_simt
        iteration_space = kernel.iteration_space
        read = [k for k, op in enumerate(kernel.ops) if op.is_read]
        outputs = kernel.outputs
        strides = [kernel.ops[k].strides for k in read]
        strides += [output.strides[: len(iteration_space)] for output in outputs]
        outer_axes = tuple(k for k in range(len(iteration_space)) if k not in kernel.row_axes)

        def along(axes: Ints) -> tuple[Ints, list[Ints]]:
            shape = tuple(iteration_space[k] for k in axes)
            own = (tuple(each[k] for k in axes) for each in strides)
            return collapse(shape, *own, max_extent=MAX_COLLAPSED_EXTENT)

        self.outer, outer = along(outer_axes)
        self.row, row = along(kernel.row_axes)
        if kernel.row_axes and not self.row:
            self.row, row = (1,), [(0,)] * len(row)
        if kernel.chunk:
            loads = len(read)
            steps = [*(r[0] for r in row[:loads]), *(output.strides[-1] for output in outputs)]
            threads = kernel.interleave
            if threads > 1:
                outer = [(step, *k) for step, k in zip(steps, outer, strict=True)]
                self.outer, outer = collapse((threads, *self.outer), *outer)
                row = [(r[0] * threads, *r[1:]) for r in row]
            steps = [
                step * (kernel.chunk if k < loads else threads) for k, step in enumerate(steps)
            ]
            self.outer = (-(-self.row[0] // kernel.chunk), *self.outer)
            outer = [(step, *k) for step, k in zip(steps, outer, strict=True)]
        accesses = [*read, *(RESULT - k for k in range(len(outputs)))]
        self.accesses = {
            index: Access("", k, r) for index, k, r in zip(accesses, outer, row, strict=True)
        }
        short_row = _SHORT_ROW_OF_SIMT if is_simt else SHORT_ROW
        self.form = self._form(kernel, short_row) if kernel.row_axes else "elementwise"
        inner = self.row[-1] if self.row else 1
        is_short = math.prod(self.row) <= _MAX_FLAT or inner < LANES
        self.is_flat = (
            len(self.row) > 1 and self.form == "row" and not kernel.chunk
            and is_short and inner % LANES > 0
            and math.prod(self.row) <= MAX_UNBLOCKED["row"]
        )  # fmt: skip
        self.has_shared_operands = self._has_shared_operands(kernel)

    @property
    def order(self) -> tuple[str, Ints]:
        """The form and extents that determine the order of the additions of a row."""
        elements = math.prod(self.row)
        in_order = self.form == "column" or self.is_flat or self.row[-1] % LANES == 0
        if in_order and elements <= MAX_UNBLOCKED[self.form]:
            return self.form, (elements,)
        return self.form, self.row

    def differing_operations(self, kernel: FusedKernel) -> set[int]:
        """Operations whose values vary along the innermost outer axis."""
        differ: set[int] = set()
        for index, op in enumerate(kernel.ops):
            own = op.is_read and self.accesses[index].outer[-1] != 0
            if own or op.kind == "reduce" or not differ.isdisjoint(op.args):
                differ.add(index)
        return differ

    def _has_shared_operands(self, kernel: FusedKernel) -> bool:
        if not self.is_simt or self.form != "row" or len(self.row) > 1 or kernel.chunk:
            return False
        if not self.outer or self.outer[-1] < _MANY_ROWS or self.row[0] < _LONG_ROW:
            return False
        if kernel.is_by_element:
            return False
        chained: set[int] = set()  # operations that are computed from results of reductions
        for index, op in enumerate(kernel.ops):
            is_reduction = op.kind == "reduce"
            if is_reduction and (op.dtype.names or not chained.isdisjoint(op.args)):
                return False
            if is_reduction or not chained.isdisjoint(op.args):
                chained.add(index)
        differ = self.differing_operations(kernel)
        loads = [k in differ for k, op in enumerate(kernel.ops) if op.kind == "load" and op.varies]
        return True in loads and False in loads

    def _form(self, kernel: FusedKernel, short_row: int) -> str:
        if math.prod(self.row) <= short_row and math.prod(self.outer) >= LANES:
            return "column"
        # What varies along the rows that are reduced counts, and the result.
        reduced = _operands_of_reductions(kernel)
        inner = [
            (access.outer[-1:], access.row[-1])
            for index, access in self.accesses.items()
            if index in reduced and any(access.row)
        ]
        result = self.accesses[RESULT]
        inner.append((result.outer[-1:], result.row[-1]))
        columns = sum(outer == (1,) and abs(row) != 1 for outer, row in inner)
        rows = sum(0 < row <= MAX_INTERLEAVED for _, row in inner)
        return "column" if columns > rows else "row"


def _operands_of_reductions(kernel: FusedKernel) -> set[int]:
    """The operations that reductions are computed from."""
    needed: set[int] = set()
    for index in reversed(range(len(kernel.ops))):
        op = kernel.ops[index]
        if op.kind == "reduce" or index in needed:
            needed.update(op.args)
    return needed
