"""How a kernel goes through memory: as few axes as can be, and who takes which elements."""

from __future__ import annotations

import math
from dataclasses import dataclass

from metalloid.arrays.layout import Ints, collapsed
from metalloid.arrays.steps import FusedKernel

#: Lanes of a simdgroup, which shares a row.
LANES = 32
#: Elements that a thin thread takes at a time: 16 bytes of floats.
BUNDLE = 4
#: Rows shorter than this are read by one thread each.
_SHORT_ROW = 16
#: The access of a kernel that is the result's, not an entry's.
RESULT = -1


@dataclass
class Access:
    """How a memory is read or written: the name of a pointer, and strides of kept and row axes."""

    pointer: str
    kept: Ints
    row: Ints


class Axes:
    """The axes of a kernel, put together where the memory allows it.

    Attributes
    ----------
    kept, row : tuple of int
        Extents; chunks of the row, if there are any, are the first kept axis.
    accesses : dict
        By entry, and `RESULT`.
    form : str
        Who computes a row: ``"row"``, a simdgroup; ``"column"``, a thread; ``"map"``, there is no
        row.
    """

    def __init__(self, kernel: FusedKernel) -> None:
        space = kernel.space
        read = [k for k, entry in enumerate(kernel.entries) if entry.is_read]
        strides = [*(kernel.entries[k].strides for k in read), kernel.strides[: len(space)]]
        kept_axes = tuple(k for k in range(len(space)) if k not in kernel.row_axes)

        def along(axes: Ints) -> tuple[Ints, list[Ints]]:
            shape = tuple(space[k] for k in axes)
            return collapsed(shape, *(tuple(each[k] for k in axes) for each in strides))

        self.kept, kept = along(kept_axes)
        self.row, row = along(kernel.row_axes)
        if kernel.row_axes and not self.row:
            self.row, row = (1,), [(0,)] * len(row)
        if kernel.chunk:
            self.kept = (-(-self.row[0] // kernel.chunk), *self.kept)
            steps = [*(r[0] * kernel.chunk for r in row[:-1]), kernel.strides[-1]]
            kept = [(step, *k) for step, k in zip(steps, kept, strict=True)]
        self.accesses = {
            place: Access("", k, r) for place, k, r in zip([*read, RESULT], kept, row, strict=True)
        }
        self.form = self._form() if kernel.row_axes else "map"

    def _form(self) -> str:
        if math.prod(self.row) < _SHORT_ROW and math.prod(self.kept) >= LANES:
            return "column"
        inner = [(a.kept[-1:] or (0,), a.row[-1]) for a in self.accesses.values()]
        columns = sum(kept == (1,) and abs(row) != 1 for kept, row in inner)
        rows = sum(row == 1 for _, row in inner)
        return "column" if columns > rows else "row"
