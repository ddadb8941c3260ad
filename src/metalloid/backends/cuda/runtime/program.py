"""A kernel on an NVIDIA GPU."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metalloid.backends.cuda.compile.cancellation_polls import CANCEL_SYMBOL
from metalloid.backends.cuda.compile.coarsened_kernel import SEVERAL_SYMBOL
from metalloid.backends.cuda.compile.pipeline import REPORT_SYMBOL, PtxKernel
from metalloid.backends.cuda.compile.vectorized_coarsening import is_aligned
from metalloid.backends.cuda.runtime.assemble import cubin
from metalloid.backends.cuda.runtime.driver import check, driver
from metalloid.backends.cuda.runtime.geometry import launches_of
from metalloid.backends.cuda.runtime.launcher import launch_layout, pack_shape
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


class _Shapes(dict[tuple[Size, Size], list[bytes]]):
    """Shapes of launches, made when they are first asked for."""

    def __init__(self, make: Callable[[Size, Size], list[bytes]]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, size: tuple[Size, Size]) -> list[bytes]:
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        made = self[size] = self._make(*size)
        return made


class OfflineProgram(Program):
    """A kernel compiled for a GPU, whether this machine has one or not."""

    def __init__(self, kernel: PtxKernel, entry: EntryPoint, architecture: str) -> None:
        self.signature = build_signature(entry, kernel.layouts)
        self.engine = f"cuda: {architecture}"
        if kernel.several > 1:
            self.engine += f"; on large grids {kernel.several} threads in one"
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
    """A kernel that the driver has loaded.

    Attributes
    ----------
    name : str
    reports : bool
        Whether it logs or asserts.
    pack : callable
        What differs from launch to launch as native/launch.c takes it.
    shapes : dict
        What the driver launches for a grid and a threadgroup, as native/launch.c takes it.
    wants_aligned : bool
        Whether these shapes want addresses that are multiples of 16 (`shapes_for`).
    """

    def __init__(
        self,
        kernel: PtxKernel,
        entry: EntryPoint,
        architecture: str,
        with_threads: Callable[[int], PtxKernel],
        report_block: int,
        multiprocessors: int,
        add_flag: Callable[[int], None],
        wait: Callable[[], None],
    ) -> None:
        super().__init__(kernel, entry, architecture)
        self.name = self.signature.name
        self._architecture, self._with_threads = architecture, with_threads
        self.reports, self._report_block = kernel.reports, report_block
        self._add_flag, self._wait = add_flag, wait
        self._has_order, self.asked_bytes = kernel.has_order, kernel.asked_bytes
        module = self._load(kernel)
        self._first = self._find(module, ENTRY_SYMBOL)
        self._largest: Function | None = None
        self._several: Function | None = None
        if kernel.several > 1:
            self._several = self._find(module, SEVERAL_SYMBOL)
        self._multiprocessors = multiprocessors
        count = max(1, len(self.signature.sources))
        self.pack = launch_layout(count).pack
        self.wants_aligned = kernel.is_beside
        self.shapes = _Shapes(functools.partial(self._pack_shapes, self._several))
        self._odd_shapes = _Shapes(functools.partial(self._pack_shapes, None))

    def shapes_for(self, words: Sequence[int], grid: Size, group: Size) -> list[bytes]:
        """What the driver launches for such words."""
        if self.wants_aligned and not is_aligned(words):
            return self._odd_shapes[grid, group]
        return self.shapes[grid, group]

    def _pack_shapes(self, form: Function | None, grid: Size, group: Size) -> list[bytes]:
        words = max(1, len(self.signature.sources))
        threads, count = group[0] * group[1] * group[2], 1
        function = several = self._function(threads)
        if form is not None and threads <= form.most_threads:
            several = form.handle
            filled = self._multiprocessors * self._kernel.several * threads
            is_even = not self.wants_aligned or group[0] % self._kernel.several == 0
            if is_even and grid[0] * grid[1] * grid[2] >= filled:  # all still have something to do
                count = self._kernel.several
        return [
            pack_shape(int(several if part.several > 1 else function), words, part)
            for part in launches_of(grid, group, self._has_order, count)
        ]

    def _function(self, threads: int) -> Any:
        if threads <= self._first.most_threads:
            return self._first.handle
        if self._largest is None:
            module = self._load(self._with_threads(self.max_group_size))
            self._largest = self._find(module, ENTRY_SYMBOL)
        return self._largest.handle

    def _load(self, kernel: PtxKernel) -> Any:
        """The module of a kernel's machine code."""
        bindings, name = driver(), self.signature.name
        code = cubin(kernel.text, self._architecture, shared_cache(), name)
        # The driver waits for the launches so far, where nothing could end them.
        self._wait()
        module = check(bindings.cuModuleLoadData(code), f"loading {name}")
        if kernel.reports:
            place = check(
                bindings.cuModuleGetGlobal(module, REPORT_SYMBOL.encode()), f"loading {name}"
            )
            check(bindings.cuMemsetD32(place, self._report_block & 0xFFFFFFFF, 1), "loading")
            check(bindings.cuMemsetD32(int(place) + 4, self._report_block >> 32, 1), "loading")
        if kernel.is_cancellable:
            outcome = bindings.cuModuleGetGlobal(module, CANCEL_SYMBOL.encode())
            self._add_flag(int(check(outcome, f"loading {name}")))
        return module

    def _find(self, module: Any, symbol: str) -> Function:
        bindings, name = driver(), self.name
        handle = check(bindings.cuModuleGetFunction(module, symbol.encode()), f"finding {name}")
        attributes = bindings.CUfunction_attribute
        if self.asked_bytes:
            attribute = attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            outcome = bindings.cuFuncSetAttribute(handle, attribute, self.asked_bytes)
            check(outcome, f"asking for the threadgroup memory of {name}")
        attribute = attributes.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
        most = check(bindings.cuFuncGetAttribute(attribute, handle), f"asking for limits of {name}")
        return Function(handle, int(most))
