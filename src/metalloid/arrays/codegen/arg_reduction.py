"""Statements of arg-reductions: a lane visits 32-bit indices in increasing order."""

from __future__ import annotations

from collections.abc import Sequence

from metalloid.arrays.codegen.elementwise import Writer
from metalloid.arrays.ir.dtypes import msl_name
from metalloid.arrays.ir.ops import REDUCTIONS
from metalloid.arrays.planning.loop_axes import LANES


class ArgReductionWriter(Writer):
    """Writes the statements of the search for the index of an extreme along a row."""

    def _is_search(self, index: int) -> bool:
        """Whether a reduction is an arg-reduction over the indices of the row."""
        pairs = self.ops[self.ops[index].args[0]]
        if not self.ops[index].dtype.names or pairs.kind != "elementwise" or len(self.axes.row) > 1:
            return False
        location = pairs.args[1]
        is_iota = self.ops[location].kind == "iota"
        return is_iota and self.axes.accesses[location].row == (self.kernel.interleave,)

    def _open_search(self, index: int, of: str = "") -> None:
        value, least = self._least(index)
        first = "at.x" if self.axes.form == "row" else "0"
        self._line(f"{value} best{index}{of} = {least};")
        self._line(f"uint best_index{index}{of} = {first};")

    def _least(self, index: int) -> tuple[str, str]:
        """The type of the values, and the identity of an arg-reduction."""
        op = self.ops[index]
        value = msl_name(op.dtype["value"])
        return value, REDUCTIONS[op.data].least.format(V=value)

    def _look_at(self, index: int, value: str, at: str, of: str = "") -> None:
        best, best_index = f"best{index}{of}", f"best_index{index}{of}"
        text = REDUCTIONS[self.ops[index].data].is_better.format(value, best)
        self._line(f"const bool is_better{index} = {text};")
        self._line(f"{best} = is_better{index} ? {value} : {best};")
        self._line(f"{best_index} = is_better{index} ? {at} : {best_index};")

    def _combine_lanes_of_search(self, index: int, more: Sequence[str]) -> None:
        """Find the best value of all lanes, then the first index of accumulators that have it.

        Pairs of values and 64-bit indices would take twice the time.
        """
        op = self.ops[index]
        extreme, first = f"extreme{index}", f"first{index}"
        combined = REDUCTIONS[op.data.removeprefix("arg")].text
        self._line(f"{self._least(index)[0]} {extreme} = best{index};")
        for of in more:
            self._line(f"{extreme} = {combined.format(extreme, f'best{index}{of}')};")
        text = combined.format(extreme, f"numpy::from_lane({extreme}, distance)")
        self._line(f"for (ushort distance = {LANES // 2}; distance > 0; distance /= 2) {{")
        self._line(f"  {extreme} = {text};")
        self._line("}")
        self._line(f"uint {first} = UINT_MAX;")
        for of in ("", *more):
            at = f"best_index{index}{of}"
            has_it = f"numpy::is_same_extreme(best{index}{of}, {extreme}) & ({at} < row_end)"
            self._line(f"{first} = {has_it} ? min({first}, {at}) : {first};")
        position = self._position(index, f"simd_min({first})")
        self._line(f"const {msl_name(op.dtype)} v{index} = {{{extreme}, {position}}};")

    def _close_search(self, index: int) -> None:
        type_ = msl_name(self.ops[index].dtype)
        self._line(f"{type_} v{index} = {self._indexed_value(index)};")

    def _indexed_value(self, index: int, of: str = "") -> str:
        """The value and its index in the array; LONG_MAX in lanes without elements."""
        best_index = f"best_index{index}{of}"
        end = "row_end" if self.kernel.interleave == 1 else "row_end + has_more"
        index_text = f"{best_index} < {end} ? {self._position(index, best_index)} : LONG_MAX"
        return f"{msl_name(self.ops[index].dtype)}(best{index}{of}, {index_text})"

    def _position(self, index: int, at: str) -> str:
        """The index in the array of an index along the row."""
        iota = self.ops[self.ops[index].args[0]].args[1]
        start = self.axes.accesses[iota].pointer
        return f"long({start}) + long({self._index(iota, [at])})"
