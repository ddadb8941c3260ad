"""The code of one thread, for the refutation of launches on other devices."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from metalloid.backends.cpu.compile import vector
from metalloid.backends.cpu.compile.bounds import THREAD_CODE
from metalloid.backends.cpu.compile.kernel_ir import kernel_ir
from metalloid.compiler.frontend.source_positions import SourcePositions
from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.compiler.ir.parser import parse_function
from metalloid.compiler.toolchain.cache import Cache, digest, read_text
from metalloid.compiler.toolchain.target import Target
from metalloid.msl.entry_points import EntryPoint
from metalloid.runtime.launch.refutation import ThreadCode


def thread_code(
    unit: TranslationUnit,
    entry: EntryPoint,
    constants: Mapping[int, str],
    target: Target,
    cache: Cache,
) -> ThreadCode:
    """Compile one thread of a kernel to IR, or load it from the cache.

    Raises
    ------
    MetalloidError
        If it does not compile for this target.
    """
    key = digest(
        "thread", unit.key, entry.expression, entry.name, repr(sorted(constants.items())),
        target.identity, *target.flags,
    )  # fmt: skip
    files = cache.load(key)
    if files is None:
        functions = functools.partial(
            vector.functions, variant=None, parameters=len(entry.parameters)
        )
        kernel = kernel_ir(unit, entry, constants, target, cache, functions, debug_lines=True)
        files = cache.save(key, {"thread.ll": kernel.ir, "thread.cpp": kernel.cpp})
    ir, positions = (
        read_text(files["thread.ll"]),
        SourcePositions(unit.sources, read_text(files["thread.cpp"])),
    )
    function = parse_function(ir, THREAD_CODE, retain_hints=True)
    return ThreadCode(function, lambda debug: positions.of(debug, ir))
