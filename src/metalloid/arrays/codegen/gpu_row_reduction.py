"""Statements of row reductions on SIMT devices.

A simdgroup or a threadgroup reduces a row; neighbouring threads read neighbouring vectors. A row
that is needed more than once stays in registers if it fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from metalloid.arrays.codegen.elementwise import Writer
from metalloid.arrays.codegen.gpu_elementwise import UNROLLED, VectorWriter
from metalloid.arrays.codegen.reduction import RowWriter
from metalloid.arrays.ir.dtypes import msl_name
from metalloid.arrays.planning.loop_axes import LANES, RESULT, VECTOR_WIDTH, Axes
from metalloid.arrays.planning.schedule import BufferSpec, FusedKernel
from metalloid.runtime.launch.program import MAX_THREADS_PER_THREADGROUP, Size

#: Threads per threadgroup, unless rows are few or long.
_THREADS = 256
#: Fewer rows than this leave the device idle with that many threads each.
_FEW_ROWS = 512
#: Minimum elements of a row per thread.
_EACH = 16
#: So many rows of at most so many elements keep the device busy with a simdgroup each, which needs
#: no barrier.
_MANY_ROWS, _MAX_ROW_OF_SIMDGROUP = 8192, 4096
#: If a row has several axes, threads share an innermost axis of at least this extent.
LONG = 512
#: Maximum registers of a thread for a cached row.
_MAX_CACHED = 64
#: Loops with more operations than this are not unrolled.
_MAX_UNROLLED_OPS = 16


class WideRowWriter(VectorWriter, RowWriter):
    """Writes the statements of a kernel that reduces rows, along the innermost of their axes.

    Attributes
    ----------
    threads : int
        Threads that reduce one row together.
    steps : int
        Vectors per thread if the row stays in registers; 0 if it is reloaded.
    """

    def __init__(self, kernel: FusedKernel, sources: Sequence[BufferSpec], axes: Axes,
                 packed: frozenset[int]) -> None:  # fmt: skip
        super().__init__(kernel, sources, axes, packed)
        *self._outer, self._inner = (f"j{axis}" for axis in range(len(axes.row)))
        self.length = axes.row[-1] if self._outer else kernel.chunk or axes.row[0]
        has_tail = self.length % VECTOR_WIDTH != 0 or axes.row[-1] % VECTOR_WIDTH != 0
        loads = [k for k, e in enumerate(self.ops) if e.kind == "load" and e.varies]
        self._held = loads if self._is_reread(loads) else []
        self.threads, self.steps = self._shape()
        if not self.steps:
            self._held = []
        if self.steps and has_tail:  # rows in registers have no remainder loop
            self._packed = frozenset()
        self._has_rest = has_tail if self._packed else True

    def _is_reread(self, loads: list[int]) -> bool:
        """Whether there is more than one pass over a row."""
        reductions = [k for k, op in enumerate(self.ops) if op.kind == "reduce"]
        is_chained = any(self._needed([k], set()) & set(reductions) != {k} for k in reductions)
        return not self._outer and bool(loads) and (self.kernel.is_by_element or is_chained)

    def _shape(self) -> tuple[int, int]:
        held = [self.ops[k].dtype.itemsize for k in self._held]
        rows = math.prod(self.axes.outer)
        max_threads = _THREADS if rows >= _FEW_ROWS else MAX_THREADS_PER_THREADGROUP
        if held:
            held.append(max(held))  # a costly value is cached as well
            for each in (4 * VECTOR_WIDTH, 8 * VECTOR_WIDTH):
                each = each // VECTOR_WIDTH if len(held) > 3 else each
                threads = _power(self.length / each, MAX_THREADS_PER_THREADGROUP)
                steps = -(-self.length // (threads * VECTOR_WIDTH))
                if steps * VECTOR_WIDTH * sum(held) <= 4 * _MAX_CACHED:
                    return threads, steps
        if not self._outer and rows >= _MANY_ROWS and self.length <= _MAX_ROW_OF_SIMDGROUP:
            return LANES, 0
        return _power(self.length / (VECTOR_WIDTH if self._outer else _EACH), max_threads), 0

    def launch(self) -> tuple[Size, Size | None]:
        """See `Writer.launch`."""
        outer = self.axes.outer
        rows = _THREADS // LANES if self.threads == LANES else 1
        return (
            (self.threads, outer[-1] if outer else 1, math.prod(outer[:-1])),
            (self.threads, rows, 1),
        )

    # -- the elements of a thread

    @property
    def _element_strides(self) -> tuple[int, int]:
        """Distance between first elements of adjacent threads, and between elements of a thread."""
        return (VECTOR_WIDTH, 1) if self._packed else (1, self.threads)

    def _row_head(self) -> None:
        super()._row_head()
        self._end = "row_end"
        if self._outer:
            self._end = self._extent_of_row(len(self._outer))
        thread_stride, _ = self._element_strides
        self._line(f"const uint first = at.x{f' * {thread_stride}' if thread_stride > 1 else ''};")
        if not self.steps:
            if self._has_rest:
                size = VECTOR_WIDTH if self._packed else VECTOR_WIDTH * self.threads
                self._line(f"const uint full = {self._end} - {self._end} % {size};")
            return
        for index in self._held:
            self._line(f"{msl_name(self.ops[index].dtype)} w{index}[{self.steps}][{VECTOR_WIDTH}];")
        if self._cached_op >= 0:
            type_ = msl_name(self.ops[self._cached_op].dtype)
            self._line(f"{type_} k{self._cached_op}[{self.steps}][{VECTOR_WIDTH}];")
        self._vector_elements = {}
        self._for_each_element(self._hold, fours=self._held)
        self._vector_elements = {index: f"w{index}[s][e]" for index in self._held}

    def _hold(self, row: Sequence[str]) -> None:
        for index in self._held:
            self._value(index, row)
            self._line(f"w{index}[s][e] = v{index};")

    def _for_each_element(
        self, statements: Callable[[Sequence[str]], None], fours: Sequence[int] = (),
        is_result: bool = False,
    ) -> None:  # fmt: skip
        """Write statements for each element of a thread: `e` is its index in the vector."""
        for axis, name in enumerate(self._outer):
            end = "row_end" if axis == 0 else self._extent_of_row(axis)
            self._line(f"for (uint {name} = 0; {name} < {end}; ++{name}) {{")
            self._depth += 1
        self._for_each_vector(
            statements, [index for index in fours if index in self._packed], is_result
        )
        if not self.steps and self._has_rest:
            name, step = self._inner, self.threads
            self._open(
                f"for (uint {name} = full + at.x; {name} < {self._end}; {name} += {step}) {{"
            )
            self._line("constexpr ushort e = 0;")
            self._write_element(statements, is_result, "")
            self._close()
        for _ in self._outer:
            self._close()

    def _for_each_vector(
        self, statements: Callable[[Sequence[str]], None], fours: Sequence[int], is_result: bool
    ) -> None:
        """Write the loop over vectors along the innermost axis."""
        depth, outer_elements = self._depth, self._vector_elements
        stride = VECTOR_WIDTH * self.threads
        if self.steps:
            self._line(UNROLLED)
            self._open(f"for (uint s = 0; s < {self.steps}; ++s) {{")
            self._line(f"const uint j = s * {stride} + first;")
            if self._packed:
                self._open("if (j < row_end) {")
        else:
            is_long = len(self.ops) > _MAX_UNROLLED_OPS
            count = 1 if is_long else 4 if self._packed else 2
            self._line(f"#pragma clang loop unroll_count({count})")
            end = "full" if self._has_rest else self._end
            self._open(f"for (uint j = first; j < {end}; j += {stride}) {{")
        self._vector_elements = dict(outer_elements)
        for index in fours:
            type_ = msl_name(self.ops[index].dtype)
            at = f"{self.axes.accesses[index].pointer} + {self._index(index, [*self._outer, 'j'])}"
            self._line(f"const numpy::four<{type_}> q{index} = numpy::read_four({at});")
            self._vector_elements[index] = f"q{index}[e]"
        results = "results[e]" if is_result and RESULT in self._packed else ""
        if results:
            type_ = msl_name(self.ops[self.kernel.result].dtype)
            self._line(f"numpy::four<{type_}> results;")
        self._line(UNROLLED)
        inner = self._depth
        self._open(f"for (ushort e = 0; e < {VECTOR_WIDTH}; ++e) {{")
        thread_stride = self._element_strides[1]
        self._line(
            f"const uint {self._inner} = j + e{f' * {thread_stride}' if thread_stride > 1 else ''};"
        )
        if self.steps and not self._packed:
            self._open(f"if ({self._inner} < row_end) {{")
        self._write_element(statements, is_result, results)
        while self._depth > inner:
            self._close()
        if results:
            to = self._index(RESULT, [*self._outer, "j"])
            self._line(f"numpy::write_four({self.axes.accesses[RESULT].pointer} + {to}, results);")
        while self._depth > depth:
            self._close()
        self._vector_elements = outer_elements

    def _write_element(
        self, statements: Callable[[Sequence[str]], None], is_result: bool, results: str
    ) -> None:
        row = [*self._outer, self._inner]
        statements(row)
        if results:
            self._line(f"{results} = {self._names[self.kernel.result]};")
        elif is_result:
            self._store(self._names[self.kernel.result], row)

    def _open(self, text: str) -> None:
        self._line(text)
        self._depth += 1

    def _close(self) -> None:
        self._depth -= 1
        self._line("}")

    def _vector_element(self, index: int, row: Sequence[str]) -> str | None:
        return super()._vector_element(index, row) if row else None

    def _compute(self, required: list[int], known: set[int], row: Sequence[str] = ()) -> None:
        """As in `RowWriter`, with the costly value in registers instead of the output."""
        outer = self._cached_op
        if not row or not self.steps or outer not in self._needed(required, known):
            Writer._compute(self, required, known, row)
            return
        if self._is_cached:
            self._names[outer] = f"v{outer}"
            self._line(f"const {msl_name(self.ops[outer].dtype)} v{outer} = k{outer}[s][e];")
            known.add(outer)
        Writer._compute(self, required, known, row)
        if not self._is_cached:
            self._line(f"k{outer}[s][e] = v{outer};")
            self._is_cached = True

    def _loads_of(self, required: list[int], known: set[int]) -> list[int]:
        needed = self._needed(required, known)
        if self._is_cached and self._cached_op in needed:
            needed = self._needed(required, known | {self._cached_op})
        return sorted(index for index in needed if self.ops[index].kind == "load")

    # -- results

    def _write_row(self, known: set[int]) -> None:
        required = [self.kernel.result]
        fours = [] if self.steps else self._loads_of(required, known)
        self._for_each_element(
            lambda row: self._compute(required, set(known), row), fours, is_result=True
        )

    def _reduce(self, reductions: list[int], known: set[int]) -> None:
        searches = [index for index in reductions if self._is_search(index)]
        for index in reductions:
            self._names[index] = f"v{index}"
            self._open_accumulators(index, index in searches)
        args = {index: self.ops[index].args[0] for index in reductions}
        required = [self.ops[a].args[0] if k in searches else a for k, a in args.items()]

        def statements(row: Sequence[str]) -> None:
            self._compute(required, set(known), row)
            for index, arg in args.items():
                if index in searches:
                    self._look_at(index, self._names[self.ops[arg].args[0]], row[0], "[e]")
                    continue
                partial = f"partial{index}[e]"
                self._line(f"{partial} = {self._combine(index, partial, self._names[arg])};")

        self._for_each_element(statements, [] if self.steps else self._loads_of(required, known))
        for index in reductions:
            self._combine_accumulators(index, index in searches)
        self._combine_lanes(reductions, LANES)
        if self.threads > LANES:
            self._combine_simdgroups(reductions)
        known |= set(reductions)

    def _open_accumulators(self, index: int, is_search: bool) -> None:
        """Declare one accumulator per element of a vector: they do not wait for each other."""
        if is_search:
            value, least = self._least(index)
            first = f"first + e{f' * {self.threads}' if not self._packed else ''}"
            self._line(f"{value} best{index}[{VECTOR_WIDTH}];")
            self._line(f"uint best_index{index}[{VECTOR_WIDTH}];")
            inits = [f"best{index}[e] = {least};", f"best_index{index}[e] = {first};"]
        else:
            self._line(f"{msl_name(self.ops[index].dtype)} partial{index}[{VECTOR_WIDTH}];")
            inits = [f"partial{index}[e] = {self._identity(index)};"]
        self._line(UNROLLED)
        self._line(f"for (ushort e = 0; e < {VECTOR_WIDTH}; ++e) {{")
        for init in inits:
            self._line(f"  {init}")
        self._line("}")

    def _combine_accumulators(self, index: int, is_search: bool) -> None:
        type_ = msl_name(self.ops[index].dtype)
        if is_search:
            self._line(f"{type_} partial{index}[{VECTOR_WIDTH}];")
            self._line(UNROLLED)
            self._line(f"for (ushort e = 0; e < {VECTOR_WIDTH}; ++e) {{")
            self._line(f"  partial{index}[e] = {self._indexed_value(index, '[e]')};")
            self._line("}")
        pairs = [
            self._combine(index, f"partial{index}[{e}]", f"partial{index}[{e + 2}]") for e in (0, 1)
        ]
        self._line(f"const {type_} even{index} = {pairs[0]}, odd{index} = {pairs[1]};")
        both = self._combine(index, f"even{index}", f"odd{index}")
        self._line(f"{type_} v{index} = {both};")

    def _combine_simdgroups(self, reductions: list[int]) -> None:
        simdgroups = self.threads // LANES
        for index in reductions:
            type_ = msl_name(self.ops[index].dtype)
            self._line(f"threadgroup {type_} simdgroup_results{index}[{simdgroups}];")
        self._line(f"if (at.x % {LANES} == 0) {{")
        for index in reductions:
            self._line(f"  simdgroup_results{index}[at.x / {LANES}] = v{index};")
        self._line("}")
        self._line("threadgroup_barrier(mem_flags::mem_threadgroup);")
        for index in reductions:
            self._line(f"v{index} = simdgroup_results{index}[at.x % {simdgroups}];")
        self._combine_lanes(reductions, simdgroups)


def _power(count: float, max_threads: int) -> int:
    """The next power of two, as a number of threads that reduce a row."""
    return min(max_threads, max(LANES, 1 << (math.ceil(count) - 1).bit_length()))
