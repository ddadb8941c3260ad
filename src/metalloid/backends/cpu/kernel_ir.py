"""From a kernel to LLVM IR for the CPU: what all engines share.

The C++ around the kernel comes from an engine; the IR that clang makes of it is adapted here to
what a CPU's memory is like.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from metalloid.backends.cpu.inlining import choose_inlining
from metalloid.backends.cpu.known_textures import says_textures_are_known
from metalloid.backends.cpu.recursion import unroll_recursion
from metalloid.compiler.analysis.libcalls import is_libcall
from metalloid.compiler.frontend.entry import entry_text, read_layouts
from metalloid.compiler.frontend.shift_amounts import mask_shift_amounts
from metalloid.compiler.frontend.stdlib_pch import checked, toolchain_digest
from metalloid.compiler.frontend.translate import compile_command, compile_entry
from metalloid.compiler.frontend.undefined_symbols import (
    LINE_TABLES,
    MEMORY_FUNCTIONS,
    undefined,
    undefined_names,
)
from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.compiler.toolchain import clang
from metalloid.compiler.toolchain.cache import Cache, digest
from metalloid.compiler.toolchain.target import Target
from metalloid.msl.entry_points import EntryPoint

#: Functions by which a thread says something to the host; by the others it waits for threads.
_REPORTING = r"@__msl_(?:log|assertion_failed)\b"
_SYNCHRONISES = re.compile(rf"^declare [^\n]*(?!{_REPORTING})@__msl_", re.M)
_REPORTS = re.compile(rf"^declare [^\n]*{_REPORTING}", re.M)
_CONSTANT_LOAD = re.compile(r"^( +%\S+ = load .*, ptr addrspace\(1\) .*)$", re.M)
_ACCESS = re.compile(
    r"^( +(?:%\S+ = )?(?:load|store) (?:volatile )?(?:<\d+ x )?(\w+)[ ,>].*, align )(\d+)\b", re.M
)
_BLOCK_COPY = re.compile(r"^ .*\bcall void @llvm\.mem(?:cpy|move|set)\..*$", re.M)
_ALIGNMENT = re.compile(r"\balign \d+\b")
_SCALAR_BYTES = {"i8": 1, "i16": 2, "half": 2, "bfloat": 2, "i32": 4, "float": 4}
_FUNCTION = re.compile(r"^define .*?^\}", re.M | re.S)
_PRIVATE_VARIABLE = re.compile(r"^ +(%\S+) = alloca ", re.M)
_VOLATILE_ACCESS = re.compile(r"^( +(?:%\S+ = load|store)) volatile ([^\n]*, ptr (%[^\s,]+))", re.M)
_PUBLIC_FUNCTION = re.compile(
    r"^define (?:dso_local )?(?!linkonce|weak|internal|private|available)(?=[^@\n]*@(?!mtl_))", re.M
)
_OF_AN_INSTRUCTION = re.compile(r"^define [^\n]*@__avx512_\w+\([^\n]*\)[^\n#]*(#\d+)", re.M)
_THREADGROUP_VARIABLE = re.compile(
    r"^(@\S+ = .*?)((?:(?:local_)?unnamed_addr )?addrspace\(3\) global )", re.M
)

#: The IR is meant to be read, by people and by passes: vectors and unrolled loops come later.
_IR_FLAGS = (
    "-fno-vectorize",
    "-fno-slp-vectorize",
    *("-mllvm", "-unroll-runtime=false"),
    # Each round would be another exit, with a mask of the lanes that leave there.
    *("-mllvm", "-unroll-allow-partial=false"),
    # Several comparisons joined to one condition, rather than a branch each: so one knows what all
    # lanes do (vectorize/lane_votes.py).
    *("-mllvm", "-bonus-inst-threshold=4"),
    # Stores of two branches made one, to an address that depends on the branch, could not become
    # vector stores any more; nor could loads from a table instead of a switch.
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
    beside : callable
        From C++ of functions of ours, which know nothing of the kernel, to their IR. They are
        compiled once.
    parameters : int
        How many it has.
    layouts : tuple of int
        Table of the parameters' types, for `build_signature`.
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
    """

    cpp: str
    ir: str
    beside: Callable[[str], str]
    parameters: int
    layouts: tuple[int, ...]
    synchronises: bool
    shares: bool
    reports: bool
    logs: bool
    vectors: str


@dataclass(frozen=True)
class Lowered:
    """A kernel as an engine leaves it for clang's back end.

    Attributes
    ----------
    ir : str
        Ready to become code.
    code_command : tuple of str
        How it becomes code.
    engine : str
        How it runs, for people.
    variant : str
        Which variant it is; empty if there is one only.
    widths : tuple of int
        Lanes that its simdgroups may have, the best first; none if it is not vector code.
    variable_bytes : int
        Memory for threadgroup variables that a launch has to give.
    fibres : bool
        Whether each thread needs a stack of its own.
    reads_in_loops : bool
        Whether threads load again and again.
    rows : int
        How many rows of threads are done at a time.
    streamable : int
        Bytes that each thread could store past the caches.
    axis : str
        Along which neighbours access memory side by side.
    """

    ir: str
    code_command: tuple[str, ...]
    engine: str
    variant: str = ""
    widths: tuple[int, ...] = ()
    variable_bytes: int = 0
    fibres: bool = False
    reads_in_loops: bool = False
    rows: int = 1
    streamable: int = 0
    axis: str = "x"


def kernel_ir(
    unit: TranslationUnit,
    entry: EntryPoint,
    constants: Mapping[int, str],
    target: Target,
    cache: Cache,
    functions: Callable[[bool], str],
) -> KernelIR:
    """Compile one kernel of a unit to IR.

    Parameters
    ----------
    functions : callable
        C++ of the functions that the runtime calls, which use the type ``mtl_entry_type``; given
        whether threads log or assert.

    Raises
    ------
    CompileError
        If its template cannot be instantiated, or a parameter cannot be filled by a launch.
    """
    command = [
        *compile_command(unit.text, unit.options, target, cache),
        *_IR_FLAGS,
        *("-w", "-S", "-emit-llvm", "-o", "-", "-"),
    ]

    def beside(text: str) -> str:
        key = digest("beside", toolchain_digest(), target.identity, *target.flags, text)
        files = cache.load(key)
        if files is None:
            files = cache.save(key, {"functions.ll": checked(clang.run(command, text)).output})
        return files["functions.ll"].read_text()

    def compiled(
        options: list[str] | None, seconds: float = 0.0, reports: bool = False, more: str = ""
    ) -> tuple[str, str]:
        def embed(text: str) -> str:
            surroundings = functions(reports)
            return entry_text(
                text, unit, entry, constants, surroundings,
                inline_all=options is None,
                # Without constants the copy of a kernel by itself is long, and nothing calls it.
                keeps_kernel=not says_textures_are_known(surroundings),
            )  # fmt: skip

        words = [*command, *(options or ()), *more.split()]
        return compile_entry(words, unit, entry, target, embed, seconds)

    options, (text, ir) = choose_inlining(compiled, unit.has_large_calls)
    for name in undefined_names(ir, _is_offered):
        raise undefined(name, unit, entry, lambda: compiled(options, more=LINE_TABLES)[1])
    reports = bool(_REPORTS.search(ir))
    if reports and functions(True) != functions(False):
        text, ir = compiled(options, reports=True)
    ir = unroll_recursion(_make_functions_private(ir), functools.partial(_optimised, target=target))
    layouts = tuple(read_layouts(ir))
    synchronises, logs = bool(_SYNCHRONISES.search(ir)), "@__msl_log(" in ir
    shares = bool(_THREADGROUP_VARIABLE.search(ir))
    for adapt in (
        mask_shift_amounts,
        _mark_constant_loads,
        _assume_scalar_alignment,
        _forget_private_volatile,
        _make_threadgroup_variables_private,
        _inline_instructions,
    ):
        ir = adapt(ir)
    return KernelIR(
        text, ir, beside, len(entry.parameters), layouts, synchronises, shares, reports, logs,
        target.vectors,
    )  # fmt: skip


def _optimised(ir: str, target: Target) -> str:
    """What LLVM makes of a module of IR, still meant to be read."""
    command = ("clang", "-x", "ir", "-O2", "-target", target.triple, *_IR_FLAGS)
    outcome = clang.run([*command, *("-w", "-S", "-emit-llvm", "-o", "-", "-")], ir)
    return checked(outcome).text


def _is_offered(name: str) -> bool:
    """Whether kernels may call a function of the process."""
    return name.startswith("__msl_") or name in MEMORY_FUNCTIONS or is_libcall(f"@{name}")


def _mark_constant_loads(ir: str) -> str:
    """Say that memory of the `constant` space does not change while a kernel runs.

    clang has no word for that. Without it, a store through any other pointer could change the
    factor of a loop, which would keep the loop from becoming vector code.
    """
    node = 1 + max((int(number) for number in re.findall(r"^!(\d+) = ", ir, re.M)), default=-1)
    marked, count = _CONSTANT_LOAD.subn(rf"\1, !invariant.load !{node}", ir)
    return f"{marked}\n!{node} = !{{}}\n" if count else ir


def _assume_scalar_alignment(ir: str) -> str:
    """A vector may lie wherever its scalars may, and so may a struct.

    A long4 is aligned to 32 bytes in MSL, but the caller's arrays need not be; and kernels that run
    well on GPUs read a float4 from any place in a row of floats. Of a scalar no more is known: LLVM
    makes one wide access of several that are side by side.
    """

    def access(match: re.Match[str]) -> str:
        return f"{match[1]}{min(int(match[3]), _SCALAR_BYTES.get(match[2], 8))}"

    ir = _ACCESS.sub(access, ir)
    return _BLOCK_COPY.sub(lambda match: _ALIGNMENT.sub("align 1", match[0]), ir)


def _forget_private_volatile(ir: str) -> str:
    """Nobody but the thread itself sees its variables: an access is like any other.

    MLX keeps its compiler from moving code with such accesses. They have no vector form.
    """

    def forget(function: re.Match[str]) -> str:
        private = set(_PRIVATE_VARIABLE.findall(function[0]))

        def access(match: re.Match[str]) -> str:
            return f"{match[1]} {match[2]}" if match[3] in private else match[0]

        return _VOLATILE_ACCESS.sub(access, function[0])

    return _FUNCTION.sub(forget, ir) if " volatile " in ir else ir


def _make_threadgroup_variables_private(ir: str) -> str:
    """Give each OS thread its own threadgroup variables: it runs one threadgroup at a time."""
    return _THREADGROUP_VARIABLE.sub(r"\1thread_local \2", ir)


def _make_functions_private(ir: str) -> str:
    """The user's functions are all inlined; nobody calls the copies that clang keeps for others."""
    return _PUBLIC_FUNCTION.sub("define internal ", ir)


def _inline_instructions(ir: str) -> str:
    """What the vectoriser leaves of calls for instructions of the processor becomes these."""
    for group in set(_OF_AN_INSTRUCTION.findall(ir)):
        ir = re.sub(rf"^(attributes {group} = .*)\bnoinline\b", r"\1alwaysinline", ir, flags=re.M)
    return ir
