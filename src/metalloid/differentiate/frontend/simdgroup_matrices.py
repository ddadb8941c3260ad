"""Matrices that a simdgroup holds: a vector of the two elements that each thread has.

Loads and stores are those of the elements, and a product is a function that passes values between
threads. Which elements a thread has is the layout of Apple's GPUs, on which kernels that use
``thread_elements()`` rely.
"""

from __future__ import annotations

import re
from dataclasses import replace

from metalloid.differentiate.frontend.expressions import ZERO, binary, type_of
from metalloid.differentiate.frontend.refused import Refused
from metalloid.differentiate.frontend.textures import TextureReader
from metalloid.differentiate.program.tree import Assign, Expression, Parameter, Statement
from metalloid.differentiate.program.types import Type
from metalloid.differentiate.rules import MATRIX_PRODUCT
from metalloid.msl.portable.syntax_tree import Node

_MATRIX = re.compile(r"simdgroup_(matrix<|\w+8x8$)")
_UINT, _ULONG, _PAIR = Type("uint"), Type("ulong"), Type("float", 2)
_LANE = "thread_index_in_simdgroup"


class SimdgroupMatrixReader(TextureReader):
    """Reads functions of simdgroup matrices."""

    _position: tuple[Expression, Expression] | None = None
    _lane_parameter: Expression | None = None

    def find_lane(self, parameters: list[Parameter]) -> None:
        """Note the parameter that is a thread's index in its simdgroup."""
        for parameter in parameters:
            if _LANE in parameter.attributes:
                self._lane_parameter = Expression("variable", parameter.type, parameter.name)

    def with_position(self, statements: list[Statement]) -> list[Statement]:
        """Statements after those that compute where a thread's elements are, if it is needed."""
        if self._position is None:
            return statements
        lane: Expression = self._lane_parameter or self.new_variable("matrix_lane", _UINT)
        row, column = self._position
        first: list[Statement] = []
        if self._lane_parameter is None:
            one = Expression("constant", _UINT, "1u")
            first.append(
                Assign(lane, Expression("call", _UINT, "simd_prefix_exclusive_sum", (one,)))
            )
        number = Expression("cast", _UINT, args=(lane,))
        return [
            *first,
            Assign(row, _sum(_bits(number, 1, 2), binary("*", _bits(number, 4, 1), _uint(4)))),
            Assign(
                column,
                _sum(
                    binary("*", _bits(number, 0, 1), _uint(2)),
                    binary("*", _bits(number, 3, 1), _uint(4)),
                ),
            ),
            *statements,
        ]

    def _row_and_column(self) -> tuple[Expression, Expression]:
        if self._position is None:
            self._position = (
                self.new_variable("matrix_row", _UINT),
                self.new_variable("matrix_column", _UINT),
            )
        return self._position

    # -- values

    def _construct(self, node: Node) -> Expression:
        if not is_matrix(node) or len(node.children) != 1 or is_matrix(node.children[0]):
            return super()._construct(node)
        number = self.bound(self.value(node.children[0]))
        row, column = self._row_and_column()
        zero = Expression("cast", number.type, args=(ZERO,))
        columns = (column, binary("+", column, _uint(1)))
        diagonal = tuple(
            Expression(
                "select", number.type, "", (binary("==", row, each, Type("bool")), number, zero)
            )
            for each in columns
        )
        return Expression("construct", type_of(node), args=diagonal)

    def _read_CXXMemberCallExpr(self, node: Node) -> Expression:
        member = node.children[0]
        if "thread_elements" in member.text:
            return self.value(member.children[0])
        return super()._read_CXXMemberCallExpr(node)

    def _read_CXXOperatorCallExpr(self, node: Node) -> Expression:
        is_product = self._operator(node) == "*" and all(map(is_matrix, node.children[1:]))
        if not is_product:
            return super()._read_CXXOperatorCallExpr(node)
        left, right = (self.value(child) for child in node.children[1:])
        return _as(type_of(node).element, self._matrix_product(node, left, right))

    def call(self, node: Node, address: str, name: str) -> Expression:
        """The result of a function."""
        given = [child for child in node.children[1:] if child.kind != "CXXDefaultArgExpr"]
        match name:
            case "simdgroup_load" | "simdgroup_store":
                self._move_elements(node, given, is_load=name == "simdgroup_load")
                return ZERO
            case "simdgroup_multiply" | "simdgroup_multiply_accumulate":
                target, *values = map(self.value, given)
                product = self._matrix_product(node, *values[:2])
                if len(values) == 3:
                    start = values[2]
                    product = _as(start.type.element, product) if start == target else product
                    start = start if start == target else _as(_PAIR, start)
                    product = binary("+", start, product)
                self.assign(target, _as(target.type.element, product), node)
                return ZERO
            case "make_filled_simdgroup_matrix":
                args = tuple(map(self.value, given))
                return Expression("construct", type_of(node).element, args=args)
        return super().call(node, address, name)

    def _matrix_product(self, node: Node, left: Expression, right: Expression) -> Expression:
        args = _as(_PAIR, left), _as(_PAIR, right)
        product = self.new_variable("product_of_lanes", _PAIR)
        self.assign(product, Expression("call", _PAIR, MATRIX_PRODUCT, args), node)
        return product

    def _move_elements(self, node: Node, given: list[Node], is_load: bool) -> None:
        """Load or store the elements of a thread."""
        matrix, pointer, *options = map(self.value, given)
        if pointer.op != "pointer" or pointer.name:
            raise Refused(node.begin, "matrices of this pointer have no rule")
        stride = options[0] if options else _uint(8)
        stride = Expression("cast", _ULONG, args=(self.bound(stride),))
        row, column = self._row_and_column()
        if len(options) > 2 and options[2].name != "false":
            if options[2].name != "true":
                raise Refused(node.begin, "matrices that are transposed at run time have no rule")
            row, column = column, row
            step: Expression = stride
        else:
            step = _uint(1)
        offset = _sum(binary("*", Expression("cast", _ULONG, args=(row,)), stride), column)
        if len(options) > 1 and options[1] is not ZERO:
            origin = self.bound(options[1])
            x, y = (Expression("component", _ULONG, lane, (origin,)) for lane in "xy")
            offset = _sum(_sum(offset, binary("*", y, stride)), x)
        first = self.new_variable("matrix_offset", _ULONG)
        self.assign(first, offset, node)
        scalar = replace(pointer.type.lane(), space="", text="")
        elements = [self.element(pointer, each, scalar) for each in (first, _sum(first, step))]
        if is_load:
            value = Expression("construct", matrix.type.element, args=tuple(elements))
            self.assign(matrix, value, node)
            return
        matrix = self.bound(matrix)
        for element, lane in zip(elements, "xy", strict=True):
            self.assign(element, Expression("component", matrix.type.lane(), lane, (matrix,)), node)


def is_matrix(node: Node) -> bool:
    """Whether a node is a matrix of a simdgroup."""
    return bool(_MATRIX.search(node.types[1]))


def _as(type_: Type, value: Expression) -> Expression:
    same = (value.type.scalar, value.type.lanes) == (type_.scalar, type_.lanes)
    return value if same else Expression("cast", type_, args=(value,))


def _uint(value: int) -> Expression:
    return Expression("constant", _UINT, f"{value}u")


def _sum(left: Expression, right: Expression) -> Expression:
    return binary("+", left, right)


def _bits(number: Expression, first: int, count: int) -> Expression:
    """Bits of a number from one on, as a number."""
    shifted = binary("/", number, _uint(1 << first)) if first else number
    return binary("%", shifted, _uint(1 << count))
