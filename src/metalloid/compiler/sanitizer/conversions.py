"""Calls that tell the sanitizer's runtime of conversions of floating-point numbers to integers.

They precede the conversions, one for each component::

    %mtl.wide = fpext float %x to double
    call void @mtl_sanitizer_conversion(double %mtl.wide, i32 32, i32 1, i32 0)
    %i = fptosi float %x to i32

The operands are the number, the bits of the integer, whether it has a sign, and the number of the
site.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Function, Instruction, Value
from metalloid.compiler.ir.types import I32, Vector, bits_of
from metalloid.compiler.sanitizer.components import component_as_double, with_debug
from metalloid.compiler.sanitizer.runtime_functions import CONVERSION


def check_conversions(function: Function, is_checked: Callable[[str], bool]) -> bool:
    """Insert the calls; whether there are any.

    Parameters
    ----------
    function : Function
    is_checked : callable
        Whether a conversion with a ``!dbg`` attachment is checked.
    """
    names, count = FreshNames(function), 0
    for block in function.blocks.values():
        body: list[Instruction] = []
        for instruction in block.body:
            if instruction.op in ("fptosi", "fptoui") and is_checked(instruction.debug):
                body += _calls(instruction, names)
                count += 1
            body.append(instruction)
        block.body = body
    return count > 0


def _calls(conversion: Instruction, names: FreshNames) -> Iterator[Instruction]:
    [number], target = conversion.operands, conversion.type
    lanes = target.lanes if isinstance(target, Vector) else 0
    bits = bits_of(target.element if isinstance(target, Vector) else target)
    words = [Value(I32, str(word)) for word in (bits, int(conversion.op == "fptosi"), 0)]
    for lane in range(lanes or 1):
        value = yield from component_as_double(number, lane, names, conversion.debug)
        call = Instruction("call", operands=[value, *words], callee=CONVERSION)
        yield with_debug(call, conversion.debug)
