"""One line of LLVM IR as an instruction."""

from __future__ import annotations

import re
from collections.abc import Callable

from metalloid.compiler.ir.function import Instruction, Value, gep_terms
from metalloid.compiler.ir.types import (
    I1,
    POINTER,
    VOID,
    Array,
    Struct,
    Type,
    Unsupported,
    Vector,
    plain_type,
)

INTEGER_BINARY = frozenset(
    ("add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "shl", "lshr", "ashr", "and", "or", "xor")
)
FLOAT_BINARY = frozenset(("fadd", "fsub", "fmul", "fdiv", "frem"))
CASTS = frozenset(
    (
        "zext", "sext", "trunc", "fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp",
        "ptrtoint", "inttoptr", "bitcast", "addrspacecast",
    )
)  # fmt: skip
#: Flags that permit inexact arithmetic; they hold lane by lane.
FAST_MATH = frozenset(("fast", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc"))
_FLAGS = FAST_MATH | frozenset(
    (
        "nuw", "nsw", "exact", "disjoint", "nneg", "samesign", "inbounds", "nusw", "tail",
        "musttail", "notail", "volatile", "weak", "fastcc", "inrange",
    )
)  # fmt: skip
#: Scope of an atomic operation on what no other thread can see.
ONE_THREAD = 'syncscope("singlethread")'
_ORDERINGS = frozenset(("unordered", "monotonic", "acquire", "release", "acq_rel", "seq_cst"))

_TOKEN = re.compile(
    r'[%@]"[^"]*"|[%@][\w.$-]+|c?"(?:[^"\\]|\\.)*"|![\w.]*|\#\d+|\.\.\.'
    r"|-?(?:0x[HKLMR]?[0-9A-Fa-f]+|\d[\d.]*(?:[eE][-+]?\d+)?)|[A-Za-z_.$][\w.$-]*|[<>{}()\[\],=*:|]"
)
_OPENING, _CLOSING = "<[{(", ">]})"
_INSIDE = re.compile(r"getelementptr \( i8 , ptr (@\S+) , i64 (-?\d+) \)$")


class Line:
    """The tokens of one line and how far they are read."""

    def __init__(self, text: str, named_type: Callable[[str], Type]) -> None:
        self._named_type = named_type
        self._tokens = _TOKEN.findall(text)
        self._at = 0

    # -- tokens

    def more(self) -> bool:
        """Whether tokens are left."""
        return self._at < len(self._tokens)

    def peek(self) -> str:
        """The next token; empty at the end."""
        return self._tokens[self._at] if self.more() else ""

    def next(self) -> str:
        """Take the next token."""
        token = self.peek()
        self._at += 1
        return token

    def skip(self, token: str) -> bool:
        """Take `token` if it comes next; whether it did."""
        if self.peek() != token:
            return False
        self._at += 1
        return True

    def flags(self) -> tuple[str, ...]:
        """Take the flags that come next."""
        found = []
        while self.peek() in _FLAGS:
            found.append(self.next())
        return tuple(found)

    def until_comma(self) -> list[str]:
        """Tokens up to a comma or closing bracket outside of brackets; the comma is skipped."""
        start, depth = self._at, 0
        while self.more():
            token = self.peek()
            if depth == 0 and (token == "," or token in _CLOSING):
                break
            depth += (token in _OPENING) - (token in _CLOSING)
            self._at += 1
        words = self._tokens[start : self._at]
        self.skip(",")
        return words

    # -- types and values

    def type(self) -> Type:
        """Take a type."""
        token = self.next()
        if token == "<" and self.peek() == "{":
            struct = self.type()
            self.next()
            assert isinstance(struct, Struct)
            return Struct(struct.members, packed=True)
        if token in ("<", "["):
            count = int(self.next())
            self.next()  # x
            element = self.type()
            self.next()
            return Vector(count, element) if token == "<" else Array(count, element)
        if token == "{":
            members = []
            while not self.skip("}"):
                members.append(self.type())
                self.skip(",")
            return Struct(tuple(members))
        if token.startswith("%"):
            return self._named_type(token)
        return plain_type(token)

    def constant_or_name(self) -> str:
        """A name, a literal, or a constant expression as text.

        An address inside of a variable is ``getelementptr ( i8 , ptr @variable , i64 distance )``,
        whatever steps lead there.
        """
        start = self._at
        token = self.next()
        inside = self._constant_address(token)
        if inside:
            return inside
        if token in ("getelementptr", "splat", "inttoptr", "ptrtoint", "bitcast", "addrspacecast"):
            while self.peek() != "(":
                self._at += 1
            token = self.next()
        if token in _OPENING:
            depth = 1
            while depth:
                token = self.next()
                depth += (token in _OPENING) - (token in _CLOSING)
        return " ".join(self._tokens[start : self._at])

    def _constant_address(self, op: str) -> str:
        """Take a constant expression of an address behind its `op`; empty if it is none."""
        start = self._at
        if op == "bitcast" and self.skip("("):
            value = self.value()
            if value.type is POINTER and self.skip("to") and self.type() is POINTER:
                self.next()
                return value.name
        elif op == "getelementptr":
            while self.peek() != "(":
                self.next()
            self.next()
            source = self.type()
            self.skip(",")
            step = Instruction(op, type=POINTER, operands=self.values(), source=source)
            self.next()
            distance, variable = gep_terms(step)
            if not variable:
                return inside_of(step.operands[0].name, distance)
        self._at = start
        return ""

    def value(self) -> Value:
        """Take a type and a value of it."""
        type_ = self.type()
        return Value(type_, self.constant_or_name())

    def values(self) -> list[Value]:
        """Values with commas between, up to metadata."""
        found = [self.value()]
        while self.peek() == "," and not self._tokens[self._at + 1].startswith(("!", "align")):
            self._at += 1
            found.append(self.value())
        return found

    def align(self) -> int:
        """The alignment that stands further on; 0 if none does."""
        rest = self._tokens[self._at :]
        return int(rest[rest.index("align") + 1]) if "align" in rest else 0

    # -- instructions

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
                op, type=_like(left.type, I1), operands=[left, right], flags=flags, detail=predicate
            )
        if op in CASTS:
            operand = self.value()
            self.skip("to")
            return Instruction(op, type=self.type(), operands=[operand], flags=flags)
        handler = getattr(self, f"_{op}", None)
        if handler is None:
            raise Unsupported(f"the instruction {op}")
        made: Instruction = handler(flags)
        made.op = op
        return made

    def _select(self, flags: tuple[str, ...]) -> Instruction:
        operands = self.values()
        return Instruction("", type=operands[1].type, operands=operands, flags=flags)

    def _phi(self, flags: tuple[str, ...]) -> Instruction:
        made = Instruction("", type=self.type(), flags=flags)
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
            "", type=type_, operands=[address], flags=flags + self.flags(), detail=ordering,
            align=self.align(),
        )  # fmt: skip

    def _store(self, flags: tuple[str, ...]) -> Instruction:
        ordering = self._atomic()
        operands = self.values()
        return Instruction("", operands=operands, flags=flags, detail=ordering, align=self.align())

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
            cases.append(self.value().name)
            self.skip(",")
            self.skip("label")
            made.labels.append(self.next())
        made.detail = ",".join(cases)
        return made

    def _ret(self, flags: tuple[str, ...]) -> Instruction:
        return Instruction("", operands=[] if self.peek() == "void" else [self.value()])

    def _unreachable(self, flags: tuple[str, ...]) -> Instruction:
        return Instruction("")

    def _fence(self, flags: tuple[str, ...]) -> Instruction:
        return Instruction("", detail=self._tokens[-1])

    def _alloca(self, flags: tuple[str, ...]) -> Instruction:
        source = self.type()
        if self.peek() == "," and self._tokens[self._at + 1] not in ("align", "addrspace"):
            raise Unsupported("an array of a size known only when it runs")
        return Instruction("", type=POINTER, source=source, align=self.align())

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
        return Instruction("", type=type_, operands=[first, second], detail=mask.name)

    def _extractvalue(self, flags: tuple[str, ...]) -> Instruction:
        aggregate = self.value()
        self.skip(",")
        index = int(self.next())
        if not isinstance(aggregate.type, Struct):
            raise Unsupported("extractvalue of an array")
        type_ = aggregate.type.members[index]
        return Instruction("", type=type_, operands=[aggregate], detail=str(index))

    def _insertvalue(self, flags: tuple[str, ...]) -> Instruction:
        raise Unsupported("a struct as a value")

    def _atomicrmw(self, flags: tuple[str, ...]) -> Instruction:
        operation = self.next()
        operands = self.values()
        return Instruction(
            "", type=operands[1].type, operands=operands, flags=flags,
            detail=f"{operation} {self._orderings()}", align=self.align(),
        )  # fmt: skip

    def _cmpxchg(self, flags: tuple[str, ...]) -> Instruction:
        operands = self.values()
        type_ = Struct((operands[1].type, I1))
        return Instruction(
            "", type=type_, operands=operands, flags=flags, detail=self._orderings(),
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
        return Instruction("", type=type_, operands=operands, flags=flags, detail=callee)

    def _attributes(self) -> None:
        """Skip attributes of a parameter or result: words, some with a bracket or a number."""
        while re.match(r"[a-z_]+$", self.peek()) and not _is_type_or_value(self.peek()):
            word = self.next()
            if word == "align" and self.peek().isdigit():
                self._at += 1
            elif self.peek() == "(":
                self.constant_or_name()


_VALUE_WORDS = frozenset(
    (
        "true", "false", "null", "undef", "poison", "zeroinitializer", "getelementptr", "splat",
        "inttoptr", "ptrtoint", "bitcast", "addrspacecast", "nan", "inf",
    )
)  # fmt: skip


def _is_type_or_value(word: str) -> bool:
    if word in _VALUE_WORDS or word in ("void", "ptr", "half", "bfloat", "float", "double"):
        return True
    return word[0] == "i" and word[1:].isdigit()


def _like(shape: Type, element: Type) -> Type:
    """`element`, or a vector of it if `shape` is one."""
    return Vector(shape.lanes, element) if isinstance(shape, Vector) else element


def inside_of(address: str, distance: int) -> str:
    """The constant address so many bytes behind another."""
    variable, before = variable_of(address)
    distance += before
    return f"getelementptr ( i8 , ptr {variable} , i64 {distance} )" if distance else variable


def variable_of(address: str) -> tuple[str, int]:
    """The variable that a constant address is inside of, and its distance from there."""
    found = _INSIDE.match(address)
    return (found[1], int(found[2])) if found else (address, 0)
