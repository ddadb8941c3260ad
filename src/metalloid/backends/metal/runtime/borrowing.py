"""Memory of the process that a launch uses, and what stands for it on the GPU."""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections.abc import Iterator

import numpy as np

from metalloid.backends.metal.compile.limits import MAX_INLINE_BYTES
from metalloid.backends.metal.runtime.commands import Command, CopyBack
from metalloid.backends.metal.runtime.context import MetalContext
from metalloid.backends.metal.runtime.memory import Allocation
from metalloid.runtime.arguments.struct_binder import EncodedStruct
from metalloid.runtime.launch.launches import Arguments
from metalloid.runtime.memory.staging import Block, blocks_of


class Borrower:
    """Finds the memory of one launch and makes memory of the process available to the GPU.

    Attributes
    ----------
    command : Command
    device : MetalContext
    """

    def __init__(self, command: Command, device: MetalContext) -> None:
        self.command, self.device = command, device
        self._structs = dict(_structs(command.arguments))
        self._blocks = blocks_of(memory for memory in command.arguments.staged if memory.nbytes)
        self._starts = [block.start for block in self._blocks]
        self._allocations: dict[int, Allocation] = {}

    def struct_at(self, address: int) -> EncodedStruct | None:
        """The struct at an address that was encoded from members, which may be pointers."""
        return self._structs.get(address)

    def _block_at(self, address: int) -> Block | None:
        """The memory of the process that an address lies in; None if the launch names none."""
        position = bisect_right(self._starts, address) - 1
        block = self._blocks[position] if position >= 0 else None
        return block if block is not None and address < block.end else None

    def inline(self, address: int) -> bytes:
        """The memory at an address, if Metal can copy it into the command; else empty.

        It is small, one parameter only reads it, and no pending launch has newer contents.
        """
        block, heap = self._block_at(address), self.device.heap
        if block is None or block.nbytes > MAX_INLINE_BYTES or len(block.uses) > 1:
            return b""
        if block.written or heap.holding(address) or heap.loans_in(block.start, block.nbytes):
            return b""
        return ctypes.string_at(block.start, block.nbytes)

    def find(self, address: int, is_written: bool) -> Allocation | None:
        """The buffer with the memory at an address, which joins the launch; None without any."""
        allocation = self.device.heap.holding(address)
        if allocation is None:
            block = self._block_at(address)
            if block is None:
                return None
            if block.start not in self._allocations:
                self._allocations[block.start] = self._allocation_of(block)
            allocation, is_written = self._allocations[block.start], bool(block.written)
        (self.command.writes if is_written else self.command.reads).append(allocation)
        return allocation

    def take_in(self, contents: np.ndarray) -> Allocation:
        """A buffer with a copy of some bytes, for this launch."""
        copy = self.device.heap.copy(contents.ctypes.data, contents.nbytes)
        self.command.reads.append(copy)
        return copy

    def settled(self, held: Allocation, address: int) -> Allocation:
        """A copy of what a buffer holds from an address on, after the launches so far."""
        if held.batch is not None:
            held.batch.wait(None)
        start = held.offset_of(address) - held.start
        copy = self.device.heap.copy(held.address + start, held.nbytes - start)
        self.command.reads.append(copy)
        return copy

    def _allocation_of(self, block: Block) -> Allocation:
        """A buffer of the memory's own pages, or one that is copied in and out."""
        heap, nbytes = self.device.heap, block.nbytes
        loans = heap.loans_in(block.start, nbytes)
        if len(loans) == 1 and loans[0].covers(block.start, nbytes):
            allocation = loans[0]  # of a pending launch, newer than the process's
        else:
            if loans:
                self.device.synchronize()
            allocation = heap.wrapped(block.start, nbytes) or heap.copy(
                block.start, nbytes, block.shift
            )
        if block.written:
            self.command.copies.append(CopyBack(allocation, allocation.nbytes))
        return allocation


def _structs(arguments: Arguments) -> Iterator[tuple[int, EncodedStruct]]:
    """Yield the structs of a launch and, recursively, the structs that they point to."""
    for struct in arguments.keep_alive:
        if isinstance(struct, EncodedStruct):
            yield struct.memory.__array_interface__["data"][0], struct
            yield from _structs(struct.arguments)
