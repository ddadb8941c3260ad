"""bfloats as the 16 bits they are, computed with as floats.

Few processors have registers for vectors of bfloat. On the others LLVM would take each load, choice
and argument apart, lane by lane, and call a function to round a lane. So `legalize_bf16` leaves two
operations on bfloats in a function, which `extended` and `rounded` write in integer arithmetic.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from metalloid.compiler.ir.function import Function, Instruction, Value
from metalloid.compiler.ir.types import BFLOAT, FLOAT, I16, Type
from metalloid.compiler.transforms.callees import NO_CALLEES, Callees

#: Instructions that only move values.
_MOVES = frozenset(("load", "store", "phi", "select", "freeze"))
_CASTS = frozenset(("bitcast", "fpext", "fptrunc"))
#: What works on the sign alone, as an operation on the bits.
_SIGNS = {"fneg": ("xor", -0x8000), "@llvm.fabs.bf16": ("and", 0x7FFF)}


def legalize_bf16(function: Function, callees: Callees = NO_CALLEES) -> None:
    """Let all values of type bfloat in `function` be integers, and floats in arithmetic."""
    function.parameters = [_bits(parameter) for parameter in function.parameters]
    names = (f"%mtl.bfloat{number}" for number in itertools.count())
    for block in function.blocks.values():
        block.phis = [_moved(phi) for phi in block.phis]
        body, block.body = block.body, []
        for instruction in body:
            if instruction.op in _MOVES or instruction.callee in callees:
                block.body.append(_moved(instruction))
            elif BFLOAT in (instruction.type, *(value.type for value in instruction.operands)):
                _compute(instruction, block.body, names)
            else:
                block.body.append(instruction)


def _moved(instruction: Instruction) -> Instruction:
    instruction.operands = [_bits(value) for value in instruction.operands]
    if instruction.type == BFLOAT:
        instruction.type = I16
    return instruction


def _bits(value: Value) -> Value:
    if value.type != BFLOAT:
        return value
    name = value.name
    if name.startswith("0xR"):
        number = int(name[3:], 16)
        name = str(number - (number >> 15 << 16))
    return Value(I16, "0" if name == "0.0" else name)


def _compute(instruction: Instruction, body: list[Instruction], names: Iterator[str]) -> None:
    """Add `instruction` to `body`, and the casts that it needs."""
    result, called = instruction.result, instruction.op == "call"
    name = instruction.callee if called else instruction.op
    if name in _SIGNS:
        op, bits = _SIGNS[name]
        operands = [_bits(instruction.operands[0]), Value(I16, str(bits))]
        body.append(Instruction(op, result, I16, operands))
        return
    in_float = name not in _CASTS and (not called or name.startswith("@llvm."))

    def cast(op: str, name: str, type: Type, value: Value) -> Value:
        body.append(Instruction(op, name, type, [value]))
        return body[-1].value

    for number, value in enumerate(instruction.operands):
        if value.type == BFLOAT:
            given = cast("bitcast", next(names), BFLOAT, _bits(value))
            instruction.operands[number] = (
                cast("fpext", next(names), FLOAT, given) if in_float else given
            )
    body.append(instruction)
    if in_float:
        instruction.callee = instruction.callee.replace(".bf16", ".f32")
    if instruction.type == BFLOAT:
        instruction.result, instruction.type = next(names), FLOAT if in_float else BFLOAT
        inner = instruction.value
        if in_float:
            inner = cast("fptrunc", next(names), BFLOAT, inner)
        cast("bitcast", result, I16, inner)
