"""Slots: the stack variables that carry values, phis and masks from block to block.

clang's mem2reg makes registers of them and inserts phis; those that live across a barrier lie in
the simdgroup's frame instead (`workgroup.frame_layout`).
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class SlotKind(Enum):
    """The kind of a slot's contents; its value begins the slot's name in the emitted code."""

    SCALAR = "s"  #: the scalar form of a value
    VECTOR = "v"  #: the vector form of a value
    LIVE_OUT = "l"  #: what each lane had when it left a divergent loop
    PHI = "phi"  #: what edges carry to a phi, as a scalar
    PHI_VECTOR = "phiv"  #: the same, as a vector
    MASK = "mask"  #: the lanes that reach a block
    ANY = "any"  #: whether any lane reaches a block
    ALL = "all"  #: whether all lanes do
    PRIVATE = "private"  #: the private arrays of all lanes
    MATRIX = "matrix"  #: the first factor of a matrix product; used by one instruction
    EXCHANGE = "exchange"  #: a vector whose lanes other lanes read; used by one instruction
    PENDING = "pending"  #: the lanes of a loop over lanes that are left; used by one instruction
    RESULTS = "results"  #: the results of such a loop; used by one instruction


class Slot(NamedTuple):
    """One slot.

    Attributes
    ----------
    kind : SlotKind
    name : str
        Of the value or block that it belongs to, without sign and quotes.
    """

    kind: SlotKind
    name: str

    @classmethod
    def of(cls, kind: SlotKind, name: str) -> Slot:
        """The slot of a value or block by its name as the IR has it."""
        return cls(kind, bare(name))

    def __str__(self) -> str:
        # In quotes, since names that passes make need not be LLVM's.
        return f'%"{self.kind.value}.{self.name}"'


def bare(name: str) -> str:
    """A name without its sign and quotes."""
    return name[1:].strip('"')
