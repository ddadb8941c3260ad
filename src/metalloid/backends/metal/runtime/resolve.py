"""From the words of a launch to Metal's bindings: what buffer or bytes an address means."""

from __future__ import annotations

import ctypes

from metalloid.backends.metal.compile.limits import LEAST_THREADGROUP_BYTES, MAX_INLINE_BYTES
from metalloid.backends.metal.compile.programs import MetalProgram
from metalloid.backends.metal.runtime.borrowing import Borrower
from metalloid.backends.metal.runtime.commands import Command
from metalloid.backends.metal.runtime.context import MetalContext
from metalloid.backends.metal.runtime.pointers import translated
from metalloid.backends.metal.runtime.textures import image_of
from metalloid.msl.layout import Layout
from metalloid.runtime.launch.launches import Arguments
from metalloid.runtime.launch.program import Size


def command_of(
    program: MetalProgram, arguments: Arguments, grid: Size, group: Size, device: MetalContext
) -> Command:
    """Resolve the arguments of a launch."""
    command = Command(program, arguments, grid, group)
    words, known = arguments.words, device.heap.by_address
    imported: list[tuple[int, int, bool, Layout]] = []
    for position, index, writes, layout in program.buffers:
        resource = known.get(words[position])
        if resource is None:
            imported.append((position, index, writes, layout))
            continue
        command.buffers.append((index, resource.buffer, 0))
        (command.writes if writes else command.reads).append(resource)
    if imported and arguments.constants:
        constants = dict(arguments.constants)
        for position, index, _, _ in imported:
            if position in constants:
                command.inline.append((index, constants[position], len(constants[position])))
        imported = [parameter for parameter in imported if parameter[0] not in constants]
    if imported or program.resources:
        borrower = Borrower(command, device)
        for position, index, writes, layout in imported:
            _bind_imported(words[position], index, writes, layout, borrower)
        for position, index, layout in program.resources:
            _bind_resources(words[position], index, layout, borrower)
    if program.threadgroup:
        ends = [words[position] for position, _ in program.threadgroup[1:]]
        ends.append(arguments.threadgroup_bytes)
        for (position, index), end in zip(program.threadgroup, ends, strict=True):
            command.threadgroup.append((index, max(end - words[position], LEAST_THREADGROUP_BYTES)))
        total = sum(nbytes for _, nbytes in command.threadgroup)
        device.limits.check_threadgroup_memory(command.name, total, program.threadgroup_bytes)
    return command


def _bind_imported(
    address: int, index: int, writes: bool, layout: Layout, borrower: Borrower
) -> None:
    """Bind what does not begin where a buffer of the device does."""
    command, struct = borrower.command, borrower.struct_at(address)
    if struct is not None and layout.holds_resources:
        memory = translated(struct, layout, borrower)
        if memory.nbytes <= MAX_INLINE_BYTES:
            command.inline.append((index, memory, memory.nbytes))
        else:
            command.buffers.append((index, borrower.take_in(memory).buffer, 0))
        return
    contents = borrower.inline(address)
    if contents:
        command.inline.append((index, contents, len(contents)))
        return
    allocation, device = borrower.find(address, writes), borrower.device
    if allocation is None:
        command.buffers.append((index, device.heap.nothing.buffer, 0))
        return
    offset = allocation.offset_of(address)
    if layout.space == "constant" and offset % device.limits.constant_alignment:
        allocation, offset = borrower.settled(allocation, address), 0
    command.buffers.append((index, allocation.buffer, offset))


def _bind_resources(word: int, index: int, layout: Layout, borrower: Borrower) -> None:
    """Bind a texture or a sampler, or an array of them."""
    words = [word]
    if layout.count:
        words = list((ctypes.c_uint64 * layout.count).from_address(word))
    command = borrower.command
    for position, each in enumerate(words, index):
        if layout.form == "sampler":
            command.samplers.append((position, borrower.device.samplers.state(each)))
        elif each:
            command.textures.append((position, image_of(each, layout, borrower).texture))
