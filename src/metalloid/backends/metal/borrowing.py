"""Memory of the process that a launch uses, and what stands for it on the GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator

from metalloid.backends.metal.commands import Command, CopyBack
from metalloid.backends.metal.memory import Allocation, Heap
from metalloid.runtime.device import Arguments, HostMemory
from metalloid.runtime.struct_slot import EncodedStruct


class Borrower:
    """Lends memory of the process to one launch.

    Parameters
    ----------
    settle : callable
        Lets the launches end that are under way.
    """

    def __init__(self, command: Command, heap: Heap, settle: Callable[[], None]) -> None:
        self.command, self.heap, self._settle = command, heap, settle
        self._own: list[Allocation] = []
        self._structs = dict(_structs(command.arguments))
        self._sizes: dict[int, int] = {}
        for memory in command.arguments.staged:
            self._sizes[memory.address] = max(memory.nbytes, self._sizes.get(memory.address, 0))

    def struct_at(self, address: int) -> EncodedStruct | None:
        """What was put together from members, which may be pointers, at an address."""
        return self._structs.get(address)

    def size_at(self, address: int) -> int:
        """Bytes of the memory of the process that begins at an address."""
        return self._sizes.get(address, 0)

    def is_lent(self, memory: HostMemory) -> bool:
        """Whether launches under way may have newer contents of some memory."""
        return bool(self.heap.lent(memory.address, memory.nbytes))

    def borrow(self, address: int, nbytes: int, is_written: bool) -> Allocation:
        """A buffer for memory of the process: of its own pages, or one that is copied in and out.

        The bytes of an address are at the same distance from the buffer's begin as the address is
        from `Allocation.stands_for`.
        """
        heap, command = self.heap, self.command
        loans = heap.lent(address, nbytes)
        loans += [own for own in self._own if own.meets(address, nbytes) and own not in loans]
        if len(loans) == 1 and loans[0].covers(address, nbytes):
            allocation = loans[0]  # this launch has it, or one under way, newer than the process
        else:
            if loans:
                self._settle()
            wrapped = heap.wrapped(address, nbytes)
            allocation = wrapped or heap.private(nbytes)
            if not wrapped:
                allocation.stands_for, allocation.nbytes = address, nbytes
                ctypes.memmove(allocation.address, address, nbytes)
        if is_written and allocation.stands_for != allocation.address:
            command.copies.append(CopyBack(allocation, allocation.nbytes))
            self._own.append(allocation)
        (command.writes if is_written else command.reads).append(allocation)
        return allocation


def _structs(arguments: Arguments) -> Iterator[tuple[int, EncodedStruct]]:
    """Those that a launch keeps, and those that these lead to."""
    for kept in arguments.keep:
        if isinstance(kept, EncodedStruct):
            yield kept.memory.__array_interface__["data"][0], kept
            yield from _structs(kept.arguments)
