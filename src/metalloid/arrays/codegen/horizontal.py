"""The text of horizontally fused kernels: a range of the threads for each of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from metalloid.arrays.codegen.elementwise import Writer, output_name
from metalloid.arrays.codegen.params import Member
from metalloid.arrays.planning.loop_axes import LANES, Axes
from metalloid.arrays.planning.schedule import BufferSpec, FusedKernel, HorizontalKernel
from metalloid.runtime.launch.program import Size


class HorizontalWriter:
    """Writes the statements of all kernels.

    Attributes
    ----------
    lines : list of str
    members : list of Member
    threads : int
    """

    def __init__(self, kernel: HorizontalKernel, sources: Sequence[BufferSpec]) -> None:
        self._writers = [
            _BranchWriter(each, sources, f"k{number}_", self)
            for number, each in enumerate(kernel.kernels)
        ]
        self.lines: list[str] = []
        self.members: list[Member] = []
        self.threads = 0

    def parameters(self) -> list[int]:
        """The buffers, in the order of their parameters; those that are written are the last."""
        written = self.written()
        buffers = (source for writer in self._writers for source in writer.parameters())
        return [*(source for source in dict.fromkeys(buffers) if source not in written), *written]

    def written(self) -> list[int]:
        """The buffers that are written."""
        buffers = (source for writer in self._writers for source in writer.written())
        return list(dict.fromkeys(buffers))

    def write(self) -> None:
        """Write all statements. A simdgroup takes one branch."""
        for writer in self._writers:
            writer.write_branch(self.threads)
            self.lines += writer.lines
            self.members += writer.members
            self.threads += -(-writer.count // LANES) * LANES


class _BranchWriter(Writer):
    """Writes one of the kernels, with the parameters of all.

    Attributes
    ----------
    count : int
        Its threads, which the first `write_branch` counts.
    """

    def __init__(self, kernel: FusedKernel, sources: Sequence[BufferSpec], prefix: str,
                 parent: HorizontalWriter) -> None:  # fmt: skip
        super().__init__(kernel, sources, Axes(kernel))
        self.prefix, self._parent, self.count = prefix, parent, 0

    def write_branch(self, first: int) -> None:
        """Write the statements, for threads from `first` on."""
        self._depth = 2
        self.write()
        statements, self.lines, self._depth = self.lines, [], 1
        extents, _ = self.launch()
        self.count = math.prod(extents)
        begin = self._member("first", "uint", "I", first)
        count = self._member("count", "uint", "I", self.count)
        self._line(f"if (position - {begin} < {count}) {{  // unsigned: others are larger")
        self._depth = 2
        self._line(f"const uint index = position - {begin};")
        self._line(f"const uint3 at({self._coordinates(extents)});")
        self.lines += statements
        self._depth = 1
        self._line("}")

    def _coordinates(self, extents: Size) -> str:
        """The position in the grid that the kernel would have for itself, by its linear index."""
        axes = max((k for k, extent in enumerate(extents) if extent > 1), default=0)
        if axes == 0:
            return "index, 0, 0"
        inner = self._member("inner", "uint", "I", extents[0])
        if axes == 1:
            return f"index % {inner}, index / {inner}, 0"
        second = self._member("second", "uint", "I", extents[1])
        return f"index % {inner}, index / {inner} % {second}, index / {inner} / {second}"

    def _buffer_names(self) -> tuple[dict[int, str], dict[int, str]]:
        written = self._parent.written()
        read = self._parent.parameters()[: -len(written)]
        return (
            {source: f"x{k}" for k, source in enumerate(read)},
            {source: output_name(k) for k, source in enumerate(written)},
        )
