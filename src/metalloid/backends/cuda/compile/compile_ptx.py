"""From a kernel of a translation unit to PTX."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metalloid.backends.cuda.compile.cancellation_polls import CANCEL_SYMBOL, poll_loops
from metalloid.backends.cuda.compile.dynamic_shared_memory import use_dynamic_shared_memory
from metalloid.backends.cuda.compile.module_edits import PRINTF_SYMBOL
from metalloid.backends.cuda.compile.pipeline import Module, run_pipeline
from metalloid.compiler.bounds.kernel_source import KernelIr, KernelSource
from metalloid.compiler.bounds.table import BoundsTable
from metalloid.compiler.frontend.debug_info import LINE_TABLES
from metalloid.compiler.frontend.symbols import ENTRY_SYMBOL
from metalloid.compiler.frontend.undefined_symbols import undefined
from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.compiler.ir.pass_manager import observes_passes
from metalloid.compiler.ir.types import Unsupported
from metalloid.compiler.toolchain import clang
from metalloid.compiler.toolchain.cache import Cache, digest
from metalloid.compiler.toolchain.progress import compiling
from metalloid.compiler.toolchain.target import Target
from metalloid.errors import MetalloidError
from metalloid.msl.entry_points import EntryPoint
from metalloid.msl.layout import with_written
from metalloid.settings import settings

_ENTRY = (
    f'extern "C" __attribute__((device_kernel)) [[clang::sycl_external]] void {ENTRY_SYMBOL}'
    "(metalloid::launch_data<{0}> launch) {{ metalloid::run_thread<mtl_entry_type>(launch); }}"
)
_KERNEL_HEAD = re.compile(
    rf"^(define [^\n]*@{ENTRY_SYMBOL}\([^\n]*\)[^\n]*?)( (?:#\d+ )?\{{)$", re.M
)

#: Loops with unknown trip counts are unrolled up to so many instructions. By default LLVM does not
#: unroll small ones; CUDA's compiler unrolls them by four.
_UNROLLING = ("-mllvm", "-unroll-partial-threshold=120")
_MISSING = re.compile(
    r"^\.extern \.(?:func\s+(?:\([^)]*\)\s*)?|(?:global|const)\b[^;\n]*?)(\w+)(?=\s*[\n(;\[]|$)",
    re.M,
)


@dataclass(frozen=True)
class PtxKernel:
    """A kernel as PTX.

    Attributes
    ----------
    stages : dict
        File of each stage of compilation by name: ``"cpp"``, ``"ll"``, ``"ptx"``.
    layouts : tuple of int
        Table of the parameters' types, for `build_signature`.
    uses_printf : bool
        Whether it logs or asserts.
    lanes_in_order : bool
        Whether thread i of a threadgroup is lane i % 32 of its warp.
    dynamic_shared_bytes : int
        Dynamic shared memory that a launch requests in addition to that of parameters.
    coarsening : int
        Metal threads per CUDA thread of the coarsened kernel (coarsening.py); 1 if there is none.
    is_vectorized : bool
        Whether these threads are adjacent in x (vectorized_coarsening.py).
    axis : int
        The axis along which the threadgroups of these threads are adjacent.
    is_cancellable : bool
        Whether it polls the cancellation flag (cancellation_polls.py).
    bounds : BoundsTable or None
        Of the checks of its accesses; None if they are not checked.
    """

    stages: dict[str, Path]
    layouts: tuple[int, ...]
    uses_printf: bool
    lanes_in_order: bool
    dynamic_shared_bytes: int
    coarsening: int
    is_vectorized: bool
    axis: int
    is_cancellable: bool
    bounds: BoundsTable | None

    @property
    def text(self) -> str:
        """The PTX."""
        return self.stages["ptx"].read_text()


def compile_ptx(
    unit: TranslationUnit,
    entry: EntryPoint,
    constants: Mapping[int, str],
    target: Target,
    cache: Cache,
    max_threads: int = 0,
) -> PtxKernel:
    """Compile one kernel of a unit to PTX, or find it in the cache.

    Parameters
    ----------
    max_threads : int
        Threads that a threadgroup must be able to have, which limits the registers of each; 0: no
        limit.

    Raises
    ------
    CompileError
        If its template cannot be instantiated, or a parameter cannot be filled by a launch.
    """
    source = KernelSource(unit, entry, constants, target, cache, _ENTRY.format)
    key = digest(
        "ptx", unit.key, entry.expression, entry.name, repr(sorted(constants.items())),
        str(max_threads), str(settings.cancellable), *target.flags,
        *(("checked",) if source.is_checked else ()),
        *(("passes", os.urandom(16).hex()) if observes_passes() else ()),
    )  # fmt: skip
    files = cache.load(key)
    if files is None:
        with compiling(f"kernel {entry.name!r} for {target.name}"):
            compiled = _compile(source, max_threads)
        files = cache.save(key, compiled)
    names = {"cpp": "kernel.cpp", "ll": "kernel.ll", "ptx": "kernel.ptx"}
    stages = {stage: files[name] for stage, name in names.items()}
    return restored(json.loads(files["kernel.json"].read_bytes()), stages)


def restored(facts: Mapping[str, Any], stages: dict[str, Path]) -> PtxKernel:
    """A kernel from the facts in ``kernel.json``."""
    bounds = facts["bounds"] and BoundsTable(**facts["bounds"])
    layouts = tuple(facts["layouts"])
    return PtxKernel(stages, **{**facts, "layouts": layouts, "bounds": bounds})


def bounds_with_lines(
    unit: TranslationUnit,
    entry: EntryPoint,
    constants: Mapping[int, str],
    target: Target,
    cache: Cache,
) -> BoundsTable:
    """The table of a kernel's checks with the lines of accesses, as `compile_ptx` makes none."""
    source = KernelSource(unit, entry, constants, target, cache, _ENTRY.format)
    return _run_pipeline(entry, source.lowered(debug_lines=True)).bounds


def _run_pipeline(entry: EntryPoint, kernel: KernelIr) -> Module:
    try:
        return run_pipeline(kernel.ir, kernel.signature, kernel.words, kernel.positions)
    except Unsupported as problem:
        raise MetalloidError(f"[{entry.name}] {problem} is not supported on NVIDIA GPUs") from None


def _compile(source: KernelSource, max_threads: int) -> dict[str, bytes | str]:
    unit, entry, target = source.unit, source.entry, source.target
    kernel = source.lowered()
    module = _run_pipeline(entry, kernel)
    ir = module.ir
    if max_threads:
        ir = _KERNEL_HEAD.sub(rf'\1 "nvvm.maxntid"="{max_threads}"\2', ir)
    to_ptx = ["clang", "-x", "ir", *target.flags, "-O3", *_UNROLLING, "-w", "-S", "-o", "-", "-"]
    code = clang.run(to_ptx, ir)
    if code.status != 0:
        raise MetalloidError(
            f"[{entry.name}] clang accepted the kernel but could not generate code for "
            f"{target.name}:\n{code.messages[:2000]}"
        )
    ptx, dynamic_shared_bytes = use_dynamic_shared_memory(code.output.decode())
    if settings.cancellable:
        ptx = poll_loops(ptx)
    if missing := _MISSING.search(ptx):
        raise undefined(missing[1], unit, entry, lambda: source.compiled(LINE_TABLES)[1])
    return {
        "kernel.cpp": kernel.text,
        "kernel.ll": ir,
        "kernel.ptx": ptx,
        "kernel.json": json.dumps({
            "layouts": with_written(kernel.layouts, module.written),
            "uses_printf": f"@{PRINTF_SYMBOL} = " in ir,
            "lanes_in_order": module.lanes_in_order,
            "dynamic_shared_bytes": dynamic_shared_bytes,
            "coarsening": module.coarsening,
            "is_vectorized": module.is_vectorized,
            "axis": module.axis,
            "is_cancellable": CANCEL_SYMBOL in ptx,
            "bounds": module.bounds._asdict() if source.is_checked else None,
        }),
    }  # fmt: skip
