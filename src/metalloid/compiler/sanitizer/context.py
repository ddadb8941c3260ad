"""The state that the passes over a checked kernel share."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, field
from enum import IntFlag


class Kind(IntFlag):
    """Kinds of accesses, as sanitizer.h has them."""

    READ = 1
    WRITE = 2
    ATOMIC = 4
    COPY = 8


@dataclass(frozen=True)
class AccessSite:
    """An access, a shuffle, a conversion, a load of a variable or an operation of a kernel.

    Attributes
    ----------
    kind : Kind
        None of the flags if it is no access.
    type : str
        Of its value in the IR; empty for copies.
    variable : str
        Name in the module of the variable it is in; empty if it is in a parameter or unknown.
    debug : str
        Its ``!dbg`` attachment.
    alignment : int
        That the type of the pointer promises, in bytes.
    """

    kind: Kind
    type: str
    variable: str
    debug: str
    alignment: int = 1


def _every_instruction(debug: str) -> bool:
    return True


@dataclass
class SanitizerContext:
    """The state of the pipelines of checked kernels.

    Attributes
    ----------
    is_checked : callable
        Whether conversions and operations with a ``!dbg`` attachment are checked.
    has_flags : bool
        Whether variables of the function get flags.
    sites : list of AccessSite
        Of the functions so far, by number.
    is_entry : bool
        Whether the function is the kernel's entry. It reads the launch, which its parameters point
        to; these are no accesses of the text.
    words, memory, index : int
        Of the vector form, whose entry is the function of a thread: positions of its parameters
        that are the words of the launch, threadgroup memory, and the index of the thread in its
        threadgroup.
    read_only : set of int
        Numbers of the words that point to memory which the kernel only reads.
    unit : int
        Bytes of a unit of threadgroup memory of the vector form: no more than the smallest access
        has.
    """

    is_checked: Callable[[str], bool] = _every_instruction
    has_flags: bool = True
    sites: list[AccessSite] = field(default_factory=list)
    is_entry: bool = True
    words: int = 1
    memory: int = 2
    index: int = 9
    read_only: Set[int] = frozenset()
    unit: int = 4
    valid: set[str] = field(default_factory=set)
