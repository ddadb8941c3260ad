"""Statements of reductions of rows of moderate length, for CPUs: a simdgroup reduces eight rows.

The lanes of a simdgroup have a partial result of each row. Adding those of one row takes five
shuffles. For eight rows at once, each of the first three steps combines the halves of two rows, as
in the transposition of a matrix, so that the number of values halves with the distance of lanes.
"""

from __future__ import annotations

import math

from metalloid.arrays.codegen.reduction import RowWriter
from metalloid.arrays.ir.dtypes import msl_name
from metalloid.arrays.planning.loop_axes import LANES, Axes
from metalloid.arrays.planning.schedule import FusedKernel
from metalloid.runtime.launch.program import Size

#: Rows of a simdgroup, whose accumulators are in half of AVX-512's registers.
_ROWS = 8
#: Longer rows take much more time than their shuffles. More statements take long to compile.
_MAX_LENGTH, _MAX_STATEMENTS = 128, 256


def is_grouped(kernel: FusedKernel, axes: Axes) -> bool:
    """Whether a kernel stores one result for each of many rows of moderate length."""
    if axes.form != "row" or kernel.is_by_element or kernel.chunk or len(axes.row) > 1:
        return False
    if axes.row[0] > _MAX_LENGTH or not axes.outer or axes.outer[-1] < _ROWS:
        return False
    depends = [False] * len(kernel.ops)  # on the result of a reduction
    for index, op in enumerate(kernel.ops):
        of_args = any(depends[arg] for arg in op.args)
        if op.kind == "reduce" and (of_args or op.dtype.names):
            return False
        depends[index] = of_args or op.kind == "reduce"
    return _ROWS * sum(op.varies for op in kernel.ops) <= _MAX_STATEMENTS


class RowGroupWriter(RowWriter):
    """Writes the statements of a kernel whose simdgroups reduce eight rows each."""

    def launch(self) -> tuple[Size, Size | None]:
        """See `Writer.launch`."""
        groups = -(-self.axes.outer[-1] // _ROWS)
        return (LANES, groups, math.prod(self.axes.outer[:-1])), (LANES, 1, 1)

    def _positions(self) -> None:
        outer = self.axes.outer
        self._indices = [""] * len(outer)
        self._outermost_positions(len(outer) - 2)
        count = self._member("count", "uint", "I", outer[-1])
        self._line(f"const uint first = at.y * {_ROWS}, last = {count} - 1;")
        # Beyond the last row, it is read again.
        for k in range(_ROWS):
            self._line(f"const uint row{k} = min(first + {k}, last);")

    def _index_axes(self) -> int:
        return 1

    def _body(self) -> None:
        reductions = [k for k, op in enumerate(self.ops) if op.kind == "reduce"]
        self._cached_op = -1
        self._row_head()
        for index in reductions:
            for k in range(_ROWS):
                self._start(index, f"v{index}_{k}")
        self._loops = 0
        self._open_loop_of_lanes("j0", "0", "row_end")
        for k in range(_ROWS):
            self._line("{")
            self._depth += 1
            self._indices[-1], self._names = f"row{k}", {}
            args = {index: self.ops[index].args[0] for index in reductions}
            self._compute(list(args.values()), set(), ["j0"])
            for index, arg in args.items():
                name = f"v{index}_{k}"
                self._line(f"{name} = {self._combine(index, name, self._names[arg])};")
            self._depth -= 1
            self._line("}")
        self._close_loops()
        for index in reductions:
            self._combine_rows(index)
        self._combine_lanes(reductions, LANES // _ROWS)
        self._line(f"const uint row = first + at.x / {LANES // _ROWS};")
        self._line(f"if (at.x % {LANES // _ROWS} == 0 && row <= last) {{")
        self._depth += 1
        self._indices[-1], self._names = "row", {index: f"v{index}" for index in reductions}
        self._compute([self.kernel.result], set(reductions))
        self._store(self._names[self.kernel.result])
        self._depth -= 1
        self._line("}")

    def _combine_rows(self, index: int) -> None:
        """Combine the accumulators of all rows, of which each lane holds one afterwards."""
        type_ = msl_name(self.ops[index].dtype)
        rows, distance = _ROWS // 2, LANES // 2
        names = [f"v{index}_{k}" for k in range(_ROWS)]
        while rows:
            later = [f"v{index}" if rows == 1 else f"v{index}_{distance}_{k}" for k in range(rows)]
            for name, low, high in zip(later, names[:rows], names[rows:], strict=True):
                mine = f"at.x & {distance} ? {high} : {low}"
                other = f"numpy::from_lane(at.x & {distance} ? {low} : {high}, {distance})"
                self._line(f"{type_} {name} = {mine};")
                self._line(f"{name} = {self._combine(index, name, other)};")
            names, rows, distance = later, rows // 2, distance // 2
