"""Statements of elementwise kernels whose inner axis is shorter than a simdgroup, for CPUs.

A matrix with 16 columns minus their means is an example. Neighbouring threads take neighbouring
elements, of several rows. After a *period* of some simdgroups, each thread has the same column
again. It computes what depends on its columns before the loop over the rows.
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Sequence

from metalloid.arrays.codegen.elementwise import Writer
from metalloid.arrays.planning.loop_axes import LANES, NARROW, RESULT, Axes
from metalloid.arrays.planning.schedule import BufferSpec, FusedKernel
from metalloid.runtime.launch.program import Size

#: Simdgroups of a period, and statements of a kernel; more would take long to compile.
_MAX_PERIOD, _MAX_STATEMENTS = 8, 256
#: Elements of a threadgroup; the fewest and the most elements along the two inner axes.
_BLOCK, _MIN_ELEMENTS, _MAX_ELEMENTS = 4096, 256, 2**30


def is_narrow(kernel: FusedKernel, axes: Axes) -> bool:
    """Whether a kernel stores contiguous short rows, and reads something that all rows share."""
    if axes.form != "elementwise" or len(axes.outer) < 2 or axes.outer[-1] >= NARROW:
        return False
    columns = axes.outer[-1]
    strides = {index: access.outer[-2:] for index, access in axes.accesses.items()}
    is_repeated = any(rows == 0 != own for rows, own in strides.values())
    is_dense = all(strides[RESULT - k] == (columns, 1) for k in range(len(kernel.outputs)))
    is_small = _period(columns) <= _MAX_PERIOD and (
        _period(columns) * len(kernel.ops) <= _MAX_STATEMENTS
    )
    size = math.prod(axes.outer[-2:])
    return is_repeated and is_dense and is_small and _MIN_ELEMENTS <= size <= _MAX_ELEMENTS


def _period(columns: int) -> int:
    """Simdgroups after which each lane has the same column again."""
    return columns // math.gcd(LANES, columns)


class NarrowRowWriter(Writer):
    """Writes the statements of a kernel with short rows."""

    def __init__(self, kernel: FusedKernel, sources: Sequence[BufferSpec], axes: Axes) -> None:
        super().__init__(kernel, sources, axes)
        self._columns = axes.outer[-1]
        self._period = _period(self._columns)
        step = self._period * LANES
        self._block = _BLOCK // step * step
        self._shared_names = self._names
        #: The simdgroup of the period for which statements are written.
        self._simdgroup = 0
        by_row: list[bool] = []
        by_column: list[bool] = []
        for index, op in enumerate(self.ops):
            rows, own = axes.accesses[index].outer[-2:] if op.is_read else (0, 0)
            by_row.append(rows != 0 or any(by_row[arg] for arg in op.args))
            by_column.append(own != 0 or any(by_column[arg] for arg in op.args))
        self._by_row, self._by_column = by_row, by_column

    def launch(self) -> tuple[Size, Size | None]:
        """See `Writer.launch`."""
        blocks = -(-math.prod(self.axes.outer[-2:]) // self._block)
        return (LANES, blocks, math.prod(self.axes.outer[:-2])), (LANES, 1, 1)

    def _positions(self) -> None:
        outer = self.axes.outer
        self._indices = [""] * len(outer)
        self._outermost_positions(len(outer) - 3)
        count = self._member("count", "uint", "I", math.prod(outer[-2:]))
        self._line(f"const uint first = at.y * {self._block};")
        self._line(f"const uint end = min(first + {self._block}, {count});")
        for k in range(self._period):
            column = f"lane{k} % {self._columns}"
            self._line(f"const uint lane{k} = at.x + {k * LANES}, c{k} = {column};")

    def _pointer_axes(self) -> range:
        return range(len(self.axes.outer) - 2)

    def _body(self) -> None:
        required = [output.result for output in self.kernel.outputs]
        varying = self._needed(required, {k for k, is_by_row in enumerate(self._by_row)
                                          if not is_by_row})  # fmt: skip
        varying = {k for k in varying if self._by_row[k]}
        fixed = [arg for k in varying for arg in self.ops[k].args]
        fixed = [k for k in (*fixed, *required) if not self._by_row[k]]
        shared: set[int] = set()
        constant = self._needed(fixed, shared)
        self._compute([k for k in constant if not self._by_column[k]], shared)
        names: list[ChainMap[int, str]] = []
        known: list[set[int]] = []
        for k in range(self._period):
            names.append(ChainMap({}, self._shared_names))
            known.append(set(shared))
            self._names, self._simdgroup = names[k], k
            self._compute(fixed, known[k])
        step = self._period * LANES
        self._line(f"for (uint start = first; start < end; start += {step}) {{")
        self._depth += 1
        for k in range(self._period):
            self._names, self._simdgroup = names[k], k
            self._line(f"if (const uint i{k} = start + lane{k}; i{k} < end) {{")
            self._depth += 1
            if any(self._has_rows(index) for index in varying):
                row = f"start / {self._columns} + lane{k} / {self._columns}"
                self._line(f"const uint row{k} = {row};")
            self._store_outputs(known[k])
            self._depth -= 1
            self._line("}")
        self._depth -= 1
        self._line("}")

    def _name_of(self, index: int) -> str:
        return f"v{index}_{self._simdgroup}" if self._by_column[index] else f"v{index}"

    def _has_rows(self, index: int) -> bool:
        """Whether an operation reads an address that depends on the row."""
        return self.ops[index].is_read and not self._is_dense(index) and self._by_row[index]

    def _is_dense(self, index: int) -> bool:
        """Whether rows follow each other in memory."""
        return self.axes.accesses[index].outer[-2:] == (self._columns, 1)

    def _index(self, index: int, row: Sequence[str]) -> str:
        k = self._simdgroup
        if self._is_dense(index):
            return f"i{k}"
        access = self.axes.accesses[index]
        label = access.pointer if access.pointer[0] != "(" else f"c{index}"
        terms = []
        for axis, stride in zip(("row", "c"), access.outer[-2:], strict=True):
            if stride == 1:
                terms.append(f"{axis}{k}")
            elif stride in self.literal_strides:
                terms.append(f"long({axis}{k}) * {stride}")
            elif stride:
                step = self._member(f"{label}_{axis}", "long", "q", stride)
                terms.append(f"long({axis}{k}) * {step}")
        return " + ".join(terms) or "0"
