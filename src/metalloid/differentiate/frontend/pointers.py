"""Pointers: a buffer or an array, and an offset in its elements.

A pointer to numbers that is cast to one to vectors has the stride of these as its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from metalloid.differentiate.frontend.expressions import INT, ZERO, binary, type_of
from metalloid.differentiate.frontend.refused import Refused
from metalloid.differentiate.frontend.swizzles import SwizzleReader
from metalloid.differentiate.program.tree import AtomicAdd, Expression
from metalloid.differentiate.program.types import Type, parse_type
from metalloid.msl.portable.syntax_tree import Node, SourceLocation

_SIZE = re.compile(r"sizeof '(?:[^']*':')?([^']*)'")


class PointerReader(SwizzleReader):
    """Reads pointers."""

    def __init__(self, literal_at: Callable[[SourceLocation], str]) -> None:
        super().__init__(literal_at)
        self._unset: dict[str, Node] = {}  # declarations of pointers without a value

    def element(self, base: Expression, index: Expression, type_: Type) -> Expression:
        """An element of an array, or of what a pointer points to."""
        if base.op == "unset":
            declared = self._unset.get(base.name)
            begin, label = (declared.begin, declared.label) if declared else (None, "nullptr")
            raise Refused(begin, f"the pointer {label!r} points to nothing at first")
        is_variable = base.op == "variable" and base.type.element.msl == type_.element.msl
        if is_variable and not (base.type.extents or base.type.is_pointer or base.type.space):
            return base  # from its address
        if base.op == "pointer":  # to an element
            (buffer, offset) = base.args
            index = _scaled(base, index)
            index = index if offset is ZERO else binary("+", offset, index)
            if base.name:
                return self._elements(buffer, index, type_)
            row = buffer.args if buffer.op == "element" else (buffer,)
            return Expression("element", type_, "", (*row, index))
        if base.op == "element" and base.type.extents:  # a row
            return Expression("element", type_, "", (*base.args, index))
        return Expression("element", type_, "", (base, index))

    def address_of(self, target: Expression) -> Expression:
        """A pointer to an element; another variable stands for its address."""
        if target.op != "element" or target.type.extents:
            return target
        *row, index = target.args
        array = row[0]
        if len(row) > 1:
            array = Expression("element", replace(target.type, extents=(0,)), "", tuple(row))
        return Expression("pointer", target.type, "", (array, index))

    def first_element(self, array: Expression) -> Expression:
        """A pointer to the first element of an array."""
        if array.op not in ("variable", "element") or len(array.type.extents) != 1:
            return array
        return Expression("pointer", array.type.element, "", (array, ZERO))

    def moved(self, node: Node, operator: str, left: Expression, right: Expression) -> Expression:
        """A sum of a pointer and a distance, a difference, or a comparison."""
        if left.op == right.op == "pointer":
            return _compared(node, operator, left, right)
        pointer, distance = (left, right) if left.op == "pointer" else (right, left)
        if pointer.op != "pointer" or operator not in "+-":
            raise Refused(node.begin, "this operation of pointers has no rule")
        buffer, offset = pointer.args
        distance = _scaled(pointer, distance)
        if operator == "-" or offset is not ZERO:
            distance = binary(operator, offset, distance)
        return replace(pointer, args=(buffer, distance))

    def _read_UnaryExprOrTypeTraitExpr(self, node: Node) -> Expression:
        measured = _SIZE.search(node.text)
        type_ = parse_type(measured[1]) if measured else type_of(node.children[0])
        if not type_.scalar or type_.extents or type_.columns or "sizeof" not in node.text:
            raise Refused(node.begin, "the size of this type has no rule")
        return Expression("constant", Type("ulong"), str(type_.stride * type_.scalar_bytes))

    def _read_CXXNullPtrLiteralExpr(self, node: Node) -> Expression:
        return Expression("unset", type_of(node))

    def _read_ConditionalOperator(self, node: Node) -> Expression:
        """A choice; of pointers into the same memory, that of their offsets."""
        if not type_of(node).is_pointer:
            return super()._read_ConditionalOperator(node)
        values: list[Expression] = []
        effects = self.block_of(lambda: values.extend(map(self.value, node.children)))
        condition, *choices = values
        known = [each for each in choices if each.op != "unset"]
        if len(known) == 1:  # the other one is null
            return known[0]
        if effects or {each.op for each in choices} != {"pointer"} or (
            choices[0].args[0] != choices[1].args[0] or choices[0].name != choices[1].name
        ):  # fmt: skip
            raise Refused(node.begin, "a pointer that is chosen at run time has no rule")
        offset = Expression("select", Type("long"), "", (condition, *(c.args[1] for c in choices)))
        return replace(choices[0], args=(choices[0].args[0], offset))

    def unset(self, node: Node) -> Expression:
        """A pointer that an assignment will let point to something: the variable of its offset."""
        offset = self.new_variable(f"{node.label}_offset", Type("long"))
        self._unset[node.address] = node
        return Expression("unset", type_of(node), node.address, (offset,))

    def store(self, node: Node, target: Expression, value: Expression) -> Expression:
        """``target = value``; the first one of a pointer says what it points into."""
        if target.op != "unset":
            return super().store(node, target, value)
        if value.op != "pointer" or not target.args:
            raise Refused(node.begin, "this pointer has no rule")
        self.known[target.name] = replace(value, args=(value.args[0], target.args[0]))
        self.assign(target.args[0], value.args[1], node)
        return target.args[0]

    def pointer_cast(self, node: Node, pointer: Expression) -> Expression:
        """A pointer to numbers as one to vectors of them, or back."""
        to, before = type_of(node), pointer.type
        if to.element.msl == before.element.msl or pointer.op == "unset":
            return pointer
        if pointer.op != "pointer":
            raise Refused(node.begin, "this pointer has no rule")
        scalar = pointer.args[0].type
        if _is_constant_integers(scalar) and to.scalar and not (to.is_float or to.is_aggregate):
            return _reinterpreted(pointer, to)
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


def _compared(node: Node, operator: str, left: Expression, right: Expression) -> Expression:
    """A comparison or a difference of pointers into the same memory."""
    if (left.args[0], left.name) != (right.args[0], right.name):
        raise Refused(node.begin, "comparisons of pointers into different memory have no rule")
    offsets = _signed(left.args[1]), _signed(right.args[1])
    value = binary(operator, *offsets, type_of(node))
    return binary("/", value, _number(int(left.name))) if left.name and operator == "-" else value


def _signed(offset: Expression) -> Expression:
    is_signed = offset.type.scalar == "long"
    return offset if is_signed else Expression("cast", Type("long"), args=(offset,))


def _is_constant_integers(buffer: Type) -> bool:
    """Whether a buffer has integers that the kernel does not change."""
    is_constant = buffer.space == "constant" or "const " in buffer.text
    return bool(buffer.scalar) and not buffer.is_float and buffer.lanes == 1 and (
        buffer.is_pointer and is_constant
    )  # fmt: skip


def _reinterpreted(pointer: Expression, to: Type) -> Expression:
    """A pointer to integers as one to others, whose buffer has the text of the cast as its name."""
    buffer, offset = pointer.args
    before, after = buffer.type.scalar_bytes, to.stride * to.scalar_bytes
    if offset is not ZERO and after < before:
        offset = binary("*", offset, _number(before // after))
    elif offset is not ZERO and after > before:
        offset = binary("/", offset, _number(after // before))
    space = f"{buffer.type.space} {'const ' * (buffer.type.space != 'constant')}"
    name = f"(({space}{to.element.msl} *){buffer.name})"
    type_ = replace(to, space=buffer.type.space, is_pointer=True, text=buffer.type.text)
    return Expression("pointer", to, "", (Expression("variable", type_, name), offset))


def _number(value: int) -> Expression:
    return Expression("constant", INT, str(value))
