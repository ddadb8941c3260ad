"""Pointers inside memory: Python's addresses in an argument buffer become the GPU's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from metalloid.backends.metal.memory import Allocation, Heap
from metalloid.errors import ArgumentError
from metalloid.msl.layout import Layout
from metalloid.runtime.member_writers import WORD_BYTES
from metalloid.runtime.struct_slot import EncodedStruct

if TYPE_CHECKING:
    from metalloid.backends.metal.commands import Command


def translated(struct: EncodedStruct, layout: Layout, heap: Heap, command: Command) -> np.ndarray:
    """The bytes of an argument buffer as the GPU reads them; what they lead to joins `command`.

    Raises
    ------
    ArgumentError
        If a member is a texture or a sampler, or leads to an array that is no memory of the device.
    """
    memory = struct.memory.copy()
    for start in range(0, memory.nbytes, layout.bytes):
        for offset, pointer in _words(layout.members, start):
            word = memory[offset : offset + WORD_BYTES].view(np.uint64)
            if not word[0]:
                continue
            holder = heap.holding(int(word[0])) if pointer.form == "pointer" else None
            if holder is None:
                raise _refused(command, pointer)
            _note(command, holder, pointer)
            word[0] = holder.buffer.gpuAddress() + int(word[0]) - holder.address
    return memory


def _words(members: tuple[Layout, ...], start: int) -> Iterator[tuple[int, Layout]]:
    """Offset and layout of each pointer, texture or sampler."""
    for member in members:
        place = start + member.offset
        if member.form != "value":
            for number in range(max(member.count, 1)):
                yield place + number * WORD_BYTES, member
        elif member.members:
            for number in range(max(member.count, 1)):
                yield from _words(member.members, place + number * member.bytes)


def _note(command: Command, holder: Allocation, pointer: Layout) -> None:
    command.used.append(holder.buffer)
    (command.reads if pointer.read_only else command.writes).append(holder)


def _refused(command: Command, member: Layout) -> ArgumentError:
    name = command.program.signature.name
    if member.form == "pointer":
        return ArgumentError(
            f"[{name}] the member {member.name!r} of an argument buffer points to an array of the "
            "process; on a GPU it takes a metalloid.Buffer."
        )
    return ArgumentError(
        f"[{name}] the member {member.name!r} of an argument buffer is a {member}, which "
        "metalloid's Metal device does not bind yet."
    )
