"""``struct Params``: the parameters that each launch of a generated kernel passes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Member:
    """A member of ``struct Params``.

    Attributes
    ----------
    name, type, format : str
    value : int
        Fixed value; added to the offset of `leaf` if there is one.
    leaf : int or None
        The leaf whose offset is added to `value`.
    number : int
        Index of a constant among the graph's nodes, or -1.
    component : str
        ``"real"`` or ``"imag"``, of a complex number.
    """

    name: str
    type: str
    format: str
    value: int = 0
    leaf: int | None = None
    number: int = -1
    component: str = ""


class Packer:
    """Packs a ``struct Params`` for each launch.

    Parameters
    ----------
    members : sequence of Member
        By decreasing size.

    Attributes
    ----------
    numbers : list of (int, str, int)
        Of each constant: its offset in bytes, its format, or "" for a component of a complex
        number, and the index of its node.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        form = struct.Struct("=" + "".join(member.format for member in members))
        padding = -form.size % struct.calcsize(members[0].format)
        self._form = struct.Struct(f"{form.format}{padding}x")
        self._values = [member.value for member in members]
        self._leaves = [
            (k, member.leaf)
            for k, member in enumerate(members)
            if member.number < 0 and member.leaf is not None
        ]
        self._numbers = [
            (k, member.number, member.component) for k, member in enumerate(members)
            if member.number >= 0
        ]  # fmt: skip

        sizes = [struct.calcsize(f"={member.format}") for member in members]
        self.numbers = [
            (sum(sizes[:k]), "" if component else members[k].format, number)
            for k, number, component in self._numbers
        ]

    @property
    def is_constant(self) -> bool:
        """Whether all launches of a plan pass the same, if all leaves begin at offset 0."""
        return not self._numbers

    def __call__(self, offsets: Sequence[int], nodes: Sequence[Any]) -> bytearray:
        """The bytes for one launch, as `pack_into` writes them."""
        memory = bytearray(self._form.size)
        self.pack_into(memory, offsets, nodes)
        return memory

    def pack_into(self, memory: bytearray, offsets: Sequence[int], nodes: Sequence[Any]) -> None:
        """Write the bytes for one launch.

        Parameters
        ----------
        memory : bytearray
        offsets : sequence of int
            Offsets of the leaves.
        nodes : sequence of Node
            Of the graph, constants included.
        """
        values: list[Any] = self._values.copy()
        for k, leaf in self._leaves:
            values[k] += offsets[leaf]
        for k, number, component in self._numbers:
            value = nodes[number].data
            values[k] = getattr(complex(value), component) if component else value
        self._form.pack_into(memory, 0, *values)
