"""Pointers: a buffer or an array, and an offset in its elements.

A pointer to numbers that is cast to one to vectors has the stride of these as its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from metalloid.differentiate.frontend.expressions import (
    INT,
    ZERO,
    ExpressionReader,
    Refused,
    binary,
    type_of,
)
from metalloid.differentiate.program.tree import AtomicAdd, Expression
from metalloid.differentiate.program.types import Type
from metalloid.msl.portable.syntax_tree import Node


class PointerReader(ExpressionReader):
    """Reads pointers."""

    def element(self, base: Expression, index: Expression, type_: Type) -> Expression:
        """An element of an array, or of what a pointer points to."""
        if base.op == "pointer":  # to an element
            (buffer, offset) = base.args
            index = _scaled(base, index)
            index = index if offset is ZERO else binary("+", offset, index)
            if base.name:
                return self._elements(buffer, index, type_)
            return Expression("element", type_, "", (buffer, index))
        if base.op == "element" and base.type.extents:  # a row
            return Expression("element", type_, "", (*base.args, index))
        return Expression("element", type_, "", (base, index))

    def moved(self, node: Node, operator: str, left: Expression, right: Expression) -> Expression:
        """A sum of a pointer and a distance, or a difference."""
        pointer, distance = (left, right) if left.op == "pointer" else (right, left)
        if operator not in "+-" or distance.op == "pointer":
            raise Refused(node.begin, "comparisons and differences of pointers have no rule")
        buffer, offset = pointer.args
        distance = _scaled(pointer, distance)
        if operator == "-" or offset is not ZERO:
            distance = binary(operator, offset, distance)
        return replace(pointer, args=(buffer, distance))

    def pointer_cast(self, node: Node, pointer: Expression) -> Expression:
        """A pointer to numbers as one to vectors of them, or back."""
        to, before = type_of(node), pointer.type
        if to.element.msl == before.element.msl:
            return pointer
        if pointer.op == "variable" and len(before.extents) == 1:
            pointer = Expression("pointer", before.element, "", (pointer, ZERO))
        if pointer.op != "pointer":
            raise Refused(node.begin, "this pointer has no rule")
        scalar = pointer.args[0].type
        is_known = not (to.is_aggregate or scalar.is_aggregate) and scalar.lanes == 1
        if not is_known or to.scalar != scalar.scalar or scalar.scalar == "void":
            why = f"a pointer to {before.element.msl} as one to {to.element.msl} has no rule"
            raise Refused(node.begin, why)
        return Expression("pointer", to, str(to.stride) if to.lanes > 1 else "", pointer.args)

    def _elements(self, buffer: Expression, index: Expression, type_: Type) -> Expression:
        """A vector of elements from an index."""
        scalar = replace(type_.lane(), space="")
        parts = tuple(
            self.element(Expression("pointer", scalar, "", (buffer, index)), _number(lane), scalar)
            for lane in range(type_.lanes)
        )
        return Expression("construct", type_.element, args=parts)

    def new_vector(self, value: Expression) -> Expression:
        """A value in a variable, so that its components are read."""
        local = self.new_variable("vector", value.type.element)
        self.assign(local, value)
        return local

    def update(self, node: Node, target: Expression, operator: str, value: Expression) -> None:
        """``target operator= value``; of a pointer, its offset."""
        if target.op == "pointer":
            value, target = _scaled(target, value), target.args[1]
            if target.op != "variable":
                raise Refused(node.begin, "this pointer cannot change")
        target = element_of(target)
        if target.op == "construct":  # of elements
            value = self.new_vector(value)
            for part, each in parts_of(target, value):
                self.update(node, part, operator, each)
            return
        if operator == "+" and target.is_buffer_element:
            self.statements.append(AtomicAdd(target, value, node.begin))
            return
        self.assign(target, binary(operator, target, value), node)


def element_of(target: Expression) -> Expression:
    """The element that a component of elements is; else the target."""
    if target.op == "component" and target.args[0].op == "construct" and target.type.lanes == 1:
        return target.args[0].args["xyzw".index(target.name)]
    return target


def parts_of(target: Expression, value: Expression) -> Iterator[tuple[Expression, Expression]]:
    """The elements that are a vector, and the components of its value."""
    for lane, part in zip("xyzw", target.args, strict=False):
        is_vector = value.type.lanes > 1
        yield (
            part,
            Expression("component", value.type.lane(), lane, (value,)) if is_vector else value,
        )


def _scaled(pointer: Expression, distance: Expression) -> Expression:
    """A distance in elements of the buffer."""
    if not pointer.name:
        return distance
    if distance is ZERO:
        return ZERO
    return binary("*", distance, _number(int(pointer.name)))


def _number(value: int) -> Expression:
    return Expression("constant", INT, str(value))
