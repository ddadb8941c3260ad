"""A kernel on an NVIDIA GPU."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from metalloid.backends.cuda.assemble import cubin
from metalloid.backends.cuda.driver import check, driver
from metalloid.backends.cuda.geometry import Geometry, launches_of
from metalloid.backends.cuda.ptx import REPORT_SYMBOL, PtxKernel
from metalloid.compiler.cache import shared_cache
from metalloid.compiler.entry import ENTRY_SYMBOL
from metalloid.msl.entry_points import EntryPoint
from metalloid.msl.signature import build_signature
from metalloid.runtime.program import MAX_THREADS_PER_THREADGROUP, Program, Size, spread

_USUAL_THREADS = 256  # of a threadgroup that nobody asked for
_MOST_REMEMBERED = 1024  # shapes of launches


@dataclass(frozen=True)
class Function:
    """Machine code that the driver can launch.

    Attributes
    ----------
    handle : CUfunction
    most_threads : int
        Threads that a threadgroup may have, for the registers they need.
    """

    handle: Any
    most_threads: int


class OfflineProgram(Program):
    """A kernel compiled for a GPU, whether this machine has one or not."""

    def __init__(self, kernel: PtxKernel, entry: EntryPoint, architecture: str) -> None:
        self.signature = build_signature(entry, kernel.layouts)
        self.engine = f"cuda: {architecture}"
        self._kernel = kernel
        limits = self.signature.limits
        self.max_group_size = min(limits.most or MAX_THREADS_PER_THREADGROUP,
                                  MAX_THREADS_PER_THREADGROUP)  # fmt: skip

    @property
    def asm(self) -> Mapping[str, str]:
        """Text of each stage: the lowered C++, LLVM IR, and PTX."""
        return {name: path.read_text() for name, path in self._kernel.stages.items()}

    def default_group_size(self, grid: Size) -> Size:
        """See `Program.default_group_size`."""
        left = min(self.max_group_size, _USUAL_THREADS)
        return spread(grid, left)


class CudaProgram(OfflineProgram):
    """A kernel that the driver has loaded."""

    def __init__(
        self,
        kernel: PtxKernel,
        entry: EntryPoint,
        architecture: str,
        with_threads: Callable[[int], PtxKernel],
        report_block: int,
    ) -> None:
        super().__init__(kernel, entry, architecture)
        self._architecture, self._with_threads = architecture, with_threads
        self.reports, self._report_block = kernel.reports, report_block
        self._has_order, self.asked_bytes = kernel.has_order, kernel.asked_bytes
        self._first = self._load(kernel)
        self._largest: Function | None = None
        count = max(1, len(self.signature.sources))
        #: Packs what entry.h calls launch_data.
        self.pack_into = struct.Struct(f"={count}Q10I").pack_into
        self._geometries: dict[tuple[Size, Size], Geometry] = {}

    def geometry(self, grid: Size, group: Size) -> Geometry:
        """How to launch a grid."""
        found = self._geometries.get((grid, group))
        if found is None:
            if len(self._geometries) >= _MOST_REMEMBERED:
                self._geometries.clear()
            function = self._function(group[0] * group[1] * group[2])
            found = Geometry(function, launches_of(grid, group, self._has_order))
            self._geometries[grid, group] = found
        return found

    def _function(self, threads: int) -> Any:
        if threads <= self._first.most_threads:
            return self._first.handle
        if self._largest is None:
            self._largest = self._load(self._with_threads(self.max_group_size))
        return self._largest.handle

    def _load(self, kernel: PtxKernel) -> Function:
        bindings, name = driver(), self.signature.name
        code = cubin(kernel.text, self._architecture, shared_cache(), name)
        module = check(bindings.cuModuleLoadData(code), f"loading {name}")
        if kernel.reports:
            place = check(
                bindings.cuModuleGetGlobal(module, REPORT_SYMBOL.encode()), f"loading {name}"
            )
            check(bindings.cuMemsetD32(place, self._report_block & 0xFFFFFFFF, 1), "loading")
            check(bindings.cuMemsetD32(int(place) + 4, self._report_block >> 32, 1), "loading")
        handle = check(
            bindings.cuModuleGetFunction(module, ENTRY_SYMBOL.encode()), f"finding {name}"
        )
        attributes = bindings.CUfunction_attribute
        if kernel.asked_bytes:
            attribute = attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            outcome = bindings.cuFuncSetAttribute(handle, attribute, kernel.asked_bytes)
            check(outcome, f"asking for the threadgroup memory of {name}")
        attribute = attributes.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
        most = check(bindings.cuFuncGetAttribute(attribute, handle), f"asking for limits of {name}")
        return Function(handle, int(most))
