"""From a kernel to LLVM IR for the CPU, for all engines.

An engine gives the C++ around the kernel. The IR from clang is then adapted to the memory model of
a CPU: its functions by `memory_model`, its variables and attributes as text.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from metalloid.backends.cpu.compile.bounds import with_checks
from metalloid.backends.cpu.compile.compiled_kernel import (
    UNCHECKED,
    AccessTable,
    BoundsRequest,
    CodeProperties,
    CounterTable,
    Sanitizer,
)
from metalloid.backends.cpu.compile.counters import with_block_counts
from metalloid.backends.cpu.compile.inlining import choose_inlining
from metalloid.backends.cpu.compile.memory_model import MEMORY_MODEL, MemoryModelContext
from metalloid.backends.cpu.compile.recursion import unroll_recursion
from metalloid.backends.cpu.compile.sanitizer import (
    with_instrumentation,
    with_shadow_checks,
)
from metalloid.backends.cpu.compile.texture_specialization import says_textures_are_known
from metalloid.compiler.analysis.libcalls import is_libcall
from metalloid.compiler.bounds.table import BoundsTable, words_with_table
from metalloid.compiler.frontend.debug_info import LINE_TABLES, with_user_locations
from metalloid.compiler.frontend.entry import entry_text, read_layouts
from metalloid.compiler.frontend.source_positions import SourcePositions, is_user_file
from metalloid.compiler.frontend.stdlib_pch import checked, toolchain_digest
from metalloid.compiler.frontend.translate import compile_command, compile_entry
from metalloid.compiler.frontend.undefined_symbols import (
    MEMORY_FUNCTIONS,
    undefined,
    undefined_names,
)
from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.compiler.ir.function import Function
from metalloid.compiler.ir.parser import map_functions
from metalloid.compiler.ir.pass_manager import run_passes
from metalloid.compiler.ir.types import Unsupported
from metalloid.compiler.sanitizer.prepare import finish, prepare
from metalloid.compiler.sanitizer.runtime_functions import (
    CONVERSION,
    OPERATION,
    SHIFT,
    TEXEL,
    VARIABLE,
)
from metalloid.compiler.toolchain import clang
from metalloid.compiler.toolchain.cache import Cache, digest, read_text
from metalloid.compiler.toolchain.target import Target
from metalloid.errors import MetalloidError
from metalloid.msl.entry_points import EntryPoint
from metalloid.msl.signature import build_signature

#: Functions that report to the host; the others synchronise threads.
_REPORTING = r"@__msl_(?:log|assertion_failed|outside)\b"
_SYNCHRONISES = re.compile(rf"^declare [^\n]*(?!{_REPORTING})@__msl_", re.M)
_REPORTS = re.compile(rf"^declare [^\n]*{_REPORTING}", re.M)
_PUBLIC_FUNCTION = re.compile(
    r"^define (?:dso_local )?(?!linkonce|weak|internal|private|available)(?=[^@\n]*@(?!mtl_))", re.M
)
_OF_AN_INSTRUCTION = re.compile(r"^define [^\n]*@__avx512_\w+\([^\n]*\)[^\n#]*(#\d+)", re.M)
_THREADGROUP_VARIABLE = re.compile(
    r"^(@\S+ = .*?)((?:(?:local_)?unnamed_addr )?addrspace\(3\) global )", re.M
)

#: Code in its files is not the user's.
#: The IR is input of passes, and readable: vectors and unrolled loops come later.
_IR_FLAGS = (
    "-fno-vectorize",
    "-fno-slp-vectorize",
    *("-mllvm", "-unroll-runtime=false"),
    # Each copy of an iteration would be another exit, with a mask of the lanes that leave there.
    *("-mllvm", "-unroll-allow-partial=false"),
    # Comparisons are combined into one condition, rather than a branch each, for votes of all lanes
    # (vectorize/control_flow/lane_votes.py).
    *("-mllvm", "-bonus-inst-threshold=4"),
    # Sinking two stores into one with a selected address prevents vector stores; so do loads from
    # a table instead of a switch.
    *("-mllvm", "-sink-common-insts=false"),
    "-fno-jump-tables",
    "-fno-discard-value-names",
    "-fstack-clash-protection",  # a large private array must not step over the stack's guard page
)


@dataclass(frozen=True)
class KernelIR:
    """A kernel as IR.

    Attributes
    ----------
    cpp : str
        The text that clang compiled.
    ir : str
    compile_auxiliary : callable
        Compiles generated C++ that is independent of the kernel to IR, cached.
    parameters : int
        Number of the words of a launch: of parameters, and of the extents of their memory.
    layouts : tuple of int
        Table of the parameters' types, for `build_signature`.
    max_threads : int
        The limit of a threadgroup's threads that the kernel declares; 0 if it declares none.
    synchronises : bool
        Whether threads wait for each other.
    shares : bool
        Whether it has threadgroup variables.
    reports : bool
        Whether threads log or assert.
    logs : bool
        Whether they log.
    vectors : str
        The widest vector instructions of the target.
    prefetches_in_loops : bool
        Whether loops along arrays gain by prefetches on the target.
    gathers : bool
        Whether to gather instead of loading single lanes: on targets that do so fast, and in
        textures, whose four neighbours are computed together.
    bounds : BoundsTable
        The checks of its accesses.
    accesses : AccessTable
        Its accesses, if it is instrumented for the sanitizer.
    sanitize : Sanitizer
        The engine of the sanitizer that it is instrumented for.
    counters : CounterTable
        Its blocks, if they are counted.
    """

    cpp: str
    ir: str
    compile_auxiliary: Callable[[str], str]
    parameters: int
    layouts: tuple[int, ...]
    max_threads: int
    synchronises: bool
    shares: bool
    reports: bool
    logs: bool
    vectors: str
    prefetches_in_loops: bool
    gathers: bool
    bounds: BoundsTable
    accesses: AccessTable
    sanitize: Sanitizer
    counters: CounterTable


@dataclass(eq=False, repr=False, kw_only=True)
class Lowered(CodeProperties):
    """A kernel from an engine, ready for clang's back end.

    Attributes
    ----------
    ir : str
        Ready to become code.
    """

    ir: str


def kernel_ir(
    unit: TranslationUnit,
    entry: EntryPoint,
    constants: Mapping[int, str],
    target: Target,
    cache: Cache,
    functions: Callable[[bool], str],
    debug_lines: bool = False,
    bounds: BoundsRequest = UNCHECKED,
    sanitize: Sanitizer = Sanitizer.OFF,
    counts: bool = False,
) -> KernelIR:
    """Compile one kernel of a unit to IR.

    Parameters
    ----------
    functions : callable
        C++ of the functions that the runtime calls, which use the type ``mtl_entry_type``; given
        whether threads log or assert.
    debug_lines : bool
        Whether instructions have debug locations.
    bounds : BoundsRequest
        The accesses to check.
    sanitize : Sanitizer
        The engine of the sanitizer to instrument it for.
    counts : bool
        Whether to count its blocks.

    Raises
    ------
    CompileError
        If its template cannot be instantiated, or a parameter cannot be filled by a launch.
    MetalloidError
        If its IR has an instruction that the parser does not know.
    """
    compiler = _EntryCompiler(
        unit, entry, constants, target, cache, functions, debug_lines, sanitize
    )
    may_report = bool(sanitize) or bounds.checks
    compile_ir = functools.partial(compiler.compile, reports=may_report)
    options, (text, ir) = choose_inlining(compile_ir, unit.has_large_calls)
    for name in undefined_names(ir, _is_offered):
        raise undefined(name, unit, entry, lambda: compiler.compile(options, more=LINE_TABLES)[1])
    reports = bool(_REPORTS.search(ir)) or bool(sanitize)
    if reports and not may_report and functions(True) != functions(False):
        text, ir = compiler.compile(options, reports=True)
    try:
        ir = _adapted(
            unroll_recursion(_make_functions_private(ir), compiler.optimise), bool(sanitize)
        )
    except Unsupported as problem:
        raise MetalloidError(f"[{entry.name}] {problem} is not supported on CPUs") from None
    if debug_lines:
        ir = with_user_locations(ir, is_user_file)
    layouts = tuple(read_layouts(ir))
    positions = SourcePositions(unit.sources, text)
    signature = build_signature(entry, layouts)
    counters = CounterTable()
    if counts:
        ir, counters = with_block_counts(ir, positions)
    ir, table = with_checks(ir, bounds, signature, positions)
    accesses = AccessTable()
    if sanitize is Sanitizer.EXACT:
        ir, accesses = with_instrumentation(ir, positions)
    elif sanitize:
        ir, accesses = with_shadow_checks(ir, signature)
    return KernelIR(
        cpp=text,
        ir=ir,
        compile_auxiliary=compiler.compile_auxiliary,
        parameters=words_with_table(signature) if bounds.checks else len(entry.parameters),
        layouts=layouts,
        max_threads=entry.limits.max_total or 0,
        synchronises=bool(_SYNCHRONISES.search(ir)),
        shares=bool(_THREADGROUP_VARIABLE.search(ir)),
        reports=reports,
        logs="@__msl_log(" in ir,
        vectors=target.vectors,
        prefetches_in_loops=target.prefetches_in_loops,
        gathers=target.gathers or any(p.layout.form == "texture" for p in signature.arguments),
        bounds=table,
        accesses=accesses,
        sanitize=sanitize,
        counters=counters,
    )


@dataclass(frozen=True)
class _EntryCompiler:
    """Runs of clang for one kernel; the attributes are the arguments of `kernel_ir`."""

    unit: TranslationUnit
    entry: EntryPoint
    constants: Mapping[int, str]
    target: Target
    cache: Cache
    functions: Callable[[bool], str]
    debug_lines: bool
    sanitize: Sanitizer

    @property
    def lines(self) -> tuple[str, ...]:
        """Options for debug locations."""
        return (LINE_TABLES,) if self.debug_lines else ()

    @functools.cached_property
    def command(self) -> list[str]:
        """The command from C++ to IR."""
        return [
            *compile_command(self.unit.text, self.unit.options, self.target, self.cache),
            *_IR_FLAGS,
            *self.lines,
            *("-w", "-S", "-emit-llvm", "-o", "-", "-"),
        ]

    def compile(
        self,
        options: list[str] | None,
        seconds: float = 0.0,
        reports: bool = False,
        more: str = "",
    ) -> tuple[str, str]:
        """C++ and IR of the kernel; without `options` for inlining, clang inlines all calls."""

        def embed(text: str) -> str:
            surroundings = self.functions(reports)
            return entry_text(
                text, self.unit, self.entry, self.constants, surroundings,
                inline_all=options is None,
                # Without constants the copy of a kernel by itself is long, and nothing calls it.
                retains_kernel=not says_textures_are_known(surroundings),
            )  # fmt: skip

        words = [*self.command, *(options or ()), *more.split()]
        if self.sanitize:
            words += ("-Xclang", "-disable-llvm-passes")
        text, ir = compile_entry(words, self.unit, self.entry, self.target, embed, seconds)
        if self.sanitize:
            ir = self.optimise(prepare(ir, is_user_file), options or ())
            ir = finish(ir, is_user_file)
        return text, ir

    def compile_auxiliary(self, text: str) -> str:
        """The IR of C++ other than the kernel's."""
        target = self.target
        key = digest(
            "beside", toolchain_digest(), target.identity, *target.flags, *self.lines, text
        )
        files = self.cache.load(key)
        if files is None:
            output = checked(clang.run(self.command, text)).output
            files = self.cache.save(key, {"functions.ll": output})
        return read_text(files["functions.ll"])

    def optimise(self, ir: str, options: Sequence[str] = ()) -> str:
        """A module of IR optimised by LLVM, with `_IR_FLAGS`."""
        command = ("clang", "-x", "ir", "-O2", "-target", self.target.triple, *_IR_FLAGS, *options)
        return checked(clang.run([*command, *("-w", "-S", "-emit-llvm", "-o", "-", "-")], ir)).text


def _adapted(ir: str, retain_alignment: bool) -> str:
    """The module in the memory model of a CPU."""
    context = MemoryModelContext(retain_alignment)

    def adapt(function: Function) -> None:
        context.valid = set()
        run_passes(function, MEMORY_MODEL, context)

    ir = map_functions(ir, adapt)
    # Linkage of variables and groups of attributes belong to the module, not to a function.
    return _inline_instructions(_make_threadgroup_variables_private(ir))


def _is_offered(name: str) -> bool:
    """Whether kernels may call a function of the process."""
    symbol = f"@{name}"
    known = name.startswith("__msl_") or name in MEMORY_FUNCTIONS
    return known or symbol in (CONVERSION, OPERATION, SHIFT, TEXEL, VARIABLE) or is_libcall(symbol)


def _make_threadgroup_variables_private(ir: str) -> str:
    """Make threadgroup variables thread-local: an OS thread runs one threadgroup at a time."""
    return _THREADGROUP_VARIABLE.sub(r"\1thread_local \2", ir)


def _make_functions_private(ir: str) -> str:
    """Make the user's functions internal, so that LLVM drops those that are inlined."""
    return _PUBLIC_FUNCTION.sub("define internal ", ir)


def _inline_instructions(ir: str) -> str:
    """Let LLVM inline the remaining calls of functions that are single instructions."""
    for group in set(_OF_AN_INSTRUCTION.findall(ir)):
        ir = re.sub(rf"^(attributes {group} = .*)\bnoinline\b", r"\1alwaysinline", ir, flags=re.M)
    return ir
