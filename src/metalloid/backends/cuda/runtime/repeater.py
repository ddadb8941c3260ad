"""Launches that run again and again, with other addresses in some of their words."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple, NoReturn

from metalloid.backends.cuda.compile.vectorized_coarsening import is_aligned
from metalloid.backends.cuda.runtime.context import ContextDevice
from metalloid.backends.cuda.runtime.events import CudaEvent, TimedEvent, record_event
from metalloid.runtime.launch.launches import (
    Launch,
    LaunchBuffer,
    NativeRow,
    NativeStream,
    SeparateLaunch,
)
from metalloid.settings import settings

_WORD = 8
#: Words of `struct pair`, and of `struct launch` before those of the arguments (native/launch.h).
_PAIR_WORDS, _HEAD_WORDS = 2, 4
_STARTED, _ENDED = 1, 2  # words of the timing events in `struct launch`
_ALIGNMENT = 16


class _PackedLaunch(NamedTuple):
    """A launch of the driver.

    Attributes
    ----------
    launch : int
        Index of the launch of Metal that it belongs to.
    shape, memory : bytes
        `struct shape` and `struct launch`.
    """

    launch: int
    shape: bytes
    memory: bytes


class CudaRepeater:
    """See `Launcher.repeater`. One call of C adds the launches to the stream, in order."""

    def __init__(self, device: ContextDevice, launches: Sequence[Launch],
                 words: Sequence[tuple[int, int, int]],
                 params: Sequence[tuple[int, int, bytearray]]) -> None:  # fmt: skip
        self._device = device
        self._name = ", ".join(dict.fromkeys(launch.program.name for launch in launches))
        self._uses_printf = any(launch.program.uses_printf for launch in launches)
        passed = {(k, position) for k, position, _ in words}
        passed |= {(k, position) for k, position, _ in params}
        packed = [
            each
            for k, launch in enumerate(launches)
            if 0 not in launch.grid
            for each in _packed(k, launch, passed, device.stream_handle)
        ]
        #: Whether shapes rely on aligned addresses.
        self._needs_alignment = any(
            launch.program.needs_alignment and is_aligned(_known_words(k, launch, passed))
            for k, launch in enumerate(launches)
        )
        #: Pairs, then the launches that they point to.
        self._memory = bytearray(_PAIR_WORDS * _WORD * len(packed))
        starts = []
        for each in packed:
            starts.append(len(self._memory) // _WORD)
            self._memory += each.memory
        self._words = memoryview(self._memory).cast("Q")
        self._pairs = (ctypes.c_char * len(self._memory)).from_buffer(self._memory)
        address = ctypes.addressof(self._pairs)
        pairs = [(_address_of(each.shape), address + _WORD * k) for each, k in zip(packed, starts)]  # noqa: B905
        for k, word in enumerate(chain.from_iterable(pairs)):
            self._words[k] = word

        def indices_of(k: int, position: int) -> list[int]:
            """The words of an argument, one for each launch of the driver."""
            pairs = zip(starts, packed, strict=True)
            return [start + _HEAD_WORDS + position for start, each in pairs if each.launch == k]

        self._positions = [(i, n) for k, position, n in words for i in indices_of(k, position)]
        self._params = [(i, m) for k, position, m in params for i in indices_of(k, position)]
        self._packed, self._status, self._starts = packed, ctypes.c_int(), starts
        self._programs = [launches[each.launch].program for each in packed]
        self._given = launches, words, params

    @cached_property
    def _unaligned(self) -> _UnalignedRepeater:
        return _UnalignedRepeater(*self._given)

    @property
    def native(self) -> NativeRow | None:
        """See `Repeater.native`."""
        run = ctypes.cast(self._device.native.launch_row, ctypes.c_void_p).value
        if self._uses_printf or run is None:
            return None
        device = self._device
        stream = NativeStream(device.lock.acquire, device.lock.release, self._is_ready,
                              self.finish, device.constants)  # fmt: skip
        return NativeRow(run, self._memory, len(self._packed), self._positions, self._fail,
                         tuple(self._params), stream,
                         _ALIGNMENT if self._needs_alignment else 1)  # fmt: skip

    def _is_ready(self) -> bool:
        device = self._device
        if not device.is_entered:
            device.enter()
        return not self._has_limit()

    def _has_limit(self) -> bool:
        """Whether the time of a run is limited, so that its beginning has to be known."""
        return bool(settings.given("timeout", self._device.timer.timeout))

    def finish(self, written: Sequence[LaunchBuffer]) -> CudaEvent:
        """See `Repeater.finish`."""
        event = CudaEvent(self._device, self._name, self._uses_printf, written)
        for buffer in written:
            buffer.used_by(event)
        return event

    def __call__(self, addresses: Sequence[int], written: Sequence[LaunchBuffer]) -> CudaEvent:
        """Add the launches to the stream."""
        device = self._device
        enqueue: Callable[[], None] = self._enqueue
        with device.lock:
            if not device.is_entered:
                device.enter()
            if self._needs_alignment and not is_aligned(addresses):
                enqueue = self._unaligned.prepared(device, addresses)
            else:
                self.write(addresses)
            if self._has_limit():
                return record_event(device, self._name, self._uses_printf, written, enqueue)
            enqueue()
            return CudaEvent(device, self._name, self._uses_printf, written)

    def write(self, addresses: Sequence[int]) -> None:
        """See `Repeater.write`."""
        words, constants = self._words, self._device.constants
        for index, address in self._positions:
            words[index] = addresses[address]
        for index, memory in self._params:
            words[index] = constants[bytes(memory)]

    def is_separable(self, addresses: Sequence[int]) -> bool:
        """See `Repeater.is_separable`."""
        return not self._needs_alignment or is_aligned(addresses)

    def separate(self) -> Iterator[SeparateLaunch]:
        """See `Repeater.separate`."""
        launches, _, params = self._given
        for k, launch in enumerate(launches):
            rows = [row for row, each in enumerate(self._packed) if each.launch == k]
            if rows:  # one or several launches of the driver
                start = self._starts[rows[0]] + _HEAD_WORDS
                words = self._words[start : start + len(launch.arguments.words)]
                numbers = [(position, memory) for n, position, memory in params if n == k]
                yield SeparateLaunch(launch, words, numbers, self._runner(launch, rows))

    def _runner(self, launch: Launch, rows: Sequence[int]) -> Callable[[], CudaEvent]:
        device, name, uses_printf = self._device, launch.program.name, launch.program.uses_printf
        timer, lock, words = device.timer, device.lock, self._words
        enqueue, first, count = self._enqueue, rows[0], len(rows)
        started, ended = self._starts[first] + _STARTED, self._starts[rows[-1]] + _ENDED

        def run() -> CudaEvent:
            with lock:
                if not device.is_entered:
                    device.enter()
                events = timer.acquire()
                if events is None:
                    enqueue(first, count)
                    return CudaEvent(device, name, uses_printf, ())
                event = TimedEvent(device, name, uses_printf, (), events)
                words[started], words[ended] = events  # which the call of C records
                try:
                    enqueue(first, count)
                finally:
                    words[started] = words[ended] = 0
                return event

        return run

    def _enqueue(self, first: int = 0, count: int | None = None) -> None:
        """Add a number of launches of the driver to the stream, or all."""
        count, status = len(self._packed) if count is None else count, self._status
        pairs = ctypes.byref(self._pairs, first * _PAIR_WORDS * _WORD)
        done = self._device.native.launch_row(pairs, count, ctypes.byref(status))
        if done < count:
            self._fail(bytes(status), first + done)

    def _fail(self, outcome: bytes, index: int) -> NoReturn:
        status = ctypes.c_int.from_buffer_copy(outcome).value
        device = self._device
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
    memory = program.pack(stream, 0, 0, threadgroup_bytes, *(arguments.words or (0,)))
    return [_PackedLaunch(k, shape, memory) for shape in shapes]


def _known_words(k: int, launch: Launch, passed: set[tuple[int, int]]) -> list[int]:
    """The words that all runs have in common; 0 for the others."""
    words = launch.arguments.words
    return [0 if (k, position) in passed else word for position, word in enumerate(words)]


def _address_of(memory: bytes) -> int:
    address = ctypes.cast(ctypes.c_char_p(memory), ctypes.c_void_p).value
    assert address is not None
    return address
