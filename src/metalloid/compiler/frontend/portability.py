"""Ask whether Apple's Metal compiler would take a text, as far as can be known without it."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from dataclasses import asdict, replace

from metalloid.compiler.frontend import translate
from metalloid.compiler.frontend.stdlib_pch import stub_folder
from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.compiler.toolchain.cache import Cache, digest, read_text
from metalloid.compiler.toolchain.target import Target
from metalloid.errors import CompileError
from metalloid.msl.clang_messages import SourceMap, parse_messages
from metalloid.msl.diagnostics import Diagnostic, report
from metalloid.msl.entry_points import EntryPoint
from metalloid.msl.lower import lower_stream
from metalloid.msl.portable.conversions import check_conversions
from metalloid.msl.portable.declarations import check_declarations
from metalloid.msl.portable.kernels import (
    MAX_THREADGROUP_BYTES,
    check_kernels,
    too_much_memory,
)
from metalloid.msl.portable.syntax_tree import parse_dump
from metalloid.msl.portable.text import Text
from metalloid.msl.portable.words import check_includes, check_words
from metalloid.msl.tokens import TokenStream

_VARIABLE_LENGTH = (
    "variable length arrays are not supported in Metal; give the array a constant size"
)

_FINDINGS = "findings.json"  # the file of a cache entry


def portability_findings(
    unit: TranslationUnit, file: str, target: Target, cache: Cache
) -> list[Diagnostic]:
    """Findings that Apple's compiler would reject in a text that was translated, in order.

    Only what is known to be refused is reported: a text without findings need not compile there.
    """
    key = digest("portability", unit.key, target.name, unit.sources[file], file)
    files = cache.load(key)
    if files is None:
        findings = json.dumps([*map(asdict, _findings(unit, file, target, cache))])
        files = cache.save(key, {_FINDINGS: findings})
    return [Diagnostic(**finding) for finding in json.loads(read_text(files[_FINDINGS]))]


def _findings(unit: TranslationUnit, file: str, target: Target, cache: Cache) -> list[Diagnostic]:
    source, options = unit.sources[file], unit.options
    preprocessed, _ = translate.preprocess(source, file, options, cache)
    stream = TokenStream(preprocessed)
    lowered = lower_stream(stream)
    unset = "\n".join(line for constant in lowered.constants for line in constant.definitions(None))
    instances = translate.instantiations(_one_of_each(lowered.kernels))
    outcome = translate.run_repairing(
        [*translate.compile_command(stream.render(), options, target, cache), "-fsyntax-only",
         "-Wno-everything", "-Wvla-cxx-extension", "-Xclang", "-ast-dump", "-"],
        stream,
        lambda text: translate.wrapped(f"{unset}\n{text}{instances}"),
    )  # fmt: skip
    read = functools.partial(translate.read_source, {file: source})
    text = Text(
        stream, list(lowered.attributes), parse_dump(outcome.text), SourceMap(stream, read), []
    )
    for message in parse_messages(outcome.messages):
        position = text.source_map.token_at(message)
        if message.message.startswith("variable length array") and position is not None:
            text.report(position, _VARIABLE_LENGTH)
    check_words(text)
    check_includes(text, stub_folder(cache))
    check_declarations(text)
    check_conversions(text)
    check_kernels(text, lowered.kernels)
    order = {
        name: number for number, name in enumerate(dict.fromkeys(f.file for f in text.findings))
    }
    return sorted(text.findings, key=lambda f: (order[f.file], f.line, f.column))


def require_portable(unit: TranslationUnit, file: str, target: Target, cache: Cache) -> None:
    """Raise what `portability_findings` finds.

    Raises
    ------
    CompileError
        With all findings.
    """
    findings = portability_findings(unit, file, target, cache)
    if findings:
        raise CompileError(report(findings), findings)


def portability_warnings(
    unit: TranslationUnit, file: str, target: Target, cache: Cache
) -> list[Diagnostic]:
    """The same findings as warnings, for a text that is checked and need not be portable."""
    return [*map(_as_warning, portability_findings(unit, file, target, cache))]


def require_portable_memory(unit: TranslationUnit, entry: EntryPoint, nbytes: int) -> None:
    """Refuse a kernel whose variables take more threadgroup memory than Apple's GPUs have.

    Raises
    ------
    CompileError
        At the kernel's head. The text alone does not tell what structs and inlined functions take.
    """
    if findings := _memory_findings(unit, entry, nbytes):
        raise CompileError(report(findings), findings)


def memory_warnings(unit: TranslationUnit, entry: EntryPoint, nbytes: int) -> list[Diagnostic]:
    """The same as a warning, for a kernel that is checked and need not be portable."""
    return [*map(_as_warning, _memory_findings(unit, entry, nbytes))]


def _memory_findings(unit: TranslationUnit, entry: EntryPoint, nbytes: int) -> list[Diagnostic]:
    if nbytes <= MAX_THREADGROUP_BYTES:
        return []
    text = translate.read_source(unit.sources, entry.file) or ""
    line = text.splitlines()[entry.line - 1 : entry.line]
    message = too_much_memory(nbytes)
    return [Diagnostic("error", entry.file, entry.line, 1, message, line[0] if line else "")]


def _as_warning(finding: Diagnostic) -> Diagnostic:
    message = f"Apple's compiler refuses this: {finding.message}"
    return replace(finding, severity="warning", message=message)


def _one_of_each(kernels: Iterable[EntryPoint]) -> list[EntryPoint]:
    """One instance of each template: the others differ by their types only."""
    by_name = {kernel.expression.partition("<")[0]: kernel for kernel in kernels}
    return [kernel for kernel in by_name.values() if "<" in kernel.expression]
