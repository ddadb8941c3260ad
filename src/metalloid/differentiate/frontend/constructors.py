"""Constructors and operators of structs.

A constructor is a new object, whose members are initialised, and then its body.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence

from metalloid.differentiate.frontend.expressions import REFERENCE, type_of
from metalloid.differentiate.frontend.operands import check_order, is_assignment
from metalloid.differentiate.frontend.refused import Refused
from metalloid.differentiate.frontend.returned import Returned
from metalloid.differentiate.frontend.simdgroup_matrices import SimdgroupMatrixReader
from metalloid.differentiate.frontend.structs import record_name
from metalloid.differentiate.program.tree import Expression
from metalloid.differentiate.program.types import Type
from metalloid.msl.portable.syntax_tree import Node, SourceLocation

_SIGNATURE = re.compile(r"'(void \([^']*)'")
_MEMBER = re.compile(r"(?:\.|->)\w+ (0x\w+)")
_FIELD = re.compile(r"^Field 0x\w+ '(\w+)'")


class ConstructorReader(SimdgroupMatrixReader):
    """Reads values that constructors of the text initialise."""

    def __init__(self, nodes: Sequence[Node], literal_at: Callable[[SourceLocation], str]) -> None:
        super().__init__(nodes, literal_at)
        self._constructors: dict[tuple[str, str], Node] = {}
        self._objects: list[Expression] = []
        self._object: Expression | None = None  # of the function that is about to be read
        self._operators = {
            node.address: node
            for node in nodes
            if node.kind in ("FunctionDecl", "CXXMethodDecl")
            and node.label.startswith("operator")
            and any(child.kind == "CompoundStmt" for child in node.children)
            and not node.is_implicit
        }
        variables = [node for node in nodes if node.kind == "VarDecl"]
        self._statics = {node.address: node for node in variables if " static" in node.text}
        members = {
            n.label: n for n in self._statics.values() if any(map(record_name, n.ancestors()))
        }
        for node in variables:  # definitions outside of a struct, without a value
            is_global = node.parent is not None and node.parent.kind == "TranslationUnitDecl"
            if is_global and not node.children and node.label in members:
                self._statics.setdefault(node.address, members[node.label])
        self._fields = {
            (record_name(node), child.label): child
            for node in nodes
            if record_name(node)
            for child in node.children
            if child.kind == "FieldDecl"
        }
        for node in nodes:
            has_body = any(child.kind == "CompoundStmt" for child in node.children)
            signature = _SIGNATURE.search(node.text)
            if node.kind == "CXXConstructorDecl" and has_body and signature is not None:
                records = filter(None, map(record_name, node.ancestors()))
                self._constructors[next(records, ""), signature[1]] = node

    def _read_MemberExpr(self, node: Node) -> Expression:
        member = _MEMBER.search(node.text)
        static = self._statics.get(member[1]) if member else None
        if static is None or not static.children:
            return super()._read_MemberExpr(node)
        return self.value(static.children[0])

    def _global(self, node: Node, address: str, name: str) -> Expression:
        static = self._statics.get(address)
        return super()._global(node, static.address if static else address, name)

    def _constructor(self, node: Node) -> Node | None:
        """The constructor that a value calls, if it does more than to copy."""
        signature = _SIGNATURE.search(node.text)
        if signature is None:
            return None
        constructor = self._constructors.get((type_of(node).record_name, signature[1]))
        if constructor is None or (constructor.is_implicit and node.children):
            return None
        *first, body = constructor.children
        is_empty = not body.children and all(child.kind == "ParmVarDecl" for child in first)
        return None if is_empty and not node.children else constructor

    def is_uninitialised(self, node: Node) -> bool:
        """Whether a variable of a struct or a matrix has no value at first."""
        if node.kind != "CXXConstructExpr" or node.children:
            return False
        constructor = self._constructor(node)
        if constructor is None or not type_of(node).extents:
            return constructor is None
        if not constructor.is_implicit or any(
            each.kind == "CXXDefaultInitExpr" for each in constructor.descendants()
        ):
            raise Refused(node.begin, "arrays of structs with constructors have no rule")
        return True

    def _construct(self, node: Node) -> Expression:
        constructor = self._constructor(node)
        if constructor is None:
            return super()._construct(node)
        return self.construct(constructor, node, type_of(node))

    def construct(self, constructor: Node, node: Node, to: Type) -> Expression:
        """An object that a constructor of the text initialises."""
        self._object = target = self.new_variable("object", to.element)
        self.inline(
            constructor, node, node.children, None,
            lambda: self.initialise_members(target, constructor),
        )  # fmt: skip
        return target

    def method(self, node: Node, target: Expression, address: str, name: str) -> Expression:
        """The result of a member function of a struct."""
        self._object = self.fixed(target)
        result = self.call(node, address, name)
        self._object = None
        return result

    def _read_CXXThisExpr(self, node: Node) -> Expression:
        if not self._objects:
            raise Refused(node.begin, "a pointer to this struct has no rule")
        return self._objects[-1]

    def _read_CXXOperatorCallExpr(self, node: Node) -> Expression:
        callee = next(
            (REFERENCE.search(n.text) for n in node.children[0].descendants()
             if n.kind == "DeclRefExpr"), None,
        )  # fmt: skip
        operator = self._operators.get(callee[2]) if callee else None
        if operator is None or callee is None:
            return super()._read_CXXOperatorCallExpr(node)
        if is_assignment(operator.label.removeprefix("operator")):
            check_order(self, node, node.children[1:])
        if operator.kind == "CXXMethodDecl":
            return self.method(node, self.value(node.children[1]), callee[2], "operator")
        return self.call(node, callee[2], "operator")

    @abstractmethod
    def inline(
        self, function: Node, node: Node, given: Sequence[Node],
        result: Expression | Returned | None,
        first: Callable[[], object] | None = None,
    ) -> None:  # fmt: skip
        """Read the body of a function that is called, after what `first` reads."""

    def initialise_members(self, target: Expression, constructor: Node) -> None:
        """Assign what the initialisers of a constructor say."""
        names = target.name.split(",")
        for initialiser in constructor.children:
            if initialiser.kind != "CXXCtorInitializer":
                continue
            field = _FIELD.match(initialiser.text)
            if field is None or len(initialiser.children) != 1:
                raise Refused(constructor.begin, "this constructor has no rule")
            member, (value,) = target.args[names.index(field[1])], initialiser.children
            if value.kind == "CXXDefaultInitExpr":
                value = self._fields[target.type.record_name, field[1]].children[-1]
            if value.kind == "InitListExpr":
                self.initialise_any(member, value)
            elif value.kind == "ImplicitValueInitExpr":
                self.clear(member)
            elif not self.is_uninitialised(value):
                self.assign(member, self.value(value), constructor)
