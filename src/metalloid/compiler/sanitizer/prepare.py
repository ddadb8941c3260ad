"""Keep the accesses and conversions of a kernel's text while LLVM optimises it.

LLVM loads from memory that it knows to exist although only some threads ask for it, moves accesses
out of loops, where they have no line, and removes what depends on uninitialised variables. So
accesses become volatile. Likewise LLVM converts numbers whose result is then discarded: so
conversions get their calls before, one for each component::

    call void @mtl_sanitizer_conversion(double %x, i32 32, i32 1, i32 0)
    %i = fptosi double %x to i32

The last operand is for the number of the site, which `instrument` knows. Conversions of vectors are
in functions of the standard library. Whether the user's text calls them is known when they are
inlined.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from metalloid.compiler.frontend.debug_info import inlined_locations
from metalloid.compiler.sanitizer.operations import OPERATION, with_operations
from metalloid.compiler.sanitizer.variables import VARIABLE, with_flags

CONVERSION = "@mtl_sanitizer_conversion"
_DECLARATION = f"\ndeclare void {CONVERSION}(double, i32, i32, i32)\n"
_CONVERSION = re.compile(
    r"^  %\S+ = fpto(?P<kind>[su])i (?:<(?P<lanes>\d+) x )?(?P<type>\w+)>? (?P<value>%\S+) to "
    r"(?:<\d+ x )?i(?P<bits>\d+)>?, !dbg (?P<debug>!\d+)",
    re.M,
)
_CALL = re.compile(rf"^  [^\n]*(?:{CONVERSION}|{OPERATION})\([^\n]*!dbg (!\d+)[^\n]*\n", re.M)
#: Headers of the standard library that convert and compute vectors, component by component, and
#: those whose functions only pass on what these compute.
_VECTORS = ("metal_vector.h", "metal_vector_operators.h", "metal_math.h")
_OF_VECTORS = (*_VECTORS, "metal_geometric.h")
_ATTRIBUTES = re.compile(r"^(attributes #\d+ = \{)", re.M)
_THREADGROUP_VARIABLE = re.compile(
    r'^(@(?:"[^"\n]*"|[\w.$-]+)) = [^\n]*\baddrspace\(3\) global ', re.M
)
#: A load or store of device (5) or threadgroup (3) memory.
_ACCESS = re.compile(
    r"^(  (?:%\S+ = load|store)) (?!atomic|volatile)([^\n]*, ptr addrspace\([35]\) )", re.M
)
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
    """

    @functools.cache
    def is_checked(debug: str) -> bool:
        location = next(inlined_locations(ir, debug), None)
        return location is not None and (
            is_user_file(Path(location.directory, location.file))
            or location.file.endswith(_VECTORS)
        )

    ir = with_operations(_with_conversions(ir, is_checked), is_checked)
    ir = with_flags(ir, is_user_file)
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


def finish(ir: str, is_user_file: Callable[[Path], bool]) -> str:
    """The optimised module without what `prepare` has added to it.

    Of the calls for conversions and operations, those remain that the user's text makes.
    """

    @functools.cache
    def is_of_the_user(debug: str) -> bool:
        for location in inlined_locations(ir, debug):
            if is_user_file(Path(location.directory, location.file)):
                return True
            if not location.file.endswith(_OF_VECTORS):
                return False
        return False

    ir = _CALL.sub(lambda match: match[0] if is_of_the_user(match[1]) else "", ir)
    ir = _HAS_VALUE.sub("", ir)
    return _USED_LINE.sub("", ir).replace(" sanitize_thread ", " ")


def _with_conversions(ir: str, is_checked: Callable[[str], bool]) -> str:
    count = 0

    def with_calls(match: re.Match[str]) -> str:
        nonlocal count
        if not is_checked(match["debug"]):
            return match[0]
        count += 1
        return "\n".join((*_calls(match, f"%mtl.converted.{count}"), match[0]))

    ir = _CONVERSION.sub(with_calls, ir)
    return ir + _DECLARATION if count else ir


def _calls(match: re.Match[str], name: str) -> Iterator[str]:
    """Instructions that tell of a conversion."""
    debug = f", !dbg {match['debug']}"
    words = f"i32 {match['bits']}, i32 {int(match['kind'] == 's')}, i32 0"
    for lane in range(int(match["lanes"] or 1)):
        value = match["value"]
        if match["lanes"]:
            vector = f"<{match['lanes']} x {match['type']}> {value}"
            value = f"{name}.{lane}"
            yield f"  {value} = extractelement {vector}, i32 {lane}{debug}"
        if match["type"] != "double":
            yield f"  {name}.{lane}.wide = fpext {match['type']} {value} to double{debug}"
            value = f"{name}.{lane}.wide"
        yield f"  call void {CONVERSION}(double {value}, {words}){debug}"
