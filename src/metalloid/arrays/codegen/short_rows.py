"""Statements of reductions of short rows: each thread has a row in registers.

The loops over a row are written out. Each value is computed once, and the elements of a row are
loaded and stored side by side, so that the compiler turns the rows of all threads into vectors.
"""

from __future__ import annotations

import itertools
import math
from collections import ChainMap

from metalloid.arrays.codegen.reduction import RowWriter
from metalloid.arrays.planning.loop_axes import SHORT_ROW, Axes
from metalloid.arrays.planning.schedule import FusedKernel

#: Statements of a kernel; more would take long to compile.
_MAX_STATEMENTS = 512


def is_short(kernel: FusedKernel, axes: Axes) -> bool:
    """Whether the loops over a row are written out."""
    elements = math.prod(axes.row)
    varying = sum(op.varies for op in kernel.ops)
    is_small = elements <= SHORT_ROW and elements * varying <= _MAX_STATEMENTS
    return axes.form == "column" and not kernel.chunk and is_small


class ShortRowWriter(RowWriter):
    """Writes the statements of a kernel whose threads reduce a short row each."""

    def _body(self) -> None:
        rows = itertools.product(*(map(str, range(extent)) for extent in self.axes.row))
        self._rows = list(rows)
        self._shared_names = self._names
        self._names_of_elements: list[dict[int, str]] = [{} for _ in self._rows]
        self._known_of_elements: list[set[int]] = [set() for _ in self._rows]
        self._element: int | None = None
        super()._body()

    def _row_head(self) -> None:
        if any(self._is_search(k) for k, op in enumerate(self.ops) if op.kind == "reduce"):
            self._line(f"const uint row_end = {self.axes.row[0]};")

    def _choose_cached(self, reductions: list[int]) -> int:
        return -1  # registers hold all values

    def _name_of(self, index: int) -> str:
        is_own = self._element is not None and self.ops[index].varies
        return f"v{index}_{self._element}" if is_own else super()._name_of(index)

    def _compute_element(self, element: int, required: list[int], known: set[int]) -> None:
        """Compute operations at an element of the row, whose names are those in use then."""
        self._element = element
        self._names = ChainMap(self._names_of_elements[element], self._shared_names)
        known_here = self._known_of_elements[element]
        known_here |= known
        self._compute(required, known_here, self._rows[element])
        self._element = None

    def _reduce(self, reductions: list[int], known: set[int]) -> None:
        searches = [index for index in reductions if self._is_search(index)]
        for index in reductions:
            self._shared_names[index] = f"v{index}"
            if index in searches:
                self._open_search(index)
            else:
                self._start(index, f"v{index}")
        for element, row in enumerate(self._rows):
            for index in reductions:
                arg = self.ops[index].args[0]
                if index in searches:
                    (value, _) = self.ops[arg].args
                    self._compute_element(element, [value], known)
                    self._line("{")
                    self._look_at(index, self._names[value], row[0])
                    self._line("}")
                else:
                    self._compute_element(element, [arg], known)
                    text = self._combine(index, f"v{index}", self._names[arg])
                    self._line(f"v{index} = {text};")
        self._names = self._shared_names
        for index in searches:
            self._close_search(index)
        known |= set(reductions)

    def _write_row(self, known: set[int]) -> None:
        result = self.kernel.result
        names = []
        for element in range(len(self._rows)):
            self._compute_element(element, [result], known)
            names.append(self._names[result])
        for name, row in zip(names, self._rows, strict=True):
            self._store(name, row)
        self._names = self._shared_names
