"""Objects, addresses in them, and the pointers through which a function reaches its launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from metalloid.compiler.ir.function import Value

#: See `Interface.opaque`.
Opaque = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Interface:
    """The pointers through which a function gets at its launch.

    Attributes
    ----------
    words : tuple of (int, int)
        The pointer to the words of the launch: position of a parameter; where the pointer is loaded
        from memory that the parameter points to, the offset of it there, else -1.
    memory : tuple of (int, int)
        The same of the pointer to threadgroup memory.
    count : int
        The number of words of parameters; those of extents follow them.
    slots : tuple of (int, int)
        Pointers in the memory of parameters: the position of the word, and the offset there. Two
        words of each follow the extents: bytes of the memory before the pointer, and in all.
    memory_variable : str
        The variable that is threadgroup memory, instead of a pointer to it.
    opaque : tuple of (int, int, int)
        Textures and samplers, whose pointers only our headers follow: the position of a word, and
        distance and offset of their own words in its memory.
    has_lookups : bool
        Whether the runtime knows the object of any other pointer (native/memory/objects.c).
    pointers : mapping of ObjectAddress
        What parameters of a function that kernels call point to, by name.
    """

    words: tuple[int, int]
    memory: tuple[int, int]
    count: int
    slots: tuple[tuple[int, int], ...] = ()
    memory_variable: str = ""
    opaque: Opaque = ()
    has_lookups: bool = False
    pointers: Mapping[str, ObjectAddress] = field(default_factory=dict)


def vector_interface(
    count: int, slots: tuple[tuple[int, int], ...] = (), opaque: Opaque = ()
) -> Interface:
    """The interface of the vector engine's function of one thread (rows.h)."""
    return Interface((1, -1), (2, -1), count, slots, "", opaque, has_lookups=True)


def box_interface(
    count: int, slots: tuple[tuple[int, int], ...] = (), opaque: Opaque = ()
) -> Interface:
    """The interface of the reference engine's entry (abi.h): mtl_launch and mtl_range."""
    return Interface((0, 0), (1, 48), count, slots, "", opaque, has_lookups=True)


def simt_interface(
    memory_variable: str, count: int, slots: tuple[tuple[int, int], ...] = ()
) -> Interface:
    """The interface of the entry for GPUs, whose only parameter begins with the words."""
    return Interface((0, -1), (-1, 0), count, slots, memory_variable)


@dataclass(frozen=True)
class MemoryObject:
    """An object that kernels access.

    Attributes
    ----------
    name : str
        Of a variable, in the module; of parameters empty; of others the value of the extent.
    word : int
        Of a parameter, its position; else -1.
    nbytes : int
        Size of a variable; 0 for others, whose extents are known at run time.
    slot : int
        The offset, in the memory of the parameter, of the pointer to it; -1 if the word points to
        it.
    """

    name: str
    word: int
    nbytes: int
    slot: int = -1

    @property
    def is_word(self) -> bool:
        """Whether it is memory that a word of the launch points to."""
        return self.word >= 0 and self.slot < 0

    @property
    def is_selected(self) -> bool:
        """Whether it is one of several objects, or one that is looked up or a parameter's."""
        return self.word < 0 and not self.nbytes


@dataclass(frozen=True)
class ObjectAddress:
    """An address as an object and an offset.

    Attributes
    ----------
    object : MemoryObject
    terms : tuple of (Value, int)
        Indices and what each is multiplied by; their sum and `distance` are the offset in bytes.
    distance : int
    """

    object: MemoryObject
    terms: tuple[tuple[Value, int], ...]
    distance: int
