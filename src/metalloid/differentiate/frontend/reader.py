"""From clang's syntax tree to a `Program`: jumps become conditions, calls are inlined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from metalloid.differentiate.analysis.activity import is_step
from metalloid.differentiate.frontend.constructors import ConstructorReader
from metalloid.differentiate.frontend.expressions import (
    BOOL,
    FALSE,
    TRUE,
    ZERO,
    binary,
    negated,
    type_of,
)
from metalloid.differentiate.frontend.names import DERIVATIVE, GENERATED
from metalloid.differentiate.frontend.operands import referred
from metalloid.differentiate.frontend.refused import Refused
from metalloid.differentiate.frontend.returned import Returned, returns_memory
from metalloid.differentiate.frontend.statements import (
    JUMPS,
    LOOPS,
    Frame,
    header_of,
    is_assertion,
    is_default,
    jumps_in,
    moved_in,
    parts_of_loop,
    sections_of,
)
from metalloid.differentiate.program.tree import (
    Assign,
    Expression,
    If,
    Loop,
    Parameter,
    Program,
    Statement,
)
from metalloid.differentiate.program.types import Type
from metalloid.msl.portable.syntax_tree import Node, SourceLocation

_MAX_INLINED = 32


class Reader(ConstructorReader):
    """Reads a kernel.

    Parameters
    ----------
    nodes : sequence of Node
        Of the whole text.
    literal_at : callable
        The text of a number at a location.
    """

    def __init__(self, nodes: Sequence[Node], literal_at: Callable[[SourceLocation], str]) -> None:
        super().__init__(nodes, literal_at)
        self._functions = {
            n.address: n for n in nodes if n.kind in ("FunctionDecl", "CXXMethodDecl")
        }
        self._frames: list[Frame] = []
        self._depth = 0

    def read(self, kernel: Node, parameters: list[Parameter]) -> Program:
        """The kernel as a program."""
        declared = [child for child in kernel.children if child.kind == "ParmVarDecl"]
        names = {parameter.name for parameter in parameters}
        for parameter, node in zip(parameters, declared, strict=True):
            if GENERATED.fullmatch(parameter.name) and not DERIVATIVE.match(parameter.name):
                why = f"adjoints declare names like {parameter.name!r}: choose another one"
                raise Refused(node.name, why)
            if parameter.type.space == "threadgroup" and parameter.type.is_aggregate:
                why = "threadgroup memory of structs as a parameter has no rule"
                raise Refused(node.name, why)
            if parameter.type.scalar == "double":
                raise Refused(node.name, "doubles have no adjoints")
            variable = Expression("variable", parameter.type, parameter.name)
            self.variables[parameter.name] = parameter.type
            is_array = parameter.type.is_pointer and not parameter.declaration.count("&")
            pointer = Expression("pointer", parameter.type, "", (variable, ZERO))
            reference = replace(variable, type=replace(parameter.type, is_pointer=False))
            self.known[node.address] = (
                pointer
                if is_array
                else self.expanded(reference)
                if parameter.type.record_name in self.records or parameter.type.columns
                else self.sampler_parameter(parameter.name)
                if parameter.type.is_sampler
                else variable
            )
        body = next(child for child in kernel.children if child.kind == "CompoundStmt")
        moved = moved_in(body)

        def read() -> None:
            self._load_constants(parameters, declared)
            for node in declared:
                if node.address in moved:
                    self._move(node)
            self._function(body, None)

        self.find_lane(parameters)
        statements = self.with_position(self.block_of(read))
        local = {
            name: type_
            for name, type_ in self.variables.items()
            if not (name in names or type_.is_sampler)
        }
        return Program(kernel.label, parameters, local, statements, self.records, self.samplers)

    def _load_constants(self, parameters: list[Parameter], declared: list[Node]) -> None:
        """Load numbers of the launch once: after an atomic function compilers load them again."""
        for parameter, node in zip(parameters, declared, strict=True):
            type_ = parameter.type
            is_number = "&" in parameter.declaration and type_.scalar and not type_.is_float
            if is_number and type_.space == "constant" and not type_.extents:
                local = self.new_variable(f"{parameter.name}_value", type_.element)
                self.assign(local, self.known[node.address], node)
                self.known[node.address] = local

    # -- functions

    def call(self, node: Node, address: str, name: str) -> Expression:
        """The result of a function, whose body is inlined if it is the user's."""
        function = self._functions.get(address)
        body = function and next((c for c in function.children if c.kind == "CompoundStmt"), None)
        if function is None or body is None:
            return super().call(node, address, name)
        count = sum(child.kind == "ParmVarDecl" for child in function.children)
        given = node.children[len(node.children) - count :]
        if returns_memory(function):
            returned = Returned()
            self.inline(function, node, given, returned)
            return returned.memory(node)
        result = None
        if type_of(node).text != "void":
            label = name if name.isidentifier() else "operator"
            result = self.new_variable(f"{label}_result", type_of(node).element)
        self.inline(function, node, given, result)
        return result or ZERO

    def inline(
        self, function: Node, node: Node, given: Sequence[Node],
        result: Expression | Returned | None,
        first: Callable[[], object] | None = None,
    ) -> None:  # fmt: skip
        """Read the body of a function that is called."""
        if self._depth == _MAX_INLINED:
            why = f"{function.label} is recursive, or calls are nested too deeply"
            raise Refused(node.begin, why)
        declared = [child for child in function.children if child.kind == "ParmVarDecl"]
        body = next(child for child in function.children if child.kind == "CompoundStmt")
        moved = moved_in(body)
        target, self._object = self._object, None  # arguments are of the function around the call
        values = []
        for parameter, child in zip(declared, given, strict=True):
            is_default = child.kind == "CXXDefaultArgExpr"
            argument = referred(self, parameter.children[-1] if is_default else child)
            type_ = type_of(parameter)
            if type_.is_handle or argument.op == "pointer":
                values.append(argument if type_.is_pointer_reference else self.fixed(argument))
            else:
                values.append(self.new_variable(parameter.label or "unused", type_))
                self.assign(values[-1], argument, node)
        for parameter, value in zip(declared, values, strict=True):  # arguments may call it, too
            self.known[parameter.address] = value
            if parameter.address in moved and not type_of(parameter).is_pointer_reference:
                self._move(parameter)
        self._depth += 1
        frames, self._frames = self._frames, []
        if target is not None:
            self._objects.append(target)
        if first is not None:
            first()
        self._function(body, result)
        if target is not None:
            self._objects.pop()
        self._depth, self._frames = self._depth - 1, frames

    def _move(self, node: Node) -> None:
        """Give the offset of a pointer a variable."""
        pointer = self.known[node.address]
        if pointer.op == "pointer":
            offset = self.new_variable(f"{node.label}_offset", Type("long"))
            self.assign(offset, pointer.args[1], node)
            self.known[node.address] = replace(pointer, args=(pointer.args[0], offset))

    def _function(self, body: Node, result: Expression | Returned | None) -> None:
        frame = Frame({}, result)
        self._frames.append(frame)
        block = self.block_of(lambda: self._block(body.children, frozenset({"return"})))
        self.statements += [*(Assign(flag, FALSE) for flag in frame.flags.values()), *block]
        self._frames.pop()

    # -- blocks and jumps

    def _block(self, nodes: Sequence[Node], tail: frozenset[str]) -> None:
        """Read statements; the jumps in `tail` lead to their end."""
        for number, node in enumerate(nodes):
            jumps = jumps_in(node)
            rest = nodes[number + 1 :]
            if node.kind == "IfStmt" and jumps and jumps <= tail and len(node.children) == 2:
                inner = node.children[1]
                last = inner.children[-1:] if inner.kind == "CompoundStmt" else [inner]
                before = inner.children[:-1] if inner.kind == "CompoundStmt" else []
                if last and last[0].kind in JUMPS and not any(map(jumps_in, before)):
                    condition = self.value(node.children[0])
                    then = self.branch_of(
                        lambda before=before, last=last: self._block([*before, *last], tail)  # type: ignore[misc]
                    )
                    other = self.branch_of(lambda rest=rest: self._block(rest, tail))  # type: ignore[misc]
                    self.statements.append(
                        If(condition, then, other) if then else If(negated(condition), other)
                    )
                    return
            is_last = not rest
            self.statement(node, tail if is_last else frozenset())
            if jumps and rest and node.kind not in JUMPS:
                remaining = self.branch_of(lambda rest=rest: self._block(rest, tail))  # type: ignore[misc]
                self.statements.append(If(negated(self._any_flag(jumps)), remaining))
                return
            if node.kind in JUMPS:
                return

    def _frame_of(self, jump: str) -> Frame:
        if jump == "return":
            return self._frames[0]
        return next(f for f in reversed(self._frames) if jump == "break" or not f.is_switch)

    def _flag(self, jump: str) -> Expression:
        flags = self._frame_of(jump).flags
        if jump not in flags:
            names = {"return": "has_returned", "break": "is_broken", "continue": "is_skipped"}
            flags[jump] = self.new_variable(names[jump], BOOL)
        return flags[jump]

    def _any_flag(self, jumps: set[str]) -> Expression:
        first, *others = [self._flag(jump) for jump in sorted(jumps)]
        for other in others:
            first = binary("||", first, other, BOOL)
        return first

    def statement(self, node: Node, tail: frozenset[str] = frozenset()) -> None:
        """Read one statement."""
        if node.kind == "CompoundStmt":
            self._block(node.children, tail)
        elif node.kind == "AttributedStmt":
            self.statement(node.children[-1], tail)
        elif node.kind in JUMPS:
            self._jump(node, tail)
        elif node.kind == "DeclStmt":
            for child in node.children:
                self._declaration(child)
        elif node.kind == "IfStmt":
            declared, test, children = header_of(node)
            self._block(declared, frozenset())
            condition = self.value(test)
            blocks = [
                self.branch_of(lambda child=child: self._block([child], tail))  # type: ignore[misc]
                for child in children
            ]
            self.statements.append(If(condition, *blocks))
        elif node.kind in LOOPS:
            self._loop(node)
        elif node.kind == "SwitchStmt":
            self._switch(node)
        elif node.kind not in ("NullStmt", "Missing") and not is_assertion(node):
            value = self.value(node)
            if value.op == "call":  # of an unknown function
                raise Refused(node.begin, f"{value.name} has no rule")

    def _jump(self, node: Node, tail: frozenset[str]) -> None:
        jump = JUMPS[node.kind]
        result = self._frames[0].result
        if jump == "return" and node.children and result is not None:
            value = self.value(node.children[0])
            if isinstance(result, Returned):
                result.add(self, value, node)
            else:
                self.assign(result, value, node)
        if jump not in tail:
            self.assign(self._flag(jump), TRUE)

    def _declaration(self, node: Node) -> None:
        if node.kind != "VarDecl":
            return
        type_ = type_of(node)
        if type_.is_sampler:
            self.declare_sampler(node)
            return
        initial = node.children[0] if node.children else None
        if initial is not None and initial.kind == "ExprWithCleanups":
            initial = initial.children[-1]
        if type_.is_pointer:
            value = None if initial is None else referred(self, initial)
            is_alias = type_.is_pointer_reference
            if value is None or (value.op == "unset" and not is_alias):
                value = self.unset(node)
            is_fixed = is_alias or (value.op == "pointer" and value.args[0].op == "variable")
            self.known[node.address] = value if is_fixed else self.fixed(value)
            if not is_alias:
                self._move(node)
            return
        if type_.scalar == "double" or not (type_.scalar or type_.record_name in self.records):
            raise Refused(node.begin, f"variables of type {type_.text!r} have no rule")
        variable = self.new_variable(node.label, type_)
        self.known[node.address] = variable
        if initial is not None and initial.kind == "InitListExpr":
            self.initialise_any(variable, initial)
        elif initial is not None and not self.is_uninitialised(initial):
            self.assign(variable, self.value(initial), node)

    def initialise_any(self, target: Expression, values: Node) -> None:
        """Assign the elements of an initialiser list, and zeros to the others."""
        extents = target.type.extents
        if not extents and target.type.record:
            self.initialise(target, values)
            return
        if not extents:
            self.assign(target, self._construct(values), values)
            return
        given = [child for child in values.children if child.kind != "array_filler"]
        inner = replace(target.type, extents=extents[1:])
        for index, child in enumerate([*given, *[None] * extents[0]][: extents[0]]):
            part = self.element(target, Expression("constant", ZERO.type, str(index)), inner)
            if child is not None and child.kind == "InitListExpr":
                self.initialise_any(part, child)
            elif child is not None and child.kind != "ImplicitValueInitExpr":
                self.assign(part, self.value(child), child)
            else:
                self.clear(part)

    # -- loops

    def _loop(self, node: Node) -> None:
        first, condition, step, body = parts_of_loop(node)
        outside = set(self.variables)
        if first is not None:
            self.statement(first)
        is_do = node.kind == "DoStmt"
        test = None if is_do else self._test(condition)  # what it declares is known in the body
        frame = Frame({})
        self._frames.append(frame)
        jumps = jumps_in(body)
        if "break" in jumps:
            self.assign(self._flag("break"), FALSE)
        branches, self._branches = self._branches, 0  # an iteration is reversed where it runs
        block = self.block_of(lambda: self._block([body], frozenset({"continue"})))
        self._branches = branches
        if "continue" in frame.flags:
            block.insert(0, Assign(frame.flags["continue"], FALSE))
        ends = self.block_of(lambda: self.statement(step) if step is not None else None)
        if jumps & {"break", "return"}:
            if ends:
                ends = [If(negated(self._any_flag(jumps & {"break", "return"})), ends)]
            block, ends = [*block, *ends], []
        elif not all(_is_step(end, Loop(TRUE, block, ends)) for end in ends):
            block, ends = [*block, *ends], []
        before = len(self.statements)
        effects, value = test or self._test(condition)
        value = self._condition(effects, value, jumps & {"break", "return"}, block, ends)
        if is_do:
            del self.statements[before:]  # the first iteration has no condition
            is_first = self.new_variable("is_first", BOOL)
            self.assign(is_first, TRUE)
            block.insert(0, Assign(is_first, FALSE))
            value = binary("||", is_first, value, BOOL)
        self._frames.pop()
        own = frozenset(set(self.variables) - outside)
        self.statements.append(Loop(value, block, ends, own))

    def _test(self, nodes: Sequence[Node]) -> tuple[list[Statement], Expression]:
        """The side effects and the value of the condition of a loop, after what it declares."""
        values = [TRUE]

        def read() -> None:
            self._block(nodes[:-1], frozenset())
            values.extend(map(self.value, nodes[-1:]))

        return self.block_of(read), values[-1]

    def _condition(
        self, effects: list[Statement], test: Expression, jumps: set[str],
        block: list[Statement], ends: list[Statement],
    ) -> Expression:  # fmt: skip
        """The condition of a loop, whose side effects are moved before it and to its end."""
        if effects:
            goes_on = self.new_variable("goes_on", BOOL)
            repeated = [*effects, Assign(goes_on, test)]
            self.statements += repeated
            block += [
                *ends,
                *([If(negated(self._any_flag(jumps)), repeated)] if jumps else repeated),
            ]
            ends.clear()
            test = goes_on
        if jumps:
            test = binary("&&", negated(self._any_flag(jumps)), test, BOOL)
        return test

    # -- switch

    def _switch(self, node: Node) -> None:
        """A switch as a chain of conditions."""
        declared, test, (body,) = header_of(node)
        self._block(declared, frozenset())
        type_ = type_of(test)
        value = self.new_variable("switched", type_.element if type_.scalar else ZERO.type)
        self.assign(value, self.value(test), node)
        frame = Frame({}, is_switch=True)
        self._frames.append(frame)
        chain: list[Statement] = []
        sections = [
            (labels, self.branch_of(lambda each=each: self._block(each, frozenset({"break"}))))  # type: ignore[misc]
            for labels, each in sections_of(body)
        ]
        for labels, block in sorted(sections, key=lambda section: is_default(section[0]))[::-1]:
            if is_default(labels):
                chain = block
                continue
            first, *others = [self._is_labelled(value, label) for label in labels]
            for other in others:
                first = binary("||", first, other, BOOL)
            chain = [If(first, block, chain)]
        self._frames.pop()
        self.statements += [Assign(flag, FALSE) for flag in frame.flags.values()]
        self.statements += chain

    def _is_labelled(self, value: Expression, label: Node) -> Expression:
        """Whether a label is that of a value, or one of a range."""
        first, *others = [self.value(child) for child in label.children[:-1]]
        if not others:
            return binary("==", value, first, BOOL)
        limits = binary(">=", value, first, BOOL), binary("<=", value, others[0], BOOL)
        return binary("&&", *limits, BOOL)


def _is_step(statement: Statement, loop: Loop) -> bool:
    return isinstance(statement, Assign) and is_step(statement, loop)
