"""The parameters of a kernel, for devices that have a compiler of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping

from metalloid.compiler.frontend.entry import entry_text, read_layouts
from metalloid.compiler.frontend.translate import compile_command, compile_entry
from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.compiler.toolchain.cache import Cache, digest
from metalloid.compiler.toolchain.target import Target
from metalloid.msl.entry_points import EntryPoint


def parameter_table(
    unit: TranslationUnit,
    entry: EntryPoint,
    constants: Mapping[int, str],
    target: Target,
    cache: Cache,
) -> list[int]:
    """The table that `build_signature` reads; no code is made.

    Raises
    ------
    CompileError
        If the kernel's template cannot be instantiated, or a launch cannot fill a parameter.
    """
    key = digest(
        "table", unit.key, entry.expression, entry.name, repr(sorted(constants.items())),
        *target.flags,
    )  # fmt: skip
    files = cache.load(key)
    if files is None:
        command = [
            *compile_command(unit.text, unit.options, target, cache),
            *("-Xclang", "-disable-llvm-passes", "-w", "-S", "-emit-llvm", "-o", "-", "-"),
        ]
        _, ir = compile_entry(
            command, unit, entry, target,
            lambda text: entry_text(text, unit, entry, constants, ""),
        )  # fmt: skip
        files = cache.save(key, {"table.json": json.dumps(read_layouts(ir))})
    numbers: list[int] = json.loads(files["table.json"].read_bytes())
    return numbers
