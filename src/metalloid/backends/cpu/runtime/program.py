"""Programs: loaded kernels, which choose a variant for each launch."""

from __future__ import annotations

import contextlib
import ctypes
import math
import struct
import weakref
from collections.abc import Callable, Mapping
from typing import Protocol

from metalloid.backends.cpu import host
from metalloid.backends.cpu.compile.compiled_kernel import (
    UNCHECKED,
    BoundsRequest,
    CompiledKernel,
)
from metalloid.backends.cpu.compile.lane_axes import lane_axis
from metalloid.backends.cpu.compile.texture_specialization import KnownWord, TextureVariants
from metalloid.backends.cpu.compile.variants import Kind, Variant, variant_for
from metalloid.backends.cpu.runtime import native_library
from metalloid.backends.cpu.runtime.bounds import RangeProof, table_of_pointees
from metalloid.backends.cpu.runtime.private_buffers import PrivateBuffers
from metalloid.backends.cpu.runtime.threadgroup_fusion import (
    default_group_size,
    fused,
    fused_along,
    sees_threadgroups,
)
from metalloid.compiler.bounds.table import pointer_slots, words_with_table
from metalloid.compiler.frontend.symbols import ENTRY_SYMBOL
from metalloid.errors import MetalloidError
from metalloid.msl.entry_points import EntryPoint
from metalloid.msl.signature import build_signature
from metalloid.runtime.launch.launches import UNKNOWN_BYTES, Arguments
from metalloid.runtime.launch.program import MAX_THREADS_PER_THREADGROUP, Program, Size
from metalloid.settings import settings

_MAX_CACHED_SHAPES = 1024  # maximum shapes of launches in a program's caches
_FIBRES_BY_DEFAULT = 256  # threads per threadgroup: limits the memory of stacks
#: Of a launch: grid, threadgroup, whether barriers are relaxed, what textures are, and whether
#: workers have copies of buffers.
_Shape = tuple[Size, Size, bool, tuple[KnownWord, ...], bool]


class CompileVariant(Protocol):
    """Compiles a variant of a kernel, or loads it from the cache."""

    def __call__(
        self, variant: Variant | None, bounds: BoundsRequest, debug_lines: bool = False
    ) -> CompiledKernel:
        """The code of a variant; without one, of the initial variant."""


class CpuProgram(Program):
    """A kernel, loaded into this process.

    Attributes
    ----------
    compile_checked : callable or None
        Compiles the kernel for checked launches; None if it is this program.
    words_of_jobs : int
        Number of the words of a job, after its head.
    """

    compile_checked: Callable[[], CpuProgram] | None = None
    #: Whether its code is instrumented for the sanitizer: a `CheckedProgram`.
    is_sanitized = False
    #: Flags of all launches.
    launch_flags = 0

    def __init__(
        self,
        kernel: CompiledKernel,
        entry: EntryPoint,
        compile_variant: CompileVariant,
        names: dict[int | None, str],
        bounds: BoundsRequest,
    ) -> None:
        self.signature = build_signature(entry, kernel.layouts)
        words = len(self.signature.sources)
        self.proof = RangeProof(kernel.bounds, words) if bounds.checks else None
        self._first = kernel
        self.logs = kernel.logs
        self._names = names
        self.entry, self.flags = code = self._load(kernel)
        self._widths, self.waits = kernel.widths, kernel.waits
        self._reads_in_loops, self._rows = kernel.reads_in_loops, kernel.rows
        self.threadgroup_bytes = kernel.threadgroup_bytes
        self.variable_bytes = kernel.variable_bytes
        self.shadow_unit = kernel.accesses.unit
        self._compile_variant = compile_variant
        self._variants = {(kernel.variant, bounds): code}
        self._kernels = {(kernel.variant, bounds): kernel}
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
        self._private = PrivateBuffers(kernel.private_words, kernel.adds_in_loops)
        self.words_of_jobs = words_with_table(self.signature) if self.proof else words
        self.words_of_jobs += self._private.word_count
        self._words = struct.Struct(f"={self.words_of_jobs}Q")
        self._unknown_extents = dict.fromkeys(range(words), UNKNOWN_BYTES)
        #: Pointers in memory, whose extents follow those of words.
        self.slots = pointer_slots(self.signature) if self.proof else ()

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
        self, grid: Size, group: Size, is_relaxed: bool, textures: tuple[KnownWord, ...],
        is_private: bool,
    ) -> tuple[int, int]:  # fmt: skip
        """Address and flags of the variant that a launch needs."""
        initial = self._first.variant
        assert initial is not None
        by_shape = initial.kind in (Kind.SINGLE_ROW, Kind.SINGLE_COLUMN)
        variant = variant_for(grid, group, self._widths, self.waits, by_shape)
        if variant.for_group_of(grid, group) == initial:
            variant = initial
        streams = self._first.streamable * math.prod(grid) >= host.cache_bytes()
        variant = variant._replace(
            textures=textures, is_relaxed=is_relaxed, streams=streams and not is_relaxed,
            is_private=is_private,
        )  # fmt: skip
        bounds = self._bounds_of(variant)
        code = self._variants.get((variant, bounds))
        if code is None:
            kernel = self._compile_variant(variant, bounds)
            if self.proof and not bounds.every and kernel.bounds.key != self._first.bounds.key:
                # Its sites have other numbers than those of the proof.
                bounds = BoundsRequest(checks=True, every=True)
                kernel = self._compile_variant(variant, bounds)
            code = self._load(kernel)
            self._variants[variant, self._bounds_of(variant)] = code
            self._kernels[variant, bounds] = kernel
            self.engine = kernel.engine
        if len(self._chosen) >= _MAX_CACHED_SHAPES:
            self._chosen.clear()
        self._chosen[grid, group, is_relaxed, textures, is_private] = code
        return code

    def _bounds_of(self, variant: Variant) -> BoundsRequest:
        """The accesses that a variant checks."""
        if self.proof is None:
            return UNCHECKED
        if variant.textures:  # its sites have other numbers
            return BoundsRequest(checks=True, every=True)
        return self.proof.request

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
        from metalloid.backends.cpu.runtime.faults import INTERRUPTED  # here: most do not fail

        if outcome.status == INTERRUPTED:
            return native_library.runtime().interruption()
        return self.error(outcome, grid, group)

    def error(self, outcome: native_library.Outcome, grid: Size, group: Size) -> MetalloidError:
        """The error of a failed launch."""
        from metalloid.backends.cpu.runtime.faults import OUTSIDE, error_of

        fusion = self._fusion(grid, group)

        def fused_groups(position: Size) -> tuple[Size, Size]:
            x, y, z = (p * n for p, n in zip(position, fusion, strict=True))
            right, bottom, back = (
                min(p + n, -(-size // each)) - 1
                for p, n, size, each in zip((x, y, z), fusion, grid, group, strict=True)
            )
            return (x, y, z), (right, bottom, back)

        describe = self._describe_outside if outcome.status == OUTSIDE else None
        return error_of(
            outcome, self.signature.name, fused_groups, group, self._source_line, describe
        )

    def _describe_outside(
        self, outcome: native_library.Outcome
    ) -> tuple[str, tuple[str, int] | None, str]:
        """A failed access: in words, its file and line, and the line with a caret.

        The line is known if the kernel can be compiled again.
        """
        from metalloid.backends.cpu.runtime.source_lines import load_address
        from metalloid.runtime.launch.outside import describe_site

        base = load_address(outcome.code)
        table = self._first.bounds
        for (variant, bounds), kernel in self._kernels.items():
            entry, _ = self._variants.get((variant, bounds), (0, 0))
            if base and load_address(entry) == base:
                table = kernel.bounds
                with contextlib.suppress(MetalloidError):  # such as on a full disk
                    table = self._compile_variant(variant, bounds, debug_lines=True).bounds
        offset = ctypes.c_int64(outcome.address).value
        return describe_site(self.signature, table.sites[outcome.lane], offset, outcome.limit_ns)

    def _source_line(self, address: int) -> tuple[str, int] | None:
        """File and line of an instruction of this kernel; None if it is unknown."""
        from metalloid.backends.cpu.runtime.source_lines import load_address, source_line

        base = load_address(address)
        for (variant, bounds), kernel in self._kernels.items():
            entry, _ = self._variants.get((variant, bounds), (0, 0))
            if base and load_address(entry) == base:
                try:
                    with_lines = self._compile_variant(variant, bounds, debug_lines=True).code
                except MetalloidError:  # the fault is told without it, such as on a full disk
                    return None
                return source_line(kernel.code, with_lines, address - base)
        return None

    def reads_buffers(self, arguments: Arguments) -> bool:
        """Whether `job` reads what buffers of a launch contain."""
        read = self.proof.arguments if self.proof is not None else ()
        return any(
            buffer.address <= arguments.words[position] < buffer.address + buffer.nbytes
            for position in read for buffer in arguments.buffers
        )  # fmt: skip

    def assume_nothing_of_contents(self) -> None:
        """Let the code check what `job` would prove from numbers that a launch reads."""
        if self.proof is not None and self.proof.arguments:
            self.proof.check_all()
            self.jobs.clear()
            self._chosen.clear()

    def job(self, arguments: Arguments, grid: Size, group: Size) -> bytes:
        """A launch in the format of the native runtime."""
        proof = self.proof if self._widths else None
        job = self._packed(arguments, grid, group)
        while proof is not None and proof.is_needed and not proof.holds(job):
            proof.check_more(job)
            self.jobs.clear()
            self._chosen.clear()
            job = self._packed(arguments, grid, group)
        return job

    def _packed(self, arguments: Arguments, grid: Size, group: Size) -> bytes:
        words, launch_group = arguments.words, group
        extents: list[int] = []
        if self.proof is not None:
            extents = arguments.extent_words(self._unknown_extents, self.slots)
            if self.slots:
                extents.append(table_of_pointees(arguments))
        across, down, back = self._fusion(grid, group)
        group = (group[0] * across, group[1] * down, group[2] * back)
        entry, flags = self.entry, self.flags
        is_relaxed = self.waits and not settings.strict_barriers
        private = self._private.words_of(arguments, grid)
        if self._widths:
            textures = self._textures.of_launch(words, math.prod(grid))
            shape = grid, group, is_relaxed, textures, any(private)
            entry, flags = self._chosen.get(shape) or self._code_for(*shape)
        flags |= self.launch_flags
        if is_relaxed:
            flags |= native_library.RELAXED
        if any(private):
            flags += native_library.PRIVATE * (len(private) // 2)

        def head(word_count: int) -> bytes:
            return native_library.HEAD.pack(
                entry, flags, word_count, *grid, *group, arguments.threadgroup_bytes,
                self.variable_bytes, self.cost_address, arguments.limit_ns,
            )  # fmt: skip

        is_plain = not (is_relaxed or arguments.limit_ns or self._private.may_be_used(grid))
        if is_plain and (grid, launch_group) not in self.jobs:
            if len(self.jobs) >= _MAX_CACHED_SHAPES:
                self.jobs.clear()
            self.jobs[grid, launch_group] = head(len(words) + len(extents))
        return head(self.words_of_jobs) + self._words.pack(*words, *extents, *private)
