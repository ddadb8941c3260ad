"""Keep the accesses and conversions of a kernel while LLVM optimises its module.

LLVM loads from memory that it knows to exist although only some threads ask for it, moves accesses
out of loops, where they have no line, and removes what depends on uninitialised variables. So
accesses become volatile. Likewise LLVM converts numbers whose result is then discarded, and the
passes of `PREPARATION` insert calls before it does.

Conversions and operations of vectors are in functions of the standard library. Whether the user's
text calls them is known when they are inlined, and `finish` removes the calls of others.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path

from metalloid.compiler.frontend.debug_info import inlined_locations, location_of
from metalloid.compiler.ir.function import Function
from metalloid.compiler.ir.parser import map_functions
from metalloid.compiler.ir.pass_manager import run_passes
from metalloid.compiler.sanitizer.context import SanitizerContext
from metalloid.compiler.sanitizer.pipeline import PREPARATION
from metalloid.compiler.sanitizer.runtime_functions import (
    CONVERSION,
    OPERATION,
    SHIFT,
    TEXEL,
    VARIABLE,
    with_declarations,
)

_CALL = re.compile(
    rf"^  [^\n]*({CONVERSION}|{OPERATION}|{SHIFT}|{TEXEL})\([^\n]*!dbg (!\d+)[^\n]*\n", re.M
)
#: Headers of the standard library that convert and compute vectors, component by component, and
#: those whose functions only pass on what these compute.
_VECTORS = ("metal_vector.h", "metal_vector_operators.h", "metal_math.h")
_OF_VECTORS = (*_VECTORS, "metal_geometric.h")
#: The headers of textures, whose texels are looked for in the first one.
_TEXTURES = ("texture_base.h", "texture_atomics.h", "metal_texture.h")
_ATTRIBUTES = re.compile(r"^(attributes #\d+ = \{)", re.M)
_DEBUG = re.compile(r"!dbg (!\d+)")
_THREADGROUP_VARIABLE = re.compile(
    r'^(@(?:"[^"\n]*"|[\w.$-]+)) = [^\n]*\baddrspace\(3\) global ', re.M
)
#: A load or store of device (5) or threadgroup (3) memory.
_ACCESS = re.compile(
    r"^(  (?:%\S+ = load|store)) (?!atomic|volatile)([^\n]*, ptr addrspace\([35]\) )", re.M
)
_VOLATILE = re.compile(r"^(  (?:%\S+ = load|store)) volatile ", re.M)
#: Of a load of a variable that has a value for certain.
_HAS_VALUE = re.compile(rf"^  [^\n]*{VARIABLE}\(i8 (?:noundef )?1, [^\n]*\n", re.M)
_USED = "@llvm.compiler.used"
_USED_LINE = re.compile(rf"^{_USED} = [^\n]*\n", re.M)


def prepare(ir: str, is_user_file: Callable[[Path], bool]) -> str:
    """A module that LLVM optimises without loads of its own, and with all threadgroup variables.

    Parameters
    ----------
    ir : str
        As clang writes it before LLVM optimises it, with debug locations.
    is_user_file : callable
        Whether a file is the user's: conversions, variables and operations in those are checked.

    Raises
    ------
    Unsupported
        If there is something in a function that no kernel was seen to contain.
    """
    ir = _with_calls(ir, is_user_file)
    ir = _ACCESS.sub(r"\1 volatile \2", ir)
    # ThreadSanitizer's attribute, for accesses by pointers to any memory. LLVM instruments nothing
    # unless clang asks for its pass.
    ir = _ATTRIBUTES.sub(r"\1 sanitize_thread", ir)
    names = _THREADGROUP_VARIABLE.findall(ir)
    if not names:
        return ir
    used = ", ".join(f"ptr addrspacecast (ptr addrspace(3) {name} to ptr)" for name in names)
    return (
        f"{_USED_LINE.sub('', ir)}\n{_USED} = appending global [{len(names)} x ptr] [{used}], "
        'section "llvm.metadata"\n'
    )


def _with_calls(ir: str, is_user_file: Callable[[Path], bool]) -> str:
    """The module after `PREPARATION`, which leaves functions of other headers as they are."""

    def file_of(debug: str) -> Path | None:
        location = location_of(ir, debug)
        return Path(location.directory, location.file) if location else None

    @functools.cache
    def is_of_the_user(debug: str) -> bool:
        file = file_of(debug)
        return file is not None and is_user_file(file)

    @functools.cache
    def is_checked(debug: str) -> bool:
        file = file_of(debug)
        return file is not None and (is_user_file(file) or file.name in _VECTORS)

    context = SanitizerContext(is_checked=is_checked)

    def add_calls(function: Function) -> None:
        context.has_flags = is_of_the_user(_subprogram(function.attributes))
        context.valid = set()
        run_passes(function, PREPARATION, context)

    def has_calls(definition: str) -> bool:
        debug = _subprogram(definition)
        file = file_of(debug)
        return is_checked(debug) or (file is not None and file.name in _TEXTURES)

    return with_declarations(map_functions(ir, add_calls, has_calls))


def _subprogram(definition: str) -> str:
    """The ``!dbg`` attachment of a function; empty if it has none."""
    debug = _DEBUG.search(definition.partition("\n")[0])
    return debug[1] if debug else ""


def finish(ir: str, is_user_file: Callable[[Path], bool]) -> str:
    """The optimised module without what `prepare` has added to it.

    Of the calls for conversions, operations, shifts and texels, those of the user's text remain.
    """

    @functools.cache
    def is_of_the_user(debug: str, headers: tuple[str, ...]) -> bool:
        for location in inlined_locations(ir, debug):
            if is_user_file(Path(location.directory, location.file)):
                return True
            if not location.file.endswith(headers):
                return False
        return False

    def remaining(call: re.Match[str]) -> str:
        headers = _TEXTURES if call[1] == TEXEL else _OF_VECTORS
        return call[0] if is_of_the_user(call[2], headers) else ""

    ir = _CALL.sub(remaining, ir)
    ir = _HAS_VALUE.sub("", _VOLATILE.sub(r"\1 ", ir))
    return _USED_LINE.sub("", ir).replace(" sanitize_thread ", " ")
