"""Hooks that see launches: functions that replace those of kernels and graphs.

While there is no profile, nothing of it is called. Launches of arrays are seen
by the recorder of their device, which native functions call for a plan that has run before.
"""

from __future__ import annotations

import functools
import itertools
import sys
import threading
import time
from collections.abc import Callable, Sequence
from threading import get_ident
from types import CodeType
from typing import Any, NamedTuple

from metalloid.arrays.execution import evaluate as evaluation
from metalloid.arrays.ir.node import BUFFER, Node
from metalloid.compiler.toolchain import progress
from metalloid.kernels.kernel import Kernel, mark_used
from metalloid.kernels.kernel_calls import observe_calls
from metalloid.profiler.callers import calling_instruction
from metalloid.profiler.counting import Counter
from metalloid.profiler.records import Counts
from metalloid.runtime.devices import registry
from metalloid.runtime.devices.device import Device
from metalloid.runtime.graph import Graph, observe_graphs
from metalloid.runtime.launch.event import Event, FinishedEvent
from metalloid.runtime.launch.launches import (
    Arguments,
    Launch,
    Launcher,
    LaunchRecorder,
    SeparateLaunch,
)
from metalloid.runtime.launch.program import Program, Size

_now = time.perf_counter_ns
_NUMBERS = frozenset((int, float, bool))


class RawEvaluation(NamedTuple):
    """An evaluation as it was seen, when it has ended."""

    number: int
    name: str
    code: CodeType
    instruction: int
    began: int
    ended: int
    counting: int
    thread: int


class RawLaunch(NamedTuple):
    """A launch as it was seen: what takes time to find out follows when the profile has ended.

    It has the number of its evaluation, or 0; one of an evaluation has no code.
    """

    name: str
    device: Device
    code: CodeType | None
    instruction: int
    threads: Any
    group: Any
    began: int
    ended: int
    event: Event | float
    evaluation: int
    counts: Counts | None
    thread: int


_FIELDS = len(RawLaunch._fields)
_DEVICE, _EVENT = map(RawLaunch._fields.index, ("device", "event"))
_READ_AFTER = 256 * _FIELDS  # fields of launches after which times are read
_MAX_UNREAD = 1024 * _FIELDS


class Hooks:
    """Sees launches, evaluations and compilations from `install` to `remove`.

    Parameters
    ----------
    counts : bool
        Whether to count what launches do.

    Attributes
    ----------
    launches, evaluations : list
        The fields of each `RawLaunch` and `RawEvaluation`, one after another: no objects that the
        garbage collector would look at again and again.
    compilations : list of (str, int, int)
        What was compiled, and when that began and ended.
    counting : list of (str, int, int, int)
        Kernels that were counted, when that began and ended, and in which thread.
    """

    def __init__(self, counts: bool) -> None:
        self.launches: list[Any] = []
        self.evaluations: list[Any] = []
        self._numbers = itertools.count(1)
        self.compilations: list[tuple[str, int, int]] = []
        self.counting: list[tuple[str, int, int, int]] = []
        self._counter = Counter() if counts else None
        self._calls: dict[Any, Counts | None] = {}
        self._frames: dict[Any, list[tuple[str, Size, Size, Any, Counts | None]]] = {}
        # By threads, as a look at thread-local attributes takes longer.
        self._calling: set[int] = set()
        self._current: dict[int, int] = {}  # numbers of evaluations
        self._spent: dict[int, int] = {}  # time to count in them
        self._lock = threading.Lock()
        #: The first field of `launches` whose event may not be read, and when to read more.
        self._unread, self._limit = 0, _READ_AFTER
        self._observed: dict[Device, tuple[Any, Any]] = {}

    def install(self) -> None:
        """Begin to look."""
        observe_calls(self._kernel_call)
        observe_graphs(self._graph_launch)
        for device in registry.opened():
            self._observe(device)
        evaluation.observe(self._evaluation())
        progress.observers.append(self._compiled)

    def remove(self) -> None:
        """End it."""
        progress.observers.remove(self._compiled)
        evaluation.observe(None)
        observe_calls(None)
        observe_graphs(None)
        for device, (recorder, before) in self._observed.items():
            if device.recording is recorder:
                device.recording = before
            if device.default_recorder is recorder:
                device.default_recorder = before

    def _observe(self, device: Device) -> None:
        with self._lock:
            if device not in self._observed:
                before = device.default_recorder
                recorder = _Recorder(self, device, is_alone=before is None)
                self._observed[device] = recorder, before
                device.default_recorder = recorder
                if device.recording is before:
                    device.recording = recorder

    def _compiled(self, subject: str, began: int, ended: int) -> None:
        if self._counter is None or self._counter.thread != threading.get_ident():
            self.compilations.append((subject, began, ended))

    # -- kernels

    def _kernel_call(self, original: Callable[..., Event]) -> Callable[..., Event]:
        calling, current, launches = self._calling, self._current, self.launches
        calls, observed, has_counts = self._calls, self._observed, self._counter is not None

        def call(kernel: Kernel, *args: Any, **named: Any) -> Event:
            thread = get_ident()
            if thread in calling:  # another kernel's call has launched it
                return original(kernel, *args, **named)
            device = kernel.device
            if device not in observed:
                self._observe(device)
            threads, group = named.get("threads"), named.get("group_size")
            counts = None
            if has_counts:
                key = kernel, threads, group, *[a for a in args if a.__class__ in _NUMBERS]
                try:
                    counts = calls[key]
                except (KeyError, TypeError):
                    counts = self._count_call(kernel, args, named, key)
            code, instruction = calling_instruction(sys._getframe(1))
            calling.add(thread)
            began = _now()
            try:
                event: Event = original(kernel, *args, **named)
            finally:
                ended = _now()
                calling.discard(thread)
            result = event.seconds if event.__class__ is FinishedEvent else event
            launches.extend(
                (kernel.name, device, code, instruction, threads, group, began, ended, result,
                 current.get(thread, 0), counts, thread)
            )  # fmt: skip
            if len(launches) > self._limit:
                self._read_times()
            return event

        return functools.update_wrapper(call, original)

    def _count_call(
        self, kernel: Kernel, args: Sequence[Any], named: dict[str, Any], key: Any
    ) -> Counts | None:
        """Count a launch that has not run; its errors are those of the launch that follows."""
        counts: Counts | None = None
        options = ("threads", "group_size", "wait", "timeout", "check")
        try:
            given = {name: value for name, value in named.items() if name not in options}
            launch = kernel.sized(named["threads"], named.get("group_size"))(args, given)
            counts = self.count(kernel.device, *launch)
            if not given:
                self._calls[key] = counts
        except Exception:  # the launch raises it
            return None
        return counts

    def count(
        self, device: Device, program: Program, arguments: Arguments, grid: Size, group: Size
    ) -> Counts | None:
        """The counts of a launch; None if they are not asked for or cannot be known."""
        if self._counter is None:
            return None
        thread, calling, began = get_ident(), self._calling, _now()
        is_in_call = thread in calling
        calling.add(thread)  # waiting may launch other kernels
        try:
            counts = self._counter.count(device, program, arguments, grid, group)
        finally:
            if not is_in_call:
                calling.discard(thread)
        ended = _now()
        self._spent[thread] = self._spent.get(thread, 0) + ended - began
        self.counting.append((program.signature.name, began, ended, thread))
        return counts

    def _graph_launch(self, original: Callable[..., Event]) -> Callable[..., Event]:
        def launch(graph: Graph, wait: bool = False) -> Event:
            device, caller = graph.device, calling_instruction(sys._getframe(1))
            self._observe(device)
            if type(device).prepare is Launcher.prepare:
                return original(graph, wait, functools.partial(self._run_graph, graph, caller))
            began = _now()
            event = original(graph, wait)
            name = f"graph of {len(graph)} launches"
            self._add(name, device, caller, (len(graph), 1, 1), None, began, event, None)
            return event

        return functools.update_wrapper(launch, Graph.launch)

    def _run_graph(
        self, graph: Graph, caller: tuple[CodeType, int], launches: Sequence[Launch]
    ) -> Event:
        for each in launches:
            counts = self.count(graph.device, *each)
            began = _now()
            event = graph.device.launch(*each, wait=False)
            self._add(
                each.program.signature.name, graph.device, caller, each.grid, each.group, began,
                event, counts,
            )  # fmt: skip
        return event

    def _add(
        self, name: str, device: Device, caller: tuple[CodeType, int], threads: Any, group: Any,
        began: int, event: Event | float, counts: Counts | None,
    ) -> None:  # fmt: skip
        thread = get_ident()
        self.launches.extend(
            (name, device, *caller, threads, group, began, _now(), event,
             self._current.get(thread, 0), counts, thread)
        )  # fmt: skip

    def _read_times(self) -> None:
        """Replace the events of launches that have ended by their times.

        So events and the memory of launches are used again, which takes less time than new ones.
        """
        if not self._lock.acquire(blocking=False):
            return  # another thread does
        try:
            launches, end = self.launches, len(self.launches)
            self._limit = end + _READ_AFTER
            positions: dict[Device, list[int]] = {}
            for k in range(self._unread + _EVENT, end, _FIELDS):
                if launches[k].__class__ is not float:
                    positions.setdefault(launches[k - _EVENT + _DEVICE], []).append(k)
            unread = end
            for device, indices in positions.items():
                times = device.read_times([launches[k] for k in indices])
                for k, seconds in zip(indices, times, strict=False):
                    if seconds is not None:
                        launches[k] = seconds
                    else:
                        unread = min(unread, k - _EVENT)
            self._unread = max(unread, end - _MAX_UNREAD)
        finally:
            self._lock.release()

    # -- arrays

    def _evaluation(self) -> Callable[[Sequence[Node], bool], Sequence[Node]]:
        evaluate, evaluations, numbers = evaluation.evaluate, self.evaluations, self._numbers
        observed, current, spent = self._observed, self._current, self._spent

        def observe(roots: Sequence[Node], wait: bool) -> Sequence[Node]:
            thread = get_ident()
            if thread in current or (len(roots) == 1 and roots[0].kind is BUFFER):
                return evaluate(roots, wait, True)
            for each in roots:
                if each.device not in observed:
                    self._observe(each.device)
            code, instruction = calling_instruction(sys._getframe(2))
            number = current[thread] = next(numbers)
            spent.pop(thread, 0)
            began = _now()
            try:
                return evaluate(roots, wait, True)
            finally:
                ended = _now()
                del current[thread]
                evaluations.extend(
                    (number, "evaluation", code, instruction, began, ended, spent.get(thread, 0),
                     thread)
                )  # fmt: skip

        return observe

    def runs_of_frames(self, device: Device) -> Callable[..., None]:
        """A function that runs the launches of a frame, one by one."""
        frames, current, launches = self._frames, self._current, self.launches

        def run_frame(frame: Any, addresses: Sequence[int] | None = None) -> None:
            repeater, thread = frame.run, get_ident()
            if addresses is not None:
                repeater.write(addresses)
            try:
                jobs = frames[repeater]
            except KeyError:
                jobs = frames[repeater] = [
                    (each.launch.program.signature.name, each.launch.grid, each.launch.group,
                     each.run, self._count_job(device, each))
                    for each in repeater.separate()
                ]  # fmt: skip
            code, instruction, outer = None, 0, current.get(thread)
            number = outer or next(self._numbers)
            if not outer:
                code, instruction = calling_instruction(sys._getframe(1))
            first = began = _now()
            try:
                for name, grid, group, run, counts in jobs:
                    result = run()
                    ended = _now()
                    launches.extend(
                        (name, device, code, instruction, grid, group, began, ended, result,
                         number, counts, thread)
                    )  # fmt: skip
                    began = ended
            finally:
                if len(launches) > self._limit:
                    self._read_times()
                if not outer:
                    self.evaluations.extend(
                        (number, "compiled function", code, instruction, first, began, 0, thread)
                    )

        return run_frame

    def _count_job(self, device: Device, separate: SeparateLaunch) -> Counts | None:
        """Count a launch of a frame, whose memory is that of the words of its job."""
        launch, arguments = separate.launch, Arguments(0)
        if launch.program.origin is None:  # nothing to count, such as a call of BLAS
            return None
        arguments.words = list(separate.words)
        numbers = {position: bytes(memory) for position, memory in separate.params}
        arguments.constants = list({**dict(launch.arguments.constants), **numbers}.items())
        arguments.threadgroup_bytes = launch.arguments.threadgroup_bytes
        arguments.extents = launch.arguments.extents
        return self.count(device, launch.program, arguments, launch.grid, launch.group)

    def launch(
        self, device: Device, program: Program, arguments: Arguments, grid: Size, group: Size
    ) -> Event | None:
        """Run a launch of arrays; None if it is one of a kernel, whose call is seen already."""
        if get_ident() in self._calling:
            return None
        counts = self.count(device, program, arguments, grid, group)
        caller = calling_instruction(sys._getframe(1))
        began = _now()
        event = device.launch(program, arguments, grid, group, wait=device.memory == "host")
        self._add(program.signature.name, device, caller, grid, group, began, event, counts)
        if arguments.buffers:
            mark_used(program, arguments, event)
        return event


class _Recorder(LaunchRecorder):
    """The recorder of a device while there is a profile.

    Parameters
    ----------
    is_alone : bool
        Whether launches may take the fast paths: no other recorder keeps them off.
    """

    def __init__(self, hooks: Hooks, device: Device, is_alone: bool) -> None:
        self._hooks, self._device, self.observes = hooks, device, is_alone
        self.run_frame = hooks.runs_of_frames(device) if is_alone else None

    def record(self, program: Any, arguments: Arguments, grid: Size, group: Size) -> Event | None:
        """See `LaunchRecorder.record`."""
        return self._hooks.launch(self._device, program, arguments, grid, group)

    def refuse(self, name: str) -> None:
        """See `LaunchRecorder.refuse`: nothing is refused."""
