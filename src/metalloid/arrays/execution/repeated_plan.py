"""Plans whose launches are bound once: each run passes addresses only."""

from __future__ import annotations

import ctypes
import functools
import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

from metalloid.arrays.codegen.params import Packer
from metalloid.arrays.execution.executable import ExecutablePlan, Launch, LaunchedCall
from metalloid.arrays.execution.small_results import add_run, indices_of_small
from metalloid.arrays.ir.memory import Memory, bucket_size, pool_of
from metalloid.arrays.ir.native import library
from metalloid.arrays.ir.node import Node
from metalloid.runtime.launch.event import Event
from metalloid.runtime.launch.launches import LaunchBuffer, Launcher, NativeRow, Repeater

#: More memory for intermediate values is taken from the pool for each run.
MAX_SCRATCH_BYTES = 2**20
#: Of leaves, results and scratch memory, for native functions (native/plan_run.h).
MAX_ADDRESSES = 1024
#: Types of numbers in values.h, by format of `struct`.
_NATIVE_FORMATS = {"f": "f", "d": "f", "i": "i", "q": "i", "I": "u", "Q": "u"}


class Slots(NamedTuple):
    """Memory for intermediate values.

    Attributes
    ----------
    slot_of : dict
        By source, the index of its slot.
    sizes : list of int
        In bytes, of the slots.
    """

    slot_of: dict[int, int]
    sizes: list[int]


def assign_slots(plan: ExecutablePlan, results: Sequence[int]) -> Slots:
    """Assign intermediate values to slots; those that are alive at different steps share one.

    A value takes the smallest free slot that is large enough, else the largest one, which grows.
    """
    slots = Slots({}, [])
    free: list[int] = []
    for step, allocate, release in zip(plan.steps, plan.allocate, plan.release, strict=True):
        for source in (*allocate, *(step.outs if isinstance(step, LaunchedCall) else ())):
            if source in results:
                continue
            nbytes = plan.sizes[source]
            if free:
                slot = min(free, key=lambda k: (slots.sizes[k] < nbytes,
                                                abs(slots.sizes[k] - nbytes)))  # fmt: skip
                free.remove(slot)
                slots.sizes[slot] = max(slots.sizes[slot], nbytes)
            else:
                slot = len(slots.sizes)
                slots.sizes.append(nbytes)
            slots.slot_of[source] = slot
        free += [slots.slot_of[source] for source in release if source in slots.slot_of]
    return slots


class RepeatedPlan:
    """A plan of launches.

    Offsets of leaves are part of the addresses that it passes.

    Each run takes a frame, which holds intermediate values and parameters, so that several threads
    can run it at a time.

    Parameters
    ----------
    plan : ExecutablePlan
    results : sequence of int
        Sources that each run allocates.
    has_numbers : bool
        Whether constants differ between runs.
    counters : mapping
        The offsets of leaves that count (IOTA) and have no memory. Runs do not pass them.

    Attributes
    ----------
    results : sequence of int
    overwritten : dict
        By source that each run overwrites, the index of the leaf among those that it passes.
    alignments : dict
        Of passed leaves for which kernels rely on one, in bytes.
    """

    def __init__(self, plan: ExecutablePlan, results: Sequence[int], has_numbers: bool,
                 counters: Mapping[int, int]) -> None:  # fmt: skip
        self._plan, self.results, self._has_numbers = plan, results, has_numbers
        self._sizes = tuple(bucket_size(plan.sizes[source]) for source in results)
        self._slots = assign_slots(plan, results)
        self._passed_sizes: tuple[int, ...] = ()
        if sum(self._slots.sizes) > MAX_SCRATCH_BYTES:
            self._passed_sizes = tuple(map(bucket_size, self._slots.sizes))
        self._device = plan.device
        self._counters = counters
        self._small = indices_of_small(plan.device, self._sizes)
        self.alignments: dict[int, int] = {}
        for step in plan.steps:
            if isinstance(step, Launch):
                for leaf, nbytes in step.alignments:
                    index = self._passed(leaf)
                    self.alignments[index] = max(self.alignments.get(index, 1), nbytes)
        self.overwritten = {s: self._passed(leaf) for s, leaf in plan.overwritten.items()}
        self._frames: list[Frame] = []
        self._row: NativeRow | None = None
        self._leaf_count = 0

    @classmethod
    def of(cls, plan: ExecutablePlan, results: Sequence[int], has_numbers: bool,
           counters: Mapping[int, int] = MappingProxyType({})) -> RepeatedPlan | None:  # fmt: skip
        """The form of a plan for repeated runs, if it has one."""
        are_launched = (isinstance(step, Launch | LaunchedCall) for step in plan.steps)
        is_simple = all(are_launched) and not plan.empty
        is_simple &= type(plan.device).repeater is not Launcher.repeater
        return cls(plan, results, has_numbers, counters) if is_simple else None

    def _passed(self, leaf: int) -> int:
        """The index of a leaf among those that runs pass."""
        return leaf - sum(counter < leaf for counter in self._counters)

    def __call__(self, leaves: Sequence[Memory], nodes: Sequence[Node], wait: bool,
                 offsets: Sequence[int] | None = None) -> list[Memory] | None:  # fmt: skip
        """Run it; return the memory of the results.

        Offsets of leaves are in bytes. None if the device records launches instead, or has no such
        runs.
        """
        device = self._device
        recorder = device.recording
        run_frame = None if recorder is None else recorder.run_frame
        addresses = [memory.address for memory in leaves]
        if offsets is not None and any(offsets):
            if recorder is not None:  # an observer reads the memory from an address on
                return None
            addresses = list(map(operator.add, addresses, offsets))
        if recorder is not None and run_frame is None:
            return None
        if any(addresses[leaf] % nbytes for leaf, nbytes in self.alignments.items()):
            return self._for_unaligned(leaves, nodes, wait, offsets)
        if device.memory == "own" and not all(memory.is_own for memory in leaves):
            return None  # the library that owns it is to know of the launch
        results = list(map(pool_of(device).memory, self._sizes))
        buffers = [memory.bound for memory in results]
        addresses += [buffer.address for buffer in buffers]
        # Free again after the launches are added to the stream, which orders later ones after them.
        scratch = list(map(pool_of(device).memory, self._passed_sizes))
        addresses += [memory.address for memory in scratch]
        passed = [*leaves, *results, *scratch]
        written = [*buffers, *(leaves[k].bound for k in self.overwritten.values())]
        frame = self._frames.pop() if self._frames else self._frame(len(leaves), passed, nodes)
        if frame.run is None:
            return None
        if run_frame is not None and not frame.run.is_separable(addresses):
            self._frames.append(frame)
            return None
        if self._has_numbers:
            frame.pack(nodes)
        event: Event | None = None
        if run_frame is not None:
            run_frame(frame, addresses)
            event = frame.run.finish(written)
        else:
            event = frame.run(addresses, written)
        self._frames.append(frame)
        if event is not None:
            for buffer in written:
                buffer.used_by(event)
            if wait:
                event.wait()
        if self._small:
            add_run(device, [results[k] for k in self._small])
        return results

    @functools.cached_property
    def _for_unaligned(self) -> RepeatedPlan:
        """The plan for leaves without an alignment, such as slices."""
        steps = (s.for_unaligned() if isinstance(s, Launch) else s for s in self._plan.steps)
        plan = replace(self._plan, steps=tuple(steps))
        return RepeatedPlan(plan, self.results, self._has_numbers, self._counters)

    def alignment_of(self, leaf: int) -> int:
        """The alignment on which kernels rely, in bytes; for native functions."""
        return max(self.alignments.get(leaf, 1), 1 if self._row is None else self._row.alignment)

    def native(self, pack: Callable[[Frame, Any], None]) -> Any:
        """The plan for native functions (native/plan_run.h); None if it has no such form yet.

        Parameters
        ----------
        pack : callable
            Writes the parameters of a frame for the numbers of a run.
        """
        functions, row, address = library(), self._row, pool_of(self._device).address
        if functions is None or row is None or not address:
            return None
        counts = self._leaf_count, len(self.results), len(self._passed_sizes)
        if sum(counts) > MAX_ADDRESSES:
            return None
        numbers = row.run, address, *counts, row.launches, len(row.words)
        head = struct.pack(f"={7 + 2 * len(row.words)}Q", *numbers, *chain.from_iterable(row.words))
        sizes = self._sizes + self._passed_sizes
        stream = row.stream
        if stream is not None:
            stream = stream._replace(finish=functools.partial(self._finish, stream.finish))
        items = head, vars(self._device), sizes, self._frames, row.fail, pack, stream
        return functions.mtl_new_plan(ctypes.py_object(items))

    def _finish(self, finish: Callable[[Sequence[LaunchBuffer]], object],
                memories: Sequence[Memory]) -> None:  # fmt: skip
        """Record that the launches of a run write to its results, and to leaves after those."""
        finish([memory.bound for memory in memories])
        if self._small:
            add_run(self._device, [memories[k] for k in self._small])

    def _frame(self, leaf_count: int, memories: Sequence[Memory],
               nodes: Sequence[Node]) -> Frame:  # fmt: skip
        sources, (slot_of, sizes) = self._plan.sources, self._slots
        counters = self._counters
        passed = [
            None if source.leaf is None or source.leaf in counters else self._passed(source.leaf)
            for source in sources
        ]
        for k, source in enumerate(self.results):
            passed[source] = leaf_count + k
        if self._passed_sizes:
            for source, slot in slot_of.items():
                passed[source] = leaf_count + len(self.results) + slot
            sizes = []
        offsets = [counters.get(k, 0) for k in range(leaf_count + len(counters))]
        frame = Frame(self._plan, passed, memories, Slots(slot_of, sizes), offsets, nodes)
        if frame.run is not None and frame.run.native is not None:
            self._row, self._leaf_count = frame.run.native, leaf_count
            frame.jobs, frame.params = self._row.jobs, self._row.params
            frame.numbers = frame.native_numbers()
        return frame


class Frame:
    """Memory of one run at a time, and its launches.

    Parameters
    ----------
    plan : ExecutablePlan
    passed : sequence of int or None
        By source, the index of its address among those that each run passes; None for those that
        the frame holds.
    memories : sequence of Memory
        Of the first run.
    slots : Slots
        Memory that the frame holds.
    offsets : sequence of int
        Of all leaves.
    nodes : sequence of Node

    Attributes
    ----------
    run : Repeater or None
    jobs, params
        Those of the repeater, for native functions (`NativeRow`).
    numbers : bytes or None
        Where native functions write the constants (`struct number` of native/evaluation.c); None if
        Python has to.
    """

    jobs: bytearray | None = None
    params: tuple[tuple[int, bytearray], ...] = ()
    numbers: bytes | None = None

    def __init__(self, plan: ExecutablePlan, passed: Sequence[int | None],
                 memories: Sequence[Memory], slots: Slots, offsets: Sequence[int],
                 nodes: Sequence[Node]) -> None:  # fmt: skip
        self._scratch = [Memory(plan.device, size) for size in slots.sizes]
        held = slots.slot_of
        bound = [
            memories[index] if index is not None else self._scratch[held[source]] if source in held
            else None
            for source, index in enumerate(passed)
        ]  # fmt: skip
        self._offsets = offsets
        self._packed: list[tuple[Packer, bytearray]] = []
        params: list[tuple[int, int, bytearray]] = []
        words: list[tuple[int, int, int]] = []
        launches = []
        for k, step in enumerate(plan.steps):
            if isinstance(step, LaunchedCall):
                launches.append(step.bind(bound))
                words += [(k, position, index) for position, source in enumerate(step.sources)
                          if (index := passed[source]) is not None]  # fmt: skip
                continue
            assert isinstance(step, Launch)
            packer = step.packer
            packed = None if packer is None else packer(self._offsets, nodes)
            launch = step.bind(bound, packed)
            launches.append(launch)
            parameters = launch.program.signature.arguments
            if packer is not None and packed is not None:
                params.append((k, parameters[-1].position, packed))
                if not packer.is_constant:
                    self._packed.append((packer, packed))
            for source, parameter in zip(step.rendered.buffers, parameters, strict=False):
                index = passed[source]
                if index is not None:
                    words.append((k, parameter.position, index))
            # The frame holds what the words point to, but not the memory of the first run.
            launch.arguments.buffers.clear()
            launch.arguments.keep_alive.clear()
        self._params = params
        self.run: Repeater | None = plan.device.repeater(launches, words, params)

    def pack(self, nodes: Sequence[Node]) -> None:
        """Write the parameters for other numbers."""
        for packer, memory in self._packed:
            packer.pack_into(memory, self._offsets, nodes)

    def native_numbers(self) -> bytes | None:
        """The value of `numbers`."""
        packed = b""
        for packer, memory in self._packed:
            address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
            for offset, format_, index in packer.numbers:
                if format_ not in _NATIVE_FORMATS:
                    return None
                kind = ord(_NATIVE_FORMATS[format_])
                size = struct.calcsize(f"={format_}")
                packed += struct.pack("=Q2IQ", address + offset, kind, size, index)
        return packed
