"""Statements of reductions of long rows that share operands, on SIMT devices.

A product of a vector and a matrix reduces the rows of the matrix, and each of them meets the same
vector. Threads that reduce four rows together read and compute what these share once, and their
loads of four rows do not wait for each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from metalloid.arrays.codegen.gpu_elementwise import UNROLLED
from metalloid.arrays.codegen.gpu_row_reduction import WideRowWriter
from metalloid.arrays.ir.dtypes import msl_name
from metalloid.arrays.planning.loop_axes import LANES, RESULT, VECTOR_WIDTH, Axes
from metalloid.arrays.planning.schedule import BufferSpec, FusedKernel
from metalloid.runtime.launch.program import Size

#: Rows that threads reduce together, and the lanes that have each of them after a transposition.
_ROWS = 4
_LANES_OF_ROW = LANES // _ROWS
#: So many simdgroups read memory at its speed; up to so many reduce the same rows.
_MANY_SIMDGROUPS, _MAX_SIMDGROUPS = 4096, 8
#: Maximum number of elements of a row for each thread, which bounds rounding errors.
_MAX_EACH = 256
#: Vectors that a thread loads before it waits for the first one.
_LOADS = 16


def is_row_group(axes: Axes, packed: frozenset[int]) -> bool:
    """Whether a kernel is written so: rows share operands, and are read by vectors."""
    return axes.has_shared_operands and bool(packed) and axes.row[-1] % VECTOR_WIDTH == 0


class WideRowGroupWriter(WideRowWriter):
    """Writes the statements of a kernel whose threadgroups reduce four rows each."""

    def __init__(self, kernel: FusedKernel, sources: Sequence[BufferSpec], axes: Axes,
                 packed: frozenset[int]) -> None:  # fmt: skip
        super().__init__(kernel, sources, axes, packed)
        self._suffix = ""
        self._differs = axes.differing_operations(kernel)

    def _shape(self) -> tuple[int, int]:
        groups = -(-self.axes.outer[-1] // _ROWS) * math.prod(self.axes.outer[:-1])
        vectors = self.length // VECTOR_WIDTH
        simdgroups = 1
        while simdgroups < _MAX_SIMDGROUPS and (
            self.length > simdgroups * LANES * _MAX_EACH
            or (groups * simdgroups < _MANY_SIMDGROUPS and vectors > simdgroups * LANES)
        ):
            simdgroups *= 2
        return simdgroups * LANES, 0

    def launch(self) -> tuple[Size, Size | None]:
        """See `Writer.launch`."""
        *others, rows = self.axes.outer
        return (self.threads, -(-rows // _ROWS), math.prod(others)), (self.threads, 1, 1)

    def _positions(self) -> None:
        outer = self.axes.outer
        self._indices = [""] * len(outer)
        self._outermost_positions(len(outer) - 2)
        count = self._member("count", "uint", "I", outer[-1])
        self._line(f"const uint first_row = at.y * {_ROWS}, last_row = {count} - 1;")
        for k in range(_ROWS):  # beyond the last row, it is read again
            self._line(f"const uint row{k} = min(first_row + {k}, last_row);")

    def _index_axes(self) -> int:
        return 1

    def _name_of(self, index: int) -> str:
        return super()._name_of(index) + self._suffix

    def _vector_element(self, index: int, row: Sequence[str]) -> str | None:
        return f"q{index}{self._suffix}[e]" if row and index in self._packed else None

    def _body(self) -> None:
        reductions = [k for k, op in enumerate(self.ops) if op.kind == "reduce"]
        needed = self._needed([self.ops[k].args[0] for k in reductions], set())
        varying = {k for k in needed if self.ops[k].varies}
        fixed = needed - varying
        self._line("const uint row_end = " + self._member("row0", "uint", "I", self.length) + ";")
        # What does not vary along rows: common values, then those of each row.
        self._statements(fixed - self._differs, [])
        common = dict(self._names)
        of_rows = []
        for k in range(_ROWS):
            self._begin_row(k, common)
            self._statements(fixed & self._differs, [])
            of_rows.append(dict(self._names))
            for index in reductions:
                self._start(index, f"v{index}_{k}")
        self._names, self._suffix = dict(common), ""
        self._reduce_vectors(reductions, varying, of_rows)
        for index in reductions:
            self._combine_rows(index)
        self._combine_lanes(reductions, _LANES_OF_ROW)
        self._store_rows(reductions)

    def _begin_row(self, k: int, names: Mapping[int, str]) -> None:
        """Write the following statements for one of the rows."""
        self._indices[-1], self._suffix, self._names = f"row{k}", f"_{k}", dict(names)

    def _statements(self, indices: set[int], row: Sequence[str]) -> None:
        for index in sorted(indices):
            self._value(index, row)

    def _reduce_vectors(self, reductions: list[int], varying: set[int],
                        of_rows: list[dict[int, str]]) -> None:  # fmt: skip
        """Write the loop over vectors of all rows."""
        loads = sorted(varying & self._packed)
        own = [k for k in loads if k in self._differs]
        stride = VECTOR_WIDTH * self.threads
        per_iteration = len(loads) + (_ROWS - 1) * len(own)
        count = 1 << max(0, (_LOADS // per_iteration).bit_length() - 1)
        self._line(f"#pragma clang loop unroll_count({count})")
        self._open(f"for (uint j = at.x * {VECTOR_WIDTH}; j < row_end; j += {stride}) {{")
        for index in loads:
            if index not in self._differs:
                self._load_vector(index)
        for k in range(_ROWS):
            self._begin_row(k, {})
            for index in own:
                self._load_vector(index)
        self._suffix, self._names = "", dict(self._common_names(of_rows))
        self._line(UNROLLED)
        self._open(f"for (ushort e = 0; e < {VECTOR_WIDTH}; ++e) {{")
        self._line("const uint j0 = j + e;")
        self._statements(varying - self._differs, ["j0"])
        shared = dict(self._names)
        for k in range(_ROWS):
            self._begin_row(k, {**shared, **of_rows[k]})
            self._open("{")
            self._statements(varying & self._differs, ["j0"])
            for index in reductions:
                name = f"v{index}_{k}"
                value = self._names[self.ops[index].args[0]]
                self._line(f"{name} = {self._combine(index, name, value)};")
            self._close()
        self._close()
        self._close()
        self._suffix = ""

    def _common_names(self, of_rows: list[dict[int, str]]) -> dict[int, str]:
        return {k: name for k, name in of_rows[0].items() if k not in self._differs}

    def _load_vector(self, index: int) -> None:
        type_ = msl_name(self.ops[index].dtype)
        at = f"{self.axes.accesses[index].pointer} + {self._index(index, ['j'])}"
        self._line(f"const numpy::four<{type_}> q{index}{self._suffix} = numpy::read_four({at});")

    def _combine_rows(self, index: int) -> None:
        """Combine the partial results of all rows, of which each lane has one afterwards."""
        type_ = msl_name(self.ops[index].dtype)
        names, distance = [f"v{index}_{k}" for k in range(_ROWS)], LANES // 2
        while len(names) > 1:
            half = len(names) // 2
            later = [f"v{index}" if half == 1 else f"v{index}_{distance}_{k}" for k in range(half)]
            for name, low, high in zip(later, names[:half], names[half:], strict=True):
                other = f"numpy::from_lane(at.x & {distance} ? {low} : {high}, {distance})"
                self._line(f"{type_} {name} = at.x & {distance} ? {high} : {low};")
                self._line(f"{name} = {self._combine(index, name, other)};")
            names, distance = later, distance // 2

    def _store_rows(self, reductions: list[int]) -> None:
        """Compute the results of all rows, and store them."""
        simdgroups = self.threads // LANES
        own, is_first = f"at.x / {_LANES_OF_ROW}", f"at.x % {_LANES_OF_ROW} == 0"
        if simdgroups > 1:
            for index in reductions:
                type_ = msl_name(self.ops[index].dtype)
                self._line(f"threadgroup {type_} results{index}[{simdgroups * _ROWS}];")
            self._line(f"if ({is_first}) {{")
            for index in reductions:
                self._line(f"  results{index}[{own}] = v{index};")
            self._line("}")
            self._line("threadgroup_barrier(mem_flags::mem_threadgroup);")
            own, is_first = "at.x", f"at.x < {_ROWS}"
        self._line(f"const uint row = first_row + {own};")
        self._open(f"if ({is_first} && row <= last_row) {{")
        if simdgroups > 1:
            for index in reductions:
                self._line(f"v{index} = results{index}[at.x];")
            self._open(f"for (uint k = {_ROWS}; k < {simdgroups * _ROWS}; k += {_ROWS}) {{")
            for index in reductions:
                other = f"results{index}[k + at.x]"
                self._line(f"v{index} = {self._combine(index, f'v{index}', other)};")
            self._close()
        self._indices[-1], self._names = "row", {index: f"v{index}" for index in reductions}
        results = [output.result for output in self.kernel.outputs]
        self._statements(self._needed(results, set(reductions)), [])
        for k, result in enumerate(results):
            self._store(self._names[result], access=RESULT - k)
        self._close()
