"""Compile a kernel by one of the engines, or find it in the cache."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from metalloid.backends.cpu.compile import reference, vector
from metalloid.backends.cpu.compile.kernel_ir import KernelIR, Lowered, kernel_ir
from metalloid.backends.cpu.compile.variants import Variant, parse_variant
from metalloid.compiler.analysis.threadgroup_memory import distances
from metalloid.compiler.frontend.debug_info import location_of
from metalloid.compiler.frontend.entry import ENTRY_SYMBOL
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
class CompiledKernel:
    """A kernel as machine code.

    Attributes
    ----------
    architecture : str
        Of the target: ``"x86_64"`` or ``"aarch64"``.
    code : Path
        A shared object; for another machine, an object file.
    layouts : tuple of int
        Table of the parameters' types, for `build_signature`.
    fibres : bool
        Whether each thread needs its own stack.
    waits : bool
        Whether threads wait for each other.
    shares : bool
        Whether it has threadgroup variables.
    threadgroup_bytes, variable_bytes : int
        Their size, and the part of it that a launch has to allocate.
    logs : bool
        Whether it logs messages.
    widths : tuple of int
        Widths its simdgroups may have, the best first; empty if it is not vector code.
    reads_in_loops : bool
        Whether threads load in loops.
    rows : int
        Number of rows of threads computed at a time.
    streamable : int
        Bytes of each thread that non-temporal stores could write.
    axis : str
        Axis along which neighbouring threads access contiguous memory: ``"x"``, ``"y"`` or ``"z"``.
    variant : Variant or None
        None if there is one only.
    engine : str
        The engine that runs it, and why.
    code_command : tuple of str
        Compiles its IR to code.
    stages : dict
        File of each stage of compilation by name.
    """

    architecture: str
    code: Path
    layouts: tuple[int, ...]
    fibres: bool
    waits: bool
    shares: bool
    threadgroup_bytes: int
    variable_bytes: int
    logs: bool
    widths: tuple[int, ...]
    reads_in_loops: bool
    rows: int
    streamable: int
    axis: str
    variant: Variant | None
    engine: str
    code_command: tuple[str, ...]
    stages: dict[str, Path]

    def asm(self) -> dict[str, str]:
        """Text of each stage: the lowered C++, LLVM IR, and assembly."""
        texts = {name: path.read_text() for name, path in self.stages.items()}
        outcome = clang.run([*self.code_command, "-S", "-o", "-", "-"], texts["ll"])
        texts["x86" if self.architecture == "x86_64" else "arm64"] = outcome.text
        return texts


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
    """

    unit: TranslationUnit
    entry: EntryPoint
    constants: Mapping[int, str]
    target: Target
    engine: str
    variant: Variant | None = None
    is_linked: bool = True
    debug_lines: bool = False


def compile_kernel(request: KernelRequest, cache: Cache) -> CompiledKernel:
    """Compile one kernel of a unit to code, or load it from the cache.

    Raises
    ------
    CompileError
        If its template cannot be instantiated, or a parameter cannot be filled by a launch.
    ValueError
        If there is no engine of the name in the settings.
    """
    unit, entry, target = request.unit, request.entry, request.target
    wanted = request.engine
    if wanted not in _ENGINES:
        raise ValueError(f"[config] cpu_engine is one of {', '.join(_ENGINES)}, not {wanted!r}")
    key = digest(
        "kernel" if request.is_linked else "object", wanted, str(request.variant or ""),
        repr(vector.lanes(target.vectors)), unit.key, entry.expression, entry.name,
        repr(sorted(request.constants.items())), target.identity, *target.flags,
        *(("debug lines",) if request.debug_lines else ()),
        *(("passes", os.urandom(16).hex()) if observes_passes() else ()),
    )  # fmt: skip
    files = cache.load(key)
    if files is None:
        with compiling(f"kernel {entry.name!r} for the CPU") as begin:
            files = cache.save(key, _compile(request, cache, wanted, begin))
    facts = json.loads(files["kernel.json"].read_bytes())
    return CompiledKernel(
        target.name,
        files["kernel.so" if request.is_linked else "kernel.o"],
        tuple(facts["layouts"]),
        facts["fibres"],
        facts["waits"],
        facts["shares"],
        facts["threadgroup_bytes"],
        facts["variable_bytes"],
        facts["logs"],
        tuple(facts["widths"]),
        facts["reads_in_loops"],
        facts["rows"],
        facts["streamable"],
        facts["axis"],
        parse_variant(facts["variant"]) if facts["variant"] else None,
        facts["engine"],
        tuple(facts["code_command"]),
        {"cpp": files["kernel.cpp"], "ll": files["kernel.ll"]},
    )


def _compile(
    request: KernelRequest, cache: Cache, wanted: str, begin: Callable[[str], None]
) -> dict[str, bytes | str]:
    reason = ""
    if wanted == "simd":
        try:
            return _compiled_by("simd", request, cache, reason, begin)
        except Unsupported as error:
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
    functions = functools.partial(
        engine.functions, variant=request.variant, parameters=len(request.entry.parameters)
    )
    return kernel_ir(
        request.unit, request.entry, request.constants, request.target, cache, functions,
        request.debug_lines,
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
    code = clang.run([*command, "-c", "-o", "-", "-"], lowered.ir)
    if code.status != 0 and name == "simd":
        # LLVM's back end is less tested on such code than on code from C.
        raise Unsupported(f"LLVM fails on it, status {code.status}")
    if code.status != 0:
        raise MetalloidError(
            f"[{request.entry.name}] clang accepted the kernel but could not generate code for "
            f"{request.target.name}:\n{code.messages}"
        )
    facts = {
        "layouts": kernel.layouts,
        "fibres": lowered.fibres,
        "waits": kernel.synchronises,
        "shares": kernel.shares,
        "threadgroup_bytes": distances(kernel.ir)[1],
        "variable_bytes": lowered.variable_bytes,
        "logs": kernel.logs,
        "widths": lowered.widths,
        "reads_in_loops": lowered.reads_in_loops,
        "rows": lowered.rows,
        "streamable": lowered.streamable,
        "axis": lowered.axis,
        "variant": str(lowered.variant or ""),
        "engine": lowered.engine + reason,
        "code_command": command,
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
