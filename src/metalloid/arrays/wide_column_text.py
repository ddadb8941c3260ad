"""Statements of reductions down columns for devices with many thin threads: four columns each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from metalloid.arrays.access import BUNDLE, RESULT, Axes
from metalloid.arrays.row_text import RowWriter
from metalloid.arrays.steps import FusedKernel, Source
from metalloid.arrays.text import NARROW
from metalloid.arrays.types import msl_name
from metalloid.arrays.wide_text import UNROLLED
from metalloid.runtime.program import Size


def has_wide_columns(kernel: FusedKernel, axes: Axes, packed: frozenset[int]) -> bool:
    """Whether four columns at a time suit a kernel: all it does is to go down them once."""
    reductions = [k for k, entry in enumerate(kernel.entries) if entry.kind == "reduce"]
    below = {arg for k in reductions for arg in _all_below(kernel, k)}
    return (
        bool(packed)
        and axes.form == "column"
        and len(axes.row) == 1
        and axes.kept[-1] >= NARROW
        and axes.kept[-1] % BUNDLE == 0
        and not kernel.is_by_element
        and not below & set(reductions)
    )


def _all_below(kernel: FusedKernel, place: int) -> set[int]:
    found: set[int] = set()
    pending = list(kernel.entries[place].args)
    while pending:
        at = pending.pop()
        if at not in found:
            found.add(at)
            pending += kernel.entries[at].args
    return found


class WideColumnWriter(RowWriter):
    """Writes the statements of a kernel that reduces columns."""

    def __init__(self, kernel: FusedKernel, sources: Sequence[Source], axes: Axes,
                 packed: frozenset[int]) -> None:  # fmt: skip
        super().__init__(kernel, sources, axes)
        self._packed = packed
        self._parts: dict[int, str] = {}

    def launch(self) -> tuple[Size, Size | None]:
        """See `Writer.launch`."""
        (inner, *outer), group = super().launch()
        return (inner // BUNDLE, outer[0], outer[1]), group

    def _value(self, place: int, row: Sequence[str]) -> None:
        part = self._parts.get(place)
        if part is None:
            super()._value(place, row)
            return
        self._names[place] = f"v{place}"
        self._line(f"const {msl_name(self.entries[place].dtype)} v{place} = {part};")

    def _body(self) -> None:
        self._line(f"const uint first = {self._places[-1]} * {BUNDLE};")
        self._places[-1] = "i"
        self._kept = -1
        self._row_head()
        reductions = [k for k, entry in enumerate(self.entries) if entry.kind == "reduce"]
        searches = [place for place in reductions if self._is_search(place)]
        sums = [place for place in reductions if place not in searches]
        for place in searches:
            self._line(f"{self._least(place)[0]} best{place}[{BUNDLE}];")
            self._line(f"uint found{place}[{BUNDLE}];")
        self._declare(sums, "sum")
        self._each(lambda: self._begin(searches, sums))
        blocked = bool(sums) and self._is_blocked(reductions)
        if blocked:
            self._open_block([])
            self._declare(sums, "part")
            self._each(lambda: self._set(sums, "part"))
        self._go_down(searches, sums, blocked)
        if blocked:
            self._each(lambda: self._add(sums, "sum", "part"))
            self._depth -= 1
            self._line("}")
        self._finish(searches, sums)

    def _declare(self, places: Sequence[int], name: str) -> None:
        for place in places:
            self._line(f"{msl_name(self.entries[place].dtype)} {name}{place}[{BUNDLE}];")

    def _each(self, statements: Callable[[], None]) -> None:
        """Statements for each of the four columns."""
        self._line(UNROLLED)
        self._line(f"for (ushort e = 0; e < {BUNDLE}; ++e) {{")
        self._depth += 1
        statements()
        self._depth -= 1
        self._line("}")

    def _begin(self, searches: Sequence[int], sums: Sequence[int]) -> None:
        for place in searches:
            self._line(f"best{place}[e] = {self._least(place)[1]};")
            self._line(f"found{place}[e] = 0;")
        self._set(sums, "sum")

    def _set(self, places: Sequence[int], name: str) -> None:
        for place in places:
            self._line(f"{name}{place}[e] = {self._identity(place)};")

    def _add(self, places: Sequence[int], to: str, value: str) -> None:
        for place in places:
            combined = self._combine(place, f"{to}{place}[e]", f"{value}{place}[e]")
            self._line(f"{to}{place}[e] = {combined};")

    def _go_down(self, searches: Sequence[int], sums: Sequence[int], blocked: bool) -> None:
        args = {place: self.entries[place].args[0] for place in (*searches, *sums)}
        values = {k: self.entries[a].args[0] if k in searches else a for k, a in args.items()}
        wanted = list(values.values())
        needed = self._needed(wanted, set())
        first, end = ("block", "block_end") if blocked else ("0", "row_end")
        self._line("#pragma clang loop unroll_count(4)")
        self._line(f"for (uint j0 = {first}; j0 < {end}; ++j0) {{")
        self._depth += 1
        self._places[-1] = "first"
        for place in sorted(needed & self._packed):
            type_ = msl_name(self.entries[place].dtype)
            at = f"{self.axes.accesses[place].pointer} + {self._index(place, ['j0'])}"
            self._line(f"const numpy::four<{type_}> q{place} = numpy::read_four({at});")
            self._parts[place] = f"q{place}[e]"
        self._places[-1] = "i"

        def statements() -> None:
            self._line("const uint i = first + e;")
            self._compute(wanted, set(), ["j0"])
            for place in searches:
                self._look_at(place, self._names[values[place]], "j0", "[e]")
            to = "part" if blocked else "sum"
            for place in sums:
                combined = self._combine(place, f"{to}{place}[e]", self._names[values[place]])
                self._line(f"{to}{place}[e] = {combined};")

        self._each(statements)
        self._parts.clear()
        self._depth -= 1
        self._line("}")

    def _finish(self, searches: Sequence[int], sums: Sequence[int]) -> None:
        """What is made of the four results."""
        result = self.kernel.result
        writes = RESULT in self._packed
        if writes:
            self._line(f"numpy::four<{msl_name(self.entries[result].dtype)}> results;")

        def statements() -> None:
            self._line("const uint i = first + e;")
            known = {*searches, *sums}
            for place in known:
                self._names[place] = f"v{place}"
                type_ = msl_name(self.entries[place].dtype)
                value = self._found(place, "[e]") if place in searches else f"sum{place}[e]"
                self._line(f"const {type_} v{place} = {value};")
            self._compute([result], known)
            if writes:
                self._line(f"results[e] = {self._names[result]};")
            else:
                self._store(self._names[result])

        self._each(statements)
        if writes:
            self._line(f"numpy::write_four({self.axes.accesses[RESULT].pointer} + first, results);")
