"""Structs and matrices: a variable for each member, an array of columns for each matrix."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from metalloid.differentiate.frontend.expressions import INT, ZERO, binary, type_of
from metalloid.differentiate.frontend.pointer_members import PointerMemberReader
from metalloid.differentiate.frontend.pointers import element_of, parts_of
from metalloid.differentiate.frontend.refused import Refused
from metalloid.differentiate.frontend.structs import record_name
from metalloid.differentiate.program.tree import Expression
from metalloid.differentiate.program.types import Type
from metalloid.msl.portable.syntax_tree import Node, SourceLocation

#: A struct with a larger array is not copied element by element.
_MAX_COPIED = 64


class AggregateReader(PointerMemberReader):
    """Reads structs and matrices.

    An aggregate is an expression of its members or columns. It has no text: assignments of it are
    those of its parts.

    Attributes
    ----------
    records : dict
        Members of structs with their types, by name.
    """

    def __init__(self, nodes: Sequence[Node], literal_at: Callable[[SourceLocation], str]) -> None:
        super().__init__(literal_at)
        self.records = {
            name: [
                (child.label, type_of(child))
                for child in node.children
                if child.kind == "FieldDecl"
            ]
            for node in nodes
            if (name := record_name(node))
        }

    # -- objects

    def members_of(self, type_: Type, node: Node | None = None) -> list[tuple[str, Type]]:
        """The members of a struct."""
        members = self.records.get(type_.record_name)
        if members is None:
            raise Refused(
                node.begin if node else None, f"values of type {type_.text!r} have no rule"
            )
        return members

    def new_variable(self, name: str, type_: Type) -> Expression:
        """A variable, or one for each member of a struct."""
        if type_.columns:
            extents = (*type_.extents, type_.columns)
            columns = replace(type_, columns=0, extents=extents, text="")
            variable = super().new_variable(name, columns)
            return self.expanded(replace(variable, type=type_))
        if type_.record:
            parts = []
            for member, each in self.members_of(type_):
                if each.is_pointer:
                    is_array = bool(type_.extents)
                    parts.append(self.new_pointer_member(f"{name}_{member}", each, is_array))
                    continue
                extents = (*type_.extents, *each.extents)
                kind = replace(each, extents=extents, space=type_.space)
                parts.append(self.new_variable(f"{name}_{member}", kind))
            return self._aggregate(type_, parts)
        return super().new_variable(name, type_)

    def _aggregate(self, type_: Type, parts: Sequence[Expression]) -> Expression:
        names = "" if type_.columns else ",".join(name for name, _ in self.members_of(type_))
        return Expression("aggregate", type_, names, tuple(parts))

    def expanded(self, value: Expression) -> Expression:
        """An object as an aggregate, if it is one."""
        type_ = value.type
        is_known = type_.columns or type_.record_name in self.records
        if value.op in ("aggregate", "pointer") or type_.extents or not is_known:
            return value
        if type_.columns:
            return self._aggregate(
                type_, [self._column(value, _number(k)) for k in range(type_.columns)]
            )
        return self._aggregate(
            type_,
            [
                self.expanded(Expression("member", replace(each, text=""), name, (value,)))
                for name, each in self.members_of(type_)
            ],
        )

    def _column(self, matrix: Expression, index: Expression) -> Expression:
        first, *others = matrix.args if matrix.op == "element" else (matrix,)
        known = self.variables.get(first.name) if first.op == "variable" else None
        if known is None or known.columns:  # in memory
            first, others = matrix, []
        else:
            first = replace(first, type=known)
        return Expression("element", matrix.type.column, "", (first, *others, index))

    def element(self, base: Expression, index: Expression, type_: Type) -> Expression:
        """An element of an array, or of what a pointer points to."""
        if base.op == "aggregate" and index is ZERO and not base.type.extents:
            return base  # that a pointer points to
        if base.op == "aggregate":
            parts = [
                self.element(part, index, replace(part.type, extents=part.type.extents[1:]))
                for part in base.args
            ]
            return self._aggregate(replace(type_, space=""), parts)
        return self.expanded(super().element(base, index, type_))

    def value(self, node: Node) -> Expression:
        """The value of an expression, or the object that it names."""
        return self.expanded(super().value(node))

    def _read_MemberExpr(self, node: Node) -> Expression:
        name = node.text.rpartition(" ")[0].replace("->", ".").rpartition(".")[2]
        if not node.children or "(anonymous" in node.text:
            return super()._read_MemberExpr(node)
        base = self.value(node.children[-1])
        if base.op == "pointer":
            base = self.element(base, ZERO, base.type.element)
        if base.op != "aggregate":
            return self.member_of(node, base)
        if name not in base.name.split(","):
            raise Refused(node.begin, f"the member {name!r} has no rule")
        return self.resolved(base.args[base.name.split(",").index(name)])

    def fixed(self, argument: Expression) -> Expression:
        """A target whose indices no later statement changes."""
        if argument.op == "aggregate":
            return replace(argument, args=tuple(map(self.fixed, argument.args)))
        if argument.op not in ("element", "pointer", "component", "member"):
            return argument
        first, *others = argument.args
        fixed = []
        for index in others:
            if index.variables():
                variable = self.new_variable("index", index.type)
                self.assign(variable, index)
                index = variable
            fixed.append(index)
        return Expression(argument.op, argument.type, argument.name, (self.fixed(first), *fixed))

    # -- assignments

    def assign(self, target: Expression, value: Expression, node: Node | None = None) -> None:
        """Append an assignment, of each part if it is an aggregate."""
        if target.op == "unset":
            self.point(target, value, node)
            return
        target = element_of(target)
        if target.op == "construct":  # elements of memory
            value = self.new_vector(value)
            for part, each in parts_of(target, value):
                super().assign(part, each, node)
            return
        if target.op != "aggregate" and all(each.op != "aggregate" for each in value.walk()):
            super().assign(target, value, node)
            return
        are_both = value.op == target.op == "aggregate"
        if not are_both or len(value.args) != len(target.args):
            raise Refused(
                node.begin if node else None, f"this value of {target.type.msl} has no rule"
            )
        leaves = list(self._leaves(target, value, node))
        pairs = [(to, each) for to, each in leaves if to.op != "unset"]
        for to, each in leaves:
            if to.op == "unset":
                self.point(to, each, node)
        written = {to.base.name for to, _ in pairs}
        if len(pairs) > 1 and any(each.variables() & written for _, each in pairs):
            pairs = [(to, self.bound(each)) for to, each in pairs]
        for to, each in pairs:
            super().assign(to, each, node)

    def _leaves(
        self, target: Expression, value: Expression, node: Node | None
    ) -> Iterator[tuple[Expression, Expression]]:
        """Parts of a target that are numbers or vectors, with those of its value."""
        target, value = self.expanded(target), self.expanded(value)
        extents = target.type.extents
        if target.op == "aggregate":
            parts = list(zip(target.args, value.args, strict=True))
        elif not extents:
            yield target, value
            return
        elif math.prod(extents) > _MAX_COPIED:
            raise _refused(node, f"copies of arrays of {math.prod(extents)} have no rule")
        else:
            indices = map(_number, range(extents[0]))
            parts = [(_indexed(target, at), _indexed(value, at)) for at in indices]
        for to, each in parts:
            yield from self._leaves(to, each, node)

    def bound(self, value: Expression) -> Expression:
        """A value that no later statement changes."""
        if value.op == "constant":
            return value
        local = self.new_variable("value_before", replace(value.type, space="", is_pointer=False))
        self.assign(local, value)
        return local

    def _construct(self, node: Node) -> Expression:
        to = type_of(node)
        if not to.is_aggregate:
            return super()._construct(node)
        args = [self.value(child) for child in node.children]
        if len(args) == 1 and args[0].type.is_aggregate:
            (value,) = args
            if value.type.msl == to.msl:
                return value
            if value.type.columns == to.columns and value.type.lanes == to.lanes:
                casts = [Expression("cast", to.column, args=(each,)) for each in value.args]
                return self._aggregate(to, casts)
        if to.columns and args:
            return self._matrix(node, to, args)
        if args:
            raise Refused(node.begin, f"constructors of {to.text!r} have no rule")
        return self.zero(to)

    def zero(self, type_: Type) -> Expression:
        """An aggregate of zeros."""
        local = self.new_variable("zero", type_.element)
        self.clear(local)
        return local

    def clear(self, target: Expression) -> None:
        """Assign zeros."""
        for part, _ in self._leaves(target, target, None):
            if part.op != "unset":
                super().assign(part, ZERO)

    def initialise(self, target: Expression, values: Node) -> None:
        """Assign the members of an initialiser list to those of a struct."""
        for part, child in zip(target.args, values.children, strict=False):
            if child.kind == "InitListExpr" and (part.op == "aggregate" or part.type.extents):
                self.initialise_any(part, child)
            elif child.kind != "ImplicitValueInitExpr":
                self.assign(part, self.value(child), child)
        given = len(values.children)
        for number, part in enumerate(target.args):
            if number >= given or values.children[number].kind == "ImplicitValueInitExpr":
                self.clear(part)

    @abstractmethod
    def initialise_any(self, target: Expression, values: Node) -> None:
        """Assign an initialiser list."""

    def _read_InitListExpr(self, node: Node) -> Expression:
        local = self.new_variable("list", type_of(node))
        self.initialise_any(local, node)
        return local

    def call(self, node: Node, address: str, name: str) -> Expression:
        """The result of a function, one that assigns an argument included."""
        if name not in ("sincos", "modf", "frexp"):
            return super().call(node, address, name)
        if name == "frexp":
            raise Refused(node.begin, f"{name} has no derivative here")
        x, target = map(self.value, node.children[1:])
        x = self.bound(x)
        function = "cos" if name == "sincos" else "trunc"
        self.assign(target, Expression("call", x.type.element, function, (x,)), node)
        if name == "sincos":
            return Expression("call", x.type.element, "sin", (x,))
        return binary("-", x, Expression("call", x.type.element, "trunc", (x,)))

    # -- matrices

    def _matrix(self, node: Node, to: Type, args: list[Expression]) -> Expression:
        column = to.column
        if len(args) == 1:  # on the diagonal
            number = self.bound(args[0])
            columns = [
                Expression(
                    "construct", column,
                    args=tuple(number if row == k else ZERO for row in range(to.lanes)),
                )
                for k in range(to.columns)
            ]  # fmt: skip
        elif len(args) == to.columns:
            columns = args
        elif len(args) == to.columns * to.lanes:
            columns = [
                Expression("construct", column, args=tuple(args[k : k + to.lanes]))
                for k in range(0, len(args), to.lanes)
            ]
        else:
            raise Refused(node.begin, f"this value of {to.msl} has no rule")
        return self._aggregate(to, columns)

    def operation(self, node: Node, operator: str, args: list[Expression]) -> Expression:
        """An operation of matrices, or a component of a vector."""
        if operator == "[]":
            return self._column_at(*args) if args[0].type.columns else self._lane(node, *args)
        if operator in ("+=", "-=", "*=", "/="):
            self.assign(args[0], self.operation(node, operator[0], args), node)
            return args[0]
        if len(args) == 1 and operator == "-":
            (matrix,) = args
            parts = [Expression("unary", each.type, "-", (each,)) for each in matrix.args]
            return self._aggregate(matrix.type, parts)
        left, right = args
        if operator == "*" and left.type.columns and right.type.columns:
            left = self.bound(left)
            products = [self._product(left, each) for each in right.args]
            type_ = replace(left.type.element, columns=right.type.columns, text="")
            return self.bound(self._aggregate(type_, products))
        if operator == "*" and left.type.columns and right.type.lanes > 1:
            return self._product(left, right)
        if operator == "*" and right.type.columns and left.type.lanes > 1:
            vector = self.bound(left)
            return Expression(
                "construct", replace(vector.type.element, lanes=right.type.columns),
                args=tuple(
                    Expression("call", vector.type.lane(), "dot", (vector, each))
                    for each in right.args
                ),
            )  # fmt: skip
        if operator in ("+", "-") and left.type.columns == right.type.columns:
            pairs = zip(left.args, right.args, strict=True)
        elif operator in ("*", "/"):
            matrix, number = (left, right) if left.type.columns else (right, left)
            number = self.bound(number)
            pairs = (
                (each, number) if left.type.columns else (number, each) for each in matrix.args
            )  # type: ignore[assignment]
        else:
            raise Refused(node.begin, f"{operator!r} of matrices has no rule")
        type_ = left.type if left.type.columns else right.type
        return self._aggregate(
            type_.element, [binary(operator, a, b, type_.column) for a, b in pairs]
        )

    def _lane(self, node: Node, vector: Expression, index: Expression) -> Expression:
        """A component of a vector by its number."""
        number = index.args[0] if index.op == "cast" else index
        if number.op == "constant" and number.name.isdigit():
            return Expression("component", vector.type.lane(), "xyzw"[int(number.name)], (vector,))
        parent = node.parent
        while parent is not None and parent.kind == "ParenExpr":
            parent = parent.parent
        is_target = " lvalue" in node.text and (parent and parent.kind) != "ImplicitCastExpr"
        is_local = vector.op in ("variable", "element") and not vector.is_buffer_element
        if not is_local and not (is_target and vector.is_buffer_element):
            local = self.new_variable("vector", vector.type.element)
            self.assign(local, vector, node)
            vector = local
        return Expression("element", vector.type.lane(), "", (vector, index))

    def _product(self, matrix: Expression, vector: Expression) -> Expression:
        """The product of a matrix and a vector."""
        vector = self.bound(vector)
        total: Expression | None = None
        for lane, column in zip("xyzw", matrix.args, strict=False):
            factor = Expression("component", vector.type.lane(), lane, (vector,))
            term = binary("*", column, factor, matrix.type.column)
            total = term if total is None else binary("+", total, term)
        assert total is not None
        return total

    def _column_at(self, matrix: Expression, index: Expression) -> Expression:
        number = index.args[0] if index.op == "cast" else index
        if number.op == "constant" and number.name.isdigit():
            return matrix.args[int(number.name)]
        first = matrix.args[0]
        if first.op != "element":
            first = self.bound(matrix).args[0]
        return replace(first, args=(*first.args[:-1], index))

    def matrix_function(self, node: Node, name: str, args: tuple[Expression, ...]) -> Expression:
        """The value of a function of a matrix."""
        if name not in ("determinant", "transpose") or not args[0].type.columns:
            raise Refused(node.begin, f"{name} of a struct or a matrix has no rule")
        matrix = self.bound(args[0])
        if name == "determinant":
            return self._determinant(matrix, range(matrix.type.columns), range(matrix.type.lanes))
        type_ = replace(matrix.type, columns=matrix.type.lanes, lanes=matrix.type.columns, text="")
        return self._aggregate(
            type_,
            [
                Expression(
                    "construct", type_.column,
                    args=tuple(_entry(matrix, k, row) for k in range(matrix.type.columns)),
                )
                for row in range(matrix.type.lanes)
            ],
        )  # fmt: skip

    def _determinant(
        self, matrix: Expression, columns: Sequence[int], rows: Sequence[int]
    ) -> Expression:
        """Laplace's expansion by the first column."""
        if len(columns) == 1:
            return _entry(matrix, columns[0], rows[0])
        total: Expression | None = None
        for number, row in enumerate(rows):
            others = [each for each in rows if each != row]
            minor = self._determinant(matrix, columns[1:], others)
            term = binary("*", _entry(matrix, columns[0], row), minor)
            total = term if total is None else binary("-" if number % 2 else "+", total, term)
        assert total is not None
        return total


def _refused(node: Node | None, why: str) -> Refused:
    return Refused(node.begin if node else None, why)


def _number(value: int) -> Expression:
    return Expression("constant", INT, str(value))


def _entry(matrix: Expression, column: int, row: int) -> Expression:
    vector = matrix.args[column]
    return Expression("component", vector.type.lane(), "xyzw"[row], (vector,))


def _indexed(value: Expression, index: Expression) -> Expression:
    """An element of an array, or of a row of one."""
    type_ = replace(value.type, extents=value.type.extents[1:])
    args = value.args if value.op == "element" else (value,)
    return Expression("element", type_, "", (*args, index))
