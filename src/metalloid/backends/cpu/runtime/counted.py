"""Kernels that count how often their blocks run, for profiles."""

from __future__ import annotations

import ctypes
from typing import Any

from metalloid.backends.cpu.compile.compiled_kernel import CompiledKernel
from metalloid.backends.cpu.runtime import native_library
from metalloid.backends.cpu.runtime.program import CpuProgram
from metalloid.compiler.frontend.symbols import COUNTERS
from metalloid.runtime.launch.launches import Arguments
from metalloid.runtime.launch.program import Size


class CountedProgram(CpuProgram):
    """A kernel with counters, whose launches run at once and on one thread."""

    launch_flags = native_library.ALONE

    def _load(self, kernel: CompiledKernel) -> tuple[int, int]:
        library = ctypes.CDLL(str(kernel.code))  # which the base class unloads with the program
        self._blocks = kernel.counters.blocks
        self._counters = (ctypes.c_uint64 * max(len(self._blocks), 1)).in_dll(library, COUNTERS)
        return super()._load(kernel)

    def count(
        self, arguments: Arguments, grid: Size, group: Size
    ) -> list[tuple[int, dict[str, list[list[Any]]]]]:
        """Run a launch on memory of its own; return how often blocks ran, and what each costs.

        Raises
        ------
        MetalloidError
            If the launch fails.
        """
        ctypes.memset(self._counters, 0, ctypes.sizeof(self._counters))
        outcome = native_library.Outcome()
        status = native_library.runtime().run(self.job(arguments, grid, group), outcome)
        if self.logs:
            native_library.runtime().take_messages()
        if status != 0:
            raise self.failure(outcome, grid, group)
        counts = list(self._counters)
        return [each for each in zip(counts, self._blocks, strict=False) if each[0]]
