"""Host memory as kernel arguments: copied to the GPU before a launch, and back after it."""

from __future__ import annotations

import ctypes

from metalloid.backends.cuda.runtime.context import ContextDevice
from metalloid.backends.cuda.runtime.driver import check
from metalloid.runtime.launch.launches import Arguments
from metalloid.runtime.memory.constants import SLOT_BYTES
from metalloid.runtime.memory.staging import Block, blocks_of, contents, point_words


def copy_to_device(device: ContextDevice, arguments: Arguments) -> list[Block]:
    """Copy the host memory that a launch uses to the device, and point its arguments there."""
    words = arguments.words
    large = []
    for memory in arguments.staged:
        is_value = memory.nbytes <= SLOT_BYTES and not memory.written
        if is_value and not arguments.pointers:
            value = ctypes.string_at(memory.address, memory.nbytes)
            words[memory.position] = device.constants[value]
        else:
            large.append(memory)
    blocks = blocks_of(large)
    for block in blocks:
        block.address = device.allocate_uninitialized(block.shift + block.nbytes) + block.shift
    for block in blocks:
        if arguments.pointers:
            device.copy_value(block.address, contents(block, arguments, blocks))
        elif block.nbytes:
            outcome = device.driver.cuMemcpyHtoDAsync(
                block.address, block.start, block.nbytes, device.stream
            )
            check(outcome, "copying to the device")
    point_words(arguments, blocks)
    return blocks


def copy_back(device: ContextDevice, block: Block, kernel: str) -> None:
    """Copy memory that a kernel may have written back to the host."""
    for written in block.written:
        if written.nbytes:
            source = block.address + written.address - block.start
            (status,) = device.driver.cuMemcpyDtoHAsync(
                written.address, source, written.nbytes, device.stream
            )
            if status:
                raise device.failure(status, kernel)
