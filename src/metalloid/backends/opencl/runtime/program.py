"""A kernel on an OpenCL device."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from metalloid.backends.opencl.compile.compile_spirv import SpirvKernel, assembly
from metalloid.backends.opencl.runtime.build import build
from metalloid.backends.opencl.runtime.geometry import SubGrid
from metalloid.backends.opencl.runtime.platforms import binding
from metalloid.compiler.bounds.recorded_faults import checked_words
from metalloid.compiler.bounds.table import BoundsTable, pointer_slots
from metalloid.compiler.frontend.symbols import ENTRY_SYMBOL
from metalloid.compiler.toolchain.cache import read_text
from metalloid.compiler.toolchain.target import Target
from metalloid.errors import KernelFault, LaunchError
from metalloid.msl.entry_points import EntryPoint
from metalloid.msl.signature import build_signature
from metalloid.runtime.launch.launches import UNKNOWN_BYTES, Arguments
from metalloid.runtime.launch.program import MAX_THREADS_PER_THREADGROUP, Program, Size, spread
from metalloid.runtime.launch.recorded_faults import RecordedFault, error_of

_DEFAULT_THREADS = 256  # of a threadgroup
_ENTRY_NAME = re.compile(rf"\b{ENTRY_SYMBOL}\b")


class OfflineProgram(Program):
    """A kernel compiled for devices that this machine need not have.

    Attributes
    ----------
    is_checked : bool
        Whether its code checks accesses.
    """

    def __init__(self, kernel: SpirvKernel, entry: EntryPoint, target: Target) -> None:
        self.signature = build_signature(entry, kernel.layouts)
        self.is_checked = kernel.bounds is not None
        self.engine = f"opencl: {target.name}{'; checks accesses' * self.is_checked}"
        self._kernel, self._target = kernel, target
        limit = self.signature.limits.max_total or MAX_THREADS_PER_THREADGROUP
        self.max_group_size = min(limit, MAX_THREADS_PER_THREADGROUP)

    @property
    def modules(self) -> Mapping[str, bytes]:
        """See `Program.modules`: the SPIR-V."""
        return {"spv": self._kernel.module}

    @property
    def asm(self) -> Mapping[str, str]:
        """Text of each stage: the lowered C++, LLVM IR, and SPIR-V."""
        stages = self._kernel.stages
        texts = {name: read_text(stages[name]) for name in ("cpp", "ll")}
        texts["spirv"] = assembly(self._kernel, self._target)
        name = self.signature.name
        if name.isidentifier():
            texts["spirv"] = _ENTRY_NAME.sub(name, texts["spirv"])
        return texts

    def default_group_size(self, grid: Size) -> Size:
        """See `Program.default_group_size`."""
        return spread(grid, min(self.max_group_size, _DEFAULT_THREADS))


class OpenclProgram(OfflineProgram):
    """A kernel that the platform has compiled.

    Attributes
    ----------
    name : str
    reports : bool
        Whether it logs or asserts.
    """

    def __init__(
        self,
        with_shape: Callable[[bool], SpirvKernel],
        bounds_with_lines: Callable[[], BoundsTable],
        entry: EntryPoint,
        target: Target,
        context: Any,
        device: Any,
        options: str,
    ) -> None:
        kernel = with_shape(True)
        super().__init__(kernel, entry, target)
        self.name, self.reports = self.signature.name, kernel.reports
        self._with_shape, self._building = with_shape, (context, device, options)
        self._row = self._build(kernel)
        self._general: Any = None
        info = binding().kernel_work_group_info.WORK_GROUP_SIZE
        limit = int(self._row.get_work_group_info(info, device))
        self.max_group_size = min(self.max_group_size, limit)
        sources = len(self.signature.sources)
        words = checked_words(self.signature) if self.is_checked else max(1, sources)
        self._words = struct.Struct(f"={words + 1}Q")
        self._unknown_extents = dict.fromkeys(range(sources), UNKNOWN_BYTES)
        self._slots = pointer_slots(self.signature)
        self._bounds_with_lines = bounds_with_lines
        self._shapes: dict[SubGrid, bytes] = {}

    def extents(self, arguments: Arguments) -> list[int]:
        """The words of a launch for its checks, while others point to memory of the host."""
        return arguments.extent_words(self._unknown_extents, self._slots)

    def fault(self, record: RecordedFault) -> KernelFault:
        """The exception of a launch with a failed access."""
        assert self._kernel.bounds is not None
        return error_of(record, self.signature, self._kernel.bounds, self._bounds_with_lines)

    def handle(self, group: Size) -> Any:
        """The kernel for threadgroups of a size; it is compiled for several dimensions on use."""
        if group[1] == group[2] == 1:
            return self._row
        if self._general is None:
            self._general = self._build(self._with_shape(False))
        return self._general

    def _build(self, kernel: SpirvKernel) -> Any:
        cl = binding()
        try:
            return cl.Kernel(build(kernel, *self._building), ENTRY_SYMBOL)
        except cl.Error as error:
            name = self._building[1].name.strip()
            raise LaunchError(f"[{self.name}] {name} cannot compile it: {error}") from None

    def launch_data(self, words: Sequence[int], report_block: int, sub_grid: SubGrid) -> bytes:
        """The first argument of the kernel: launch_data of entry.h."""
        shape = self._shapes.get(sub_grid)
        if shape is None:
            shape = self._shapes[sub_grid] = struct.pack("=12I", *sub_grid.data)
        return self._words.pack(*(words or (0,)), report_block) + shape
