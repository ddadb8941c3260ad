"""Members of structs that are pointers or references.

A pointer is known by what it points into, and has a variable for its offset; a reference is known
by its object. Both are known from the first assignment on, that of an initialiser as a rule, so the
member of a struct is a name until then.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

from metalloid.differentiate.frontend.pointers import PointerReader
from metalloid.differentiate.frontend.refused import Refused
from metalloid.differentiate.program.tree import Expression
from metalloid.differentiate.program.types import Type
from metalloid.msl.portable.syntax_tree import Node


class PointerMemberReader(PointerReader):
    """Reads members that are pointers or references."""

    def new_pointer_member(self, name: str, type_: Type, is_array: bool) -> Expression:
        """A member, of one struct or each of an array, that does not point to anything yet."""
        if is_array or (type_.extents and not type_.is_reference):
            raise Refused(None, "arrays of pointers have no rule")
        offset = self.new_variable(f"{name}_offset", Type("long"))
        args = () if type_.is_reference else (offset,)
        return Expression(
            "unset", replace(type_, space="", extents=()), f"{offset.name} of {name}", args
        )

    def resolved(self, value: Expression) -> Expression:
        """The object or pointer that a member stands for, if it is known."""
        return self.known.get(value.name, value) if value.op == "unset" else value

    def point(self, member: Expression, value: Expression, node: Node | None) -> None:
        """Let a member point where another pointer does, or be another object's name."""
        target, value = self.resolved(member), self.resolved(value)
        begin = node.begin if node else None
        if value.op == "unset":
            return
        if member.type.is_reference:
            if target.op != "unset" and target != value:
                raise Refused(begin, "a reference that is chosen at run time has no rule")
            is_pointer = member.type.is_pointer_reference
            self.known[member.name] = value if is_pointer else self.fixed(value)
        elif node is None:
            raise Refused(begin, "this pointer has no rule")
        else:
            self.store(node, target, value)

    @abstractmethod
    def fixed(self, argument: Expression) -> Expression:
        """A target whose indices no later statement changes."""
