"""Threadgroup variables of a kernel: memory that the caller passes.

clang makes thread-local globals of them, whose address every piece of code must find by a call.
This pass replaces them by constant offsets before an address that the function has as a parameter.
"""

from __future__ import annotations

from metalloid.compiler.ir.function import Function, Instruction, Value
from metalloid.compiler.ir.lexer import variable_of
from metalloid.compiler.ir.types import I64, POINTER, Integer, Unsupported


def lower_threadgroup_variables(function: Function, variables: dict[str, int], end: Value) -> None:
    """Replace variables by addresses before `end`.

    Raises
    ------
    Unsupported
        If one has a use that is not supported.
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
