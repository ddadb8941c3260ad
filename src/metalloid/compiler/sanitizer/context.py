"""The state that the passes over a checked kernel share."""

from __future__ import annotations

from collections.abc import Callable
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
    """

    is_checked: Callable[[str], bool] = _every_instruction
    has_flags: bool = True
    sites: list[AccessSite] = field(default_factory=list)
    is_entry: bool = True
    valid: set[str] = field(default_factory=set)
