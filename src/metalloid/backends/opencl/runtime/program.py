"""A kernel on an OpenCL device."""

from __future__ import annotations

import functools
import math
import re
import struct
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from metalloid.backends.opencl.compile.compile_spirv import Form, SpirvKernel, assembly
from metalloid.backends.opencl.compile.target import subgroup_of
from metalloid.backends.opencl.runtime.build import build
from metalloid.backends.opencl.runtime.geometry import sub_grids
from metalloid.backends.opencl.runtime.launcher import Kernel, pack_shape
from metalloid.backends.opencl.runtime.platforms import binding
from metalloid.compiler.bounds.recorded_faults import checked_words
from metalloid.compiler.bounds.table import BoundsTable, pointer_slots
from metalloid.compiler.frontend.symbols import ENTRY_SYMBOL
from metalloid.compiler.toolchain.cache import read_text
from metalloid.compiler.toolchain.target import Target
from metalloid.errors import LaunchError
from metalloid.msl.entry_points import EntryPoint
from metalloid.msl.signature import IDS, build_signature
from metalloid.runtime.arguments.fast_plan import ShapeCache
from metalloid.runtime.launch.fault_records import FaultRecord, FaultRecords
from metalloid.runtime.launch.launches import UNKNOWN_BYTES, Arguments
from metalloid.runtime.launch.program import MAX_THREADS_PER_THREADGROUP, Program, Size, spread
from metalloid.runtime.launch.recorded_faults import error_of

_DEFAULT_THREADS = 256  # of a threadgroup
MIN_THREADGROUP_BYTES = 16  # of a launch, as OpenCL has no empty memory
_ENTRY_NAME = re.compile(rf"\b{ENTRY_SYMBOL}\b")
_POSITION_VECTOR = re.compile(r"\bu?(?:int|short)[23]\b")


def inferred_form(entry: EntryPoint) -> Form:
    """The form that launches of a kernel probably need."""
    positions = (p for p in entry.parameters if any(name in IDS for name, _ in p.attributes))
    has_vectors = any(_POSITION_VECTOR.search(p.declaration) for p in positions)
    return "grid" if has_vectors else "row"


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
        self._declared_limit = min(limit, MAX_THREADS_PER_THREADGROUP)

    @functools.cached_property
    def max_group_size(self) -> int:  # type: ignore[override]
        """See `Program.max_group_size`."""
        return min((self._declared_limit, *self._platform_limits()))

    def _platform_limits(self) -> Collection[int]:
        """Threads that the platform allows a threadgroup, once it has compiled the kernel."""
        return ()

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
        group = spread(grid, min(self._declared_limit, _DEFAULT_THREADS))
        limit = self.group_limit(grid, group)
        return group if math.prod(group) <= limit else spread(grid, limit)


class OpenclProgram(OfflineProgram):
    """A kernel that the platform compiles, for the forms of its launches.

    Attributes
    ----------
    name : str
    reports : bool
        Whether it logs or asserts.
    shapes : ShapeCache
        The packed `struct shape`s of native/launch.h.
    """

    def __init__(
        self,
        with_form: Callable[[Form], SpirvKernel],
        bounds_with_lines: Callable[[], BoundsTable],
        entry: EntryPoint,
        target: Target,
        context: Any,
        device: Any,
        options: str,
        records: FaultRecords,
    ) -> None:
        kernel = with_form(inferred_form(entry))
        super().__init__(kernel, entry, target)
        self.name, self.reports = self.signature.name, kernel.reports
        self._with_form, self._building = with_form, (context, device, options)
        self._forms: dict[Form, Kernel] = {}
        self._limits: dict[Form, int] = {}  # threads of a threadgroup
        self._compiling = threading.Lock()
        sources = len(self.signature.sources)
        words = checked_words(self.signature) if self.is_checked else max(1, sources)
        self._words = words
        self._pack = struct.Struct(f"={words}Q").pack
        self._unknown_extents = dict.fromkeys(range(sources), UNKNOWN_BYTES)
        self._slots = pointer_slots(self.signature)
        self._bounds_with_lines, self._records = bounds_with_lines, records
        self.shapes = ShapeCache(self._pack_shapes)

    def _platform_limits(self) -> Collection[int]:
        if not self._limits:
            self._form("row")
        return self._limits.values()

    def group_limit(self, grid: Size, group: Size) -> int:
        """See `Program.group_limit`."""
        if math.prod(group) > self._declared_limit:
            return self._declared_limit
        for each in sub_grids(grid, group, subgroup_of(self._target)):
            self._form(each.form)
        return min((self._declared_limit, *self._limits.values()))

    def add_record(self, arguments: Arguments) -> None:
        """Give a launch a record of its own for a failed access, if this kernel checks accesses.

        Its words still point to memory of the host, except in repeated launches.
        """
        if not self.is_checked:
            return
        before = arguments.fault_record
        extents = (
            arguments.extent_words(self._unknown_extents, self._slots) if before is None
            else before.words[:-1]
        )  # fmt: skip
        arguments.fault_record = self._records.new(extents)

    def pack_words(self, arguments: Arguments) -> bytes:
        """The beginning of launch_data of entry.h."""
        words: Sequence[int] = arguments.words or (0,)
        if arguments.fault_record is not None:
            words = (*arguments.words, *arguments.fault_record.words)
        return self._pack(*words)

    def require_no_fault(self, record: FaultRecord) -> None:
        """Raise the failed access of a launch that has ended.

        Raises
        ------
        KernelFault
            If there was one.
        """
        fault = record.take()
        if fault is not None:
            assert self._kernel.bounds is not None
            raise error_of(fault, self.signature, self._kernel.bounds, self._bounds_with_lines)

    def _pack_shapes(self, grid: Size, group: Size) -> list[bytes]:
        grids = sub_grids(grid, group, subgroup_of(self._target))
        return [pack_shape(self._form(each.form), self._words, each) for each in grids]

    def _form(self, form: Form) -> Kernel:
        """The kernel of a form, which is compiled on use.

        There is one of each, as packed shapes point to it.
        """
        with self._compiling:
            if form not in self._forms:
                kernel = self._build(self._with_form(form))
                info = binding().kernel_work_group_info.WORK_GROUP_SIZE
                self._limits[form] = int(kernel.get_work_group_info(info, self._building[1]))
                self._forms[form] = Kernel(kernel)
            return self._forms[form]

    def _build(self, kernel: SpirvKernel) -> Any:
        cl = binding()
        try:
            return cl.Kernel(build(kernel, *self._building), ENTRY_SYMBOL)
        except cl.Error as error:
            name = self._building[1].name.strip()
            raise LaunchError(f"[{self.name}] {name} cannot compile it: {error}") from None
