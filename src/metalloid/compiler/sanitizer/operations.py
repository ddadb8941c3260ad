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

from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Function, Instruction, Value
from metalloid.compiler.ir.types import DOUBLE, I32, Float, Vector
from metalloid.compiler.sanitizer.components import component_as_double, with_debug
from metalloid.compiler.sanitizer.runtime_functions import OPERATION

#: Types of the operands of a finding, by their number.
OPERANDS = ("double", "<2 x double>", "<3 x float>")
_ARITHMETIC = ("fadd", "fsub", "fmul", "fdiv", "frem")
#: Functions from numbers to a number, but for those of other lanes' numbers.
_FUNCTION = re.compile(r"@(?:llvm\.|_ZN(?:5metal|9metalloid))(?!.*(?:simd|quad)_)")


def check_operations(function: Function, is_checked: Callable[[str], bool]) -> bool:
    """Insert the calls; whether there are any.

    Parameters
    ----------
    function : Function
    is_checked : callable
        Whether an operation with a ``!dbg`` attachment is checked.
    """
    names, count = FreshNames(function), 0
    for block in function.blocks.values():
        body: list[Instruction] = []
        for instruction in block.body:
            body.append(instruction)
            operands = _operands(instruction)
            if operands and is_checked(instruction.debug):
                body += _calls(instruction, operands, names)
                count += 1
        block.body = body
    return count > 0


def _operands(instruction: Instruction) -> Sequence[Value]:
    """The operands; none if they are not one to three numbers of the type of the result."""
    type_ = instruction.type
    if not isinstance(type_.element if isinstance(type_, Vector) else type_, Float):
        return ()
    operands = instruction.operands
    if instruction.op == "call" and _FUNCTION.match(instruction.callee):
        is_plain = all(each.type == type_ for each in operands)
        return operands if is_plain and len(operands) <= len(OPERANDS) else ()
    return operands if instruction.op in _ARITHMETIC else ()


def _calls(
    operation: Instruction, operands: Sequence[Value], names: FreshNames
) -> Iterator[Instruction]:
    type_ = operation.type
    for lane in range(type_.lanes if isinstance(type_, Vector) else 1):
        numbers = []
        for each in (operation.value, *operands):
            number = yield from component_as_double(each, lane, names, operation.debug)
            numbers.append(number)
        numbers += [Value(DOUBLE, "0.0")] * (1 + len(OPERANDS) - len(numbers))
        words = [Value(I32, str(len(operands))), Value(I32, "0")]
        call = Instruction("call", operands=[*numbers, *words], callee=OPERATION)
        yield with_debug(call, operation.debug)
