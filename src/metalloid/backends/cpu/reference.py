"""The reference engine: a kernel as a plain loop over threads, or one fibre per thread.

Slow by design where threads synchronise, and simple: it defines what a kernel means on this device.
A kernel without barriers and simdgroup functions is a loop that clang may vectorise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from metalloid.backends.cpu.call_sites import number_call_sites
from metalloid.compiler import clang
from metalloid.compiler.cache import Cache, digest
from metalloid.compiler.frontend import (
    ENTRY_FILE,
    compile_command,
    compile_entry,
    wrapped,
)
from metalloid.compiler.link import shared_object
from metalloid.compiler.target import Target
from metalloid.compiler.unit import TranslationUnit
from metalloid.errors import MetalloidError
from metalloid.msl.entry_points import EntryPoint
from metalloid.msl.signature import LAYOUT_WIDTH, parameter_sources

ENTRY_SYMBOL = "mtl_kernel"
_LAYOUT_SYMBOL = "mtl_layouts"

_LAYOUT_TABLE = re.compile(r"^@\S*layouts\S* = .*? constant \[\d+ x [^\]]*\] \[(.*)\]", re.M)
_LAYOUT_ROW = re.compile(r"parameter_layout\"? (?:\{([^{}]*)\}|zeroinitializer)")
#: A declaration of one of the functions that make a thread wait for others.
_SYNCHRONISES = re.compile(r"^declare [^\n]*@__msl_(?!log\b|assertion_failed\b)", re.M)
#: A declaration of one of those by which a thread says something to the host.
_REPORTS = re.compile(r"^declare [^\n]*@__msl_(?:log|assertion_failed)\b", re.M)
_CONSTANT_LOAD = re.compile(r"^( +%\S+ = load .*, ptr addrspace\(1\) .*)$", re.M)
_VECTOR_ACCESS = re.compile(
    r"^( +(?:%\S+ = )?(?:load|store) (?:volatile )?<\d+ x (\w+)>[ ,].*, align )\d+\b", re.M
)
_BLOCK_COPY = re.compile(r"^ .*\bcall void @llvm\.mem(?:cpy|move|set)\..*$", re.M)
_ALIGNMENT = re.compile(r"\balign \d+\b")
_SCALAR_BYTES = {"i8": 1, "i16": 2, "half": 2, "bfloat": 2, "i32": 4, "float": 4}
_PUBLIC_FUNCTION = re.compile(
    r"^define (?:dso_local )?(?!linkonce|weak|internal|private|available)(?=[^@\n]*@(?!mtl_))", re.M
)
_THREADGROUP_VARIABLE = re.compile(
    r"^(@\S+ = .*?)((?:(?:local_)?unnamed_addr )?addrspace\(3\) global )", re.M
)


#: The IR is meant to be read, by people and by passes: vectors and unrolled loops come later.
_IR_FLAGS = (
    "-fno-vectorize",
    "-fno-slp-vectorize",
    *("-mllvm", "-unroll-runtime=false"),
    "-fno-discard-value-names",
    "-fstack-clash-protection",  # a large private array must not step over the stack's guard page
)


#: From IR to code. The runtime supplies the addresses of threadgroup variables (variables.c).
CODE_COMMAND = ("clang", "-x", "ir", "-O2", "-fPIC", "-femulated-tls", "-w")


@dataclass(frozen=True)
class CompiledKernel:
    """What the engine makes of a kernel.

    Attributes
    ----------
    shared_object : Path
    layouts : tuple of int
        Table of the parameters' types, for `build_signature`.
    synchronises : bool
        Whether threads wait for each other, so that each needs a stack of its own.
    logs : bool
        Whether it sends messages to the host.
    stages : dict
        File of each stage of compilation by name.
    """

    shared_object: Path
    layouts: tuple[int, ...]
    synchronises: bool
    logs: bool
    stages: dict[str, Path]


def compile_kernel(
    unit: TranslationUnit,
    entry: EntryPoint,
    constants: Mapping[int, str],
    target: Target,
    cache: Cache,
) -> CompiledKernel:
    """Compile one kernel of a unit to a shared object, or find it in the cache.

    Raises
    ------
    CompileError
        If its template cannot be instantiated, or a parameter cannot be filled by a launch.
    """
    key = digest(
        "reference kernel", unit.key, entry.expression, entry.name, repr(sorted(constants.items())),
        target.identity, *target.flags,
    )  # fmt: skip
    files = cache.load(key)
    if files is None:
        files = cache.save(key, _compile(unit, entry, constants, target, cache))
    facts = json.loads(files["kernel.json"].read_bytes())
    return CompiledKernel(
        files["kernel.so"],
        tuple(facts["layouts"]),
        facts["synchronises"],
        facts["logs"],
        {"cpp": files["kernel.cpp"], "ll": files["kernel.ll"]},
    )


def _compile(
    unit: TranslationUnit,
    entry: EntryPoint,
    constants: Mapping[int, str],
    target: Target,
    cache: Cache,
) -> dict[str, bytes | str]:
    command = [
        *compile_command(unit.options, target, cache),
        *_IR_FLAGS,
        *("-w", "-S", "-emit-llvm", "-o", "-", "-"),
    ]

    def compiled(reports: bool) -> tuple[str, str]:
        def embed(text: str) -> str:
            return _entry_text(text, unit, entry, constants, reports)

        return compile_entry(command, unit, entry, target, embed)

    text, ir = compiled(reports=False)
    if _REPORTS.search(ir):
        text, ir = compiled(reports=True)
    facts = {
        "layouts": _read_layouts(ir, len(entry.parameters)),
        "synchronises": bool(_SYNCHRONISES.search(ir)),
        "logs": "@__msl_log(" in ir,
    }
    for adapt in (
        _mark_constant_loads,
        _assume_scalar_alignment,
        _make_threadgroup_variables_private,
        _make_functions_private,
    ):
        ir = adapt(ir)
    ir = number_call_sites(ir, ENTRY_SYMBOL)
    code = clang.run([*CODE_COMMAND, "-c", "-o", "-", "-"], ir)
    if code.status != 0:
        raise MetalloidError(
            f"[{entry.name}] clang accepted the kernel but could not generate code for "
            f"{target.name}:\n{code.messages}"
        )
    return {
        "kernel.cpp": text,
        "kernel.ll": ir,
        "kernel.so": shared_object({"kernel.o": code.output}, f"{ENTRY_SYMBOL}.so"),
        "kernel.json": json.dumps(facts),
    }


def _entry_text(
    text: str,
    unit: TranslationUnit,
    entry: EntryPoint,
    constants: Mapping[int, str],
    reports: bool,
) -> str:
    """The unit's text with its constants defined, and the functions that the runtime calls."""
    definitions = [
        line
        for constant in unit.constants
        for line in constant.definitions(constants.get(constant.index))
    ]
    sources = "".join(f", metalloid::input::{source}" for source in parameter_sources(entry))
    return "\n".join(
        (
            *definitions,
            wrapped(text),
            f'# 1 "{ENTRY_FILE}"',
            f"using mtl_entry_type = metalloid::entry<&::{entry.expression}{sources}>;",
            f'extern "C" [[clang::sycl_external]] void {ENTRY_SYMBOL}'
            "(const mtl_launch* launch, mtl_range* range)"
            f" {{ metalloid::run_box<mtl_entry_type, {str(reports).lower()}>(launch, range); }}",
            f'extern "C" [[clang::sycl_external]] const void* {_LAYOUT_SYMBOL}()'
            " { return mtl_entry_type::layouts; }",
            "",
        )
    )


def _read_layouts(ir: str, parameters: int) -> list[int]:
    """The numbers of the table that ``kernel_entry.h`` leaves in the module."""
    table = _LAYOUT_TABLE.search(ir)
    rows = _LAYOUT_ROW.findall(table[1]) if table else []
    if len(rows) < parameters:
        raise MetalloidError("[compiler] the compiled kernel lacks its table of parameters.")
    numbers: list[int] = []
    for row in rows[:parameters]:
        values = [int(word.split()[-1]) for word in row.split(",")] if row else [0] * LAYOUT_WIDTH
        numbers += values
    return numbers


def _mark_constant_loads(ir: str) -> str:
    """Say that memory of the `constant` space does not change while a kernel runs.

    clang has no word for that. Without it, a store through any other pointer could change the
    factor of a loop, which would keep the loop from becoming vector code.
    """
    node = 1 + max((int(number) for number in re.findall(r"^!(\d+) = ", ir, re.M)), default=-1)
    marked, count = _CONSTANT_LOAD.subn(rf"\1, !invariant.load !{node}", ir)
    return f"{marked}\n!{node} = !{{}}\n" if count else ir


def _assume_scalar_alignment(ir: str) -> str:
    """A vector may lie wherever its scalars may.

    A long4 is aligned to 32 bytes in MSL, but the caller's arrays need not be; and kernels that run
    well on GPUs read a float4 from any place in a row of floats.
    """
    ir = _VECTOR_ACCESS.sub(lambda match: f"{match[1]}{_SCALAR_BYTES.get(match[2], 8)}", ir)
    return _BLOCK_COPY.sub(lambda match: _ALIGNMENT.sub("align 1", match[0]), ir)


def _make_threadgroup_variables_private(ir: str) -> str:
    """Give each OS thread its own threadgroup variables: it runs one threadgroup at a time."""
    return _THREADGROUP_VARIABLE.sub(r"\1thread_local \2", ir)


def _make_functions_private(ir: str) -> str:
    """The user's functions are all inlined; nobody calls the copies that clang keeps for others."""
    return _PUBLIC_FUNCTION.sub("define internal ", ir)
