"""A device on the CPU whose memory Python may not touch: what runs on it runs on a card as well.

``METALLOID_DEVICE=own pytest tests/array`` runs the tests on it (conftest.py).
"""

import bisect
import ctypes
import weakref

from metalloid.backends.cpu.runtime.device import CpuDevice
from metalloid.runtime.devices.device import Device
from metalloid.runtime.devices.traits import CUDA_CORES
from metalloid.runtime.memory.staging import blocks_of, contents, point_words


class _Copy:
    """A copy of the host's memory, for one launch."""


class _Repeater:
    """Launches with other addresses in each run; Python runs them, as there is no native form."""

    native = None

    def __init__(self, device, launches, words, params):
        self._device, self._launches, self._words, self._params = device, launches, words, params
        packed = {(k, position) for k, position, _ in params}
        for k, launch in enumerate(launches):
            constants = launch.arguments.constants
            constants[:] = [each for each in constants if (k, each[0]) not in packed]

    def is_separable(self, addresses):
        return False

    def __call__(self, addresses, written):
        for k, position, index in self._words:
            self._launches[k].arguments.words[position] = addresses[index]
        for k, position, memory in self._params:
            constant = (ctypes.c_char * len(memory)).from_buffer(memory)
            self._launches[k].arguments.words[position] = ctypes.addressof(constant)
        for launch in self._launches:
            self._device.launch(*launch, True)
            launch.arguments.keep_alive.clear()


class OwnMemoryDevice(CpuDevice):
    """The CPU with the manners of a card: copies are inside of what was allocated."""

    name = "own:0"
    memory = "own"
    traits = CUDA_CORES

    def __init__(self):
        super().__init__()
        self._starts, self._sizes = [], {}
        self.exchange.dlpack_device = (2, 0)  # as of NVIDIA

    def allocate(self, nbytes):
        address = super().allocate(nbytes)
        bisect.insort(self._starts, address)
        self._sizes[address] = max(nbytes, 1)
        return address

    def free(self, address, nbytes):
        self._starts.remove(address)
        super().free(address, self._sizes.pop(address))

    def _check(self, address, nbytes):
        index = bisect.bisect_right(self._starts, address) - 1
        start = self._starts[index] if index >= 0 else 0
        inside = index >= 0 and address + nbytes <= start + self._sizes[start]
        assert inside, f"{nbytes} bytes at {address:#x} are not in one allocation"

    def launch(self, program, arguments, grid, group, wait):
        for buffer in arguments.buffers:
            if buffer.host_copy is not None:
                buffer.host_copy.to_device()
        for position, value in arguments.constants:
            constant = ctypes.create_string_buffer(value)
            arguments.keep_alive.append(constant)
            arguments.words[position] = ctypes.addressof(constant)
        blocks = blocks_of(arguments.staged)
        for block in blocks:
            block.address = self.allocate(block.shift + block.nbytes) + block.shift
        for block in blocks:
            data = contents(block, arguments, blocks)
            ctypes.memmove(block.address, data, len(data))
        point_words(arguments, blocks)
        for block in blocks:
            copy = _Copy()  # lives until the launch has ended
            weakref.finalize(copy, self.free, block.address - block.shift, 0).atexit = False
            arguments.keep_alive.append(copy)
        is_fetched = any(block.written for block in blocks)
        event = super().launch(program, arguments, grid, group, wait or is_fetched)
        for block in blocks:
            for part in block.written:
                source = block.address + part.address - block.start
                ctypes.memmove(part.address, source, part.nbytes)
        return event

    launch_batch = Device.launch_batch

    def repeater(self, launches, words, params):
        return _Repeater(self, launches, words, params)

    def copy_in(self, address, source):
        self._check(address, source.nbytes)
        super().copy_in(address, source)

    def copy_out(self, address, destination):
        self._check(address, destination.nbytes)
        super().copy_out(address, destination)


def count_devices():
    return 1


def open_device(index):
    return OwnMemoryDevice()
