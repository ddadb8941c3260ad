"""Statements of column reductions on SIMT devices: four columns per thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from metalloid.arrays.codegen.gpu_elementwise import UNROLLED, VectorWriter
from metalloid.arrays.codegen.reduction import RowWriter
from metalloid.arrays.ir.dtypes import msl_name
from metalloid.arrays.planning.loop_axes import NARROW, RESULT, VECTOR_WIDTH, Axes
from metalloid.arrays.planning.schedule import FusedKernel


def has_wide_columns(kernel: FusedKernel, axes: Axes, packed: frozenset[int]) -> bool:
    """Whether a kernel only reduces columns, in one pass, so that a thread can take four."""
    reductions = [k for k, op in enumerate(kernel.ops) if op.kind == "reduce"]
    below = {arg for k in reductions for arg in _operands_below(kernel, k)}
    return (
        bool(packed)
        and axes.form == "column"
        and len(axes.row) == 1
        and axes.outer[-1] >= NARROW
        and axes.outer[-1] % VECTOR_WIDTH == 0
        and not kernel.is_by_element
        and not below & set(reductions)
    )


def _operands_below(kernel: FusedKernel, index: int) -> set[int]:
    """Transitive operands of an operation."""
    below: set[int] = set()
    pending = list(kernel.ops[index].args)
    while pending:
        at = pending.pop()
        if at not in below:
            below.add(at)
            pending += kernel.ops[at].args
    return below


class WideColumnWriter(VectorWriter, RowWriter):
    """Writes the statements of a kernel that reduces columns."""

    def _body(self) -> None:
        self._line(f"const uint first = {self._indices[-1]} * {VECTOR_WIDTH};")
        self._indices[-1] = "i"
        self._cached_op = -1
        self._row_head()
        reductions = [k for k, op in enumerate(self.ops) if op.kind == "reduce"]
        searches = [index for index in reductions if self._is_search(index)]
        sums = [index for index in reductions if index not in searches]
        for index in searches:
            self._line(f"{self._least(index)[0]} best{index}[{VECTOR_WIDTH}];")
            self._line(f"uint best_index{index}[{VECTOR_WIDTH}];")
        self._declare(sums, "sum")
        self._each(lambda: self._begin(searches, sums))
        blocked = bool(sums) and self._is_blocked(reductions)
        if blocked:
            self._open_block([])
            self._declare(sums, "partial")
            self._each(lambda: self._set(sums, "partial"))
        self._reduce_columns(searches, sums, blocked)
        if blocked:
            self._each(lambda: self._add(sums, "sum", "partial"))
            self._depth -= 1
            self._line("}")
        self._finish(searches, sums)

    def _declare(self, indices: Sequence[int], name: str) -> None:
        for index in indices:
            self._line(f"{msl_name(self.ops[index].dtype)} {name}{index}[{VECTOR_WIDTH}];")

    def _each(self, statements: Callable[[], None]) -> None:
        """Write statements for each of the four columns."""
        self._line(UNROLLED)
        self._line(f"for (ushort e = 0; e < {VECTOR_WIDTH}; ++e) {{")
        self._depth += 1
        statements()
        self._depth -= 1
        self._line("}")

    def _begin(self, searches: Sequence[int], sums: Sequence[int]) -> None:
        for index in searches:
            self._line(f"best{index}[e] = {self._least(index)[1]};")
            self._line(f"best_index{index}[e] = 0;")
        self._set(sums, "sum")

    def _set(self, indices: Sequence[int], name: str) -> None:
        for index in indices:
            self._line(f"{name}{index}[e] = {self._identity(index)};")

    def _add(self, indices: Sequence[int], to: str, value: str) -> None:
        for index in indices:
            combined = self._combine(index, f"{to}{index}[e]", f"{value}{index}[e]")
            self._line(f"{to}{index}[e] = {combined};")

    def _reduce_columns(self, searches: Sequence[int], sums: Sequence[int], blocked: bool) -> None:
        args = {index: self.ops[index].args[0] for index in (*searches, *sums)}
        values = {k: self.ops[a].args[0] if k in searches else a for k, a in args.items()}
        required = list(values.values())
        needed = self._needed(required, set())
        first, end = ("block", "block_end") if blocked else ("0", "row_end")
        self._line("#pragma clang loop unroll_count(4)")
        self._line(f"for (uint j0 = {first}; j0 < {end}; ++j0) {{")
        self._depth += 1
        self._indices[-1] = "first"
        for index in sorted(needed & self._packed):
            type_ = msl_name(self.ops[index].dtype)
            at = f"{self.axes.accesses[index].pointer} + {self._index(index, ['j0'])}"
            self._line(f"const numpy::four<{type_}> q{index} = numpy::read_four({at});")
            self._vector_elements[index] = f"q{index}[e]"
        self._indices[-1] = "i"

        def statements() -> None:
            self._line("const uint i = first + e;")
            self._compute(required, set(), ["j0"])
            for index in searches:
                self._look_at(index, self._names[values[index]], "j0", "[e]")
            to = "partial" if blocked else "sum"
            for index in sums:
                combined = self._combine(index, f"{to}{index}[e]", self._names[values[index]])
                self._line(f"{to}{index}[e] = {combined};")

        self._each(statements)
        self._vector_elements.clear()
        self._depth -= 1
        self._line("}")

    def _finish(self, searches: Sequence[int], sums: Sequence[int]) -> None:
        """Compute and store the four results."""
        result = self.kernel.result
        writes = RESULT in self._packed
        if writes:
            self._line(f"numpy::four<{msl_name(self.ops[result].dtype)}> results;")

        def statements() -> None:
            self._line("const uint i = first + e;")
            known = {*searches, *sums}
            for index in known:
                self._names[index] = f"v{index}"
                type_ = msl_name(self.ops[index].dtype)
                value = self._indexed_value(index, "[e]") if index in searches else f"sum{index}[e]"
                self._line(f"const {type_} v{index} = {value};")
            self._compute([result], known)
            if writes:
                self._line(f"results[e] = {self._names[result]};")
            else:
                self._store(self._names[result])

        self._each(statements)
        if writes:
            self._line(f"numpy::write_four({self.axes.accesses[RESULT].pointer} + first, results);")
