"""From a kernel of a translation unit to SPIR-V."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from metalloid.backends.opencl.compile.atomic_addresses import through_integers
from metalloid.backends.opencl.compile.binary_modules import (
    has_impossible_indices,
    imported_names,
)
from metalloid.backends.opencl.compile.bits_of_bools import extract_bits
from metalloid.backends.opencl.compile.module_edits import reports
from metalloid.backends.opencl.compile.pipeline import (
    Module,
    legalize_integers,
    run_pipeline,
)
from metalloid.backends.opencl.compile.reversed_bits import reverse_bits_by_shifts
from metalloid.backends.opencl.compile.safe_divisors import make_divisors_safe
from metalloid.backends.opencl.compile.selected_addresses import select_integers
from metalloid.backends.opencl.compile.target import subgroup_of
from metalloid.backends.opencl.compile.vectors_of_one import scalarize_vectors_of_one
from metalloid.compiler.bounds.kernel_source import KernelIr, KernelSource
from metalloid.compiler.bounds.table import BoundsTable
from metalloid.compiler.frontend.debug_info import LINE_TABLES
from metalloid.compiler.frontend.symbols import ENTRY_SYMBOL
from metalloid.compiler.frontend.undefined_symbols import undefined
from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.compiler.ir.pass_manager import observes_passes
from metalloid.compiler.ir.types import Unsupported
from metalloid.compiler.toolchain import clang
from metalloid.compiler.toolchain.cache import Cache, digest, read
from metalloid.compiler.toolchain.progress import compiling
from metalloid.compiler.toolchain.target import Target
from metalloid.errors import MetalloidError
from metalloid.msl.entry_points import EntryPoint
from metalloid.msl.layout import with_written

_ENTRY = (
    f'extern "C" __attribute__((device_kernel)) [[clang::sycl_external]] void {ENTRY_SYMBOL}'
    "(metalloid::launch_data<{0}> launch, threadgroup char* memory)"
    " {{ metalloid::run_thread<mtl_entry_type, metalloid::form::{1}>(launch, memory); }}"
)
#: SPIR-V has integers of 8, 16, 32 and 64 bits. LLVM computes values after loops with others.
_LOOPS = ("-mllvm", "-replexitval=never")
#: Of the back end alone. Its loop strength reduction makes integers of other widths, too.
_AS_IT_IS = ("-Xclang", "-disable-llvm-passes", "-mllvm", "-disable-lsr")


Form = Literal["row", "grid", "linear"]


@dataclass(frozen=True)
class SpirvKernel:
    """A kernel as SPIR-V.

    Attributes
    ----------
    stages : dict
        File of each stage of compilation by name: ``"cpp"``, ``"ll"``, ``"spv"``.
    layouts : tuple of int
        Table of the parameters' types, for `build_signature`.
    reports : bool
        Whether it logs or asserts.
    bounds : BoundsTable or None
        Of the checks of its accesses; None if they are not checked.
    key : str
        Of the cache.
    """

    stages: dict[str, Path]
    layouts: tuple[int, ...]
    reports: bool
    bounds: BoundsTable | None
    key: str

    @property
    def module(self) -> bytes:
        """The SPIR-V."""
        return self.stages["spv"].read_bytes()


def compile_spirv(
    unit: TranslationUnit,
    entry: EntryPoint,
    constants: Mapping[int, str],
    target: Target,
    cache: Cache,
    form: Form = "linear",
) -> SpirvKernel:
    """Compile one kernel of a unit to SPIR-V, or find it in the cache.

    Parameters
    ----------
    form : "row", "grid" or "linear"
        For which launches it is, as entry.h says.

    Raises
    ------
    CompileError
        If its template cannot be instantiated, or a parameter cannot be filled by a launch.
    """
    source = _source(unit, entry, constants, target, cache, form)
    key = digest(
        "spirv", unit.key, entry.expression, entry.name, repr(sorted(constants.items())),
        *target.flags, form,
        *(("checked",) if source.is_checked else ()),
        *(("passes", os.urandom(16).hex()) if observes_passes() else ()),
    )  # fmt: skip
    files = cache.load(key)
    if files is None:
        with compiling(f"kernel {entry.name!r} for {target.name}"):
            compiled = _compile(source)
        files = cache.save(key, compiled)
    names = {"cpp": "kernel.cpp", "ll": "kernel.ll", "spv": "kernel.spv"}
    facts = json.loads(files["kernel.json"].read_bytes())
    stages = {stage: files[name] for stage, name in names.items()}
    bounds = facts["bounds"] and BoundsTable(**facts["bounds"])
    return SpirvKernel(stages, tuple(facts["layouts"]), facts["reports"], bounds, key)


def bounds_with_lines(
    unit: TranslationUnit,
    entry: EntryPoint,
    constants: Mapping[int, str],
    target: Target,
    cache: Cache,
) -> BoundsTable:
    """The table of a kernel's checks with the lines of accesses, as `compile_spirv` makes none."""
    source = _source(unit, entry, constants, target, cache, form="row")
    return _run_pipeline(entry, source.lowered(debug_lines=True), target).bounds


def assembly(kernel: SpirvKernel, target: Target) -> str:
    """The SPIR-V as text."""
    ir = read(kernel.stages["ll"])
    return clang.run([*_back_end(target), *_AS_IT_IS, "-S"], ir).text


def _back_end(target: Target) -> list[str]:
    return ["clang", "-x", "ir", *target.flags, "-O3", *_LOOPS, "-w", "-o", "-", "-"]


def _source(
    unit: TranslationUnit,
    entry: EntryPoint,
    constants: Mapping[int, str],
    target: Target,
    cache: Cache,
    form: Form,
) -> KernelSource:
    def entry_code(words: str) -> str:
        return _ENTRY.format(words, form)

    return KernelSource(
        unit, entry, constants, target, cache, entry_code, _LOOPS, retains_kernel=False
    )


def _run_pipeline(entry: EntryPoint, kernel: KernelIr, target: Target) -> Module:
    try:
        return run_pipeline(kernel.ir, kernel.signature, subgroup_of(target), kernel.positions)
    except Unsupported as problem:
        raise _unsupported(entry, problem) from None


def _unsupported(entry: EntryPoint, problem: Unsupported) -> MetalloidError:
    return MetalloidError(f"[{entry.name}] {problem} is not supported in SPIR-V")


def _compile(source: KernelSource) -> dict[str, bytes | str]:
    unit, entry, target = source.unit, source.entry, source.target
    kernel = source.lowered()
    module = _run_pipeline(entry, kernel, target)
    optimized = clang.run([*_back_end(target), "-S", "-emit-llvm"], module.ir)
    try:
        ir = select_integers(extract_bits(legalize_integers(optimized.text)))
        ir = reverse_bits_by_shifts(scalarize_vectors_of_one(ir))
        ir = make_divisors_safe(through_integers(ir))
    except Unsupported as problem:
        raise _unsupported(entry, problem) from None
    code = clang.run([*_back_end(target), *_AS_IT_IS, "-c"], ir)
    if optimized.status or code.status:
        raise MetalloidError(
            f"[{entry.name}] clang accepted the kernel but could not generate SPIR-V:\n"
            f"{(optimized.messages + code.messages)[:2000]}"
        )
    for missing in imported_names(code.output):
        raise undefined(missing, unit, entry, lambda: source.compiled(LINE_TABLES)[1])
    if has_impossible_indices(code.output):
        raise MetalloidError(f"[{entry.name}] clang generated invalid SPIR-V; please report it")
    return {
        "kernel.cpp": kernel.text,
        "kernel.ll": ir,
        "kernel.spv": code.output,
        "kernel.json": json.dumps({
            "layouts": with_written(kernel.layouts, module.written),
            "reports": reports(module.ir),
            "bounds": module.bounds._asdict() if source.is_checked else None,
        }),
    }  # fmt: skip
