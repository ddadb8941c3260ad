"""Which engine compiles a kernel, and what comes out."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from metalloid.backends.cpu import reference, vector
from metalloid.backends.cpu.kernel_ir import KernelIR, Lowered, kernel_ir
from metalloid.compiler.analysis.threadgroup_memory import distances
from metalloid.compiler.frontend.entry import ENTRY_SYMBOL
from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.compiler.ir.types import Unsupported
from metalloid.compiler.toolchain import clang
from metalloid.compiler.toolchain.cache import Cache, digest
from metalloid.compiler.toolchain.link import shared_object
from metalloid.compiler.toolchain.progress import compiling
from metalloid.compiler.toolchain.target import Target
from metalloid.errors import MetalloidError
from metalloid.msl.entry_points import EntryPoint


class Engine(Protocol):
    """A way to run kernels: a module with these."""

    def functions(self, reports: bool, variant: str, parameters: int) -> str:
        """C++ of what the runtime calls, of a kernel with so many parameters."""

    def lower(self, kernel: KernelIR, variant: str) -> Lowered:
        """IR that is ready to become code; without a `variant`, of that to begin with."""


_ENGINES: dict[str, Engine] = {"simd": vector, "reference": reference}


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel as machine code.

    Attributes
    ----------
    architecture : str
        Of the target: ``"x86_64"`` or ``"aarch64"``.
    code : Path
        A shared object, or an object file if the machine is not this.
    layouts : tuple of int
        Table of the parameters' types, for `build_signature`.
    fibres : bool
        Whether each thread needs a stack of its own.
    waits : bool
        Whether threads wait for each other.
    shares : bool
        Whether it has threadgroup variables.
    threadgroup_bytes, variable_bytes : int
        What they take, and how much of it a launch has to give.
    logs : bool
        Whether it sends messages to the host.
    widths : tuple of int
        Lanes that its simdgroups may have, the best first; none if it is not vector code.
    reads_in_loops : bool
        Whether threads load again and again.
    rows : int
        How many rows of threads are done at a time.
    streamable : int
        Bytes that each thread could store past the caches.
    axis : str
        Along which neighbours access memory side by side: ``"x"``, ``"y"`` or ``"z"``.
    variant : str
        Which variant it is.
    engine : str
        What runs it, and why.
    code_command : tuple of str
        How its IR becomes code.
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
    variant: str
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
    """What is to be compiled.

    Attributes
    ----------
    unit : TranslationUnit
    entry : EntryPoint
        Which of its kernels.
    constants : dict of str
        Function constants by index, as C++ text.
    target : Target
    engine : str
        That of the settings; what has no vector form gets the reference engine.
    variant : str
        Which variant; without, the one to begin with.
    is_linked : bool
        Whether this process shall load it.
    """

    unit: TranslationUnit
    entry: EntryPoint
    constants: Mapping[int, str]
    target: Target
    engine: str
    variant: str = ""
    is_linked: bool = True


def compile_kernel(request: KernelRequest, cache: Cache) -> CompiledKernel:
    """Compile one kernel of a unit to code, or find it in the cache.

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
        "kernel" if request.is_linked else "object", wanted, request.variant,
        repr(vector.lanes(target.vectors)), unit.key, entry.expression, entry.name,
        repr(sorted(request.constants.items())), target.identity, *target.flags,
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
        facts["variant"],
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
            reason = f" (no vector form: {error})"
    return _compiled_by("reference", request, cache, reason, begin)


def _compiled_by(
    name: str,
    request: KernelRequest,
    cache: Cache,
    reason: str,
    begin: Callable[[str], None],
) -> dict[str, bytes | str]:
    engine = _ENGINES[name]
    functions = functools.partial(
        engine.functions, variant=request.variant, parameters=len(request.entry.parameters)
    )
    begin("C++ to LLVM IR")
    kernel = kernel_ir(
        request.unit, request.entry, request.constants, request.target, cache, functions
    )
    begin("vectorising" if name == "simd" else "adapting the IR")
    lowered = engine.lower(kernel, request.variant)
    command = (*lowered.code_command, "-target", request.target.triple)
    begin("generating machine code")
    code = clang.run([*command, "-c", "-o", "-", "-"], lowered.ir)
    if code.status != 0 and name == "simd":
        # LLVM's back end is less tried on such code than on what comes from C.
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
        "variant": lowered.variant,
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
