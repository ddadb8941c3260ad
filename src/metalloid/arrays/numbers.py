"""``struct Numbers``: what a generated kernel is told at every launch."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Member:
    """A member of ``struct Numbers``.

    Attributes
    ----------
    name, type, format : str
    value : int
        If it is known; otherwise where it comes from:
    leaf : int or None
        The leaf whose start is added to `value`.
    number : int
        The place among the graph's nodes of a number, or -1.
    part : str
        ``"real"`` or ``"imag"``, of a complex number.
    """

    name: str
    type: str
    format: str
    value: int = 0
    leaf: int | None = None
    number: int = -1
    part: str = ""


def pack(members: Sequence[Member], starts: Sequence[int], nodes: Sequence[Any]) -> bytes:
    """The bytes of ``struct Numbers``.

    Parameters
    ----------
    starts : sequence of int
        Of the leaves.
    nodes : sequence of Node
        Of the graph, with the numbers among them.
    """
    form = "=" + "".join(member.format for member in members)
    values: list[Any] = []
    for member in members:
        if member.number < 0:
            values.append(member.value + (0 if member.leaf is None else starts[member.leaf]))
            continue
        value = nodes[member.number].data
        if member.part:
            value = getattr(complex(value), member.part)
        values.append(value)
    room = struct.pack(form, *values)
    return room + bytes(-len(room) % struct.calcsize(members[0].format))
