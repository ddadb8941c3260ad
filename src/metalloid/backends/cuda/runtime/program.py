"""A kernel on an NVIDIA GPU."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metalloid.backends.cuda.compile.cancellation_polls import CANCEL_SYMBOL
from metalloid.backends.cuda.compile.coarsening import COARSENED_SYMBOL
from metalloid.backends.cuda.compile.compile_ptx import PtxKernel
from metalloid.backends.cuda.compile.module_edits import PRINTF_SYMBOL
from metalloid.backends.cuda.compile.vectorized_coarsening import is_aligned
from metalloid.backends.cuda.runtime.assemble import cubin
from metalloid.backends.cuda.runtime.driver import check, driver
from metalloid.backends.cuda.runtime.geometry import launches_of
from metalloid.backends.cuda.runtime.launcher import launch_layout, pack_shape
from metalloid.compiler.bounds.recorded_faults import checked_words
from metalloid.compiler.bounds.table import BoundsTable, pointer_slots
from metalloid.compiler.frontend.symbols import ENTRY_SYMBOL
from metalloid.compiler.toolchain.cache import read_text, shared_cache
from metalloid.msl.entry_points import EntryPoint
from metalloid.msl.signature import build_signature
from metalloid.runtime.arguments.fast_plan import ShapeCache
from metalloid.runtime.launch.fault_records import FaultRecords
from metalloid.runtime.launch.launches import UNKNOWN_BYTES, Arguments
from metalloid.runtime.launch.program import MAX_THREADS_PER_THREADGROUP, Program, Size, spread
from metalloid.runtime.launch.recorded_faults import RecordedFault, error_of

_DEFAULT_THREADS = 256  # of a threadgroup
#: If rows of threadgroups run in one block, so that there are enough of these.
_THREADS_OF_ROWS = 64
_ENTRY_NAMES = re.compile(rf"\b(?:{ENTRY_SYMBOL}|({COARSENED_SYMBOL}))\b")


@dataclass(frozen=True)
class Function:
    """Machine code that the driver can launch.

    Attributes
    ----------
    handle : CUfunction
    max_threads : int
        Threads that a threadgroup may have, given the registers of each.
    """

    handle: Any
    max_threads: int


class OfflineProgram(Program):
    """A kernel compiled for a GPU that this machine need not have.

    Attributes
    ----------
    is_checked : bool
        Whether its code checks accesses.
    """

    def __init__(self, kernel: PtxKernel, entry: EntryPoint, architecture: str) -> None:
        self.signature = build_signature(entry, kernel.layouts)
        self.is_checked = kernel.bounds is not None
        self.engine = f"cuda: {architecture}{'; checks accesses' * self.is_checked}"
        if kernel.coarsening > 1:
            self.engine += f"; on large grids {kernel.coarsening} threads in one"
        self._kernel = kernel
        limits = self.signature.limits
        self.max_group_size = min(limits.max_total or MAX_THREADS_PER_THREADGROUP,
                                  MAX_THREADS_PER_THREADGROUP)  # fmt: skip

    @property
    def asm(self) -> Mapping[str, str]:
        """Text of each stage: the lowered C++, LLVM IR, and PTX.

        Entries of PTX have the kernel's name, and the coarsened one ``NAME_coarsened``.
        """
        texts = {name: read_text(path) for name, path in self._kernel.stages.items()}
        name = self.signature.name
        if name.isidentifier():
            ptx = _ENTRY_NAMES.sub(lambda match: name + "_coarsened" * bool(match[1]), texts["ptx"])
            texts["ptx"] = ptx
        return texts

    def default_group_size(self, grid: Size) -> Size:
        """See `Program.default_group_size`."""
        threads = _THREADS_OF_ROWS if self._kernel.axis else _DEFAULT_THREADS
        return spread(grid, min(self.max_group_size, threads))


class CudaProgram(OfflineProgram):
    """A kernel that the driver has loaded.

    Attributes
    ----------
    name : str
    uses_printf : bool
        Whether it logs or asserts.
    pack : callable
        Packs `struct launch` of native/launch.h.
    shapes : dict
        The packed `struct shape`s of native/launch.h for a grid and a threadgroup.
    needs_alignment : bool
        Whether these shapes require addresses that are multiples of 16 (`shapes_for`).
    """

    def __init__(
        self,
        kernel: PtxKernel,
        entry: EntryPoint,
        architecture: str,
        with_threads: Callable[[int], PtxKernel],
        printf_buffer: int,
        multiprocessors: int,
        add_flag: Callable[[int], None],
        wait: Callable[[], None],
        bounds_with_lines: Callable[[], BoundsTable],
        records: FaultRecords,
    ) -> None:
        super().__init__(kernel, entry, architecture)
        self.name = self.signature.name
        self._architecture, self._with_threads = architecture, with_threads
        self.uses_printf, self._printf_buffer = kernel.uses_printf, printf_buffer
        self._add_flag, self._wait = add_flag, wait
        self._lanes_in_order, self.dynamic_shared_bytes = (
            kernel.lanes_in_order,
            kernel.dynamic_shared_bytes,
        )
        module = self._load(kernel)
        self._plain = self._find(module, ENTRY_SYMBOL)
        self._largest: Function | None = None
        self._coarsened: Function | None = None
        if kernel.coarsening > 1:
            self._coarsened = self._find(module, COARSENED_SYMBOL)
        self._multiprocessors = multiprocessors
        sources = len(self.signature.sources)
        self._words = checked_words(self.signature) if self.is_checked else max(1, sources)
        self._unknown_extents = dict.fromkeys(range(sources), UNKNOWN_BYTES)
        self._slots = pointer_slots(self.signature)
        self._bounds, self._bounds_with_lines = kernel.bounds, bounds_with_lines
        self._records = records
        self.pack = launch_layout(self._words).pack
        self.needs_alignment = kernel.is_vectorized
        self.shapes = ShapeCache(functools.partial(self._pack_shapes, self._coarsened))
        self._unaligned_shapes = ShapeCache(functools.partial(self._pack_shapes, None))

    def shapes_for(self, words: Sequence[int], grid: Size, group: Size) -> list[bytes]:
        """The packed shapes to launch with these argument words."""
        if self.needs_alignment and not is_aligned(words):
            return self._unaligned_shapes[grid, group]
        return self.shapes[grid, group]

    def add_record(self, arguments: Arguments) -> None:
        """Give a launch its record of a failed access, if this kernel checks accesses.

        Its words still point to memory of the host.
        """
        if self.is_checked:
            extents = arguments.extent_words(self._unknown_extents, self._slots)
            arguments.fault_record = self._records.new(extents)

    def require_no_fault(self, arguments: Arguments) -> None:
        """Raise the failed access of a launch that has ended.

        Raises
        ------
        KernelFault
            If there was one.
        """
        record = arguments.fault_record
        fault: RecordedFault | None = record and record.take()
        if fault is not None:
            assert self._bounds is not None
            raise error_of(fault, self.signature, self._bounds, self._bounds_with_lines)

    def _pack_shapes(self, form: Function | None, grid: Size, group: Size) -> list[bytes]:
        threads, factor = group[0] * group[1] * group[2], 1
        function = coarsened = self._function(threads)
        if form is not None and threads <= form.max_threads:
            coarsened = form.handle
            saturated = self._multiprocessors * self._kernel.coarsening * threads
            is_integer = not self.needs_alignment or group[0] % self._kernel.coarsening == 0
            if (
                is_integer and grid[0] * grid[1] * grid[2] >= saturated
            ):  # all multiprocessors still have work
                factor = self._kernel.coarsening
        return [
            pack_shape(
                int(coarsened if sub_grid.coarsening > 1 else function), self._words, sub_grid
            )
            for sub_grid in launches_of(
                grid, group, self._lanes_in_order, factor, self._kernel.axis
            )
        ]

    def _function(self, threads: int) -> Any:
        if threads <= self._plain.max_threads:
            return self._plain.handle
        if self._largest is None:
            module = self._load(self._with_threads(self.max_group_size))
            self._largest = self._find(module, ENTRY_SYMBOL)
        return self._largest.handle

    def _load(self, kernel: PtxKernel) -> Any:
        """Assemble a kernel and load the module."""
        bindings, name = driver(), self.signature.name
        code = cubin(kernel.text, self._architecture, shared_cache(), name)
        # The driver waits for the launches so far, and nothing could cancel them there.
        self._wait()
        module = check(bindings.cuModuleLoadData(code), f"loading {name}")
        if kernel.uses_printf:
            address = check(
                bindings.cuModuleGetGlobal(module, PRINTF_SYMBOL.encode()), f"loading {name}"
            )
            check(bindings.cuMemsetD32(address, self._printf_buffer & 0xFFFFFFFF, 1), "loading")
            check(bindings.cuMemsetD32(int(address) + 4, self._printf_buffer >> 32, 1), "loading")
        if kernel.is_cancellable:
            outcome = bindings.cuModuleGetGlobal(module, CANCEL_SYMBOL.encode())
            self._add_flag(int(check(outcome, f"loading {name}")))
        return module

    def _find(self, module: Any, symbol: str) -> Function:
        bindings, name = driver(), self.name
        handle = check(bindings.cuModuleGetFunction(module, symbol.encode()), f"finding {name}")
        attributes = bindings.CUfunction_attribute
        if self.dynamic_shared_bytes:
            attribute = attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            outcome = bindings.cuFuncSetAttribute(handle, attribute, self.dynamic_shared_bytes)
            check(outcome, f"asking for the threadgroup memory of {name}")
        attribute = attributes.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
        limit = check(
            bindings.cuFuncGetAttribute(attribute, handle), f"asking for limits of {name}"
        )
        return Function(handle, int(limit))
