"""From the words of a launch to Metal's bindings: what buffer or bytes an address means."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from metalloid.backends.metal.borrowing import Borrower
from metalloid.backends.metal.commands import Command
from metalloid.backends.metal.memory import Heap
from metalloid.backends.metal.pointers import translated
from metalloid.backends.metal.programs import MetalProgram
from metalloid.msl.layout import Layout
from metalloid.runtime.device import Arguments, Size
from metalloid.runtime.staging import blocks_of

#: What Metal copies into a command: small values that the kernel only reads.
_MOST_INLINE_BYTES = 4096


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
            foreign.append((position, index, writes, layout))
            continue
        command.buffers.append((index, found.buffer, 0))
        (command.writes if writes else command.reads).append(found)
    if foreign and arguments.constants:
        constants = dict(arguments.constants)
        for position, index, _, _ in foreign:
            if position in constants:
                command.inline.append((index, constants[position], len(constants[position])))
        foreign = [parameter for parameter in foreign if parameter[0] not in constants]
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
    indices = {position: index for position, index, _, _ in parameters}
    staged = {memory.position: memory for memory in command.arguments.staged}
    left = []
    for position, index, writes, layout in parameters:
        address = command.arguments.words[position]
        struct = borrower.struct_at(address)
        if struct is not None and layout.holds_resources:
            memory = translated(struct, layout, borrower)
            command.inline.append((index, memory, memory.nbytes))
            continue
        holder = heap.holding(address)
        if holder is not None:
            command.buffers.append((index, holder.buffer, address - holder.address))
            (command.writes if writes else command.reads).append(holder)
        elif position not in staged or staged[position].nbytes == 0:
            command.buffers.append((index, heap.nothing.buffer, 0))
        else:
            left.append(staged[position])
    for block in blocks_of(left):
        first = block.uses[0]
        is_small = len(block.uses) == 1 and block.nbytes <= _MOST_INLINE_BYTES
        if is_small and not block.written and not borrower.is_lent(first):
            contents = ctypes.string_at(block.start, block.nbytes)
            command.inline.append((indices[first.position], contents, block.nbytes))
            continue
        allocation = borrower.borrow(block.start, block.nbytes, bool(block.written))
        for use in block.uses:
            offset = use.address - allocation.stands_for
            command.buffers.append((indices[use.position], allocation.buffer, offset))
