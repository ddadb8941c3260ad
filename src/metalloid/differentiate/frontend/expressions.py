"""Expressions of clang's syntax tree as those of a `Program`; side effects become statements."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace

from metalloid.differentiate.frontend.names import GENERATED
from metalloid.differentiate.frontend.operands import (
    is_assignment,
    is_changed_choice,
    operands,
    subscripted,
    target_and_value,
)
from metalloid.differentiate.frontend.refused import Refused
from metalloid.differentiate.lane_rules import is_lane_function
from metalloid.differentiate.program.tree import (
    Assign,
    AtomicAdd,
    Barrier,
    Expression,
    If,
    Statement,
)
from metalloid.differentiate.program.types import Type, parse_type
from metalloid.differentiate.rules import COSTLY, FUNCTIONS
from metalloid.msl.portable.syntax_tree import Node, SourceLocation

#: The declaration that a name refers to: its kind, its address and the name.
REFERENCE = re.compile(r"\b(Var|ParmVar|Function|CXXMethod|EnumConstant) (0x\w+) '([^']*)'")
_CAST = re.compile(r" <(\w+)[^<>]*>(?: part_of_explicit_cast)?$")
_OPERATOR = re.compile(r"(?:^|\s)'([^\w\s']+)'")
MEMBER = re.compile(r"(?:\.|->)(\w+) 0x\w+")
#: Nodes that stand for their last child.
_TRANSPARENT = (
    "ParenExpr", "ExprWithCleanups", "MaterializeTemporaryExpr", "AttributedStmt", "ConstantExpr",
    "CXXBindTemporaryExpr", "CompoundLiteralExpr",
    "SubstNonTypeTemplateParmExpr",
)  # fmt: skip
_CASTS = (
    "ImplicitCastExpr", "CStyleCastExpr", "CXXFunctionalCastExpr", "CXXStaticCastExpr",
    "CXXReinterpretCastExpr",
)  # fmt: skip
_CONVERSIONS = (
    "IntegralToFloating", "FloatingCast", "IntegralCast", "FloatingToIntegral",
    "IntegralToBoolean", "FloatingToBoolean", "BooleanToSignedIntegral",
)  # fmt: skip
_POINTER_CASTS = ("NullToPointer", "PointerToBoolean", "PointerToIntegral", "IntegralToPointer")
_CONSTRUCTORS = ("CXXConstructExpr", "CXXTemporaryObjectExpr", "CXXUnresolvedConstructExpr")
_BARRIERS = ("threadgroup_barrier", "simdgroup_barrier")
#: Builtins of clang by the macros that they come from.
_NAMED_NUMBERS = {"__builtin_huge_valf": "INFINITY", "__builtin_nanf": "NAN"}
#: Functions of `numeric_limits`.
_LIMITS = ("infinity", "max", "min", "lowest", "epsilon", "quiet_NaN", "denorm_min")
_ATOMIC_ADD = "atomic_fetch_add_explicit"
BOOL, INT = Type("bool"), Type("int")
TRUE, FALSE, ZERO = (
    Expression("constant", t, n) for t, n in ((BOOL, "true"), (BOOL, "false"), (INT, "0"))
)


def type_of(node: Node) -> Type:
    """The type of a node, with typedefs resolved."""
    return parse_type(node.types[1])


def is_address(node: Node) -> bool:
    """Whether the value of a node is a pointer, one to a row of an array included."""
    return "*" in node.types[1]


def binary(
    operator: str, left: Expression, right: Expression, type_: Type | None = None
) -> Expression:
    """An operation of two operands."""
    return Expression("binary", type_ or left.type, operator, (left, right))


def negated(condition: Expression) -> Expression:
    """The opposite of a condition."""
    return Expression("unary", BOOL, "!", (condition,))


class ExpressionReader(ABC):
    """Reads expressions; what they do is appended to `statements`.

    Attributes
    ----------
    variables : dict
        Types of the variables so far.
    known : dict
        What a declaration stands for, by its address: a variable, or an alias.
    global_names : set of str
        Names of constants outside of functions.
    statements : list of Statement
        The block that is being read.
    """

    def __init__(self, literal_at: Callable[[SourceLocation], str]) -> None:
        self.variables: dict[str, Type] = {}
        self.known: dict[str, Expression] = {}
        self.global_names: set[str] = set()
        self.statements: list[Statement] = []
        self._literal_at = literal_at
        self._branches = 0  # around what is read

    # -- names

    def new_variable(self, name: str, type_: Type) -> Expression:
        """A variable with a name that no other has."""
        if GENERATED.fullmatch(name) or name in FUNCTIONS:
            name += "_local"
        unique, number = name, 1
        while unique in self.variables or unique in self.global_names:
            number += 1
            unique = f"{name}_{number}"
        self.variables[unique] = type_
        return Expression("variable", type_, unique)

    def assign(self, target: Expression, value: Expression, node: Node | None = None) -> None:
        """Append an assignment."""
        begin = node.begin if node else None
        if any(each.op in ("pointer", "unset") for each in (*target.walk(), *value.walk())):
            raise Refused(begin, "this pointer has no rule")
        self.statements.append(Assign(target, value, begin))

    def block_of(self, read: Callable[[], object]) -> list[Statement]:
        """The statements that a function appends."""
        outer, self.statements = self.statements, []
        try:
            read()
            return self.statements
        finally:
            self.statements = outer

    def branch_of(self, read: Callable[[], object]) -> list[Statement]:
        """The statements of a branch that a function appends."""
        self._branches += 1
        try:
            return self.block_of(read)
        finally:
            self._branches -= 1

    # -- values

    def value(self, node: Node) -> Expression:
        """The value of an expression, or the object that it names."""
        if node.kind in _TRANSPARENT:
            return self.value(node.children[-1])
        if node.kind in _CASTS:
            return self._cast(node)
        if node.kind in _CONSTRUCTORS:
            return self._construct(node)
        read: Callable[[Node], Expression] | None = getattr(self, f"_read_{node.kind}", None)
        if read is None:
            raise Refused(node.begin, f"{node.kind} has no rule")
        return read(node)

    def _cast(self, node: Node) -> Expression:
        kind = _CAST.search(node.text)
        child = self.value(node.children[-1])
        if kind is not None and kind[1] in ("BitCast", "LValueBitCast"):
            return self.pointer_cast(node, child)
        if kind is not None and kind[1] == "ArrayToPointerDecay":
            return self.first_element(child)
        if kind is not None and kind[1] in _POINTER_CASTS and child.op != "unset":
            raise Refused(node.begin, "pointers as numbers have no rule")
        if kind is None or kind[1] not in _CONVERSIONS:
            return child
        to = type_of(node)
        return child if child.type.element == to.element else Expression("cast", to, args=(child,))

    def _construct(self, node: Node) -> Expression:
        to = type_of(node)
        args = tuple(operands(self, node.children))
        if len(args) == 1 and args[0].type.msl == to.msl and args[0].type.extents == to.extents:
            return args[0]
        if not to.scalar:
            raise Refused(node.begin, f"values of type {to.text!r} have no rule")
        return Expression("construct", to, args=args or (ZERO,))

    def _read_IntegerLiteral(self, node: Node) -> Expression:
        return Expression("constant", type_of(node), node.text.split()[-1])

    def _read_CharacterLiteral(self, node: Node) -> Expression:
        return Expression("constant", type_of(node), node.text.split()[-1])

    def _read_FloatingLiteral(self, node: Node) -> Expression:
        assert node.begin is not None
        return Expression("constant", type_of(node), self._literal_at(node.begin))

    def _read_CXXBoolLiteralExpr(self, node: Node) -> Expression:
        return Expression("constant", BOOL, node.text.split()[-1])

    def _read_DeclRefExpr(self, node: Node) -> Expression:
        reference = REFERENCE.search(node.text)
        if reference is None:
            raise Refused(node.begin, "this name has no rule")
        if reference[2] not in self.known and reference[1] in ("Var", "EnumConstant"):
            return self._global(node, reference[2], reference[3])
        if reference[2] not in self.known:
            raise Refused(node.begin, f"{reference[3]!r} is not a variable of the kernel")
        return self.known[reference[2]]

    def _global(self, node: Node, address: str, name: str) -> Expression:
        """A constant that the text declares outside of functions."""
        if name in self.variables:
            raise Refused(node.begin, f"a variable of the kernel has the name {name!r}, too")
        self.global_names.add(name)
        self.known[address] = Expression("variable", type_of(node), name)
        return self.known[address]

    def _read_ArraySubscriptExpr(self, node: Node) -> Expression:
        base, index = subscripted(self, node)
        if not is_address(node.children[0]):  # 2[x]
            base, index = index, base
        return self.element(base, index, type_of(node))

    @abstractmethod
    def element(self, base: Expression, index: Expression, type_: Type) -> Expression:
        """An element of an array, or of what a pointer points to."""

    @abstractmethod
    def address_of(self, target: Expression) -> Expression:
        """A pointer to an element; another variable stands for its address."""

    @abstractmethod
    def first_element(self, array: Expression) -> Expression:
        """A pointer to the first element of an array."""

    @abstractmethod
    def moved(self, node: Node, operator: str, left: Expression, right: Expression) -> Expression:
        """A sum of a pointer and a distance, or a difference."""

    @abstractmethod
    def pointer_cast(self, node: Node, pointer: Expression) -> Expression:
        """A pointer of another type."""

    # -- operators

    def _operator(self, node: Node) -> str:
        operator = _OPERATOR.search(node.text)
        if operator is None:
            raise Refused(node.begin, "this operator has no rule")
        return operator[1]

    def _read_UnaryOperator(self, node: Node) -> Expression:
        operator, target = self._operator(node), self.value(node.children[0])
        if operator in ("++", "--"):
            return self._stepped(node, target, operator[0])
        if operator == "*":
            return self.element(target, ZERO, type_of(node))
        if operator == "&":
            return self.address_of(target)
        value = Expression("unary", type_of(node), operator, (target,))
        return target if operator == "+" else value

    def _stepped(self, node: Node, target: Expression, operator: str) -> Expression:
        before = target
        is_used = node.parent is not None and node.parent.kind not in ("CompoundStmt", "ForStmt")
        if "postfix" in node.text and is_used:
            value = target.args[1] if target.op == "pointer" else target
            before = self.new_variable("before", value.type)
            self.assign(before, value, node)
            if target.op == "pointer":
                before = replace(target, args=(target.args[0], before))
        self.update(node, target, operator, Expression("constant", INT, "1"))
        return before

    @abstractmethod
    def update(self, node: Node, target: Expression, operator: str, value: Expression) -> None:
        """``target operator= value``; of a pointer, its offset."""

    def _read_BinaryOperator(self, node: Node) -> Expression:
        operator = self._operator(node)
        left_node, right_node = node.children
        if operator == "=":
            return self.store(node, *target_and_value(self, node, node.children))
        if operator == ",":
            return [self.value(child) for child in node.children][-1]
        if operator in ("&&", "||"):
            return self._short_circuit(operator, self.value(left_node), right_node)
        left, right = operands(self, node.children)
        if any(map(is_address, node.children)):
            return self.moved(node, operator, left, right)
        return binary(operator, left, right, type_of(node))

    def _short_circuit(self, operator: str, left: Expression, right_node: Node) -> Expression:
        values: list[Expression] = []
        block = self.block_of(lambda: values.append(self.value(right_node)))
        if not block:
            return binary(operator, left, values[0], BOOL)
        result = self.new_variable("condition", BOOL)
        self.assign(result, left)
        block.append(Assign(result, values[0]))
        self.statements.append(If(result if operator == "&&" else negated(result), block))
        return result

    def _read_ConditionalOperator(self, node: Node) -> Expression:
        if is_changed_choice(node) or type_of(node).extents:
            raise Refused(node.begin, "a variable that is chosen at run time has no rule")
        condition = self.value(node.children[0])
        values: list[Expression] = []
        blocks = [
            self.branch_of(lambda child=child: values.append(self.value(child)))  # type: ignore[misc]
            for child in node.children[1:]
        ]
        if type_of(node).scalar == "void":
            self.statements.append(If(condition, *blocks))
            return ZERO
        if not any(blocks) and values[0].op != "aggregate":
            return Expression("select", type_of(node), "", (condition, *values))
        result = self.new_variable("chosen", type_of(node).element)
        for block, value in zip(blocks, values, strict=True):
            block += self.block_of(lambda value=value: self.assign(result, value, node))  # type: ignore[misc]
        self.statements.append(If(condition, *blocks))
        return result

    def _read_CompoundAssignOperator(self, node: Node) -> Expression:
        operator = self._operator(node)[:-1]
        target, value = target_and_value(self, node, node.children)
        self.update(node, target, operator, value)
        return target

    def store(self, node: Node, target: Expression, value: Expression) -> Expression:
        """``target = value``."""
        if target.op == "pointer":
            if target.args[1].op != "variable" or value.op != "pointer" or (
                value.args[0] != target.args[0]
            ):  # fmt: skip
                raise Refused(node.begin, "a pointer that is chosen at run time has no rule")
            target, value = target.args[1], value.args[1]
        self.assign(target, value, node)
        return target

    def _read_CXXOperatorCallExpr(self, node: Node) -> Expression:
        operator = self._operator(node)
        if operator == "()" and (function := REFERENCE.search(node.children[0].children[0].text)):
            return self.method(node, self.value(node.children[1]), function[2], "result")
        nodes, changes = node.children[1:], is_assignment(operator)
        if changes:
            args = [*target_and_value(self, node, nodes)]
        elif operator == "[]" or any(type_of(n).columns for n in nodes):
            args = [self.value(n) for n in nodes]
        else:
            args = operands(self, nodes)
        if operator == "=":
            return self.store(node, *args)
        if operator == "[]" or any(arg.type.columns for arg in args):
            return self.operation(node, operator, args)
        if any(not arg.type.scalar for arg in args):
            raise Refused(node.begin, f"{operator!r} of values of this type has no rule")
        if operator in ("++", "--"):
            return self._stepped(node, args[0], operator[0])
        if changes:
            self.update(node, args[0], operator[:-1], args[1])
            return args[0]
        if len(args) == 1:
            return Expression("unary", type_of(node), operator, tuple(args))
        return binary(operator, args[0], args[1], type_of(node))

    @abstractmethod
    def method(self, node: Node, target: Expression, address: str, name: str) -> Expression:
        """The result of a member function of a struct."""

    @abstractmethod
    def operation(self, node: Node, operator: str, args: list[Expression]) -> Expression:
        """An operation of matrices, or a component of a vector."""

    @abstractmethod
    def matrix_function(self, node: Node, name: str, args: tuple[Expression, ...]) -> Expression:
        """The value of a function of a matrix."""

    def _read_CXXMemberCallExpr(self, node: Node) -> Expression:
        member = node.children[0]
        base = self.value(member.children[0])
        method = MEMBER.search(member.text)
        if base.op == "aggregate" and method is not None:
            return self.method(node, base, member.text.split()[-1], method[1])
        raise Refused(node.begin, "this member function has no rule")

    # -- calls

    def _read_CallExpr(self, node: Node) -> Expression:
        callee = next((n for n in node.children[0].descendants() if n.kind == "DeclRefExpr"), None)
        reference = REFERENCE.search(callee.text) if callee else None
        if reference is None:
            raise Refused(node.begin, "a call through a value has no rule")
        name = reference[3]
        if name in _BARRIERS:
            self.statements.append(Barrier(f"{name}(mem_flags::mem_threadgroup);"))
            return ZERO
        if name == _ATOMIC_ADD:
            pointer, added = (self.value(child) for child in node.children[1:3])
            if node.parent is not None and node.parent.kind != "CompoundStmt":
                raise Refused(node.begin, f"the result of {name} has no derivative")
            target = self.element(pointer, ZERO, added.type)
            if target.is_shared:
                raise Refused(node.begin, "atomic functions of threadgroup memory have no rule")
            self.statements.append(AtomicAdd(target, added, node.begin))
            return ZERO
        return self.call(node, reference[2], name)

    def call(self, node: Node, address: str, name: str) -> Expression:
        """The result of a function: a builtin, or one that is inlined."""
        if name in _NAMED_NUMBERS:
            return Expression("constant", type_of(node), _NAMED_NUMBERS[name])
        given = [child for child in node.children[1:] if child.kind != "CXXDefaultArgExpr"]
        args = tuple(operands(self, given))
        if name == "value_of":
            return args[0]
        if name == "cast":  # how `lower` writes conversions of half and bfloat
            to = type_of(node).element
            return args[0] if args[0].type.msl == to.msl else Expression("cast", to, "", args)
        if any(arg.op == "aggregate" for arg in args):
            return self.matrix_function(node, name, args)
        if not args and name in _LIMITS:
            type_ = type_of(node).element
            return Expression("constant", type_, f"numeric_limits<{type_.msl}>::{name}()")
        if any(arg.op == "pointer" for arg in args):
            raise Refused(node.begin, f"{name} has no rule")
        value = Expression("call", type_of(node), name, args)
        passes_lanes = is_lane_function(name) and bool(value.type.scalar)
        # The reverse of a branch reads a result that compilers do not know there.
        if not passes_lanes and not (self._branches and name in COSTLY and value.type.is_float):
            return value
        # All threads of a block run the statement.
        kind = f"{name[5:]}_of_lanes" if passes_lanes else f"{name}_result"
        result = self.new_variable(kind, value.type.element)
        self.assign(result, value, node)
        return result
