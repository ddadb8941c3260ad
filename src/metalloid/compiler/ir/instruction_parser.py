"""One line of LLVM IR as an instruction."""

from __future__ import annotations

import re
from collections.abc import Iterator

from metalloid.compiler.ir.function import DIALECT, CallAttributes, Instruction, Value, member_type
from metalloid.compiler.ir.lexer import AFTER_VALUES, LITERALS, TokenLine
from metalloid.compiler.ir.matrix_type import matrix_type
from metalloid.compiler.ir.opcodes import CASTS, FLOAT_BINARY, INTEGER_BINARY, ONE_THREAD
from metalloid.compiler.ir.types import (
    I1,
    POINTER,
    VOID,
    Pointer,
    Struct,
    Type,
    Unsupported,
    Vector,
)

_ORDERINGS = frozenset(("unordered", "monotonic", "acquire", "release", "acq_rel", "seq_cst"))

_VALUE_WORDS = LITERALS | frozenset(
    (
        "getelementptr", "splat", "inttoptr", "ptrtoint", "bitcast", "addrspacecast", "nan", "inf",
    )
)  # fmt: skip
_MASK_ELEMENT = re.compile(r"\bi32 (\d+|poison|undef)\b")


class Line(TokenLine):
    """Reads an instruction."""

    def instruction(self) -> Instruction:
        """The whole line."""
        try:
            return self._instruction()
        except Unsupported as error:
            raise error.at(self._debug()) from None

    def _instruction(self) -> Instruction:
        result = ""
        if len(self._tokens) > 1 and self._tokens[1] == "=":
            result = self._tokens[0]
            self._at = 2
        early = self.flags()  # of calls
        op = self.next()
        flags = early + self.flags()
        inst = self._build(op, flags)
        inst.result = result if inst.type is not VOID else ""
        if self._retain_hints:
            inst.metadata = tuple(self._metadata())
        elif debug := self._debug():
            inst.metadata = (("!dbg", debug),)
        return inst

    def result(self) -> tuple[tuple[str, ...], Type]:
        """Take the words of a definition up to its name: those before the type, and the type."""
        return self._attributes(), self.type()

    def _debug(self) -> str:
        """The node of the ``!dbg`` attachment; empty if there is none."""
        tokens = self._tokens
        return tokens[tokens.index("!dbg") + 1] if "!dbg" in tokens else ""

    def _metadata(self) -> Iterator[tuple[str, str]]:
        """The attachments at the end of the line."""
        for position in range(self._at, len(self._tokens) - 2):
            comma, name, node = self._tokens[position : position + 3]
            # That of an invariant load is a flag.
            if comma == "," and name[0] == node[0] == "!" and name != "!invariant.load":
                yield name, node

    def _build(self, op: str, flags: tuple[str, ...]) -> Instruction:
        if op in INTEGER_BINARY or op in FLOAT_BINARY:
            left = self.value()
            self.skip(",")
            right = Value(left.type, self.constant_or_name())
            return Instruction(op, type=left.type, operands=[left, right], flags=flags)
        if op in ("fneg", "freeze"):
            operand = self.value()
            return Instruction(op, type=operand.type, operands=[operand], flags=flags)
        if op in ("icmp", "fcmp"):
            predicate = self.next()
            left = self.value()
            self.skip(",")
            right = Value(left.type, self.constant_or_name())
            return Instruction(
                op,
                type=_like(left.type, I1),
                operands=[left, right],
                flags=flags,
                predicate=predicate,
            )
        if op in CASTS:
            operand = self.value()
            self.skip("to")
            return Instruction(op, type=self.type(), operands=[operand], flags=flags)
        if op.startswith('"mtl.'):
            return self._dialect(op[5:-1])
        handler = getattr(self, f"_{op}", None)
        if handler is None:
            raise Unsupported(f"the instruction {op}")
        inst: Instruction = handler(flags)
        inst.op = op
        return inst

    def _dialect(self, op: str) -> Instruction:
        """One of our own instructions, in the generic form that `printer` writes."""
        if op not in DIALECT:
            raise Unsupported(f"the instruction mtl.{op}")
        self.skip("(")
        operands = []
        while not self.skip(")"):
            value = self.value()
            operands.append(Value(matrix_type(value.type), value.name))
            self.skip(",")
        indices = self._indices() if self.skip("{") else ()
        source = self.type() if self.skip("from") else VOID
        self.skip(":")
        type_ = VOID if self.skip("void") else matrix_type(self.type())
        return Instruction(op, type=type_, operands=operands, indices=indices, source=source)

    def _select(self, flags: tuple[str, ...]) -> Instruction:
        operands = self.values()
        return Instruction("", type=operands[1].type, operands=operands, flags=flags)

    def _phi(self, flags: tuple[str, ...]) -> Instruction:
        inst = Instruction("", type=matrix_type(self.type()), flags=flags)
        while self.skip("["):
            inst.operands.append(Value(inst.type, self.constant_or_name()))
            self.skip(",")
            inst.labels.append(self.next())
            self.skip("]")
            self.skip(",")
        return inst

    def _getelementptr(self, flags: tuple[str, ...]) -> Instruction:
        source = self.type()
        self.skip(",")
        operands = self.values()
        type_ = operands[0].type
        vector = next((v.type for v in operands if isinstance(v.type, Vector)), None)
        if vector is not None:
            if not self._retain_hints:
                raise Unsupported("a vector of addresses")
            type_ = type_ if isinstance(type_, Vector) else Vector(vector.lanes, type_)
        return Instruction("", type=type_, operands=operands, flags=flags, source=source)

    def _load(self, flags: tuple[str, ...]) -> Instruction:
        ordering, flags = self._atomic(flags)
        type_ = self.type()
        self.skip(",")
        address = self.value()
        if "!invariant.load" in self._tokens:
            flags += ("invariant",)
        return Instruction(
            "", type=type_, operands=[address], flags=flags + self.flags(), ordering=ordering,
            align=self.align(),
        )  # fmt: skip

    def _store(self, flags: tuple[str, ...]) -> Instruction:
        ordering, flags = self._atomic(flags)
        operands = self.values()
        return Instruction(
            "", operands=operands, flags=flags, ordering=ordering, align=self.align()
        )

    def _atomic(self, flags: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """Ordering of an atomic load or store, empty if it is none; and the flags."""
        if not self.skip("atomic"):
            return "", flags
        # In the code of CPUs atomic accesses are as good as volatile ones.
        if self.skip("volatile") and self._retain_hints:
            flags += ("volatile",)
        return self._orderings(), flags

    def _br(self, flags: tuple[str, ...]) -> Instruction:
        if self.skip("label"):
            return Instruction("", labels=[self.next()])
        condition = self.value()
        labels = [self._tokens[self._at + 2], self._tokens[self._at + 5]]
        self._at += 6
        return Instruction("", operands=[condition], labels=labels)

    def _switch(self, flags: tuple[str, ...]) -> Instruction:
        inst = Instruction("", operands=[self.value()])
        self.skip(",")
        self.skip("label")
        inst.labels.append(self.next())
        self.skip("[")
        cases = []
        while not self.skip("]"):
            cases.append(self._case())
            self.skip(",")
            self.skip("label")
            inst.labels.append(self.next())
        inst.cases = tuple(cases)
        return inst

    def _case(self) -> int:
        """Take a case of a switch."""
        number = self.value().integer
        if number is None:
            raise Unsupported("a case of a switch that is not a number")
        return number

    def _indices(self) -> tuple[int, ...]:
        """Take ``indices = [8, 1]}``."""
        self.skip("indices")
        self.skip("=")
        self.skip("[")
        indices = []
        while not self.skip("]"):
            indices.append(int(self.next()))
            self.skip(",")
        self.skip("}")
        return tuple(indices)

    def _ret(self, flags: tuple[str, ...]) -> Instruction:
        return Instruction("", operands=[] if self.peek() == "void" else [self.value()])

    def _unreachable(self, flags: tuple[str, ...]) -> Instruction:
        return Instruction("")

    def _fence(self, flags: tuple[str, ...]) -> Instruction:
        return Instruction("", ordering=self._orderings())

    def _alloca(self, flags: tuple[str, ...]) -> Instruction:
        source = self.type()
        operands = []
        following = self._tokens[self._at + 1] if self.peek() == "," else ""
        if following == "of":  # our own: the array that a parameter points to
            self._at += 2
            operands.append(self.value())
        elif following and following not in AFTER_VALUES:
            if not self._retain_hints:
                raise Unsupported("an array of a size known only when it runs")
            self.skip(",")
            operands = self.values()
        align = self.align()
        space = POINTER
        if "addrspace" in self._tokens[self._at :]:
            space = Pointer(int(self._tokens[self._tokens.index("addrspace", self._at) + 2]))
        lane_step = int(self._tokens[-1]) if "lane_step" in self._tokens else 0
        return Instruction(
            "", type=space, operands=operands, flags=flags, source=source, align=align,
            lane_step=lane_step,
        )  # fmt: skip

    def _extractelement(self, flags: tuple[str, ...]) -> Instruction:
        operands = self.values()
        vector = operands[0].type
        assert isinstance(vector, Vector)
        return Instruction("", type=vector.element, operands=operands)

    def _insertelement(self, flags: tuple[str, ...]) -> Instruction:
        operands = self.values()
        return Instruction("", type=operands[0].type, operands=operands)

    def _shufflevector(self, flags: tuple[str, ...]) -> Instruction:
        first, second, mask = self.values()
        assert isinstance(mask.type, Vector)
        assert isinstance(first.type, Vector)
        type_ = Vector(mask.type.lanes, first.type.element)
        return Instruction("", type=type_, operands=[first, second], mask=_mask(mask))

    def _extractvalue(self, flags: tuple[str, ...]) -> Instruction:
        aggregate = self.value()
        indices = self._members()
        if not self._retain_hints and (len(indices) > 1 or not isinstance(aggregate.type, Struct)):
            raise Unsupported("extractvalue of an array")
        type_ = member_type(aggregate.type, indices)
        return Instruction("", type=type_, operands=[aggregate], indices=indices)

    def _insertvalue(self, flags: tuple[str, ...]) -> Instruction:
        aggregate = self.value()
        if not self._retain_hints and not isinstance(aggregate.type, Struct):
            raise Unsupported("insertvalue into an array")
        self.skip(",")
        operands = [aggregate, self.value()]
        return Instruction("", type=aggregate.type, operands=operands, indices=self._members())

    def _members(self) -> tuple[int, ...]:
        """Take the indices of members of an aggregate."""
        indices = []
        while self.peek() == "," and self._tokens[self._at + 1].isdigit():
            self._at += 1
            indices.append(int(self.next()))
        return tuple(indices)

    def _atomicrmw(self, flags: tuple[str, ...]) -> Instruction:
        operation = self.next()
        operands = self.values()
        accumulator = int(self._tokens[-1]) if "accumulator" in self._tokens else None
        return Instruction(
            "", type=operands[1].type, operands=operands, flags=flags,
            operation=operation, ordering=self._orderings(), align=self.align(),
            accumulator=accumulator,
        )  # fmt: skip

    def _cmpxchg(self, flags: tuple[str, ...]) -> Instruction:
        operands = self.values()
        type_ = Struct((operands[1].type, I1))
        return Instruction(
            "", type=type_, operands=operands, flags=flags, ordering=self._orderings(),
            align=self.align(),
        )  # fmt: skip

    def _orderings(self) -> str:
        """The orderings of an atomic operation, after the scope of one thread if it has that."""
        words = [token for token in self._tokens if token in _ORDERINGS]
        if "syncscope" not in self._tokens:
            return " ".join(words)
        scope = f"syncscope({self._tokens[self._tokens.index('syncscope') + 2]})"
        return " ".join([scope, *words] if self._retain_hints or scope == ONE_THREAD else words)

    def _call(self, flags: tuple[str, ...]) -> Instruction:
        of_result = self._attributes()
        type_ = self.type()
        operands, of_arguments = [], []
        callee = self._callee()
        if not callee:
            operands.append(Value(POINTER, self.constant_or_name()))
        self.skip("(")
        while not self.skip(")"):
            argument = self.type()
            of_arguments.append(self._attributes())
            operands.append(Value(argument, self.constant_or_name()))
            self.skip(",")
        attributes = None
        if self._retain_hints:
            of_function = []
            while self.more() and self.peek() != ",":
                word = self.next()
                if self.peek() == "(":  # memory(none)
                    start = self._at
                    self._take_until(")")
                    self.skip(")")
                    inside = self._tokens[start + 1 : self._at - 1]
                    word += f"({' '.join(inside)})"
                of_function.append(word)
            attributes = CallAttributes(of_result, tuple(of_arguments), tuple(of_function))
        return Instruction(
            "", type=type_, operands=operands, flags=flags, callee=callee, attributes=attributes
        )

    def _callee(self) -> str:
        """Take the name of a function or inline assembly; empty for an address."""
        start = self._at
        if self.skip("asm"):
            self._take_until('"')
            self._at += 3  # the text, a comma, and the constraints
            return " ".join(self._tokens[start : self._at]).replace(" ,", ",")
        if self.peek().startswith("@"):
            return self.next()
        if not self._retain_hints or self.peek() == "(":
            raise Unsupported("a call through a pointer")
        return ""

    def _take_until(self, beginning: str) -> None:
        while self.more() and not self.peek().startswith(beginning):
            self._at += 1

    def _attributes(self) -> tuple[str, ...]:
        """Take attributes of a parameter or result: words, some with a bracket or a number."""
        start = self._at
        while re.match(r"[a-z_]+$", self.peek()) and not _is_type_or_value(self.peek()):
            word = self.next()
            if word == "align" and self.peek().isdigit():
                self._at += 1
            elif self.peek() == "(":
                self.constant_or_name()
        return tuple(self._tokens[start : self._at])


_TYPE_WORDS = frozenset(("void", "ptr", "half", "bfloat", "float", "double", "metadata"))


def _is_type_or_value(word: str) -> bool:
    if word in _VALUE_WORDS or word in _TYPE_WORDS:
        return True
    return word[0] == "i" and word[1:].isdigit()


def _mask(mask: Value) -> tuple[int, ...]:
    """The elements that the mask of a ``shufflevector`` names; -1 for poison."""
    assert isinstance(mask.type, Vector)
    if mask.name in ("poison", "undef"):
        return (-1,) * mask.type.lanes
    if mask.name == "zeroinitializer":
        return (0,) * mask.type.lanes
    elements = _MASK_ELEMENT.findall(mask.name)
    if mask.name.startswith("splat"):
        elements *= mask.type.lanes
    if len(elements) != mask.type.lanes:
        raise Unsupported(f"the mask {mask.name}")
    return tuple(int(element) if element.isdigit() else -1 for element in elements)


def _like(shape: Type, element: Type) -> Type:
    """`element`, or a vector of it if `shape` is one."""
    return Vector(shape.lanes, element) if isinstance(shape, Vector) else element
