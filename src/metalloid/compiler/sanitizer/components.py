"""Components of vectors, which the sanitizer's runtime takes one by one."""

from __future__ import annotations

from collections.abc import Generator

from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Instruction, Value
from metalloid.compiler.ir.types import DOUBLE, I32, Vector


def with_debug(instruction: Instruction, debug: str) -> Instruction:
    """An instruction of a pass with the ``!dbg`` attachment of what it is about."""
    if debug:
        instruction.metadata = (("!dbg", debug),)
    return instruction


def component_of(
    value: Value, lane: int, names: FreshNames, debug: str
) -> Generator[Instruction, None, Value]:
    """Instructions that take a component, which they return; a number is its only one."""
    if isinstance(value.type, Vector):
        operands = [value, Value(I32, str(lane))]
        name = names("%mtl.component")
        component = Instruction("extractelement", name, value.type.element, operands)
        yield with_debug(component, debug)
        value = component.value
    return value


def component_as_double(
    value: Value, lane: int, names: FreshNames, debug: str
) -> Generator[Instruction, None, Value]:
    """Instructions that compute a double from a number or a component, which they return."""
    value = yield from component_of(value, lane, names, debug)
    if value.type != DOUBLE:
        wide = Instruction("fpext", names("%mtl.wide"), DOUBLE, [value])
        yield with_debug(wide, debug)
        value = wide.value
    return value
