"""The entry code around a kernel in the text that clang compiles, and its parameter table."""

from __future__ import annotations

import re
from collections.abc import Mapping

from metalloid.compiler.frontend.translate import ENTRY_FILE, wrapped
from metalloid.compiler.frontend.unit import TranslationUnit
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
    inline_all: bool = True,
    retains_kernel: bool = True,
) -> str:
    """The unit's text with its constants defined, and the functions that a device calls.

    Parameters
    ----------
    functions : str
        Their C++; the kernel is ``mtl_entry_type`` there.
    inline_all : bool
        Whether all of the unit's functions are inlined, whatever their size.
    retains_kernel : bool
        Whether code is also made of the kernel by itself, besides that inlined into `functions`.
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
            _with_attributes(text, inline_all, retains_kernel),
            f'# 1 "{ENTRY_FILE}"',
            f"using mtl_entry_type = metalloid::entry<&::{entry.expression}{inputs}>;",
            functions,
            f'extern "C" [[clang::sycl_external]] const void* {_LAYOUT_SYMBOL}()'
            " { return &mtl_entry_type::layouts; }",
            "",
        )
    )


def read_layouts(ir: str) -> list[int]:
    """The numbers of the table that ``parameter_layout.h`` leaves in the module."""
    table = _LAYOUT_TABLE.search(ir)
    if not table:
        raise MetalloidError("[compiler] the compiled kernel lacks its table of parameters.")
    return [int(number.split()[-1]) for number in table[1].split(",")][:-1]  # without its end mark


def _with_attributes(text: str, inline_all: bool, retains_kernel: bool) -> str:
    if not inline_all:
        return text
    return wrapped(text) if retains_kernel else wrapped(text, "always_inline, internal_linkage")
