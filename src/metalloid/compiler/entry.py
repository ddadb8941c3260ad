"""What is put around a kernel so that a device can call it, and the table of its parameters."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from metalloid.compiler.cache import Cache, digest
from metalloid.compiler.frontend import ENTRY_FILE, compile_command, compile_entry, wrapped
from metalloid.compiler.target import Target
from metalloid.compiler.unit import TranslationUnit
from metalloid.errors import MetalloidError
from metalloid.msl.entry_points import EntryPoint
from metalloid.msl.signature import entry_inputs

_LAYOUT_SYMBOL = "mtl_layouts"
_LAYOUT_TABLE = re.compile(r"^@\S*layouts\S* = .*? constant .*? \[((?:i32 \d+(?:, )?)+)\]", re.M)


def entry_text(
    text: str,
    unit: TranslationUnit,
    entry: EntryPoint,
    constants: Mapping[int, str],
    functions: str,
) -> str:
    """A unit's text with its constants defined, and behind it what calls one of its kernels.

    Parameters
    ----------
    constants : mapping
        Function constants by index, as C++ text.
    functions : str
        C++ of the functions that the device calls, which use the type ``mtl_entry_type``.
    """
    definitions = [
        line
        for constant in unit.constants
        for line in constant.definitions(constants.get(constant.index))
    ]
    inputs = "".join(f", {text}" for text in entry_inputs(entry))
    return "\n".join(
        (
            *definitions,
            wrapped(text),
            f'# 1 "{ENTRY_FILE}"',
            f"using mtl_entry_type = metalloid::entry<&::{entry.expression}{inputs}>;",
            functions,
            f'extern "C" [[clang::sycl_external]] const void* {_LAYOUT_SYMBOL}()'
            " { return &mtl_entry_type::layouts; }",
            "",
        )
    )


def read_table(ir: str) -> tuple[int, ...]:
    """The numbers of the table that ``parameter_layout.h`` leaves in a module, given as LLVM IR."""
    table = _LAYOUT_TABLE.search(ir)
    if not table:
        raise MetalloidError("[compiler] the compiled kernel lacks its table of parameters.")
    # Without its end mark.
    return tuple(int(number.split()[-1]) for number in table[1].split(",")[:-1])


def parameter_table(
    unit: TranslationUnit,
    entry: EntryPoint,
    constants: Mapping[int, str],
    target: Target,
    cache: Cache,
) -> tuple[int, ...]:
    """The table of a kernel's parameters alone, for devices that have a compiler of their own.

    Raises
    ------
    CompileError
        If its template cannot be instantiated, or a parameter cannot be filled by a launch.
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
        files = cache.save(key, {"table.json": json.dumps(read_table(ir))})
    return tuple(json.loads(files["table.json"].read_bytes()))
