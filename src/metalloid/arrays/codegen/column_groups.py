"""Statements of reductions of columns, for CPUs: a simdgroup reduces up to 256 adjacent columns.

Rows of 32 columns are two cache lines, each in a page of its own if the matrix is wide: memory is
read much faster by longer pieces. Each column has its own accumulator, and the order of its
additions is that of a thread with a single column.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from metalloid.arrays.codegen.reduction import RowWriter
from metalloid.arrays.ir.dtypes import msl_name
from metalloid.arrays.planning.loop_axes import LANES, MAX_UNBLOCKED, Access, Axes
from metalloid.arrays.planning.schedule import BufferSpec, FusedKernel
from metalloid.runtime.launch.program import Size

#: Columns of a lane at most, and columns of all rows that are enough for so many.
_MAX_COLUMNS, _MANY_COLUMNS = 8, 4096
#: Bytes of the accumulators of a lane, half of AVX-512's registers; more statements take long to
#: compile.
_ACCUMULATORS, _MAX_STATEMENTS = 32, 256


def columns_per_lane(kernel: FusedKernel, axes: Axes) -> int:
    """The columns that a lane reduces; 1 if the kernel is none of independent columns."""
    if axes.form != "column" or kernel.is_by_element or kernel.interleave > 1 or not axes.outer:
        return 1
    if len(axes.row) > 1 or axes.is_simt or (kernel.chunk and len(axes.outer) == 1):
        return 1  # chunks are along the first axis
    depends = [False] * len(kernel.ops)  # on the result of a reduction
    for index, op in enumerate(kernel.ops):
        depends[index] = op.kind == "reduce" or any(depends[arg] for arg in op.args)
        if op.kind == "reduce" and (depends[op.args[0]] or op.dtype.names):
            return 1
    size = sum(op.dtype.itemsize for op in kernel.ops if op.kind == "reduce")
    if not size:  # the reductions are in kernels of their own
        return 1
    varying = sum(op.varies for op in kernel.ops)
    limit = _MAX_COLUMNS if math.prod(axes.outer) >= _MANY_COLUMNS else _MAX_COLUMNS // 2
    limit = min(limit, _ACCUMULATORS // size, _MAX_STATEMENTS // max(varying, 1))
    return next((n for n in (8, 4, 2) if n <= limit and n * LANES <= axes.outer[-1]), 1)


class ColumnGroupWriter(RowWriter):
    """Writes the statements of a kernel whose lanes reduce several columns each."""

    def __init__(self, kernel: FusedKernel, sources: Sequence[BufferSpec], axes: Axes) -> None:
        super().__init__(kernel, sources, axes)
        self._count = columns_per_lane(kernel, axes)

    def launch(self) -> tuple[Size, Size | None]:
        """See `Writer.launch`."""
        groups = -(-self.axes.outer[-1] // (LANES * self._count))
        return (LANES, groups, math.prod(self.axes.outer[:-1])), (LANES, 1, 1)

    def _positions(self) -> None:
        outer = self.axes.outer
        self._indices = [""] * len(outer)
        self._outermost_positions(len(outer) - 2)
        self._line(f"const uint first = at.y * {LANES * self._count};")

    def _body(self) -> None:
        self._cached_op = -1
        self._row_head()
        columns = self._member("columns", "uint", "I", self.axes.outer[-1])
        self._line(f"if (first + {LANES * self._count} <= {columns}) {{")
        self._depth += 1
        self._write_columns([f"first + {LANES * k} + at.x" for k in range(self._count)])
        self._depth -= 1
        self._line("} else {")
        self._line(f"  for (uint at_x = first + at.x; at_x < {columns}; at_x += {LANES}) {{")
        self._depth += 2
        self._write_columns(["at_x"])
        self._depth -= 1
        self._line("}")
        self._depth -= 1
        self._line("}")

    def _write_columns(self, columns: list[str]) -> None:
        """Reduce and store columns of the given indices."""
        reductions = [k for k, op in enumerate(self.ops) if op.kind == "reduce"]
        numbered = [(index, k) for index in reductions for k in range(len(columns))]
        for index, k in numbered:
            self._start(index, f"v{index}_{k}")
        blocked, into = self._is_blocked(reductions), "v"
        begin, end = "0", "row_end"
        if blocked:
            into, begin, end = "partial", "block", "block_end"
            block = MAX_UNBLOCKED["column"]
            self._line(f"for (uint block = 0; block < row_end; block += {block}) {{")
            self._line(f"  const uint block_end = min(block + {block}, row_end);")
            self._depth += 1
            for index, k in numbered:
                self._start(index, f"partial{index}_{k}")
        self._line(f"for (uint j0 = {begin}; j0 < {end}; ++j0) {{")
        self._depth += 1
        for k, column in enumerate(columns):
            self._line("{")
            self._depth += 1
            self._indices[-1], self._names = column, {}
            self._compute([self.ops[index].args[0] for index in reductions], set(), ["j0"])
            for index in reductions:
                name = f"{into}{index}_{k}"
                value = self._names[self.ops[index].args[0]]
                self._line(f"{name} = {self._combine(index, name, value)};")
            self._depth -= 1
            self._line("}")
        self._depth -= 1
        self._line("}")
        if blocked:
            for index, k in numbered:
                name, partial = f"v{index}_{k}", f"partial{index}_{k}"
                self._line(f"{name} = {self._combine(index, name, partial)};")
            self._depth -= 1
            self._line("}")
        for k, column in enumerate(columns):
            self._line("{")
            self._depth += 1
            self._indices[-1] = column
            self._names = {index: f"v{index}_{k}" for index in reductions}
            self._store_outputs(set(reductions))
            self._depth -= 1
            self._line("}")


#: Threads that share a chunk, each of whose elements of a vector is read on its own.
_MAX_SHARED = 8


def has_interleaved_rows(kernel: FusedKernel, axes: Axes) -> bool:
    """Whether the lanes of a simdgroup have a few adjacent rows, one of whose operands is a vector.

    An example is a vector times a matrix with 16 columns: strides of both merge no axes.
    """
    if axes.form != "column" or axes.is_simt or len(axes.outer) != 3 or len(axes.row) > 1:
        return False
    _, threads, columns = axes.outer
    return 1 < kernel.interleave == threads <= _MAX_SHARED and threads * columns == LANES


class InterleavedRowWriter(RowWriter):
    """Writes the statements of a kernel whose simdgroups reduce a few adjacent rows at a time."""

    narrow = LANES
    index_axes = 2

    def _value(self, index: int, row: Sequence[str]) -> None:
        access = self.axes.accesses.get(index)
        op = self.ops[index]
        is_last = list(row) == ["row_end"]  # not all lanes have an element
        if access is None or op.kind != "load" or not row or is_last or not self._is_vector(access):
            super()._value(index, row)
            return
        name, type_ = f"v{index}", msl_name(op.dtype)
        self._names[index] = name
        first = self._index(index, row, is_first=True)
        names = [f"{name}_{k}" for k in range(self.kernel.interleave)]
        for k, each in enumerate(names):
            at = f"{first} + {k * access.outer[-2]}"
            self._line(f"const {type_} {each} = {access.pointer}[{at}];")
        bit = 1
        while len(names) > 1:  # by the bits of the row
            pairs = zip(names[::2], names[1::2], strict=True)
            names = [f"(i1 & {bit} ? {odd} : {even})" for even, odd in pairs]
            bit *= 2
        self._line(f"const {type_} {name} = {names[0]};")

    @staticmethod
    def _is_vector(access: Access) -> bool:
        return access.outer[-2] != 0 == access.outer[-1]

    def _index(self, index: int, row: Sequence[str], is_first: bool = False) -> str:
        access = self.axes.accesses[index]
        columns = self.axes.outer[-1]
        if not is_first and access.outer[-2:] != (columns, 1):
            return super()._index(index, row)
        lane = "0" if is_first else "at.x"
        if not row or not access.row[0]:
            return lane
        label = access.pointer if access.pointer[0] != "(" else f"c{index}"
        return (
            f"{lane} + long({row[0]}) * {self._member(f'{label}_row', 'long', 'q', access.row[0])}"
        )
