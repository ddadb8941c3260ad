"""Launches that run again and again, with other addresses in some of their words."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

from metalloid.backends.cuda.compile.vectorized_coarsening import is_aligned
from metalloid.backends.cuda.runtime.context import ContextDevice
from metalloid.backends.cuda.runtime.events import CudaEvent, record_event
from metalloid.runtime.launch.launches import Launch, LaunchBuffer

#: Words of `struct launch` of native/launch.h before those of the arguments.
_HEAD_WORDS = 4


class _PackedLaunch(NamedTuple):
    """A launch of the driver.

    Attributes
    ----------
    launch : int
        Index of the launch of Metal that it belongs to.
    shape : bytes
    memory : bytearray
        `struct launch`.
    words : memoryview
        The same, as 64-bit words.
    """

    launch: int
    shape: bytes
    memory: bytearray
    words: memoryview


class CudaRepeater:
    """See `Launcher.repeater`. One call of C adds the launches to the stream, in order."""

    native = None

    def __init__(self, device: ContextDevice, launches: Sequence[Launch],
                 words: Sequence[tuple[int, int, int]],
                 params: Sequence[tuple[int, int, bytearray]]) -> None:  # fmt: skip
        self._device = device
        self._name = ", ".join(dict.fromkeys(launch.program.name for launch in launches))
        self._uses_printf = any(launch.program.uses_printf for launch in launches)
        passed = {(k, position) for k, position, _ in words}
        passed |= {(k, position) for k, position, _ in params}
        self._launches = [
            packed
            for k, launch in enumerate(launches)
            if 0 not in launch.grid
            for packed in _packed(k, launch, passed, device.stream_handle)
        ]
        #: Whether shapes rely on aligned addresses.
        self._needs_alignment = any(
            launch.program.needs_alignment and is_aligned(_known_words(k, launch, passed))
            for k, launch in enumerate(launches)
        )
        self._words = [
            (packed.words, _HEAD_WORDS + position, address)
            for k, position, address in words
            for packed in self._launches
            if packed.launch == k
        ]
        self._params = [
            (packed.words, _HEAD_WORDS + position, memory)
            for k, position, memory in params
            for packed in self._launches
            if packed.launch == k
        ]
        self._programs = [launches[packed.launch].program for packed in self._launches]
        pairs = [
            address
            for packed in self._launches
            for address in (_address_of(packed.shape), _address_of(packed.memory))
        ]
        self._pairs = (ctypes.c_uint64 * len(pairs))(*pairs)
        self._given = launches, words, params

    @cached_property
    def _unaligned(self) -> _UnalignedRepeater:
        return _UnalignedRepeater(*self._given)

    def __call__(self, addresses: Sequence[int], written: Sequence[LaunchBuffer]) -> CudaEvent:
        """Add the launches to the stream."""
        device, enqueue = self._device, self._enqueue
        with device.lock:
            if not device.is_entered:
                device.enter()
            if self._needs_alignment and not is_aligned(addresses):
                enqueue = self._unaligned.prepared(device, addresses)
            else:
                for words, position, address in self._words:
                    words[position] = addresses[address]
                for words, position, memory in self._params:
                    words[position] = device.constants[bytes(memory)]
            return record_event(device, self._name, self._uses_printf, written, enqueue)

    def _enqueue(self) -> None:
        device = self._device
        outcome = device.native.launch_row(self._pairs, len(self._launches))
        if outcome:
            index, status = outcome >> 32, outcome & 0xFFFFFFFF
            raise device.failure(device.driver.CUresult(status), self._programs[index].name)


class _UnalignedRepeater:
    """The launches with the shapes for addresses that are not aligned, one call each."""

    def __init__(self, launches: Sequence[Launch], words: Sequence[tuple[int, int, int]],
                 params: Sequence[tuple[int, int, bytearray]]) -> None:  # fmt: skip
        self._launches = [each for each in launches if 0 not in each.grid]
        arguments = [launch.arguments for launch in launches]
        self._words = [(arguments[k].words, position, address) for k, position, address in words]
        self._params = [(arguments[k].words, position, memory) for k, position, memory in params]

    def prepared(self, device: ContextDevice, addresses: Sequence[int]) -> Callable[[], None]:
        """Write the addresses; return the function that adds the launches to the stream."""
        for words, position, address in self._words:
            words[position] = addresses[address]
        for words, position, memory in self._params:
            words[position] = device.constants[bytes(memory)]

        def enqueue() -> None:
            for launch in self._launches:
                device.enqueue(*launch, device.stream_handle)

        return enqueue


def _packed(k: int, launch: Launch, passed: set[tuple[int, int]],
            stream: int) -> list[_PackedLaunch]:  # fmt: skip
    """The launches of the driver for one of Metal's."""
    program, arguments = launch.program, launch.arguments
    shapes = program.shapes_for(_known_words(k, launch, passed), launch.grid, launch.group)
    threadgroup_bytes = arguments.threadgroup_bytes + program.dynamic_shared_bytes
    own = program.pack(stream, 0, 0, threadgroup_bytes, *(arguments.words or (0,)))
    memories = [bytearray(own) for _ in shapes]
    return [
        _PackedLaunch(k, shape, memory, memoryview(memory).cast("Q"))
        for shape, memory in zip(shapes, memories, strict=True)
    ]


def _known_words(k: int, launch: Launch, passed: set[tuple[int, int]]) -> list[int]:
    """The words that all runs have in common; 0 for the others."""
    words = launch.arguments.words
    return [0 if (k, position) in passed else word for position, word in enumerate(words)]


def _address_of(memory: bytes | bytearray) -> int:
    if isinstance(memory, bytearray):
        return ctypes.addressof(ctypes.c_char.from_buffer(memory))
    address = ctypes.cast(ctypes.c_char_p(memory), ctypes.c_void_p).value
    assert address is not None
    return address
