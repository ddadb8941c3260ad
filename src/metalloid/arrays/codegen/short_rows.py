"""Statements of reductions of short rows: each thread has a row, or a few, in registers.

The loops over a row are written out. Each value is computed once, and the elements of a row are
loaded and stored side by side, so that the compiler turns the rows of all threads into vectors.
"""

from __future__ import annotations

import itertools
import math
from collections import ChainMap
from collections.abc import Sequence

from metalloid.arrays.codegen.reduction import RowWriter
from metalloid.arrays.ir.dtypes import msl_name
from metalloid.arrays.planning.loop_axes import NARROW, RESULT, SHORT_ROW, Axes
from metalloid.arrays.planning.schedule import BufferSpec, FusedKernel
from metalloid.runtime.launch.program import Size

#: Statements of a kernel; more would take long to compile.
_MAX_STATEMENTS = 512


def is_short(kernel: FusedKernel, axes: Axes) -> bool:
    """Whether the loops over a row are written out."""
    elements = math.prod(axes.row)
    varying = sum(op.varies for op in kernel.ops)
    is_small = elements <= SHORT_ROW and elements * varying <= _MAX_STATEMENTS
    return axes.form == "column" and not kernel.chunk and is_small


def _rows_per_thread(kernel: FusedKernel, axes: Axes) -> int:
    """The extent of an inner axis whose rows share operands, such as distances to few points.

    A thread that computes all of them reads a shared operand once, and next to its neighbours.
    """
    if axes.is_simt or len(axes.outer) < 2:
        return 1
    rows = axes.outer[-1]
    varying = sum(op.varies for op in kernel.ops)
    is_small = rows * math.prod(axes.row) * varying <= _MAX_STATEMENTS
    return rows if rows <= SHORT_ROW and is_small else 1


class ShortRowWriter(RowWriter):
    """Writes the statements of a kernel whose threads reduce one or a few short rows each."""

    narrow = NARROW

    def __init__(self, kernel: FusedKernel, sources: Sequence[BufferSpec], axes: Axes) -> None:
        super().__init__(kernel, sources, axes)
        self._rows_per_thread = _rows_per_thread(kernel, axes)
        self._stores: list[str] = []
        if self._rows_per_thread > 1:
            self.index_axes = 2

    def launch(self) -> tuple[Size, Size | None]:
        """See `Writer.launch`."""
        if self._rows_per_thread == 1:
            return super().launch()
        *rest, inner = self.axes.outer[:-1]
        return (inner, rest[-1] if rest else 1, math.prod(rest[:-1])), None

    def _positions(self) -> None:
        if self._rows_per_thread == 1:
            super()._positions()
            return
        first = len(self.axes.outer) - 2
        self._indices = [""] * (first + 2)
        self._indices[first] = "at.x"
        if first > 0:
            self._indices[first - 1] = "at.y"
        self._outermost_positions(first - 2)

    def _body(self) -> None:
        if self._rows_per_thread == 1:
            self._write_own_row()
            return
        before, self.lines = self.lines, []
        for row in range(self._rows_per_thread):
            self._names, self._indices[-1] = {}, str(row)
            self._line("{")
            self._depth += 1
            self._write_own_row()
            self._depth -= 1
            self._line("}")
        rows, self.lines = self.lines, before
        type_ = msl_name(self.ops[self.kernel.result].dtype)
        self._line(f"{type_} {', '.join(f'result{k}' for k in range(len(self._stores)))};")
        self.lines += rows
        for text in self._stores:
            self._line(text)

    def _store(self, name: str, row: Sequence[str] = (), access: int = RESULT) -> None:
        if self._rows_per_thread == 1:
            super()._store(name, row, access)
            return
        # After all rows have been computed, so that operands that they share are read once.
        result = f"result{len(self._stores)}"
        pointer = self.axes.accesses[access].pointer
        self._stores.append(f"{pointer}[{self._index(access, row)}] = {result};")
        self._line(f"{result} = {name};")

    def _write_own_row(self) -> None:
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
