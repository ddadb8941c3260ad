"""Statements of kernels with reductions: loops over a row, by a simdgroup or by one thread."""

from __future__ import annotations

import math
from collections.abc import Sequence

from metalloid.arrays.access import LANES, RESULT
from metalloid.arrays.ops import REDUCTIONS
from metalloid.arrays.text import Writer
from metalloid.arrays.types import kind_of, msl_name
from metalloid.runtime.program import Size

#: Elements of a row whose sum is one term of the row's sum: rounding errors do not pile up.
_BLOCK = {"row": 4096, "column": 128}
#: What takes as long as this many additions is read again rather than computed again.
_WORTH_KEEPING = 10


class RowWriter(Writer):
    """Writes the statements of a kernel that reduces rows, and of what it makes of the results."""

    def _body(self) -> None:
        """Loops over the row, one for each set of reductions that wait for the same others."""
        depth = [0] * len(self.entries)
        for place, entry in enumerate(self.entries):
            below = max((depth[arg] for arg in entry.args), default=0)
            depth[place] = below + (entry.kind == "reduce")
        reductions = [k for k, entry in enumerate(self.entries) if entry.kind == "reduce"]
        known: set[int] = set()
        self._kept, self._is_kept = self._to_keep(reductions), False
        self._row_head()
        for level in range(1, max(depth, default=0) + 1):
            self._invariants(depth, level - 1, known)
            self._reduce([k for k in reductions if depth[k] == level], known)
        self._invariants(depth, max(depth, default=0), known)
        result = self.kernel.result
        if self.kernel.is_by_element:
            self._write_row(known)
        elif self.axes.form == "row":
            self._line("if (at.x == 0) {")
            self._depth += 1
            self._store(self._names[result])
            self._depth -= 1
            self._line("}")
        else:
            self._store(self._names[result])

    def launch(self) -> tuple[Size, Size | None]:
        """See `Writer.launch`."""
        kept = self.axes.kept
        if self.axes.form != "row":
            return super().launch()
        return (LANES, kept[-1] if kept else 1, math.prod(kept[:-1])), (LANES, 1, 1)

    def _write_row(self, known: set[int]) -> None:
        """The result at every place of the row."""
        row = self._open_loops(blocked=False)
        self._compute([self.kernel.result], set(known), row)
        self._store(self._names[self.kernel.result], row)
        self._close_loops()

    def _to_keep(self, reductions: list[int]) -> int:
        """The costliest value that a reduction and the result both need; -1 if there is none.

        It waits where the result will be: each thread reads again only what it wrote itself.
        """
        if not self.kernel.is_by_element:
            return -1
        known = set(reductions)
        reduced = self._needed((self.entries[k].args[0] for k in reductions), known)
        dtype = self.entries[self.kernel.result].dtype
        costs = {}
        for place in reduced & self._needed([self.kernel.result], known):
            entry = self.entries[place]
            if entry.kind == "map" and entry.varies and entry.dtype == dtype:
                below = (self.entries[k] for k in self._needed([place], known))
                costs[place] = sum(e.data.cost for e in below if e.kind == "map" and e.varies)
        costliest = max(costs, key=costs.__getitem__, default=-1)
        return costliest if costs.get(costliest, 0) >= _WORTH_KEEPING else -1

    def _compute(self, wanted: list[int], known: set[int], row: Sequence[str] = ()) -> None:
        kept = self._kept
        if not row or kept not in self._needed(wanted, known):
            super()._compute(wanted, known, row)
            return
        at = f"{self.axes.accesses[RESULT].pointer}[{self._index(RESULT, row)}]"
        if self._is_kept:
            self._names[kept] = f"v{kept}"
            self._line(f"const {msl_name(self.entries[kept].dtype)} v{kept} = {at};")
            known.add(kept)
        super()._compute(wanted, known, row)
        if not self._is_kept:
            self._line(f"{at} = v{kept};")
            self._is_kept = True

    def _row_head(self) -> None:
        if not self.kernel.chunk:
            extent = self._member("row0", "uint", "I", self.axes.row[0])
            self._line(f"const uint row_end = {extent};")
            return
        extent = self._member("row0", "ulong", "Q", self.axes.row[0])
        chunk = self._member("chunk", "ulong", "Q", self.kernel.chunk)
        rest = f"{extent} - {self._places[0]} * {chunk}"
        self._line(f"const uint row_end = uint(min({chunk}, {rest}));")

    def _invariants(self, depth: list[int], level: int, known: set[int]) -> None:
        """What is the same for the whole row, as soon as it can be computed."""
        wanted = [
            k
            for k, entry in enumerate(self.entries)
            if not entry.varies and depth[k] <= level and entry.kind != "reduce"
        ]
        self._compute([k for k in wanted if all(self._is_known(a, known) for a in
                                                self.entries[k].args)], known)  # fmt: skip

    def _is_known(self, place: int, known: set[int]) -> bool:
        entry = self.entries[place]
        if place in known:
            return True
        return entry.kind != "reduce" and not entry.varies

    def _reduce(self, reductions: list[int], known: set[int]) -> None:
        """One loop over the row for reductions that do not need each other."""
        searches = [place for place in reductions if self._is_search(place)]
        for place in reductions:
            self._names[place] = f"v{place}"
            if place in searches:
                self._open_search(place)
            else:
                self._start(place, f"v{place}")
        blocked = self._is_blocked(reductions)
        if blocked:
            self._open_block([place for place in reductions if place not in searches])
        row = self._open_loops(blocked)
        args = {place: self.entries[place].args[0] for place in reductions}
        wanted = [self.entries[a].args[0] if k in searches else a for k, a in args.items()]
        self._compute(wanted, set(known), row)
        for place, arg in args.items():
            if place in searches:
                self._look_at(place, self._names[self.entries[arg].args[0]], row[0])
                continue
            into = f"part{place}" if blocked else f"v{place}"
            self._line(f"{into} = {self._combine(place, into, self._names[arg])};")
        self._close_loops()
        if blocked:
            for place in reductions:
                if place not in searches:
                    self._line(f"v{place} = {self._combine(place, f'v{place}', f'part{place}')};")
            self._depth -= 1
            self._line("}")
        for place in searches:
            self._close_search(place)
        if self.axes.form == "row":
            self._combine_lanes(reductions, LANES)
        known |= set(reductions)

    def _combine_lanes(self, reductions: list[int], lanes: int) -> None:
        """What so many lanes beside each other have, for all of them."""
        self._line(f"for (ushort distance = {lanes // 2}; distance > 0; distance /= 2) {{")
        self._depth += 1
        for place in reductions:
            other = f"numpy::from_lane(v{place}, distance)"
            self._line(f"v{place} = {self._combine(place, f'v{place}', other)};")
        self._depth -= 1
        self._line("}")

    # -- searches: a lane counts places in 32 bits, and meets none that is lower than its last

    def _is_search(self, place: int) -> bool:
        """Whether a reduction looks for a value whose place is that in the row."""
        pairs = self.entries[self.entries[place].args[0]]
        if not self.entries[place].dtype.names or pairs.kind != "map" or len(self.axes.row) > 1:
            return False
        where = pairs.args[1]
        return self.entries[where].kind == "count" and self.axes.accesses[where].row == (1,)

    def _open_search(self, place: int) -> None:
        value, least = self._least(place)
        first = "at.x" if self.axes.form == "row" else "0"
        self._line(f"{value} best{place} = {least};")
        self._line(f"uint found{place} = {first};")

    def _least(self, place: int) -> tuple[str, str]:
        """The type of what is searched for, and where a search begins."""
        entry = self.entries[place]
        value = msl_name(entry.dtype["value"])
        return value, REDUCTIONS[entry.data].least.format(V=value)

    def _look_at(self, place: int, value: str, at: str, of: str = "") -> None:
        best, found = f"best{place}{of}", f"found{place}{of}"
        text = REDUCTIONS[self.entries[place].data].is_better.format(value, best)
        self._line(f"const bool is_better{place} = {text};")
        self._line(f"{best} = is_better{place} ? {value} : {best};")
        self._line(f"{found} = is_better{place} ? {at} : {found};")

    def _close_search(self, place: int) -> None:
        type_ = msl_name(self.entries[place].dtype)
        self._line(f"{type_} v{place} = {self._found(place)};")

    def _found(self, place: int, of: str = "") -> str:
        """The value and its place in the array; a lane that has seen nothing has none."""
        entry = self.entries[place]
        where = self.entries[entry.args[0]].args[1]
        found = f"found{place}{of}"
        count = f"long({self.axes.accesses[where].pointer}) + long({self._index(where, [found])})"
        return f"{msl_name(entry.dtype)}(best{place}{of}, {found} < row_end ? {count} : LONG_MAX)"

    def _start(self, place: int, name: str) -> None:
        """A variable with what changes nothing."""
        self._line(f"{msl_name(self.entries[place].dtype)} {name} = {self._identity(place)};")

    def _identity(self, place: int) -> str:
        dtype = self.entries[place].dtype
        type_ = msl_name(dtype)
        value = msl_name(dtype["value"]) if dtype.names else type_
        return REDUCTIONS[self.entries[place].data].identity.format(T=type_, V=value)

    def _combine(self, place: int, a: str, b: str) -> str:
        return REDUCTIONS[self.entries[place].data].text.format(a, b)

    def _is_blocked(self, reductions: list[int]) -> bool:
        """Whether rounding errors need the row's blocks to be added up on their own."""
        rounds = any(
            self.entries[k].data in ("sum", "prod") and kind_of(self.entries[k].dtype) in "fc"
            for k in reductions
        )
        length = self.kernel.chunk or self.axes.row[0]
        return rounds and (len(self.axes.row) > 1 or length > _BLOCK[self.axes.form])

    def _open_block(self, reductions: list[int]) -> None:
        if len(self.axes.row) > 1:
            self._line("for (uint j0 = 0; j0 < row_end; ++j0) {")
        else:
            block = _BLOCK[self.axes.form]
            self._line(f"for (uint block = 0; block < row_end; block += {block}) {{")
            self._line(f"  const uint block_end = min(block + {block}, row_end);")
        self._depth += 1
        for place in reductions:
            self._start(place, f"part{place}")

    def _open_loops(self, blocked: bool) -> list[str]:
        """Loops over the row; the names of its places."""
        names = [f"j{axis}" for axis in range(len(self.axes.row))]
        self._loops = 0
        for axis, name in enumerate(names):
            is_inner = axis == len(names) - 1
            first = "0"
            if axis == 0 and blocked and len(names) > 1:
                continue  # the block's own loop
            end = "row_end" if axis == 0 else self._extent_of_row(axis)
            if blocked and len(names) == 1:
                first, end = "block", "block_end"
            if is_inner and self.axes.form == "row":
                self._open_loop_of_lanes(name, first, end)
                continue
            self._line(f"for (uint {name} = {first}; {name} < {end}; ++{name}) {{")
            self._depth += 1
            self._loops += 1
        return names

    def _open_loop_of_lanes(self, name: str, first: str, end: str) -> None:
        """All lanes go round together, and in the last round some are idle."""
        self._line(f"for (uint lanes = {first}; lanes < {end}; lanes += {LANES}) {{")
        self._line(f"  const uint {name} = lanes + at.x;")
        self._line(f"  if ({name} < {end}) {{")
        self._depth += 2
        self._loops += 2

    def _extent_of_row(self, axis: int) -> str:
        name = f"row{axis}"
        if not any(member.name == name for member in self.members):
            self._member(name, "uint", "I", self.axes.row[axis])
        return f"given.{name}"

    def _close_loops(self) -> None:
        for _ in range(self._loops):
            self._depth -= 1
            self._line("}")
