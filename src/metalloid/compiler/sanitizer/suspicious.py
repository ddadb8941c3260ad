"""Calls that tell the sanitizer's runtime of what MSL defines and programs seldom mean.

Shifts by as many bits as the type has or more, of which MSL takes the low bits, and texels outside
of a texture, which read as black (MSL 4, 6.12)::

    call void @mtl_sanitizer_shift(i64 %mtl.amount, i32 32, i32 0)
    %y = shl i32 %x, %n

    %inside = call i1 @_ZNK9metalloid12texture_base...3has...(%at, %lod)
    call void @mtl_sanitizer_texel(i1 %inside, i32 0)

The last operand is for the number of the site.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Function, Instruction, Value
from metalloid.compiler.ir.types import I32, I64, Vector, bits_of
from metalloid.compiler.sanitizer.components import component_of, with_debug
from metalloid.compiler.sanitizer.runtime_functions import SHIFT, TEXEL

_SHIFTS = ("shl", "lshr", "ashr")
#: `texture_base::has` (texture_base.h).
_HAS_TEXEL = re.compile(r"@_ZNK9metalloid12texture_baseI.*E3hasE")


def check_shifts(function: Function, is_checked: Callable[[str], bool]) -> bool:
    """Insert the calls for shifts; whether there are any.

    Parameters
    ----------
    function : Function
    is_checked : callable
        Whether a shift with a ``!dbg`` attachment is checked.
    """
    names, count = FreshNames(function), 0
    computed_by = {i.result: i for i in function.instructions() if i.result}
    for block in function.blocks.values():
        body: list[Instruction] = []
        for instruction in block.body:
            if instruction.op in _SHIFTS and is_checked(instruction.debug):
                amount = instruction.operands[1]
                if isinstance(amount.type, Vector):
                    amount = _unmasked(amount, computed_by)
                if not amount.is_constant:
                    body += _calls(instruction, amount, names)
                    count += 1
            body.append(instruction)
        block.body = body
    return count > 0


def _unmasked(amount: Value, computed_by: dict[str, Instruction]) -> Value:
    """The amounts whose low bits the header of vectors takes (metal_vector_operators.h)."""
    mask = computed_by.get(amount.name)
    return mask.operands[0] if mask is not None and mask.op == "and" else amount


def _calls(shift: Instruction, amount: Value, names: FreshNames) -> Iterator[Instruction]:
    type_ = shift.type
    bits = Value(I32, str(bits_of(type_.element if isinstance(type_, Vector) else type_)))
    for lane in range(type_.lanes if isinstance(type_, Vector) else 1):
        number = yield from component_of(amount, lane, names, shift.debug)
        if number.type != I64:
            wide = Instruction("sext", names("%mtl.amount"), I64, [number])
            yield with_debug(wide, shift.debug)
            number = wide.value
        call = Instruction("call", operands=[number, bits, Value(I32, "0")], callee=SHIFT)
        yield with_debug(call, shift.debug)


def check_texels(function: Function) -> bool:
    """Insert the calls for texels, where a texture is asked for one; whether there are any."""
    count = 0
    for block in function.blocks.values():
        body: list[Instruction] = []
        for instruction in block.body:
            body.append(instruction)
            if instruction.op == "call" and _HAS_TEXEL.match(instruction.callee):
                operands = [instruction.value, Value(I32, "0")]
                call = Instruction("call", operands=operands, callee=TEXEL)
                body.append(with_debug(call, instruction.debug))
                count += 1
        block.body = body
    return count > 0
