"""Members of vectors; swizzles, which clang's syntax tree has as pseudo objects.

Nodes of an opaque value stand for the object, and for what is stored in a swizzle. A function that
is inlined again has the same nodes with other values.
"""

from __future__ import annotations

import re

from metalloid.differentiate.frontend.expressions import MEMBER, ZERO, ExpressionReader, type_of
from metalloid.differentiate.frontend.refused import Refused
from metalloid.differentiate.program.tree import Expression
from metalloid.differentiate.program.types import Type
from metalloid.msl.portable.syntax_tree import Node

_UNNAMED = re.compile(r"(?:\.|->)(?:union|struct) \(anonymous")
_SWIZZLE = re.compile(r"\.(get|put)_([xyzwrgba]+)\b")
_LANES = str.maketrans("rgba", "xyzw")


class SwizzleReader(ExpressionReader):
    """Reads members and pseudo objects."""

    def _read_MemberExpr(self, node: Node) -> Expression:
        if _UNNAMED.search(node.text):
            base = self.value(node.children[-1])
            is_target = "->" in node.text and base.op == "pointer"
            return self.element(base, ZERO, base.type.element) if is_target else base
        return self.member_of(node, self.value(node.children[-1]))

    def member_of(self, node: Node, base: Expression) -> Expression:
        """The member of an object that has been read, which a node names."""
        member = MEMBER.search(node.text)
        if member is None:
            raise Refused(node.begin, "this member has no rule")
        if base.type.scalar:
            return Expression("component", base.type.lane(), member[1].translate(_LANES), (base,))
        return Expression("member", type_of(node).element, member[1], (base,))

    def _read_CXXMemberCallExpr(self, node: Node) -> Expression:
        member = node.children[0]
        swizzle = _SWIZZLE.search(member.text)
        is_packed = ".operator vec" in member.text
        if swizzle is None and not is_packed:
            return super()._read_CXXMemberCallExpr(node)
        base = self.value(member.children[0])
        if swizzle is None:
            return Expression("construct", type_of(node), args=(base,))
        lanes = swizzle[2].translate(_LANES)
        part = Expression("component", Type(base.type.scalar, len(lanes)), lanes, (base,))
        return part if swizzle[1] == "get" else self.store(node, part, self.value(node.children[1]))

    def _read_PseudoObjectExpr(self, node: Node) -> Expression:
        """A swizzle; its object is read once, each time that it is evaluated."""
        for each in node.descendants():
            if each.kind == "OpaqueValueExpr":
                self.known.pop(each.address, None)
        return self.value(node.children[-1])

    def _read_OpaqueValueExpr(self, node: Node) -> Expression:
        if node.address not in self.known:
            self.known[node.address] = self.value(node.children[-1])
        return self.known[node.address]
