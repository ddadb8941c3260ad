"""Calls that tell the sanitizer's runtime of operations that may make NaN of numbers.

They follow arithmetic and calls of functions of the standard library, with the result, the operands
and their number; operations of vectors get one for each component::

    %z = fdiv double %x, %y
    call void @mtl_sanitizer_operation(double %z, double %x, double %y, double 0.0, i32 2, i32 0)

The last operand is for the number of the site. The functions are looked at before LLVM inlines
them: their own steps may make NaN of numbers and not use it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

OPERATION = "@mtl_sanitizer_operation"
DECLARATION = f"\ndeclare void {OPERATION}(double, double, double, double, i32, i32)\n"
#: Types of the operands of a finding, by their number.
OPERANDS = ("double", "<2 x double>", "<3 x float>")
_TYPE = r"(?:<(?P<lanes>\d+) x )?(?P<type>half|bfloat|float|double)>?"
_ARITHMETIC = re.compile(
    rf"^  (?P<result>%\S+) = f(?:add|sub|mul|div|rem) (?:[a-z]+ )*?{_TYPE} "
    r"(?P<left>[^ ,\n]+), (?P<right>[^ ,\n]+), !dbg (?P<debug>!\d+)$",
    re.M,
)
#: Functions from numbers to a number, but for those of other lanes' numbers.
_FUNCTION = re.compile(
    rf"^  (?P<result>%\S+) = (?:tail )?call (?:[a-z]+ )*?{_TYPE} "
    r"@(?:llvm\.|_ZN(?:5metal|9metalloid))(?![^(\n]*(?:simd|quad)_)[^(\n]*"
    r"\((?P<arguments>[^()\n]*)\)[^\n]*, !dbg (?P<debug>!\d+)$",
    re.M,
)
_ARGUMENT = re.compile(r"(?P<type>[a-z]+) (?:noundef )?(?P<value>[^ ,]+)$")


class _Operation(NamedTuple):
    result: str
    operands: Sequence[str]
    type: str
    lanes: int  # 0 of a number
    debug: str


def with_operations(ir: str, is_checked: Callable[[str], bool]) -> str:
    """A module with the calls.

    Parameters
    ----------
    ir : str
        As clang writes it before LLVM optimises it, with debug locations.
    is_checked : callable
        Whether operations with a ``!dbg`` attachment are checked.
    """
    count = 0

    def with_calls(match: re.Match[str]) -> str:
        nonlocal count
        operands = _operands(match)
        if not operands or not is_checked(match["debug"]):
            return match[0]
        count += 1
        operation = _Operation(
            match["result"], operands, match["type"], int(match["lanes"] or 0), match["debug"]
        )
        return "\n".join((match[0], *_calls(operation, f"%mtl.operation.{count}")))

    ir = _FUNCTION.sub(with_calls, _ARITHMETIC.sub(with_calls, ir))
    return ir + DECLARATION if count else ir


def _operands(match: re.Match[str]) -> Sequence[str]:
    """The operands; none if they are not one to three numbers of the type of the result."""
    if match.re is _ARITHMETIC:
        return match["left"], match["right"]
    arguments = [_ARGUMENT.match(each) for each in match["arguments"].split(", ")]
    values = [each["value"] for each in arguments if each and each["type"] == match["type"]]
    return values if len(values) == len(arguments) <= len(OPERANDS) else ()


def _calls(operation: _Operation, name: str) -> Iterator[str]:
    for lane in range(operation.lanes or 1):
        words = []
        for number, value in enumerate((operation.result, *operation.operands)):
            converted = f"{name}.{lane}.{number}"
            steps = list(_as_double(value, operation, lane, converted))
            yield from steps
            words.append(converted if steps else value)
        words += ["0.0"] * (1 + len(OPERANDS) - len(words))
        numbers = ", ".join(f"double {word}" for word in words)
        count = len(operation.operands)
        yield f"  call void {OPERATION}({numbers}, i32 {count}, i32 0), !dbg {operation.debug}"


def _as_double(value: str, operation: _Operation, lane: int, name: str) -> Iterator[str]:
    """Instructions that make a double of a number or a component; none if it is one."""
    debug, type_ = f", !dbg {operation.debug}", operation.type
    is_double = type_ == "double"
    if operation.lanes:
        component = name if is_double else f"{name}.component"
        vector = f"<{operation.lanes} x {type_}> {value}"
        yield f"  {component} = extractelement {vector}, i32 {lane}{debug}"
        value = component
    if not is_double:
        yield f"  {name} = fpext {type_} {value} to double{debug}"
