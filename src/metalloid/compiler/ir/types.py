"""The types of LLVM IR that occur in kernels."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field


class Unsupported(Exception):
    """A kernel uses something that this part of the compiler does not know; the text says what.

    Attributes
    ----------
    debug : str
        The ``!dbg`` attachment of the instruction, where that is known.
    pass_name : str
        The pass that met it; empty for the parser.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.debug = self.pass_name = ""

    def at(self, debug: str) -> Unsupported:
        """The same error, at an instruction unless it is at one already."""
        self.debug = self.debug or debug
        return self


@dataclass(frozen=True)
class Type:
    """Base of all types. `str` gives LLVM's own spelling."""

    @property
    def size(self) -> int:
        """Bytes from one element of an array to the next."""
        raise Unsupported(f"the size of {self}")

    @property
    def alignment(self) -> int:
        """Bytes to which LLVM aligns it by itself."""
        return self.size


@dataclass(frozen=True)
class Void(Type):
    """No value."""

    def __str__(self) -> str:
        return "void"


@dataclass(frozen=True)
class Integer(Type):
    """``i1`` to ``i64`` and odd ones such as ``i24``."""

    bits: int

    def __str__(self) -> str:
        return f"i{self.bits}"

    @property
    def size(self) -> int:
        """See `Type.size`."""
        return 1 << max((self.bits - 1).bit_length() - 3, 0)


@dataclass(frozen=True)
class Float(Type):
    """``half``, ``bfloat``, ``float``, ``double``."""

    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def size(self) -> int:
        """See `Type.size`."""
        return self.bits // 8

    @property
    def bits(self) -> int:
        """Its width."""
        return {"half": 16, "bfloat": 16, "float": 32, "double": 64}[self.name]


@dataclass(frozen=True)
class Pointer(Type):
    """``ptr``, or ``ptr addrspace(3)``; on a CPU all address spaces are one."""

    space: int = 0

    def __str__(self) -> str:
        return f"ptr addrspace({self.space})" if self.space else "ptr"

    @property
    def size(self) -> int:
        """See `Type.size`."""
        return 8


@dataclass(frozen=True)
class Vector(Type):
    """``<4 x float>``."""

    lanes: int
    element: Type

    def __str__(self) -> str:
        return f"<{self.lanes} x {self.element}>"

    @property
    def size(self) -> int:
        """See `Type.size`."""
        bits = self.lanes * bits_of(self.element)
        return 1 << (-(-bits // 8) - 1).bit_length()


@dataclass(frozen=True)
class Array(Type):
    """``[8 x float]``."""

    count: int
    element: Type

    def __str__(self) -> str:
        return f"[{self.count} x {self.element}]"

    @property
    def size(self) -> int:
        """See `Type.size`."""
        return self.count * self.element.size

    @property
    def alignment(self) -> int:
        """See `Type.alignment`."""
        return self.element.alignment


@dataclass(frozen=True)
class Struct(Type):
    """``{ i32, i1 }``, or a named struct by its members.

    The name, ``%struct.S``, is empty unless the parser keeps hints. Types are equal whatever their
    names.
    """

    members: tuple[Type, ...]
    packed: bool = False
    name: str = field(default="", compare=False)

    def __str__(self) -> str:
        if self.name:
            return self.name
        inside = f"{{ {', '.join(map(str, self.members))} }}" if self.members else "{}"
        return f"<{inside}>" if self.packed else inside

    @property
    def size(self) -> int:
        """See `Type.size`."""
        return _round_up(self._end(len(self.members)), self.alignment)

    @property
    def alignment(self) -> int:
        """See `Type.alignment`."""
        return 1 if self.packed else max((m.alignment for m in self.members), default=1)

    def offset(self, index: int) -> int:
        """Bytes before member `index`."""
        alignment = 1 if self.packed else self.members[index].alignment
        return _round_up(self._end(index), alignment)

    def _end(self, count: int) -> int:
        end = 0
        for member in self.members[:count]:
            end = _round_up(end, 1 if self.packed else member.alignment) + member.size
        return end


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step


def bits_of(type: Type) -> int:
    """Width of a scalar or of a vector of scalars.

    Raises
    ------
    Unsupported
        For types without one.
    """
    if isinstance(type, Integer | Float):
        return type.bits
    if isinstance(type, Pointer):
        return 64
    if isinstance(type, Vector):
        return type.lanes * bits_of(type.element)
    raise Unsupported(f"the width of {type}")


@dataclass(frozen=True)
class Metadata(Type):
    """``metadata``: an argument of an intrinsic that says something about the program."""

    def __str__(self) -> str:
        return "metadata"


VOID, POINTER = Void(), Pointer()
I1, I8, I16, I32, I64 = (Integer(bits) for bits in (1, 8, 16, 32, 64))
HALF, BFLOAT, FLOAT, DOUBLE = map(Float, ("half", "bfloat", "float", "double"))

_PLAIN: dict[str, Type] = {
    "void": VOID, "ptr": POINTER, "metadata": Metadata(),
    "half": HALF, "bfloat": BFLOAT, "float": FLOAT, "double": DOUBLE,
}  # fmt: skip


@functools.cache
def plain_type(word: str) -> Type:
    """The type that one word names.

    Raises
    ------
    Unsupported
        If it is none that kernels use.
    """
    if word in _PLAIN:
        return _PLAIN[word]
    if word[0] == "i" and word[1:].isdigit():
        return Integer(int(word[1:]))
    raise Unsupported(f"the type {word}")
