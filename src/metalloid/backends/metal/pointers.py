"""Pointers inside memory: Python's addresses in an argument buffer become the GPU's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from metalloid.backends.metal.borrowing import Borrower
from metalloid.errors import ArgumentError
from metalloid.msl.layout import Layout
from metalloid.runtime.member_writers import WORD_BYTES
from metalloid.runtime.struct_slot import EncodedStruct


def translated(struct: EncodedStruct, layout: Layout, borrower: Borrower) -> np.ndarray:
    """The bytes of an argument buffer as the GPU reads them; what they lead to joins the launch.

    Raises
    ------
    ArgumentError
        If a member is a texture or a sampler.
    """
    memory = struct.memory.copy()
    for start in range(0, memory.nbytes, layout.bytes):
        for offset, member in _words(layout.members, start):
            word = memory[offset : offset + WORD_BYTES].view(np.uint64)
            if member.form not in ("pointer", "reference"):
                raise ArgumentError(
                    f"[{borrower.command.program.signature.name}] the member {member.name!r} of "
                    f"an argument buffer is a {member}, which metalloid's Metal device does not "
                    "bind yet."
                )
            if word[0]:
                word[0] = _gpu_address(int(word[0]), member, borrower)
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


def _gpu_address(address: int, pointer: Layout, borrower: Borrower) -> int:
    """Where the GPU finds what a pointer leads to."""
    command, heap = borrower.command, borrower.heap
    struct = borrower.struct_at(address)
    allocation = heap.holding(address)
    if struct is not None and pointer.holds_resources:
        inner = translated(struct, pointer, borrower)
        allocation = heap.private(inner.nbytes)
        allocation.stands_for = address
        allocation.fill(inner)
        command.reads.append(allocation)
    elif allocation is not None:
        (command.reads if pointer.read_only else command.writes).append(allocation)
    elif nbytes := borrower.size_at(address):
        allocation = borrower.borrow(address, nbytes, not pointer.read_only)
    else:
        return int(heap.nothing.buffer.gpuAddress())
    command.used.append(allocation.buffer)
    return int(allocation.buffer.gpuAddress()) + address - allocation.stands_for
