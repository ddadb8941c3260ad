"""From MSL source to a checked translation unit: preprocess, lower, check, remember.

``translate`` does for a whole file what does not depend on which kernel will be run; the devices
compile single kernels of the unit afterwards.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from metalloid.compiler.frontend.fixits import repair
from metalloid.compiler.frontend.stdlib_pch import (
    include_folder,
    language_flags,
    precompiled_header,
    stub_folder,
    toolchain_digest,
)
from metalloid.compiler.frontend.unit import (
    PROGRAM_SOURCE,
    Options,
    TranslationUnit,
    encode,
    restore,
)
from metalloid.compiler.toolchain import clang
from metalloid.compiler.toolchain.cache import Cache, digest
from metalloid.compiler.toolchain.progress import compiling
from metalloid.compiler.toolchain.target import Target, math_flags
from metalloid.errors import CompileError
from metalloid.msl.clang_messages import SourceMap, parse_messages, without_generated_positions
from metalloid.msl.diagnostics import Diagnostic, report
from metalloid.msl.entry_point_parser import parse_line_marker
from metalloid.msl.entry_points import EntryPoint
from metalloid.msl.features import named_refusal, with_hint
from metalloid.msl.lower import Lowered, lower_stream
from metalloid.msl.tokens import TokenStream

#: Name of the code that calls a kernel, in messages about it.
ENTRY_FILE = "metalloid kernel entry"

#: Checking a library instantiates its explicit instantiations up to this many; in files with more
#: (MLX's have thousands) the body of a template is checked when one of its kernels is asked for.
_INSTANTIATIONS_CHECKED = 64

_PREPROCESSOR_FLAGS = (
    "-x", "c++", "-std=c++17", "-nostdinc", "-E", "-undef", "-fno-sanitize=all",
    "-fno-color-diagnostics", "-fno-caret-diagnostics", "-fno-diagnostics-show-note-include-stack",
    "-ferror-limit=0", "-Wno-builtin-macro-redefined", "-Wno-extra-tokens",
    "-D__cplusplus=201703L", "-D__clang__=1", "-D__LITTLE_ENDIAN__=1",
    "-D__METAL__=1", "-D__METAL_VERSION__=320", "-D__METAL_MACOS__=1", "-D__HAVE_BFLOAT__=1",
)  # fmt: skip

#: Warnings worth a kernel author's time; those about the lowered form of correct MSL are off.
_WARNING_FLAGS = (
    "-Wall", "-Wno-unused-function", "-Wno-unused-const-variable", "-Wno-unknown-pragmas",
    "-Wno-c++11-narrowing", "-Wno-increment-bool", "-Wno-ignored-attributes",
    "-Wno-unknown-attributes", "-Wno-pass-failed", "-Wno-c++20-extensions", "-Wno-psabi",
    "-Wno-duplicate-decl-specifier", "-Wno-c99-designator", "-Wno-pragma-clang-attribute",
    "-Wno-non-c-typedef-for-linkage",
    "-Wno-keyword-compat", "-Wno-undefined-inline", "-Wno-undefined-internal",
)  # fmt: skip


def translate(
    source: str, file: str, options: Options, target: Target, cache: Cache
) -> TranslationUnit:
    """Compile the part of a library that all its kernels share.

    Parameters
    ----------
    source : str
        MSL source.
    file : str
        Its file, or `PROGRAM_SOURCE`; relative includes are searched in its folder.

    Raises
    ------
    CompileError
        With every error of the text, at the user's own lines.
    """
    key = digest("unit", toolchain_digest(), target.name, source, file, repr(options))
    files = cache.load(key)
    if files is not None:
        unit = restore(files, options, {file: source})
        if unit is not None:
            return unit
        # An included file has changed: this entry is of no use to anybody.
        cache.discard(key)
    with compiling(f"the library {file!r}") as begin:
        result = _translated(source, file, options, target, cache, begin)
    unit = restore(cache.save(key, result), options, {file: source}, check=False)
    assert unit is not None
    return unit


def _translated(
    source: str,
    file: str,
    options: Options,
    target: Target,
    cache: Cache,
    begin: Callable[[str], None],
) -> dict[str, str]:
    """The files of a unit's cache entry."""
    begin("preprocessing")
    preprocessed, warnings = preprocess(source, file, options, cache)
    begin("checking its text")
    stream = TokenStream(preprocessed)
    lowered = lower_stream(stream)
    read = functools.partial(read_source, {file: source})
    text = stream.render()
    if not options.is_generated:
        text, checked = _check(stream, lowered, options, target, cache, read)
        warnings += checked
    return encode(
        # Not of the lowered text, which has lost the attributes.
        digest(preprocessed, repr(options), toolchain_digest()),
        text,
        lowered,
        warnings,
        _dependencies(stream, file, cache),
    )


def preprocess(
    source: str, file: str, options: Options, cache: Cache
) -> tuple[str, list[Diagnostic]]:
    """The text after preprocessing, line markers and definitions kept, and warnings about it."""
    outcome = _preprocessed(
        f'# 1 "{_quoted(file)}"\n{source}',
        file,
        options,
        cache,
        "-dD",
        "-include",
        str(include_folder() / "macros.h"),
    )
    messages = parse_messages(outcome.messages)
    read = functools.partial(read_source, {file: source})
    source_map = SourceMap(TokenStream(""), read)
    messages = [source_map.localise(message) for message in messages]
    if outcome.status != 0:
        raise _compile_error(messages, outcome.messages)
    return outcome.text, [message for message in messages if message.severity == "warning"]


def with_includes(source: str, file: str, options: Options, cache: Cache) -> str:
    """The text with every included file inserted, and no macros expanded."""
    return _preprocessed(source, file, options, cache, "-frewrite-includes").text


def _preprocessed(
    source: str, file: str, options: Options, cache: Cache, *more: str
) -> clang.Outcome:
    folders = [f"-I{folder}" for folder in options.include_dirs]
    if file != PROGRAM_SOURCE:
        folders.insert(0, f"-iquote{Path(file).parent}")
    macros = [f"-D{name}={value}" for name, value in options.defines]
    if options.math_mode == "fast":
        macros.append("-D__FAST_MATH__=1")
    return clang.run(
        [
            "clang", *_PREPROCESSOR_FLAGS, *more, *macros, *folders,
            f"-I{stub_folder(cache)}", "-",
        ],
        source,
    )  # fmt: skip


def _quoted(file: str) -> str:
    return file.replace("\\", "\\\\").replace('"', '\\"')


def _check(
    stream: TokenStream,
    lowered: Lowered,
    options: Options,
    target: Target,
    cache: Cache,
    read: functools.partial[str | None],
) -> tuple[str, list[Diagnostic]]:
    """Have clang check the whole lowered text; the text after repairs, and the warnings."""
    instances = [kernel for kernel in lowered.kernels if "<" in kernel.expression]
    if len(instances) > _INSTANTIATIONS_CHECKED:
        instances = []
    uses = instantiations(instances)
    unknown = "\n".join(
        line for constant in lowered.constants for line in constant.definitions(constant.unknown)
    )
    outcome = run_repairing(
        [
            *compile_command(stream.render(), options, target, cache),
            *("-fsyntax-only", *_WARNING_FLAGS, "-"),
        ],
        stream,
        lambda text: wrapped(f"{unknown}\n{text}{uses}"),
    )
    source_map = SourceMap(stream, read)
    raw = parse_messages(outcome.messages)
    result = [source_map.localise(message) for message in _about_the_text(raw, target)]
    if outcome.status != 0:
        raise _compile_error(result, outcome.messages)
    return stream.render(), [message for message in result if message.severity == "warning"]


def instantiations(kernels: Iterable[EntryPoint]) -> str:
    """Instantiations, at their own lines, that make clang check the bodies of templates."""
    return "".join(
        f'\n# {kernel.line} "{_quoted(kernel.file)}"\n'
        f"template decltype({kernel.expression}) {kernel.expression};"
        for kernel in kernels
    )


def run_repairing(
    command: list[str], stream: TokenStream, embed: Callable[[str], str]
) -> clang.Outcome:
    """Run clang on the text of `stream`, again and again as long as its errors can be mended.

    Parameters
    ----------
    stream : TokenStream
        A lowered text; repairs are made in it.
    embed : callable
        From that text to the whole that is compiled.
    """
    while True:
        outcome = clang.run(command, embed(stream.render()))
        if outcome.status == 0:
            return outcome
        source_map = SourceMap(stream, lambda file: None)
        if not repair(stream, source_map, parse_messages(outcome.messages)):
            return outcome


def _about_the_text(messages: list[Diagnostic], target: Target) -> list[Diagnostic]:
    # clang names what is no file in angle brackets: the lines we put around the user's text.
    own = ("<", str(include_folder()), str(target.entry_header.parent))
    return without_generated_positions(messages, lambda file: file.startswith(own))


def compile_command(text: str, options: Options, target: Target, cache: Cache) -> list[str]:
    """The clang command that compiles a lowered text for `target`, up to what to produce."""
    header = precompiled_header(cache, target, options.math_mode, text)
    return [
        "clang", *language_flags(text), *target.flags, *math_flags(options.math_mode),
        "-Wno-c++11-narrowing", "-Wno-increment-bool", "-include-pch", str(header),
    ]  # fmt: skip


def wrapped(text: str, attributes: str = "always_inline") -> str:
    """A lowered text whose functions are all inlined into the kernels that call them."""
    return (
        f"#pragma clang attribute push(__attribute__(({attributes})), apply_to = function)\n"
        f"{text}\n#pragma clang attribute pop\n"
    )


def _compile_error(messages: list[Diagnostic], raw: str) -> CompileError:
    """The error for what clang refused; internal failures of clang are quoted as they are."""
    errors, in_error = [], False
    for message in messages:
        in_error = message.is_error or (in_error and message.severity == "note")
        if in_error:
            errors.append(with_hint(message))
    if refused := named_refusal(errors):
        return CompileError(str(refused), [refused])
    if not errors:
        return CompileError(f"[compiler] clang failed without naming a place:\n{raw}", messages)
    return CompileError(report(errors), messages)


def read_source(known: dict[str, str], file: str) -> str | None:
    """Text of a file, from `known` or from disk; None if it cannot be read."""
    if file in known:
        return known[file]
    try:
        return Path(file).read_text("utf-8", "replace")
    except OSError:
        return None


def _dependencies(stream: TokenStream, file: str, cache: Cache) -> dict[str, str]:
    """Digest of each file the text includes, ours and the stubs aside."""
    own = (str(include_folder()), str(stub_folder(cache)))
    result: dict[str, str] = {}
    for position in stream.directives:
        marker = parse_line_marker(stream.text(position))
        if marker is None or marker[0] in result or marker[0] in (file, ""):
            continue
        if marker[0].startswith(("<", *own)):
            continue
        try:
            result[marker[0]] = digest(Path(marker[0]).read_bytes())
        except OSError:
            continue  # a name from a #line directive
    return result


def compile_entry(
    command: list[str],
    unit: TranslationUnit,
    entry: EntryPoint,
    target: Target,
    embed: Callable[[str], str],
    seconds: float = 0.0,
) -> tuple[str, str]:
    """Compile one kernel of a unit; the text that was compiled, and what came out.

    Parameters
    ----------
    command : list of str
        The clang command.
    embed : callable
        From the unit's text to the whole that is compiled.
    seconds : float
        Of the processor that it may take; 0: as long as it takes.

    Raises
    ------
    OutOfTime
        If it takes longer.
    CompileError
        If clang refuses the kernel although it took the library's text: a template is instantiated
        for the first time, or a parameter is of a type that no launch can fill. The latter is found
        by our entry code and put at the kernel's head.
    """
    text = unit.text
    outcome = clang.run(command, embed(text), seconds=seconds)
    if outcome.status != 0:
        stream = TokenStream(text)
        outcome = run_repairing(command, stream, embed)
        text = stream.render()
    if outcome.status == 0:
        return embed(text), outcome.text
    source_map = SourceMap(stream, functools.partial(read_source, unit.sources))
    result = []
    for message in _about_the_text(parse_messages(outcome.messages), target):
        if message.file == ENTRY_FILE:
            message = replace(message, file=entry.file, line=entry.line, column=1)
        message = source_map.localise(message)
        if message not in result:
            result.append(message)
    raise _compile_error(result, outcome.messages)
