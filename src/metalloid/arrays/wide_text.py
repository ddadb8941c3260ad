"""Statements for devices with many thin threads: each takes four elements beside each other."""

from __future__ import annotations

from collections.abc import Sequence

from metalloid.arrays.access import BUNDLE, RESULT, Axes
from metalloid.arrays.steps import FusedKernel, Source
from metalloid.arrays.text import Writer
from metalloid.arrays.types import msl_name
from metalloid.runtime.program import Size

UNROLLED = "#pragma clang loop unroll(full)"


class WideWriter(Writer):
    """Writes the statements of a kernel without rows, of one bundle a thread."""

    def __init__(self, kernel: FusedKernel, sources: Sequence[Source], axes: Axes,
                 packed: frozenset[int]) -> None:  # fmt: skip
        super().__init__(kernel, sources, axes)
        self._packed = packed
        #: What the loads of vectors are called at the moment.
        self._parts: dict[int, str] = {}

    def launch(self) -> tuple[Size, Size | None]:
        """See `Writer.launch`."""
        (inner, *outer), group = super().launch()
        return (-(-inner // BUNDLE), outer[0], outer[1]), group

    def _value(self, place: int, row: Sequence[str]) -> None:
        part = self._parts.get(place)
        if part is None:
            super()._value(place, row)
            return
        self._names[place] = f"v{place}"
        self._line(f"const {msl_name(self.entries[place].dtype)} v{place} = {part};")

    def _body(self) -> None:
        result = self.kernel.result
        self._line(f"const uint first = {self._places[-1]} * {BUNDLE};")
        if self.axes.kept[-1] % BUNDLE:
            self._ragged_end()
        for place in sorted(self._packed - {RESULT}):
            type_ = msl_name(self.entries[place].dtype)
            pointer = self.axes.accesses[place].pointer
            self._line(
                f"const numpy::four<{type_}> w{place} = numpy::read_four({pointer} + first);"
            )
            self._parts[place] = f"w{place}[e]"
        type_ = msl_name(self.entries[result].dtype)
        self._line(f"numpy::four<{type_}> results;")
        self._line(UNROLLED)
        self._line(f"for (ushort e = 0; e < {BUNDLE}; ++e) {{")
        self._line("  const uint i = first + e;")
        self._places[-1] = "i"
        self._depth += 1
        self._compute([result], set())
        self._line(f"results[e] = {self._names[result]};")
        self._depth -= 1
        self._line("}")
        self._line(f"numpy::write_four({self.axes.accesses[RESULT].pointer} + first, results);")

    def _ragged_end(self) -> None:
        """Fewer than a bundle, one after the other."""
        extent = self._member("inner", "uint", "I", self.axes.kept[-1])
        self._line(f"if (first + {BUNDLE} > {extent}) {{")
        self._line(f"  for (uint i = first; i < {extent}; ++i) {{")
        self._places[-1] = "i"
        self._depth += 2
        self._compute([self.kernel.result], set())
        self._store(self._names[self.kernel.result])
        self._depth -= 2
        self._line("  }")
        self._line("  return;")
        self._line("}")
