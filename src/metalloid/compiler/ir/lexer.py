"""The tokens of one line of LLVM IR, and the types and values that they spell."""

from __future__ import annotations

import re
from collections.abc import Callable

from metalloid.compiler.ir.function import Instruction, Value, gep_terms
from metalloid.compiler.ir.opcodes import FAST_MATH
from metalloid.compiler.ir.types import (
    POINTER,
    Array,
    Pointer,
    Struct,
    Type,
    Unsupported,
    Vector,
    plain_type,
)

_FLAGS = FAST_MATH | frozenset(
    (
        "nuw", "nsw", "exact", "disjoint", "nneg", "samesign", "inbounds", "nusw", "tail",
        "musttail", "notail", "volatile", "weak", "fastcc", "inrange", "call_invariant",
        "parameter",
    )
)  # fmt: skip
_TOKEN = re.compile(
    r'[%@]"[^"]*"|[%@][\w.$-]+|c?"(?:[^"\\]|\\.)*"|![\w.]*|\#\d+|\.\.\.'
    r"|-?(?:0x[HKLMR]?[0-9A-Fa-f]+|\d[\d.]*(?:[eE][-+]?\d+)?)|[A-Za-z_.$][\w.$-]*|[<>{}()\[\],=*:|]"
)
#: What may follow the operands of an instruction.
AFTER_VALUES = ("!", "align", "addrspace", "lane_step")
#: Constants that are words.
LITERALS = frozenset(("true", "false", "null", "undef", "poison", "zeroinitializer", "none"))
_OPENING, _CLOSING = "<[{(", ">]})"
_INSIDE = re.compile(r"getelementptr \( i8 , ptr (?:addrspace\(\d+\) )?(@\S+) , i64 (-?\d+) \)$")
_CAST = re.compile(
    r"addrspacecast \( ptr(?: addrspace\(\d+\))? (.*) to ptr(?: addrspace\(\d+\))? \)$"
)

#: LLVM writes it so, and `flatten_address_spaces` expects that.
_SPACE = re.compile(r"addrspace \( (\d+) \)")


class TokenLine:
    """The tokens of one line and how far they are read."""

    def __init__(
        self, text: str, named_type: Callable[[str], Type], retain_hints: bool = False
    ) -> None:
        self._named_type, self._retain_hints = named_type, retain_hints
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
        """Take the next token.

        Raises
        ------
        Unsupported
            At the end of the line.
        """
        token = self.peek()
        if not token:
            raise Unsupported("an incomplete instruction")
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
        indices = []
        while self.peek() in _FLAGS:
            indices.append(self.next())
        return tuple(indices)

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
        if token == "ptr" and self.skip("addrspace"):
            self.skip("(")
            space = int(self.next())
            self.skip(")")
            return Pointer(space) if space else POINTER
        return plain_type(token)

    def constant_or_name(self) -> str:
        """A name, a literal, or a constant expression as text.

        An address inside of a variable is ``getelementptr ( i8 , ptr @variable , i64 distance )``,
        whatever steps lead there, unless hints are kept.
        """
        start = self._at
        token = self.next()
        inside = "" if self._retain_hints else self._constant_address(token)
        if inside:
            return inside
        if token.isalpha() and token not in LITERALS:  # an operation with its operands
            while self.more() and self.peek() != "(":
                self._at += 1
            token = self.next()
        if token in _OPENING:
            depth = 1
            while depth:
                token = self.next()
                depth += (token in _OPENING) - (token in _CLOSING)
        return _SPACE.sub(r"addrspace(\1)", " ".join(self._tokens[start : self._at]))

    def _constant_address(self, op: str) -> str:
        """Take a constant expression of an address after its `op`; empty if it is none."""
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
        indices = [self.value()]
        while self.peek() == "," and not self._tokens[self._at + 1].startswith(AFTER_VALUES):
            self._at += 1
            indices.append(self.value())
        return indices

    def align(self) -> int:
        """The alignment that stands further on; 0 if none does."""
        rest = self._tokens[self._at :]
        return int(rest[rest.index("align") + 1]) if "align" in rest else 0


def inside_of(address: str, distance: int) -> str:
    """The constant address so many bytes after another."""
    variable, before = variable_of(address)
    distance += before
    return f"getelementptr ( i8 , ptr {variable} , i64 {distance} )" if distance else variable


def variable_of(address: str) -> tuple[str, int]:
    """The variable that a constant address is inside of, and its distance from there."""
    if cast := _CAST.match(address):
        address = cast[1]
    indices = _INSIDE.match(address)
    return (indices[1], int(indices[2])) if indices else (address, 0)
