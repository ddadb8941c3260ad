"""Programs: loaded kernels, which choose a variant for each launch."""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from metalloid.backends.cpu import host
from metalloid.backends.cpu.compile.engines import CompiledKernel
from metalloid.backends.cpu.compile.texture_specialization import KnownWord, TextureVariants
from metalloid.backends.cpu.compile.thread_axes import lane_axis
from metalloid.backends.cpu.compile.variants import Kind, Variant, variant_for
from metalloid.backends.cpu.runtime import native_library
from metalloid.backends.cpu.runtime.faults import INTERRUPTED, error_of
from metalloid.backends.cpu.runtime.source_lines import load_address, source_line
from metalloid.backends.cpu.runtime.threadgroup_fusion import (
    default_group_size,
    fused,
    fused_along,
    sees_threadgroups,
)
from metalloid.compiler.frontend.entry import ENTRY_SYMBOL
from metalloid.errors import MetalloidError
from metalloid.msl.entry_points import EntryPoint
from metalloid.msl.signature import build_signature
from metalloid.runtime.launch.launches import Arguments
from metalloid.runtime.launch.program import MAX_THREADS_PER_THREADGROUP, Program, Size
from metalloid.settings import settings

_MAX_CACHED_SHAPES = 1024  # maximum shapes of launches in a program's caches
_FIBRES_BY_DEFAULT = 256  # threads per threadgroup: limits the memory of stacks
#: Of a launch: grid, threadgroup, whether barriers are relaxed, and what textures are.
_Shape = tuple[Size, Size, bool, tuple[KnownWord, ...]]


class CompileVariant(Protocol):
    """Compiles a variant of a kernel, or loads it from the cache."""

    def __call__(self, variant: Variant | None, debug_lines: bool = False) -> CompiledKernel:
        """The code of a variant; without one, of the initial variant."""


class CpuProgram(Program):
    """A kernel, loaded into this process."""

    def __init__(
        self,
        kernel: CompiledKernel,
        entry: EntryPoint,
        compile_variant: CompileVariant,
        names: dict[int | None, str],
    ) -> None:
        self.signature = build_signature(entry, kernel.layouts)
        self._first = kernel
        self.logs = kernel.logs
        self._names = names
        self.entry, self.flags = code = self._load(kernel)
        self._widths, self.waits = kernel.widths, kernel.waits
        self._reads_in_loops, self._rows = kernel.reads_in_loops, kernel.rows
        self.threadgroup_bytes = kernel.threadgroup_bytes
        self._variable_bytes = kernel.variable_bytes
        self._compile_variant = compile_variant
        self._variants = {kernel.variant: code}
        self._files = {kernel.variant: kernel.code}
        self._textures = TextureVariants(self.signature)
        self._chosen: dict[_Shape, tuple[int, int]] = {}
        # The job without words, by grid and group, of launches with strict barriers.
        self.jobs: dict[tuple[Size, Size], bytes] = {}
        self.can_fuse = bool(kernel.widths) and not (
            kernel.waits
            or kernel.shares
            or kernel.logs  # each message names its threadgroup
            or sees_threadgroups(self.signature)
        )
        self.engine = kernel.engine
        self.max_group_size = min(
            self.signature.limits.max_total or MAX_THREADS_PER_THREADGROUP,
            MAX_THREADS_PER_THREADGROUP,
        )
        # The runtime stores the measured time per threadgroup here.
        self._cost = ctypes.c_double(0.0)
        self.cost_address = ctypes.addressof(self._cost)
        self._job = native_library.job_layout(len(self.signature.sources))

    @property
    def asm(self) -> Mapping[str, str]:
        """Text of each stage: the lowered C++, LLVM IR, and assembly (made when asked for)."""
        return self._first.asm()

    def default_group_size(self, grid: Size) -> Size:
        """See `Program.default_group_size`."""
        left = self.max_group_size
        if self.flags & native_library.FIBRES:
            left = min(left, _FIBRES_BY_DEFAULT)
        return default_group_size(grid, left, self._reads_in_loops and self.can_fuse, self._rows)

    def _code_for(
        self, grid: Size, group: Size, is_relaxed: bool, textures: tuple[KnownWord, ...]
    ) -> tuple[int, int]:
        """Address and flags of the variant that a launch needs."""
        initial = self._first.variant
        assert initial is not None
        by_shape = initial.kind in (Kind.SINGLE_ROW, Kind.SINGLE_COLUMN)
        variant = variant_for(grid, group, self._widths, self.waits, by_shape)
        if variant.for_group_of(grid, group) == initial:
            variant = initial
        streams = self._first.streamable * math.prod(grid) >= host.cache_bytes()
        variant = replace(
            variant,
            textures=textures,
            is_relaxed=is_relaxed,
            streams=streams and not is_relaxed,
        )
        code = self._variants.get(variant)
        if code is None:
            kernel = self._compile_variant(variant)
            code = self._variants[variant] = self._load(kernel)
            self._files[variant] = kernel.code
            self.engine = kernel.engine
        if len(self._chosen) >= _MAX_CACHED_SHAPES:
            self._chosen.clear()
        self._chosen[grid, group, is_relaxed, textures] = code
        return code

    def _load(self, kernel: CompiledKernel) -> tuple[int, int]:
        """Load a kernel's code while this program lives; returns its address and flags."""
        library = ctypes.CDLL(str(kernel.code))
        unload = weakref.finalize(self, native_library.runtime().unload, library._handle)
        unload.atexit = False
        symbol = getattr(library, ENTRY_SYMBOL)
        address = ctypes.cast(symbol, ctypes.c_void_p).value
        assert address is not None
        if self.logs:
            self._names[address] = self.signature.name
        return address, native_library.FIBRES if kernel.fibres else 0

    def _fusion(self, grid: Size, group: Size) -> Size:
        """The number of threadgroups to fuse along each axis."""
        if not self.can_fuse:
            return (1, 1, 1)
        axis = lane_axis(group)
        if axis != "x" and axis == self._first.axis:
            return fused_along(axis, grid, group)
        return (*fused(grid, group, self._rows), 1)

    def failure(self, outcome: native_library.Outcome, grid: Size, group: Size) -> BaseException:
        """The exception for a synchronous launch: its error, or the exception of Ctrl-C."""
        if outcome.status == INTERRUPTED:
            return native_library.runtime().interruption()
        return self.error(outcome, grid, group)

    def error(self, outcome: native_library.Outcome, grid: Size, group: Size) -> MetalloidError:
        """The error of a failed launch."""
        fusion = self._fusion(grid, group)

        def fused_groups(position: Size) -> tuple[Size, Size]:
            x, y, z = (p * n for p, n in zip(position, fusion, strict=True))
            right, bottom, back = (
                min(p + n, -(-size // each)) - 1
                for p, n, size, each in zip((x, y, z), fusion, grid, group, strict=True)
            )
            return (x, y, z), (right, bottom, back)

        return error_of(outcome, self.signature.name, fused_groups, group, self._source_line)

    def _source_line(self, address: int) -> tuple[str, int] | None:
        """File and line of an instruction of this kernel; None if it is unknown."""
        base = load_address(address)
        for variant, (entry, _) in self._variants.items():
            if base and load_address(entry) == base:
                try:
                    with_lines = self._compile_variant(variant, debug_lines=True).code
                except MetalloidError:  # the fault is told without it, such as on a full disk
                    return None
                return source_line(self._files[variant], with_lines, address - base)
        return None

    def job(self, arguments: Arguments, grid: Size, group: Size) -> bytes:
        """A launch in the format of the native runtime."""
        words, launch_group = arguments.words, group
        across, down, back = self._fusion(grid, group)
        group = (group[0] * across, group[1] * down, group[2] * back)
        entry, flags = self.entry, self.flags
        is_relaxed = self.waits and not settings.strict_barriers
        if self._widths:
            textures = self._textures.of_launch(words, math.prod(grid))
            shape = grid, group, is_relaxed, textures
            entry, flags = self._chosen.get(shape) or self._code_for(*shape)
        if is_relaxed:
            flags |= native_library.RELAXED
        job = self._job.pack(
            entry, flags, len(words), *grid, *group,
            arguments.threadgroup_bytes, self._variable_bytes, self.cost_address,
            arguments.limit_ns, *words,
        )  # fmt: skip
        if not (is_relaxed or arguments.limit_ns) and (grid, launch_group) not in self.jobs:
            if len(self.jobs) >= _MAX_CACHED_SHAPES:
                self.jobs.clear()
            self.jobs[grid, launch_group] = job[: native_library.JOB_BYTES]
        return job
