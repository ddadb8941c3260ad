"""Which engine compiles a kernel, and what comes out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from metalloid.backends.cpu import reference, vector
from metalloid.backends.cpu.kernel_ir import KernelIR, Lowered, kernel_ir
from metalloid.compiler import clang
from metalloid.compiler.cache import Cache, digest
from metalloid.compiler.entry import ENTRY_SYMBOL
from metalloid.compiler.link import shared_object
from metalloid.compiler.llvm.types import Unsupported
from metalloid.compiler.target import Target
from metalloid.compiler.unit import TranslationUnit
from metalloid.errors import MetalloidError
from metalloid.msl.entry_points import EntryPoint


class Engine(Protocol):
    """A way to run kernels: a module with these."""

    def functions(self, reports: bool) -> str:
        """C++ of what the runtime calls."""

    def lower(self, kernel: KernelIR, variant: str) -> Lowered:
        """IR that is ready to become code; without a `variant`, of that to begin with."""


_ENGINES: dict[str, Engine] = {"simd": vector, "reference": reference}


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel as machine code.

    Attributes
    ----------
    shared_object : Path
    layouts : tuple of int
        Table of the parameters' types, for `build_signature`.
    fibres : bool
        Whether each thread needs a stack of its own.
    waits : bool
        Whether threads wait for each other.
    shares : bool
        Whether it has threadgroup variables.
    variable_bytes : int
        Memory for them that a launch has to give.
    logs : bool
        Whether it sends messages to the host.
    widths : tuple of int
        Lanes that its simdgroups may have, the best first; none if it is not vector code.
    variant : str
        Which variant it is.
    engine : str
        What runs it, and why.
    code_command : tuple of str
        How its IR becomes code.
    stages : dict
        File of each stage of compilation by name.
    """

    shared_object: Path
    layouts: tuple[int, ...]
    fibres: bool
    waits: bool
    shares: bool
    variable_bytes: int
    logs: bool
    widths: tuple[int, ...]
    variant: str
    engine: str
    code_command: tuple[str, ...]
    stages: dict[str, Path]


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
    """

    unit: TranslationUnit
    entry: EntryPoint
    constants: Mapping[int, str]
    target: Target
    engine: str
    variant: str = ""


def compile_kernel(request: KernelRequest, cache: Cache) -> CompiledKernel:
    """Compile one kernel of a unit to a shared object, or find it in the cache.

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
        "kernel", wanted, request.variant, repr(vector.lanes()), unit.key, entry.expression,
        entry.name, repr(sorted(request.constants.items())), target.identity, *target.flags,
    )  # fmt: skip
    files = cache.load(key)
    if files is None:
        files = cache.save(key, _compile(request, cache, wanted))
    facts = json.loads(files["kernel.json"].read_bytes())
    return CompiledKernel(
        files["kernel.so"],
        tuple(facts["layouts"]),
        facts["fibres"],
        facts["waits"],
        facts["shares"],
        facts["variable_bytes"],
        facts["logs"],
        tuple(facts["widths"]),
        facts["variant"],
        facts["engine"],
        tuple(facts["code_command"]),
        {"cpp": files["kernel.cpp"], "ll": files["kernel.ll"]},
    )


def _compile(request: KernelRequest, cache: Cache, wanted: str) -> dict[str, bytes | str]:
    reason = ""
    if wanted == "simd":
        try:
            return _compiled_by("simd", request, cache, reason)
        except Unsupported as error:
            reason = f" (no vector form: {error})"
    return _compiled_by("reference", request, cache, reason)


def _compiled_by(
    name: str, request: KernelRequest, cache: Cache, reason: str
) -> dict[str, bytes | str]:
    engine = _ENGINES[name]
    kernel = kernel_ir(
        request.unit, request.entry, request.constants, request.target, cache, engine.functions
    )
    lowered = engine.lower(kernel, request.variant)
    code = clang.run([*lowered.code_command, "-c", "-o", "-", "-"], lowered.ir)
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
        "variable_bytes": lowered.variable_bytes,
        "logs": kernel.logs,
        "widths": lowered.widths,
        "variant": lowered.variant,
        "engine": lowered.engine + reason,
        "code_command": lowered.code_command,
    }
    return {
        "kernel.cpp": kernel.cpp,
        "kernel.ll": lowered.ir,
        "kernel.so": shared_object({"kernel.o": code.output}, f"{ENTRY_SYMBOL}.so"),
        "kernel.json": json.dumps(facts),
    }
