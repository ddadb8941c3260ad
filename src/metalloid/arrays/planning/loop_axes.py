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
            steps = [*(r[0] for r in row[:-1]), kernel.strides[-1]]
            threads = kernel.interleave
            if threads > 1:
                outer = [(step, *k) for step, k in zip(steps, outer, strict=True)]
                self.outer, outer = collapse((threads, *self.outer), *outer)
                row = [(r[0] * threads, *r[1:]) for r in row]
            steps = [step * kernel.chunk for step in steps[:-1]] + [steps[-1] * threads]
            self.outer = (-(-self.row[0] // kernel.chunk), *self.outer)
            outer = [(step, *k) for step, k in zip(steps, outer, strict=True)]
        accesses = [*read, *(RESULT - k for k in range(len(outputs)))]
        self.accesses = {
            index: Access("", k, r) for index, k, r in zip(accesses, outer, row, strict=True)
        }
        short_row = _SHORT_ROW_OF_SIMT if is_simt else SHORT_ROW
        self.form = self._form(short_row) if kernel.row_axes else "elementwise"

    def _form(self, short_row: int) -> str:
        if math.prod(self.row) <= short_row and math.prod(self.outer) >= LANES:
            return "column"
        # One output counts, as all have one result per row.
        accesses = (access for index, access in self.accesses.items() if index >= RESULT)
        inner = [(access.outer[-1:] or (0,), access.row[-1]) for access in accesses]
        columns = sum(outer == (1,) and abs(row) != 1 for outer, row in inner)
        rows = sum(0 < row <= MAX_INTERLEAVED for _, row in inner)
        return "column" if columns > rows else "row"
