"""Statements of reductions: loops over a row, by a simdgroup or by one thread."""

from __future__ import annotations

import math
from collections.abc import Sequence

from metalloid.arrays.codegen.arg_reduction import ArgReductionWriter
from metalloid.arrays.ir.dtypes import kind_of, msl_name
from metalloid.arrays.ir.ops import REDUCTIONS
from metalloid.arrays.planning.loop_axes import LANES, MAX_UNBLOCKED, RESULT
from metalloid.runtime.launch.program import Size

#: Rows with several accumulators, and rows whose full iterations have no masks, are this long.
_MIN_SEARCHED, _MIN_FULL = 512, 128
#: Values of this cost, in additions, are reloaded rather than recomputed.
_WORTH_KEEPING = 10
_SEARCHES = ("argmax", "argmin")
_ORDERS = {"max": ">", "min": "<"}
_EXTREMES = ("nanmax", "nanmin", *_ORDERS, *_SEARCHES)


class RowWriter(ArgReductionWriter):
    """Writes the statements of a kernel that reduces rows and computes with the results."""

    #: Masked lanes take less time than gathers, except for pairs.
    narrow = 3
    #: Accumulators of a search for extremes in long rows: comparisons wait for each other.
    accumulators = 4

    def _body(self) -> None:
        """Write the loops over the row: one per level of dependent reductions."""
        depth = [0] * len(self.ops)
        for index, op in enumerate(self.ops):
            below = max((depth[arg] for arg in op.args), default=0)
            depth[index] = below + (op.kind == "reduce")
        reductions = [k for k, op in enumerate(self.ops) if op.kind == "reduce"]
        known: set[int] = set()
        self._cached_op, self._is_cached = self._choose_cached(reductions), False
        self._row_head()
        for level in range(1, max(depth, default=0) + 1):
            self._invariants(depth, level - 1, known)
            self._reduce([k for k in reductions if depth[k] == level], known)
        self._invariants(depth, max(depth, default=0), known)
        if self.kernel.is_by_element:
            self._write_row(known)
        elif self.axes.form == "row":
            self._line("if (at.x == 0) {")
            self._depth += 1
            self._store_outputs(known)
            self._depth -= 1
            self._line("}")
        else:
            self._store_outputs(known)

    def launch(self) -> tuple[Size, Size | None]:
        """See `Writer.launch`."""
        outer = self.axes.outer
        if self.axes.form != "row":
            return super().launch()
        return (LANES, outer[-1] if outer else 1, math.prod(outer[:-1])), (LANES, 1, 1)

    def _write_row(self, known: set[int]) -> None:
        """Store the result at each index of the row."""
        row = self._open_loops(blocked=False)
        self._compute([self.kernel.result], set(known), row)
        self._store(self._names[self.kernel.result], row)
        self._close_loops()

    def _choose_cached(self, reductions: list[int]) -> int:
        """The costliest value that both a reduction and the result need; -1 if there is none.

        It waits where the result will be: each thread reads again only what it wrote itself.
        """
        if not self.kernel.is_by_element:
            return -1
        known = set(reductions)
        reduced = self._needed((self.ops[k].args[0] for k in reductions), known)
        dtype = self.ops[self.kernel.result].dtype
        costs = {}
        for index in reduced & self._needed([self.kernel.result], known):
            op = self.ops[index]
            if op.kind == "elementwise" and op.varies and op.dtype == dtype:
                below = (self.ops[k] for k in self._needed([index], known))
                costs[index] = sum(
                    e.data.cost for e in below if e.kind == "elementwise" and e.varies
                )
        costliest = max(costs, key=costs.__getitem__, default=-1)
        return costliest if costs.get(costliest, 0) >= _WORTH_KEEPING else -1

    def _compute(self, required: list[int], known: set[int], row: Sequence[str] = ()) -> None:
        outer = self._cached_op
        if not row or outer not in self._needed(required, known):
            super()._compute(required, known, row)
            return
        at = f"{self.axes.accesses[RESULT].pointer}[{self._index(RESULT, row)}]"
        if self._is_cached:
            self._names[outer] = f"v{outer}"
            self._line(f"const {msl_name(self.ops[outer].dtype)} v{outer} = {at};")
            known.add(outer)
        super()._compute(required, known, row)
        if not self._is_cached:
            self._line(f"{at} = v{outer};")
            self._is_cached = True

    def _row_head(self) -> None:
        if not self.kernel.chunk:
            extent = self._member("row0", "uint", "I", self.axes.row[0])
            self._line(f"const uint row_end = {extent};")
            return
        extent = self._member("row0", "ulong", "Q", self.axes.row[0])
        chunk = self._member("chunk", "ulong", "Q", self.kernel.chunk)
        rest = f"{extent} - {self._indices[0]} * {chunk}"
        threads = self.kernel.interleave
        if threads == 1:
            self._line(f"const uint row_end = uint(min({chunk}, {rest}));")
            return
        # All threads that share a chunk run equally many iterations, and some of them one more.
        # They are along the first of the other axes.
        self._line(f"const uint rows = uint(min({chunk}, {rest}));")
        self._line(f"const uint row_end = rows / {threads};")
        thread = f"{self._indices[1]} / {self.axes.outer[1] // threads}"
        self._line(f"const bool has_more = {thread} < rows % {threads};")

    def _invariants(self, depth: list[int], level: int, known: set[int]) -> None:
        """Compute the values that are invariant along the row as soon as their operands exist."""
        required = [
            k
            for k, op in enumerate(self.ops)
            if not op.varies and depth[k] <= level and op.kind != "reduce"
        ]
        self._compute([k for k in required if all(self._is_known(a, known) for a in
                                                self.ops[k].args)], known)  # fmt: skip

    def _is_known(self, index: int, known: set[int]) -> bool:
        op = self.ops[index]
        if index in known:
            return True
        return op.kind != "reduce" and not op.varies

    def _reduce(self, reductions: list[int], known: set[int]) -> None:
        """Write one loop over the row for independent reductions."""
        searches = [index for index in reductions if self._is_search(index)]
        for index in reductions:
            self._names[index] = f"v{index}"
            if index in searches:
                self._open_search(index)
            else:
                self._start(index, f"v{index}")
        blocked = self._is_blocked(reductions)
        if blocked:
            self._open_block([index for index in reductions if index not in searches])
        more = self._accumulate_independently(reductions, searches, known)
        begin = f"unrolled_end{reductions[0]}" if more else "0"
        begin = self._accumulate_full(reductions, searches, known, blocked, begin)
        row = self._open_loops(blocked, begin)
        self._accumulate(reductions, searches, known, row, "partial" if blocked else "v")
        self._close_loops()
        if blocked:
            for index in reductions:
                if index not in searches:
                    self._line(
                        f"v{index} = {self._combine(index, f'v{index}', f'partial{index}')};"
                    )
            self._depth -= 1
            self._line("}")
        if self.kernel.interleave > 1:
            self._line("if (has_more) {")
            self._depth += 1
            self._accumulate(reductions, searches, known, ["row_end"], "v")
            self._depth -= 1
            self._line("}")
        for index in reductions:
            for of in more if index not in searches else ():
                self._line(f"v{index} = {self._combine(index, f'v{index}', f'v{index}{of}')};")
        for index in self._float_extremes(reductions) if more else ():
            nan = f"{msl_name(self.ops[index].dtype)}(NAN)"
            self._line(f"v{index} = has_nan{index} ? {nan} : v{index};")
        is_by_lanes = self.axes.form == "row"
        for index in searches:
            if is_by_lanes:
                self._combine_lanes_of_search(index, more)
            else:
                self._close_search(index)
        others = [index for index in reductions if index not in searches]
        if is_by_lanes and others:
            self._combine_lanes(others, LANES)
        known |= set(reductions)

    def _accumulate_independently(self, reductions: list[int], searches: list[int],
                                  known: set[int]) -> Sequence[str]:  # fmt: skip
        """Search most of a long row with several accumulators; the suffixes of the others."""
        length = self.kernel.chunk or self.axes.row[0]
        is_extreme = all(self.ops[k].data in _EXTREMES for k in reductions)
        if (
            self.axes.form != "row" or self.kernel.is_by_element or len(self.axes.row) > 1
            or length < _MIN_SEARCHED or not is_extreme
        ):  # fmt: skip
            return ()
        more = [f"_{k}" for k in range(1, self.accumulators)]
        for index in reductions:
            for of in more:
                if index in searches:
                    self._open_search(index, of)
                else:
                    self._start(index, f"v{index}{of}")
        for index in self._float_extremes(reductions):
            self._line(f"bool has_nan{index} = false;")
        step = self.accumulators * LANES
        end = f"unrolled_end{reductions[0]}"
        self._line(f"const uint {end} = row_end / {step} * {step};")
        self._line(f"for (uint lanes = 0; lanes < {end}; lanes += {step}) {{")
        self._depth += 1
        for k, of in enumerate(["", *more]):
            self._line("{")
            self._depth += 1
            self._line(f"const uint j0 = lanes + {k * LANES} + at.x;")
            self._accumulate(reductions, searches, known, ["j0"], "v", of, is_unrolled=True)
            self._depth -= 1
            self._line("}")
        self._depth -= 1
        self._line("}")
        return more

    def _accumulate_full(self, reductions: list[int], searches: list[int], known: set[int],
                         blocked: bool, begin: str) -> str:  # fmt: skip
        """Combine the elements of most of a long row without masks; where the others begin."""
        if len(self.axes.row) > 1:
            return begin
        begin, end = ("block", "block_end") if blocked else (begin, "row_end")
        length = self.kernel.chunk or self.axes.row[0]
        if self.axes.form != "row" or self._cached_op >= 0 or length < _MIN_FULL:
            return begin
        full_end = f"full_end{reductions[0]}"
        self._line(f"const uint {full_end} = {end} / {LANES} * {LANES};")
        self._line(f"for (uint lanes = {begin}; lanes < {full_end}; lanes += {LANES}) {{")
        self._depth += 1
        self._line("const uint j0 = lanes + at.x;")
        into = "partial" if blocked else "v"
        self._accumulate(reductions, searches, known, ["j0"], into)
        self._depth -= 1
        self._line("}")
        return full_end

    def _float_extremes(self, reductions: list[int]) -> list[int]:
        """Reductions that ignore NaN and record it in a flag: half of the instructions."""
        return [
            k for k in reductions
            if self.ops[k].data in _ORDERS and kind_of(self.ops[k].dtype) == "f"
        ]  # fmt: skip

    def _accumulate(self, reductions: list[int], searches: list[int], known: set[int],
                    row: Sequence[str], into: str, of: str = "",
                    is_unrolled: bool = False) -> None:  # fmt: skip
        """Combine an element of the row with the accumulators.

        Parameters
        ----------
        into, of : str
            Prefix and suffix of their names.
        """
        args = {index: self.ops[index].args[0] for index in reductions}
        required = [self.ops[a].args[0] if k in searches else a for k, a in args.items()]
        self._compute(required, set(known), row)
        for index, arg in args.items():
            if index in searches:
                self._look_at(index, self._names[self.ops[arg].args[0]], row[0], of)
                continue
            name = f"{into}{index}{of}"
            if is_unrolled and index in self._float_extremes(reductions):
                value, order = self._names[arg], _ORDERS[self.ops[index].data]
                self._line(f"{name} = {name} {order} {value} ? {name} : {value};")
                self._line(f"has_nan{index} |= numpy::isnan({value});")
                continue
            self._line(f"{name} = {self._combine(index, name, self._names[arg])};")

    def _combine_lanes(self, reductions: list[int], lanes: int) -> None:
        """Combine the values of `lanes` adjacent lanes in all of them (a butterfly)."""
        self._line(f"for (ushort distance = {lanes // 2}; distance > 0; distance /= 2) {{")
        self._depth += 1
        for index in reductions:
            other = f"numpy::from_lane(v{index}, distance)"
            self._line(f"v{index} = {self._combine(index, f'v{index}', other)};")
        self._depth -= 1
        self._line("}")

    def _start(self, index: int, name: str) -> None:
        """Declare an accumulator with the identity element."""
        self._line(f"{msl_name(self.ops[index].dtype)} {name} = {self._identity(index)};")

    def _identity(self, index: int) -> str:
        dtype = self.ops[index].dtype
        type_ = msl_name(dtype)
        value = msl_name(dtype["value"]) if dtype.names else type_
        return REDUCTIONS[self.ops[index].data].identity.format(T=type_, V=value)

    def _combine(self, index: int, a: str, b: str) -> str:
        return REDUCTIONS[self.ops[index].data].text.format(a, b)

    def _is_blocked(self, reductions: list[int]) -> bool:
        """Whether the row is summed in blocks, to bound rounding errors."""
        iterations = any(
            self.ops[k].data in ("sum", "prod") and kind_of(self.ops[k].dtype) in "fc"
            for k in reductions
        )
        first, *others = self.axes.row
        length = (self.kernel.chunk // self.kernel.interleave or first) * math.prod(others)
        return iterations and length > MAX_UNBLOCKED[self.axes.form]

    def _open_block(self, reductions: list[int]) -> None:
        if len(self.axes.row) > 1:
            self._line("for (uint j0 = 0; j0 < row_end; ++j0) {")
        else:
            block = MAX_UNBLOCKED[self.axes.form]
            self._line(f"for (uint block = 0; block < row_end; block += {block}) {{")
            self._line(f"  const uint block_end = min(block + {block}, row_end);")
        self._depth += 1
        for index in reductions:
            self._start(index, f"partial{index}")

    def _open_loops(self, blocked: bool, begin: str = "0") -> list[str]:
        """Open the loops over the row, from the index `begin` on; the names of their indices."""
        names = [f"j{axis}" for axis in range(len(self.axes.row))]
        self._loops = 0
        if self.axes.is_flat:
            self._open_flat_loop(names)
            return names
        for axis, name in enumerate(names):
            is_inner = axis == len(names) - 1
            first = begin
            if axis == 0 and blocked and len(names) > 1:
                continue  # the loop over blocks is this axis
            end = "row_end" if axis == 0 else self._extent_of_row(axis)
            if blocked and len(names) == 1:
                end = "block_end"
            if is_inner and self.axes.form == "row":
                self._open_loop_of_lanes(name, first, end)
                continue
            self._line(f"for (uint {name} = {first}; {name} < {end}; ++{name}) {{")
            self._depth += 1
            self._loops += 1
        return names

    def _open_loop_of_lanes(self, name: str, first: str, end: str) -> None:
        """All lanes run the same number of iterations; some are idle in the last one."""
        self._line(f"for (uint lanes = {first}; lanes < {end}; lanes += {LANES}) {{")
        self._line(f"  const uint {name} = lanes + at.x;")
        self._line(f"  if ({name} < {end}) {{")
        self._depth += 2
        self._loops += 2

    def _open_flat_loop(self, names: list[str]) -> None:
        """All axes of the row as one, with indices that are advanced without divisions."""
        extents = [self._extent_of_row(axis) for axis in range(1, len(names))]
        rest, step, self._advances = "at.x", str(LANES), []
        self._line("{")
        self._depth += 1
        for axis in reversed(range(1, len(names))):
            name, outer, extent = names[axis], names[axis - 1], extents[axis - 1]
            self._line(f"uint {name} = {rest} % {extent};")
            self._advances += [f"{name} += {step} % {extent};", f"if ({name} >= {extent}) {{",
                               f"  {name} -= {extent};", f"  ++{outer};", "}"]  # fmt: skip
            rest, step = f"{rest} / {extent}", f"{step} / {extent}"
        self._line(f"uint {names[0]} = {rest};")
        self._advances.insert(0, f"{names[0]} += {step};")
        self._line(f"const uint flat_end = {' * '.join(['row_end', *extents])};")
        self._line(f"for (uint lanes = 0; lanes < flat_end; lanes += {LANES}) {{")
        self._line("  if (lanes + at.x < flat_end) {")
        self._depth += 2

    def _extent_of_row(self, axis: int) -> str:
        name = f"row{axis}"
        if not any(member.name == name for member in self.members):
            self._member(name, "uint", "I", self.axes.row[axis])
        return f"params.{name}"

    def _close_loops(self) -> None:
        if self.axes.is_flat:
            self._depth -= 1
            self._line("}")
            for text in self._advances:
                self._line(text)
            self._loops = 2
        for _ in range(self._loops):
            self._depth -= 1
            self._line("}")
