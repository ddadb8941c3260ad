"""Swizzles: properties of vectors, which clang's syntax tree has as pseudo objects.

Nodes of an opaque value stand for the object, and for what is stored in a swizzle. A function that
is inlined again has the same nodes with other values.
"""

from __future__ import annotations

from metalloid.differentiate.frontend.expressions import ExpressionReader
from metalloid.differentiate.program.tree import Expression
from metalloid.msl.portable.syntax_tree import Node


class SwizzleReader(ExpressionReader):
    """Reads pseudo objects."""

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
