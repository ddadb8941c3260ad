"""One line of LLVM IR as an instruction."""

from __future__ import annotations

import re

from metalloid.compiler.ir.function import DIALECT, Instruction, Value
from metalloid.compiler.ir.lexer import TokenLine
from metalloid.compiler.ir.matrix_type import matrix_type
from metalloid.compiler.ir.opcodes import CASTS, FLOAT_BINARY, INTEGER_BINARY, ONE_THREAD
from metalloid.compiler.ir.types import I1, POINTER, VOID, Struct, Type, Unsupported, Vector

_ORDERINGS = frozenset(("unordered", "monotonic", "acquire", "release", "acq_rel", "seq_cst"))

_VALUE_WORDS = frozenset(
    (
        "true", "false", "null", "undef", "poison", "zeroinitializer", "getelementptr", "splat",
        "inttoptr", "ptrtoint", "bitcast", "addrspacecast", "nan", "inf",
    )
)  # fmt: skip
_MASK_ELEMENT = re.compile(r"\bi32 (\d+|poison|undef)\b")


class Line(TokenLine):
    """Reads an instruction."""

    def instruction(self) -> Instruction:
        """The whole line."""
        result = ""
        if len(self._tokens) > 1 and self._tokens[1] == "=":
            result = self._tokens[0]
            self._at = 2
        early = self.flags()  # of calls
        op = self.next()
        flags = early + self.flags()
        made = self._made(op, flags)
        made.result = result if made.type is not VOID else ""
        return made

    def _made(self, op: str, flags: tuple[str, ...]) -> Instruction:
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
        made: Instruction = handler(flags)
        made.op = op
        return made

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
        made = Instruction("", type=matrix_type(self.type()), flags=flags)
        while self.skip("["):
            made.operands.append(Value(made.type, self.constant_or_name()))
            self.skip(",")
            made.labels.append(self.next())
            self.skip("]")
            self.skip(",")
        return made

    def _getelementptr(self, flags: tuple[str, ...]) -> Instruction:
        source = self.type()
        self.skip(",")
        operands = self.values()
        type_ = next((v.type for v in operands if isinstance(v.type, Vector)), POINTER)
        if type_ is not POINTER:
            raise Unsupported("a vector of addresses")
        return Instruction("", type=POINTER, operands=operands, flags=flags, source=source)

    def _load(self, flags: tuple[str, ...]) -> Instruction:
        ordering = self._atomic()
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
        ordering = self._atomic()
        operands = self.values()
        return Instruction(
            "", operands=operands, flags=flags, ordering=ordering, align=self.align()
        )

    def _atomic(self) -> str:
        """Ordering of an atomic load or store; empty if it is none."""
        if not self.skip("atomic"):
            return ""
        self.skip("volatile")  # which an atomic access is anyway
        return self._orderings()

    def _br(self, flags: tuple[str, ...]) -> Instruction:
        if self.skip("label"):
            return Instruction("", labels=[self.next()])
        condition = self.value()
        labels = [self._tokens[self._at + 2], self._tokens[self._at + 5]]
        return Instruction("", operands=[condition], labels=labels)

    def _switch(self, flags: tuple[str, ...]) -> Instruction:
        made = Instruction("", operands=[self.value()])
        self.skip(",")
        self.skip("label")
        made.labels.append(self.next())
        self.skip("[")
        cases = []
        while not self.skip("]"):
            cases.append(self._case())
            self.skip(",")
            self.skip("label")
            made.labels.append(self.next())
        made.cases = tuple(cases)
        return made

    def _case(self) -> int:
        """Take a case of a switch."""
        number = self.value().integer
        if number is None:
            raise Unsupported("a case of a switch that is no number")
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
        source, operands = self.type(), []
        following = self._tokens[self._at + 1] if self.peek() == "," else ""
        if following == "of":  # our own: the array that a parameter points to
            self._at += 2
            operands.append(self.value())
        elif following not in ("", "align", "addrspace", "lane_step"):
            raise Unsupported("an array of a size known only when it runs")
        lane_step = int(self._tokens[-1]) if "lane_step" in self._tokens else 0
        return Instruction(
            "", type=POINTER, operands=operands, flags=flags, source=source, align=self.align(),
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
        self.skip(",")
        index = int(self.next())
        if not isinstance(aggregate.type, Struct):
            raise Unsupported("extractvalue of an array")
        type_ = aggregate.type.members[index]
        return Instruction("", type=type_, operands=[aggregate], indices=(index,))

    def _insertvalue(self, flags: tuple[str, ...]) -> Instruction:
        raise Unsupported("a struct as a value")

    def _atomicrmw(self, flags: tuple[str, ...]) -> Instruction:
        operation = self.next()
        operands = self.values()
        return Instruction(
            "", type=operands[1].type, operands=operands, flags=flags,
            operation=operation, ordering=self._orderings(), align=self.align(),
        )  # fmt: skip

    def _cmpxchg(self, flags: tuple[str, ...]) -> Instruction:
        operands = self.values()
        type_ = Struct((operands[1].type, I1))
        return Instruction(
            "", type=type_, operands=operands, flags=flags, ordering=self._orderings(),
            align=self.align(),
        )  # fmt: skip

    def _orderings(self) -> str:
        """The orderings of an atomic operation, behind a scope of one thread if that is it."""
        words = [token for token in self._tokens if token in _ORDERINGS]
        return " ".join([ONE_THREAD, *words] if '"singlethread"' in self._tokens else words)

    def _call(self, flags: tuple[str, ...]) -> Instruction:
        self._attributes()
        type_ = self.type()
        callee = self.next()
        if not callee.startswith("@"):
            raise Unsupported("a call through a pointer")
        self.skip("(")
        operands = []
        while not self.skip(")"):
            argument = self.type()
            self._attributes()
            operands.append(Value(argument, self.constant_or_name()))
            self.skip(",")
        return Instruction("", type=type_, operands=operands, flags=flags, callee=callee)

    def _attributes(self) -> None:
        """Skip attributes of a parameter or result: words, some with a bracket or a number."""
        while re.match(r"[a-z_]+$", self.peek()) and not _is_type_or_value(self.peek()):
            word = self.next()
            if word == "align" and self.peek().isdigit():
                self._at += 1
            elif self.peek() == "(":
                self.constant_or_name()


def _is_type_or_value(word: str) -> bool:
    if word in _VALUE_WORDS or word in ("void", "ptr", "half", "bfloat", "float", "double"):
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
