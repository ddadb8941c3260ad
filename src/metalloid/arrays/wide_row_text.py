"""Statements of kernels with reductions for devices with many thin threads.

A simdgroup or a threadgroup shares a row; neighbours read neighbours, four elements each. A row
that is needed more than once stays in registers, if it fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from metalloid.arrays.access import BUNDLE, LANES, RESULT, Axes
from metalloid.arrays.row_text import RowWriter
from metalloid.arrays.steps import FusedKernel, Source
from metalloid.arrays.text import Writer
from metalloid.arrays.types import msl_name
from metalloid.arrays.wide_text import UNROLLED
from metalloid.runtime.device import MAX_THREADS_PER_THREADGROUP, Size

#: Threads of a threadgroup, unless there are few rows or they are long.
_THREADS = 256
#: Rows that leave a device idle if each has so few threads.
_FEW_ROWS = 512
#: Elements of a row that each thread should have at least.
_EACH = 16
#: Registers of a thread for what it keeps of a row.
_MOST_KEPT = 64
#: Operations that are not worth repeating in the text of a loop.
_MANY_ENTRIES = 16


class WideRowWriter(RowWriter):
    """Writes the statements of a kernel that reduces rows of one axis.

    Attributes
    ----------
    threads : int
        That share a row.
    steps : int
        Bundles of a thread, if the row stays in registers; 0 if it is read when it is needed.
    """

    def __init__(self, kernel: FusedKernel, sources: Sequence[Source], axes: Axes,
                 packed: frozenset[int]) -> None:  # fmt: skip
        super().__init__(kernel, sources, axes)
        self.length = kernel.chunk or axes.row[0]
        is_ragged = self.length % BUNDLE != 0 or axes.row[0] % BUNDLE != 0
        loads = [k for k, e in enumerate(self.entries) if e.kind == "load" and e.varies]
        self._held = loads if self._is_read_again(loads) else []
        self.threads, self.steps = self._shape()
        if not self.steps:
            self._held = []
        # Rows in registers have no loop for what is left over.
        self._packed = frozenset() if self.steps and is_ragged else packed
        self._has_rest = is_ragged if self._packed else True
        self._parts: dict[int, str] = {}

    def _is_read_again(self, loads: list[int]) -> bool:
        """Whether a row is gone through more than once."""
        reductions = [k for k, entry in enumerate(self.entries) if entry.kind == "reduce"]
        several = any(self._needed([k], set()) & set(reductions) != {k} for k in reductions)
        return bool(loads) and (self.kernel.is_by_element or several)

    def _shape(self) -> tuple[int, int]:
        held = [self.entries[k].dtype.itemsize for k in self._held]
        rows = math.prod(self.axes.kept)
        most = _THREADS if rows >= _FEW_ROWS else MAX_THREADS_PER_THREADGROUP
        if held:
            held.append(max(held))  # what is costly is kept too
            for each in (4 * BUNDLE, 8 * BUNDLE):
                each = each // BUNDLE if len(held) > 3 else each
                threads = _power(self.length / each, MAX_THREADS_PER_THREADGROUP)
                steps = -(-self.length // (threads * BUNDLE))
                if steps * BUNDLE * sum(held) <= 4 * _MOST_KEPT:
                    return threads, steps
        return _power(self.length / _EACH, most), 0

    def launch(self) -> tuple[Size, Size | None]:
        """See `Writer.launch`."""
        kept = self.axes.kept
        rows = _THREADS // LANES if self.threads == LANES else 1
        return (
            (self.threads, kept[-1] if kept else 1, math.prod(kept[:-1])),
            (self.threads, rows, 1),
        )

    # -- what a thread takes of a row

    @property
    def _apart(self) -> tuple[int, int]:
        """Between the first elements of neighbours, and between elements of a thread."""
        return (BUNDLE, 1) if self._packed else (1, self.threads)

    def _row_head(self) -> None:
        super()._row_head()
        apart, _ = self._apart
        self._line(f"const uint own = at.x{f' * {apart}' if apart > 1 else ''};")
        if not self.steps:
            if self._has_rest:
                size = BUNDLE if self._packed else BUNDLE * self.threads
                self._line(f"const uint whole = row_end - row_end % {size};")
            return
        for place in self._held:
            self._line(f"{msl_name(self.entries[place].dtype)} w{place}[{self.steps}][{BUNDLE}];")
        if self._kept >= 0:
            type_ = msl_name(self.entries[self._kept].dtype)
            self._line(f"{type_} k{self._kept}[{self.steps}][{BUNDLE}];")
        self._parts = {}
        self._go_through(self._hold, fours=self._held)
        self._parts = {place: f"w{place}[s][e]" for place in self._held}

    def _hold(self, row: Sequence[str]) -> None:
        for place in self._held:
            self._value(place, row)
            self._line(f"w{place}[s][e] = v{place};")

    def _go_through(self, statements: Callable[[Sequence[str]], None], fours: Sequence[int] = (),
                    is_result: bool = False) -> None:  # fmt: skip
        """Statements for each element of a thread: `e` is its place in the bundle."""
        fours = [place for place in fours if place in self._packed]
        writes = is_result and RESULT in self._packed
        stride = BUNDLE * self.threads
        if self.steps:
            self._line(UNROLLED)
            self._line(f"for (uint s = 0; s < {self.steps}; ++s) {{")
            self._line(f"  const uint j = s * {stride} + own;")
            if self._packed:
                self._line("  if (j < row_end) {")
        else:
            many = len(self.entries) > _MANY_ENTRIES
            self._line(
                f"#pragma clang loop unroll_count({1 if many else 4 if self._packed else 2})"
            )
            end = "whole" if self._has_rest else "row_end"
            self._line(f"for (uint j = own; j < {end}; j += {stride}) {{")
        opened = 1 + bool(self.steps and self._packed)
        self._depth += opened
        outer = self._parts
        self._parts = dict(outer)
        for place in fours:
            type_ = msl_name(self.entries[place].dtype)
            pointer = self.axes.accesses[place].pointer
            self._line(f"const numpy::four<{type_}> q{place} = numpy::read_four({pointer} + j);")
            self._parts[place] = f"q{place}[e]"
        if writes:
            type_ = msl_name(self.entries[self.kernel.result].dtype)
            self._line(f"numpy::four<{type_}> results;")
        self._line(UNROLLED)
        self._line(f"for (ushort e = 0; e < {BUNDLE}; ++e) {{")
        apart = self._apart[1]
        self._line(f"  const uint j0 = j + e{f' * {apart}' if apart > 1 else ''};")
        guarded = bool(self.steps and not self._packed)
        if guarded:
            self._line("  if (j0 < row_end) {")
        self._depth += 1 + guarded
        statements(["j0"])
        if is_result:
            name = self._names[self.kernel.result]
            if writes:
                self._line(f"results[e] = {name};")
            else:
                self._store(name, ["j0"])
        for _ in range(1 + guarded):
            self._close()
        if writes:
            self._line(f"numpy::write_four({self.axes.accesses[RESULT].pointer} + j, results);")
        for _ in range(opened):
            self._close()
        self._parts = outer
        if not self.steps and self._has_rest:
            self._line(f"for (uint j0 = whole + at.x; j0 < row_end; j0 += {self.threads}) {{")
            self._line("  constexpr ushort e = 0;")
            self._depth += 1
            statements(["j0"])
            if is_result:
                self._store(self._names[self.kernel.result], ["j0"])
            self._close()

    def _close(self) -> None:
        self._depth -= 1
        self._line("}")

    def _value(self, place: int, row: Sequence[str]) -> None:
        part = self._parts.get(place)
        if part is None or not row:
            super()._value(place, row)
            return
        self._names[place] = f"v{place}"
        self._line(f"const {msl_name(self.entries[place].dtype)} v{place} = {part};")

    def _compute(self, wanted: list[int], known: set[int], row: Sequence[str] = ()) -> None:
        """As it is kept in registers, not where the result will be."""
        kept = self._kept
        if not row or not self.steps or kept not in self._needed(wanted, known):
            Writer._compute(self, wanted, known, row)
            return
        if self._is_kept:
            self._names[kept] = f"v{kept}"
            self._line(f"const {msl_name(self.entries[kept].dtype)} v{kept} = k{kept}[s][e];")
            known.add(kept)
        Writer._compute(self, wanted, known, row)
        if not self._is_kept:
            self._line(f"k{kept}[s][e] = v{kept};")
            self._is_kept = True

    def _loads_of(self, wanted: list[int], known: set[int]) -> list[int]:
        needed = self._needed(wanted, known)
        if self._is_kept and self._kept in needed:
            needed = self._needed(wanted, known | {self._kept})
        return sorted(place for place in needed if self.entries[place].kind == "load")

    # -- results

    def _write_row(self, known: set[int]) -> None:
        wanted = [self.kernel.result]
        fours = [] if self.steps else self._loads_of(wanted, known)
        self._go_through(lambda row: self._compute(wanted, set(known), row), fours, is_result=True)

    def _reduce(self, reductions: list[int], known: set[int]) -> None:
        searches = [place for place in reductions if self._is_search(place)]
        for place in reductions:
            self._names[place] = f"v{place}"
            self._open_parts(place, place in searches)
        args = {place: self.entries[place].args[0] for place in reductions}
        wanted = [self.entries[a].args[0] if k in searches else a for k, a in args.items()]

        def statements(row: Sequence[str]) -> None:
            self._compute(wanted, set(known), row)
            for place, arg in args.items():
                if place in searches:
                    self._look_at(place, self._names[self.entries[arg].args[0]], row[0], "[e]")
                    continue
                part = f"part{place}[e]"
                self._line(f"{part} = {self._combine(place, part, self._names[arg])};")

        self._go_through(statements, [] if self.steps else self._loads_of(wanted, known))
        for place in reductions:
            self._combine_parts(place, place in searches)
        self._combine_lanes(reductions, LANES)
        if self.threads > LANES:
            self._combine_simdgroups(reductions)
        known |= set(reductions)

    def _open_parts(self, place: int, is_search: bool) -> None:
        """What a thread has found, by place in a bundle: sums of their own do not wait."""
        if is_search:
            value, least = self._least(place)
            first = f"own + e{f' * {self.threads}' if not self._packed else ''}"
            self._line(f"{value} best{place}[{BUNDLE}];")
            self._line(f"uint found{place}[{BUNDLE}];")
            inits = [f"best{place}[e] = {least};", f"found{place}[e] = {first};"]
        else:
            self._line(f"{msl_name(self.entries[place].dtype)} part{place}[{BUNDLE}];")
            inits = [f"part{place}[e] = {self._identity(place)};"]
        self._line(UNROLLED)
        self._line(f"for (ushort e = 0; e < {BUNDLE}; ++e) {{")
        for init in inits:
            self._line(f"  {init}")
        self._line("}")

    def _combine_parts(self, place: int, is_search: bool) -> None:
        type_ = msl_name(self.entries[place].dtype)
        if is_search:
            self._line(f"{type_} part{place}[{BUNDLE}];")
            self._line(UNROLLED)
            self._line(f"for (ushort e = 0; e < {BUNDLE}; ++e) {{")
            self._line(f"  part{place}[e] = {self._found(place, '[e]')};")
            self._line("}")
        pairs = [self._combine(place, f"part{place}[{e}]", f"part{place}[{e + 2}]") for e in (0, 1)]
        self._line(f"const {type_} even{place} = {pairs[0]}, odd{place} = {pairs[1]};")
        both = self._combine(place, f"even{place}", f"odd{place}")
        self._line(f"{type_} v{place} = {both};")

    def _combine_simdgroups(self, reductions: list[int]) -> None:
        simdgroups = self.threads // LANES
        for place in reductions:
            type_ = msl_name(self.entries[place].dtype)
            self._line(f"threadgroup {type_} of_simdgroups{place}[{simdgroups}];")
        self._line(f"if (at.x % {LANES} == 0) {{")
        for place in reductions:
            self._line(f"  of_simdgroups{place}[at.x / {LANES}] = v{place};")
        self._line("}")
        self._line("threadgroup_barrier(mem_flags::mem_threadgroup);")
        for place in reductions:
            self._line(f"v{place} = of_simdgroups{place}[at.x % {simdgroups}];")
        self._combine_lanes(reductions, simdgroups)


def _power(count: float, most: int) -> int:
    """The power of 2 from `count` on, of threads that share a row."""
    return min(most, max(LANES, 1 << (math.ceil(count) - 1).bit_length()))
