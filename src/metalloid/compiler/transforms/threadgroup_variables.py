"""Threadgroup variables of a kernel: places in memory that the caller gives.

clang makes globals of them, one for each thread of the operating system, whose address a call must
find anew in every piece of code. Here they lie at known distances in front of an address that the
function is given.
"""

from __future__ import annotations

from metalloid.compiler.ir.function import Function, Instruction, Value
from metalloid.compiler.ir.lexer import variable_of
from metalloid.compiler.ir.types import I64, POINTER, Integer, Unsupported


def lower_threadgroup_variables(function: Function, variables: dict[str, int], end: Value) -> None:
    """Let instructions use addresses in front of `end` for the variables.

    Raises
    ------
    Unsupported
        If one is used in a way that no kernel was seen to.
    """
    replaced: dict[str, Instruction] = {}

    def local(value: Value) -> Value:
        variable, offset = variable_of(value.name)
        if variable not in variables:
            if any(word in variables for word in value.name.split()):
                raise Unsupported(f"the address {value.name}")
            return value
        name = f"%mtl.variable{len(replaced)}"
        step = Value(I64, str(offset - variables[variable]))
        replaced.setdefault(
            value.name,
            Instruction("getelementptr", name, POINTER, [end, step], source=Integer(8)),
        )
        return replaced[value.name].value

    for instruction in function.instructions():
        if variables:
            instruction.operands = [local(value) for value in instruction.operands]
    function.entry.body[:0] = replaced.values()
