"""Memory of the process that a launch uses: whose it is, and what stands for it on the GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from metalloid.backends.metal.commands import Command, CopyBack
from metalloid.backends.metal.memory import Allocation, Heap
from metalloid.runtime.device import Arguments
from metalloid.runtime.struct_slot import EncodedStruct


class Owner(NamedTuple):
    """An object that holds memory of the process.

    Attributes
    ----------
    address, nbytes : int
    contents : object
        What gives its bytes to Metal.
    struct : EncodedStruct or None
        If the memory was put together from members, which may be pointers.
    """

    address: int
    nbytes: int
    contents: Any
    struct: EncodedStruct | None


class Borrower:
    """Lends memory of the process to one launch.

    Parameters
    ----------
    settle : callable
        Lets the launches end that are under way.
    """

    def __init__(self, command: Command, heap: Heap, settle: Callable[[], None]) -> None:
        self.command, self.heap, self._settle = command, heap, settle
        self._owners = {owner.address: owner for owner in _owners(command.arguments)}

    def owner(self, address: int) -> Owner | None:
        """Who holds the memory that begins at an address."""
        return self._owners.get(address)

    def is_lent(self, memory: Owner) -> bool:
        """Whether launches under way may have newer contents of some memory."""
        return bool(self.heap.lent(memory.address, memory.nbytes))

    def borrow(self, address: int, nbytes: int, is_written: bool) -> Allocation:
        """A buffer for memory of the process: of its own pages, or one that is copied in and out.

        The bytes of an address are at the same distance from the buffer's begin as the address is
        from `Allocation.stands_for`.
        """
        heap, command = self.heap, self.command
        loans = heap.lent(address, nbytes)
        if len(loans) == 1 and loans[0].covers(address, nbytes):
            allocation = loans[0]  # a launch under way has it, and newer than the process
        else:
            if loans:
                self._settle()
                loans = []
            wrapped = heap.wrapped(address, nbytes)
            allocation = wrapped or heap.private(nbytes)
            if not wrapped:
                allocation.stands_for, allocation.nbytes = address, nbytes
                ctypes.memmove(allocation.address, address, nbytes)
        if is_written and allocation.stands_for != allocation.address:
            command.copies.append(CopyBack(allocation, allocation.nbytes))
            if not loans:
                heap.lend(allocation)
        (command.writes if is_written else command.reads).append(allocation)
        return allocation


def _owners(arguments: Arguments) -> Iterator[Owner]:
    """All that a launch keeps, and what that refers to."""
    for kept in arguments.keep:
        if isinstance(kept, np.ndarray):
            yield Owner(kept.__array_interface__["data"][0], kept.nbytes, kept, None)
        elif isinstance(kept, EncodedStruct):
            memory = kept.memory
            yield Owner(memory.__array_interface__["data"][0], memory.nbytes, memory, kept)
            yield from _owners(kept.arguments)
        elif isinstance(kept, ctypes._SimpleCData | ctypes.Array):
            yield Owner(ctypes.addressof(kept), ctypes.sizeof(kept), kept, None)
