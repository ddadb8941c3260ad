"""Memory of the host that a launch uses: copied to the GPU before it, and back behind it."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from metalloid.backends.cuda.runtime.constants import PLACE_BYTES
from metalloid.backends.cuda.runtime.driver import check
from metalloid.runtime.launches import Arguments
from metalloid.runtime.staging import Block, blocks_of, contents, point_words

if TYPE_CHECKING:
    from metalloid.backends.cuda.runtime.device import CudaDevice


def bring(device: CudaDevice, arguments: Arguments) -> list[Block]:
    """Copy memory of the host to the device, and point to it there."""
    words = arguments.words
    large = []
    for memory in arguments.staged:
        is_value = memory.nbytes <= PLACE_BYTES and not memory.written
        if is_value and not arguments.pointers:
            value = ctypes.string_at(memory.address, memory.nbytes)
            words[memory.position] = device._constants[value]
        else:
            large.append(memory)
    blocks = blocks_of(large)
    for block in blocks:
        block.address = device._take(block.shift + block.nbytes) + block.shift
    for block in blocks:
        if arguments.pointers:
            device._copy_value(block.address, contents(block, arguments, blocks))
        elif block.nbytes:
            outcome = device._driver.cuMemcpyHtoDAsync(
                block.address, block.start, block.nbytes, device.stream
            )
            check(outcome, "copying to the device")
    point_words(arguments, blocks)
    return blocks


def fetch(device: CudaDevice, block: Block, kernel: str) -> None:
    """Copy back what a kernel may have changed."""
    for part in block.written:
        if part.nbytes:
            source = block.address + part.address - block.start
            (status,) = device._driver.cuMemcpyDtoHAsync(
                part.address, source, part.nbytes, device.stream
            )
            if status:
                raise device.failure(status, kernel)
