"""From a kernel of a translation unit to SPIR-V."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from metalloid.backends.opencl.compile.atomic_addresses import through_integers
from metalloid.backends.opencl.compile.bits_of_bools import extract_bits
from metalloid.backends.opencl.compile.imports import imported_names
from metalloid.backends.opencl.compile.module_edits import reports
from metalloid.backends.opencl.compile.pipeline import run_pipeline
from metalloid.compiler.bounds.recorded_faults import NAMES, RECORD_TEXT, checked_words
from metalloid.compiler.bounds.table import BoundsTable
from metalloid.compiler.frontend.debug_info import LINE_TABLES, with_user_locations
from metalloid.compiler.frontend.entry import entry_text, read_layouts
from metalloid.compiler.frontend.source_positions import SourcePositions, is_user_file
from metalloid.compiler.frontend.symbols import ENTRY_SYMBOL
from metalloid.compiler.frontend.translate import compile_command, compile_entry
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
from metalloid.msl.signature import build_signature

_ENTRY = (
    f'extern "C" __attribute__((device_kernel)) [[clang::sycl_external]] void {ENTRY_SYMBOL}'
    "(metalloid::launch_data<{0}> launch, threadgroup char* memory)"
    " {{ metalloid::run_thread<mtl_entry_type, {1}>(launch, memory); }}"
)
#: SPIR-V has integers of 8, 16, 32 and 64 bits. LLVM computes values after loops with others.
_LOOPS = ("-mllvm", "-replexitval=never")
_AS_IT_IS = ("-Xclang", "-disable-llvm-passes")


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
    is_row: bool = False,
) -> SpirvKernel:
    """Compile one kernel of a unit to SPIR-V, or find it in the cache.

    Parameters
    ----------
    is_row : bool
        Whether it is for threadgroups of one dimension only.

    Raises
    ------
    CompileError
        If its template cannot be instantiated, or a parameter cannot be filled by a launch.
    """
    key = digest(
        "spirv", unit.key, entry.expression, entry.name, repr(sorted(constants.items())),
        *target.flags, *(("row",) if is_row else ()),
        *(("checked",) if _is_checked(unit) else ()),
        *(("passes", os.urandom(16).hex()) if observes_passes() else ()),
    )  # fmt: skip
    files = cache.load(key)
    if files is None:
        with compiling(f"kernel {entry.name!r} for {target.name}"):
            source = _KernelSource(unit, entry, constants, target, cache, is_row)
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
    source = _KernelSource(unit, entry, constants, target, cache, is_row=True)
    return source.module(debug_lines=True)[3]


def _is_checked(unit: TranslationUnit) -> bool:
    return unit.options.bounds == "checked"


def assembly(kernel: SpirvKernel, target: Target) -> str:
    """The SPIR-V as text."""
    ir = read(kernel.stages["ll"])
    return clang.run([*_back_end(target), *_AS_IT_IS, "-S"], ir).text


def _back_end(target: Target) -> list[str]:
    return ["clang", "-x", "ir", *target.flags, "-O3", *_LOOPS, "-w", "-o", "-", "-"]


@dataclass(frozen=True)
class _KernelSource:
    """The source of a kernel; the attributes are the arguments of `compile_spirv`."""

    unit: TranslationUnit
    entry: EntryPoint
    constants: Mapping[int, str]
    target: Target
    cache: Cache
    is_row: bool

    def compiled(self, *more: str, words: int = 0) -> tuple[str, str]:
        """C++ and LLVM IR with a function for the driver, by more options.

        Parameters
        ----------
        words : int
            Of a launch, if the kernel's accesses are to be checked.
        """
        unit, target = self.unit, self.target
        to_ir = [
            *compile_command(unit.text, unit.options, target, self.cache),
            *(*_LOOPS, "-w", "-S", "-emit-llvm", "-o", "-", "-"),
        ]
        count = str(words) if words else "mtl_entry_type::parameter_count"
        code = (_ENTRY + RECORD_TEXT * bool(words)).format(count, str(self.is_row).lower())

        def embed(text: str) -> str:
            return entry_text(text, unit, self.entry, self.constants, code, retains_kernel=False)

        return compile_entry([*to_ir, *more], unit, self.entry, target, embed)

    def module(self, debug_lines: bool = False) -> tuple[str, Sequence[int], str, BoundsTable]:
        """C++, table of the parameters' types, the module, and the table of its checks."""
        text, ir = self.compiled()
        layouts = read_layouts(ir)
        signature, positions = build_signature(self.entry, layouts), None
        if _is_checked(self.unit):
            options = (NAMES, *(LINE_TABLES,) * debug_lines)
            text, ir = self.compiled(*options, words=checked_words(signature))
            ir = with_user_locations(ir, is_user_file) if debug_lines else ir
            positions = SourcePositions(self.unit.sources, text)
        try:
            return text, layouts, *run_pipeline(ir, signature, positions)
        except Unsupported as problem:
            name = self.entry.name
            raise MetalloidError(f"[{name}] {problem} is not supported in SPIR-V") from None


def _compile(source: _KernelSource) -> dict[str, bytes | str]:
    unit, entry, target = source.unit, source.entry, source.target
    text, layouts, ir, bounds = source.module()
    does_report = reports(ir)
    optimized = clang.run([*_back_end(target), "-S", "-emit-llvm"], ir)
    ir = through_integers(extract_bits(optimized.text))
    code = clang.run([*_back_end(target), *_AS_IT_IS, "-c"], ir)
    if optimized.status or code.status:
        raise MetalloidError(
            f"[{entry.name}] clang accepted the kernel but could not generate SPIR-V:\n"
            f"{(optimized.messages + code.messages)[:2000]}"
        )
    for missing in imported_names(code.output):
        raise undefined(missing, unit, entry, lambda: source.compiled(LINE_TABLES)[1])
    return {
        "kernel.cpp": text,
        "kernel.ll": ir,
        "kernel.spv": code.output,
        "kernel.json": json.dumps({
            "layouts": layouts,
            "reports": does_report,
            "bounds": bounds._asdict() if _is_checked(unit) else None,
        }),
    }  # fmt: skip
