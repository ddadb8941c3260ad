"""The blocks of vector code as they are emitted: text, with the control flow and uses of slots."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from metalloid.compiler.vectorize.slots import Slot


class SlotAccess(NamedTuple):
    """A load or store of a whole slot."""

    slot: Slot
    is_store: bool


@dataclass(frozen=True)
class Return:
    """A return from the emitted function.

    Attributes
    ----------
    region : int
        The region that begins after the barrier; 0 at the end of the kernel.
    lanes : int or None
        The mask of the lanes that have arrived, if it is known at compile time.
    """

    region: int
    lanes: int | None = None

    @property
    def value(self) -> int | None:
        """The returned value, if known at compile time."""
        return None if self.lanes is None else self.region << 32 | self.lanes


@dataclass(slots=True)
class EmittedBlock:
    """A basic block of the emitted function.

    Attributes
    ----------
    label : str
    lines : list of str
        Its instructions.
    accesses : list of SlotAccess
        In order.
    escaping : set of Slot
        Slots whose address it uses otherwise.
    successors : list of str
        Labels.
    returned : Return or None
        If it ends in a return.
    """

    label: str
    lines: list[str] = field(default_factory=list)
    accesses: list[SlotAccess] = field(default_factory=list)
    escaping: set[Slot] = field(default_factory=set)
    successors: list[str] = field(default_factory=list)
    returned: Return | None = None

    def text(self) -> list[str]:
        """Its lines, the label first."""
        return [f"{self.label}:", *self.lines]
