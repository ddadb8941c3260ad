"""Compile a kernel by one of the engines, or find it in the cache."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Protocol

from metalloid.backends.cpu.compile import reference, vector
from metalloid.backends.cpu.compile.compiled_kernel import (
    UNCHECKED,
    BoundsRequest,
    CodeProperties,
    CompiledKernel,
    Sanitizer,
    restored,
)
from metalloid.backends.cpu.compile.kernel_ir import KernelIR, Lowered, kernel_ir
from metalloid.backends.cpu.compile.variants import Variant
from metalloid.compiler.analysis.threadgroup_memory import distances
from metalloid.compiler.counting.count_blocks import with_counters
from metalloid.compiler.frontend.debug_info import location_of
from metalloid.compiler.frontend.symbols import ENTRY_SYMBOL
from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.compiler.ir.pass_manager import observes_passes
from metalloid.compiler.ir.types import Unsupported
from metalloid.compiler.toolchain import clang
from metalloid.compiler.toolchain.cache import Cache, digest
from metalloid.compiler.toolchain.link import shared_object
from metalloid.compiler.toolchain.progress import compiling
from metalloid.compiler.toolchain.target import Target
from metalloid.errors import MetalloidError
from metalloid.msl.entry_points import EntryPoint


class Engine(Protocol):
    """An engine that runs kernels: a module with these functions."""

    def functions(self, reports: bool, variant: Variant | None, parameters: int) -> str:
        """C++ of the functions that the runtime calls."""

    def lower(self, kernel: KernelIR, variant: Variant | None) -> Lowered:
        """IR ready for code generation; without a `variant`, of the initial one."""


_ENGINES: dict[str, Engine] = {"simd": vector, "reference": reference}


@dataclass(frozen=True)
class KernelRequest:
    """A kernel to compile.

    Attributes
    ----------
    unit : TranslationUnit
    entry : EntryPoint
        The kernel of the unit.
    constants : dict of str
        Function constants by index, as C++ text.
    target : Target
    engine : str
        That of the settings. Kernels without vector form use the reference engine.
    variant : Variant or None
        Without, the initial one.
    is_linked : bool
        Whether this process will load it.
    debug_lines : bool
        Whether its code has debug information: the lines of the text.
    bounds : BoundsRequest
        The accesses to check.
    sanitize : Sanitizer
        The engine of the sanitizer to instrument it for. A kernel that is for `Sanitizer.FAST` has
        a vector form.
    counts : bool
        Whether its blocks are counted; of the reference engine, with debug lines.
    """

    unit: TranslationUnit
    entry: EntryPoint
    constants: Mapping[int, str]
    target: Target
    engine: str
    variant: Variant | None = None
    is_linked: bool = True
    debug_lines: bool = False
    bounds: BoundsRequest = UNCHECKED
    sanitize: Sanitizer = Sanitizer.OFF
    counts: bool = False


def compile_kernel(request: KernelRequest, cache: Cache) -> CompiledKernel:
    """Compile one kernel of a unit to code, or load it from the cache.

    Raises
    ------
    CompileError
        If its template cannot be instantiated, or a parameter cannot be filled by a launch.
    ValueError
        If there is no engine of the name in the settings.
    Unsupported
        If it is for the vector form of checked kernels and has none.
    """
    unit, entry, target = request.unit, request.entry, request.target
    requested = request.engine
    if requested not in _ENGINES:
        raise ValueError(
            f"[config] cpu_engine must be one of {', '.join(_ENGINES)}, got {requested!r}"
        )
    key = digest(
        "kernel" if request.is_linked else "object", requested, str(request.variant or ""),
        repr(vector.lanes(target.vectors)), unit.key, entry.expression, entry.name,
        repr(sorted(request.constants.items())), target.identity, *target.flags,
        str(request.bounds), *(("debug lines",) if request.debug_lines else ()),
        *((f"sanitize {request.sanitize}",) if request.sanitize else ()),
        *(("counts",) if request.counts else ()),
        *(("passes", os.urandom(16).hex()) if observes_passes() else ()),
    )  # fmt: skip
    files = cache.load(key)
    if files is None:
        with compiling(f"kernel {entry.name!r} for the CPU") as begin:
            files = cache.save(key, _compile(request, cache, begin))
    if "unsupported" in files:
        raise Unsupported(files["unsupported"].read_text())
    return restored(
        json.loads(files["kernel.json"].read_bytes()), target.name,
        files["kernel.so" if request.is_linked else "kernel.o"],
        {"cpp": files["kernel.cpp"], "ll": files["kernel.ll"]},
    )  # fmt: skip


def _compile(
    request: KernelRequest, cache: Cache, begin: Callable[[str], None]
) -> dict[str, bytes | str]:
    reason = ""
    if request.engine == "simd":
        try:
            return _compiled_by("simd", request, cache, reason, begin)
        except Unsupported as error:
            if request.sanitize:
                return {"unsupported": str(error)}
            reason = f" (no vector form: {'; '.join([str(error), *_where(error, request, cache)])})"
    return _compiled_by("reference", request, cache, reason, begin)


def _where(error: Unsupported, request: KernelRequest, cache: Cache) -> Iterator[str]:
    """The line and function of what has no vector form, and the pass that met it.

    The kernel is compiled again, with debug lines: they are not worth their time in all others.
    """
    kernel = _kernel_ir(vector, replace(request, debug_lines=True), cache)
    try:
        vector.lower(kernel, request.variant)
    except Unsupported as again:
        location = location_of(kernel.ir, again.debug)
        if location is not None:
            yield f"{location.file}:{location.line}, in {location.function}"
    if error.pass_name:
        yield f"pass {error.pass_name}"


def _kernel_ir(engine: Engine, request: KernelRequest, cache: Cache) -> KernelIR:
    bounds = request.bounds
    if engine is reference and bounds.checks:  # its loops over threads have no ranges
        bounds = bounds._replace(every=True)
    functions = functools.partial(
        engine.functions, variant=request.variant, parameters=len(request.entry.parameters)
    )
    return kernel_ir(
        request.unit, request.entry, request.constants, request.target, cache, functions,
        request.debug_lines, bounds, request.sanitize, request.counts,
    )  # fmt: skip


def _compiled_by(
    name: str,
    request: KernelRequest,
    cache: Cache,
    reason: str,
    begin: Callable[[str], None],
) -> dict[str, bytes | str]:
    engine = _ENGINES[name]
    begin("C++ to LLVM IR")
    kernel = _kernel_ir(engine, request, cache)
    begin("vectorising" if name == "simd" else "adapting the IR")
    lowered = engine.lower(kernel, request.variant)
    command = (*lowered.code_command, "-target", request.target.triple)
    begin("generating machine code")
    ir = lowered.ir
    if request.counts:
        ir = with_counters(ir, len(kernel.counters.blocks))
    code = clang.run([*command, "-c", "-o", "-", "-"], ir)
    if code.status != 0 and name == "simd":
        # LLVM's back end is less tested on such code than on code from C.
        raise Unsupported(f"LLVM failed to generate code (status {code.status})")
    if code.status != 0:
        raise MetalloidError(
            f"[{request.entry.name}] clang accepted the kernel but could not generate code for "
            f"{request.target.name}:\n{code.messages}"
        )
    facts = {
        **{each.name: getattr(lowered, each.name) for each in fields(CodeProperties)},
        "variant": str(lowered.variant or ""),
        "engine": lowered.engine + reason,
        "code_command": command,
        "layouts": kernel.layouts,
        "waits": kernel.synchronises,
        "shares": kernel.shares,
        "threadgroup_bytes": distances(kernel.ir)[1],
        "logs": kernel.logs,
        "bounds": kernel.bounds._asdict(),
        "accesses": kernel.accesses._asdict(),
        "counters": kernel.counters._asdict(),
    }
    objects = {"kernel.o": code.output}
    if request.is_linked:
        objects = {"kernel.so": shared_object(objects, f"{ENTRY_SYMBOL}.so")}
    return {
        "kernel.cpp": kernel.cpp,
        "kernel.ll": lowered.ir,
        "kernel.json": json.dumps(facts),
        **objects,
    }
