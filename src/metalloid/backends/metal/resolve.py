"""From the words of a launch to Metal's bindings: what buffer or bytes an address means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from metalloid.backends.metal.borrowing import Borrower, Owner
from metalloid.backends.metal.commands import Command
from metalloid.backends.metal.memory import Heap
from metalloid.backends.metal.pointers import translated
from metalloid.backends.metal.programs import MetalProgram
from metalloid.msl.layout import Layout
from metalloid.runtime.device import Arguments, Size

#: What Metal copies into a command: small values that the kernel only reads.
_MOST_INLINE_BYTES = 4096


class _Foreign(NamedTuple):
    """A parameter whose memory is the process's own."""

    owner: Owner
    place: int
    writes: bool

    @property
    def start(self) -> int:
        return self.owner.address

    @property
    def end(self) -> int:
        return self.owner.address + self.owner.nbytes


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
        Lets the launches end that are under way.
    """
    command = Command(program, arguments, grid, group)
    words, known = arguments.words, heap.by_address
    foreign: list[tuple[int, int, bool, Layout]] = []
    for position, index, writes, layout in program.buffers:
        found = known.get(words[position])
        if found is None:
            foreign.append((words[position], index, writes, layout))
            continue
        command.buffers.append((index, found.buffer, 0))
        (command.writes if writes else command.reads).append(found)
    if foreign:
        _bind_foreign(foreign, Borrower(command, heap, settle))
    if program.threadgroup:
        ends = [words[position] for position, _ in program.threadgroup[1:]]
        ends.append(arguments.threadgroup_bytes)
        for (position, index), end in zip(program.threadgroup, ends, strict=True):
            command.threadgroup.append((index, end - words[position]))
    return command


def _bind_foreign(parameters: list[tuple[int, int, bool, Layout]], borrower: Borrower) -> None:
    """Bind what does not begin where a buffer of the device does."""
    command, heap = borrower.command, borrower.heap
    left = []
    for address, index, writes, layout in parameters:
        owner = borrower.owner(address)
        if owner is not None and owner.struct is not None and layout.holds_resources:
            memory = translated(owner.struct, layout, borrower)
            command.inline.append((index, memory, memory.nbytes))
            continue
        holder = heap.holding(address)
        if holder is not None:
            command.buffers.append((index, holder.buffer, address - holder.address))
            (command.writes if writes else command.reads).append(holder)
        elif owner is None or owner.nbytes == 0:
            command.buffers.append((index, heap.nothing.buffer, 0))
        else:
            left.append(_Foreign(owner, index, writes))
    for together in _overlapping(left):
        owner, place, _ = together[0]
        is_written = any(part.writes for part in together)
        is_small = len(together) == 1 and owner.nbytes <= _MOST_INLINE_BYTES
        if is_small and not is_written and not borrower.is_lent(owner):
            command.inline.append((place, owner.contents, owner.nbytes))
            continue
        end = max(part.end for part in together)
        allocation = borrower.borrow(owner.address, end - owner.address, is_written)
        for part in together:
            offset = part.start - allocation.stands_for
            command.buffers.append((part.place, allocation.buffer, offset))


def _overlapping(parts: list[_Foreign]) -> Iterator[list[_Foreign]]:
    """Groups of those that share memory: a kernel must find one array once."""
    group: list[_Foreign] = []
    end = 0
    for part in sorted(parts, key=lambda part: part.start):
        if group and part.start >= end:
            yield group
            group = []
        group.append(part)
        end = max(end, part.end)
    if group:
        yield group
