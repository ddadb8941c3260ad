"""Programs that are compiled here, unlike those of bundles."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace

from metalloid.backends.cpu.compile.compiled_kernel import (
    BoundsRequest,
    CompiledKernel,
    Sanitizer,
)
from metalloid.backends.cpu.compile.engines import KernelRequest, compile_kernel
from metalloid.backends.cpu.compile.variants import Variant
from metalloid.backends.cpu.runtime.counted import CountedProgram
from metalloid.backends.cpu.runtime.fast_checks import FastChecks
from metalloid.backends.cpu.runtime.program import CpuProgram
from metalloid.backends.cpu.runtime.sanitizer import CheckedProgram
from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.compiler.toolchain.cache import shared_cache
from metalloid.compiler.toolchain.target import Target
from metalloid.msl.entry_points import EntryPoint
from metalloid.settings import settings


def compile_program(
    unit: TranslationUnit,
    entry: EntryPoint,
    constants: Mapping[int, str],
    target: Target,
    names: dict[int | None, str],
) -> CpuProgram:
    """See `Device.compile`.

    Parameters
    ----------
    names : dict
        Names of kernels that log, by address.
    """
    first = KernelRequest(unit, entry, constants, target, settings.cpu_engine)
    has_checks = unit.options.bounds != "unchecked"

    def compile_variant(
        variant: Variant | None, bounds: BoundsRequest, debug_lines: bool = False
    ) -> CompiledKernel:
        request = replace(first, variant=variant, debug_lines=debug_lines, bounds=bounds)
        return compile_kernel(request, shared_cache())

    def compile_fast_checks() -> CpuProgram:
        # Lines say which conversions and variables are the user's.
        fast = replace(first, engine="simd", debug_lines=True, sanitize=Sanitizer.FAST)

        def compile_form(
            variant: Variant | None, bounds: BoundsRequest, debug_lines: bool = False
        ) -> CompiledKernel:
            return compile_kernel(replace(fast, variant=variant, bounds=bounds), shared_cache())

        bounds = BoundsRequest(checks=has_checks)
        form = compile_form(None, bounds)
        return CpuProgram(form, entry, compile_form, names, bounds)

    def compile_checked() -> CheckedProgram:
        bounds = BoundsRequest(checks=has_checks, every=has_checks)
        checked = replace(
            first, engine="reference", bounds=bounds, debug_lines=True,
            sanitize=Sanitizer.EXACT,
        )  # fmt: skip
        kernel = compile_kernel(checked, shared_cache())
        program = CheckedProgram(kernel, entry, lambda *_, **__: kernel, names, bounds)
        program.fast_checks = FastChecks(compile_fast_checks)
        return program

    if unit.options.check:
        checked = compile_checked()
        checked.checks_all = True
        return checked
    bounds = BoundsRequest(checks=has_checks)
    kernel = compile_variant(None, bounds)
    program = CpuProgram(kernel, entry, compile_variant, names, bounds)
    program.compile_checked = functools.cache(compile_checked)
    return program


def compile_counted(
    unit: TranslationUnit,
    entry: EntryPoint,
    constants: Mapping[int, str],
    target: Target,
    names: dict[int | None, str],
) -> CountedProgram:
    """See `CpuDevice.counted`."""
    bounds = BoundsRequest(checks=True, every=True)
    request = KernelRequest(
        unit, entry, constants, target, "reference", debug_lines=True, bounds=bounds,
        counts=True,
    )  # fmt: skip
    kernel = compile_kernel(request, shared_cache())
    return CountedProgram(kernel, entry, lambda *_, **__: kernel, names, bounds)
