"""Statements of elementwise kernels on SIMT devices: four adjacent elements per thread."""

from __future__ import annotations

from collections.abc import Sequence

from metalloid.arrays.codegen.elementwise import Writer
from metalloid.arrays.ir.dtypes import msl_name
from metalloid.arrays.planning.loop_axes import RESULT, VECTOR_WIDTH, Axes
from metalloid.arrays.planning.schedule import BufferSpec, FusedKernel
from metalloid.runtime.launch.program import Size

UNROLLED = "#pragma clang loop unroll(full)"


class VectorWriter(Writer):
    """Base class of writers whose threads process vectors of `VECTOR_WIDTH` elements.

    Parameters
    ----------
    packed : frozenset of int
        Operations whose buffers are loaded as whole vectors; `RESULT` if the result is stored so.
    """

    def __init__(self, kernel: FusedKernel, sources: Sequence[BufferSpec], axes: Axes,
                 packed: frozenset[int]) -> None:  # fmt: skip
        super().__init__(kernel, sources, axes)
        self._packed = packed
        #: By operation: the current element of its loaded vector, as text.
        self._vector_elements: dict[int, str] = {}

    def launch(self) -> tuple[Size, Size | None]:
        """See `Writer.launch`."""
        (inner, *outer), group = super().launch()
        return (-(-inner // VECTOR_WIDTH), outer[0], outer[1]), group

    def _vector_element(self, index: int, row: Sequence[str]) -> str | None:
        """The element of a loaded vector that holds a value; None if there is no such vector."""
        return self._vector_elements.get(index)

    def _value(self, index: int, row: Sequence[str]) -> None:
        element = self._vector_element(index, row)
        if element is None:
            super()._value(index, row)
            return
        self._names[index] = f"v{index}"
        self._line(f"const {msl_name(self.ops[index].dtype)} v{index} = {element};")


class WideWriter(VectorWriter):
    """Writes the statements of a kernel without reductions, one vector per thread."""

    def _body(self) -> None:
        outputs = self.kernel.outputs
        self._line(f"const uint first = {self._indices[-1]} * {VECTOR_WIDTH};")
        if self.axes.outer[-1] % VECTOR_WIDTH:
            self._tail()
        for index in sorted(index for index in self._packed if index >= 0):
            type_ = msl_name(self.ops[index].dtype)
            pointer = self.axes.accesses[index].pointer
            self._line(
                f"const numpy::four<{type_}> w{index} = numpy::read_four({pointer} + first);"
            )
            self._vector_elements[index] = f"w{index}[e]"
        results = ["results" + str(k or "") for k in range(len(outputs))]
        for output, name in zip(outputs, results, strict=True):
            self._line(f"numpy::four<{msl_name(self.ops[output.result].dtype)}> {name};")
        self._line(UNROLLED)
        self._line(f"for (ushort e = 0; e < {VECTOR_WIDTH}; ++e) {{")
        self._line("  const uint i = first + e;")
        self._indices[-1] = "i"
        self._depth += 1
        self._compute([output.result for output in outputs], set())
        for output, name in zip(outputs, results, strict=True):
            self._line(f"{name}[e] = {self._names[output.result]};")
        self._depth -= 1
        self._line("}")
        for k, name in enumerate(results):
            pointer = self.axes.accesses[RESULT - k].pointer
            self._line(f"numpy::write_four({pointer} + first, {name});")

    def _tail(self) -> None:
        """Process an incomplete vector element by element."""
        extent = self._member("inner", "uint", "I", self.axes.outer[-1])
        self._line(f"if (first + {VECTOR_WIDTH} > {extent}) {{")
        self._line(f"  for (uint i = first; i < {extent}; ++i) {{")
        self._indices[-1] = "i"
        self._depth += 2
        self._store_outputs(set())
        self._depth -= 2
        self._line("  }")
        self._line("  return;")
        self._line("}")
