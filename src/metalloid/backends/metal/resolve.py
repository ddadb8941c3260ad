"""From the words of a launch to Metal's bindings: what buffer or bytes an address means."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from metalloid.backends.metal.commands import Command, CopyBack
from metalloid.backends.metal.memory import Allocation, Heap
from metalloid.backends.metal.pointers import translated
from metalloid.backends.metal.programs import MetalProgram
from metalloid.runtime.buffer import Buffer
from metalloid.runtime.device import Arguments, Size
from metalloid.runtime.struct_slot import EncodedStruct

#: What Metal copies into a command: small values that the kernel only reads.
_MOST_INLINE_BYTES = 4096


class _Foreign(NamedTuple):
    """A parameter whose memory is the process's own."""

    address: int
    nbytes: int
    place: int
    writes: bool
    owner: Any

    @property
    def end(self) -> int:
        return self.address + self.nbytes


def command_of(
    program: MetalProgram,
    arguments: Arguments,
    grid: Size,
    group: Size,
    heap: Heap,
    settle: Callable[[], None],
) -> Command:
    """Resolve the arguments of a launch.

    Parameters
    ----------
    settle : callable
        Lets launches end whose results are still to be copied to memory of the process.
    """
    command = Command(program, arguments, grid, group)
    words, known = arguments.words, heap.by_address
    foreign: list[tuple[int, int, bool, Any]] = []
    for position, index, writes, layout in program.buffers:
        found = known.get(words[position])
        if found is None:
            foreign.append((words[position], index, writes, layout))
            continue
        command.buffers.append((index, found.buffer, 0))
        (command.writes if writes else command.reads).append(found)
    if foreign:
        _bind_foreign(command, foreign, heap, settle)
    if program.threadgroup:
        ends = [words[position] for position, _ in program.threadgroup[1:]]
        ends.append(arguments.threadgroup_bytes)
        for (position, index), end in zip(program.threadgroup, ends, strict=True):
            command.threadgroup.append((index, end - words[position]))
    return command


def _bind_foreign(
    command: Command,
    parameters: list[tuple[int, int, bool, Any]],
    heap: Heap,
    settle: Callable[[], None],
) -> None:
    """Bind what does not begin where a buffer of the device does."""
    owners: dict[int, tuple[int, Any]] = {
        address: (nbytes, kept) for address, nbytes, kept in _extents(command.arguments)
    }
    left = []
    for address, index, writes, layout in parameters:
        nbytes, owner = owners.get(address, (0, None))
        if layout.holds_resources and isinstance(owner, EncodedStruct):
            owner = translated(owner, layout, heap, command)
            address, nbytes = owner.ctypes.data, owner.nbytes
        holder = heap.holding(address)
        if holder is not None:
            command.buffers.append((index, holder.buffer, address - holder.address))
            (command.writes if writes else command.reads).append(holder)
        elif nbytes == 0:
            command.buffers.append((index, heap.nothing.buffer, 0))
        else:
            left.append(_Foreign(address, nbytes, index, writes, owner))
    for together in _overlapping(left):
        first = together[0]
        if len(together) == 1 and not first.writes and first.nbytes <= _MOST_INLINE_BYTES:
            command.inline.append((first.place, first.owner, first.nbytes))
            continue
        settle()
        start, end = first.address, max(part.end for part in together)
        is_written = any(part.writes for part in together)
        allocation = borrowed(start, end - start, is_written, heap, command)
        for part in together:
            offset = part.address - allocation.address
            if allocation.source is None:
                offset = part.address - start
            command.buffers.append((part.place, allocation.buffer, offset))


def borrowed(
    address: int, nbytes: int, is_written: bool, heap: Heap, command: Command
) -> Allocation:
    """Memory of the process for one launch: as a buffer of its own pages, or copied in and out."""
    allocation = heap.wrapped(address, nbytes)
    if allocation is None:
        allocation = heap.private(nbytes)
        ctypes.memmove(allocation.address, address, nbytes)
        if is_written:
            command.copies.append(CopyBack(allocation.address, address, nbytes))
    (command.writes if is_written else command.reads).append(allocation)
    return allocation


def _extents(arguments: Arguments) -> Iterator[tuple[int, int, Any]]:
    """Address, size and owner of the memory that a launch keeps and that no buffer is."""
    for kept in arguments.keep:
        if isinstance(kept, np.ndarray):
            yield kept.__array_interface__["data"][0], kept.nbytes, kept
        elif isinstance(kept, EncodedStruct):
            yield kept.memory.__array_interface__["data"][0], kept.memory.nbytes, kept
        elif not isinstance(kept, Buffer) and isinstance(kept, ctypes._SimpleCData | ctypes.Array):
            yield ctypes.addressof(kept), ctypes.sizeof(kept), kept


def _overlapping(parts: list[_Foreign]) -> Iterator[list[_Foreign]]:
    """Groups of those that share memory: a kernel must find one array once."""
    group: list[_Foreign] = []
    end = 0
    for part in sorted(parts, key=lambda part: part.address):
        if group and part.address >= end:
            yield group
            group = []
        group.append(part)
        end = max(end, part.end)
    if group:
        yield group
