"""The context manager `profile`: what the launches and evaluations of a block take."""

from __future__ import annotations

import html
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, TypeVar

from metalloid.errors import ArgumentError, MetalloidError
from metalloid.profiler import perfetto, plot
from metalloid.profiler.callers import line_of
from metalloid.profiler.hooks import Hooks, RawEvaluation, RawLaunch
from metalloid.profiler.lines import LineProfile, line_profile
from metalloid.profiler.records import (
    CompilationRecord,
    CountingRecord,
    EvaluationRecord,
    LaunchRecord,
)
from metalloid.profiler.results import Results
from metalloid.profiler.table import profile_text
from metalloid.runtime.devices.device import Device
from metalloid.runtime.graph import Recorded
from metalloid.runtime.launch.event import Event
from metalloid.runtime.launch.program import Size

_active = threading.Lock()
R = TypeVar("R", RawEvaluation, RawLaunch)


class profile(Results):
    """Measure what the launches and evaluations of a block take.

    ``print(p)`` is a table of kernels by the line of the program that launches them, with times on
    the host and on the device, bytes, operations and the share of the roofline: of the memory's or
    the arithmetic's limit of the machine, which ``metalloid bench`` measures (otherwise the first
    profile that needs it does).

    Bytes and operations are counted from the IR: the first launch of a kernel with a certain grid
    and numbers runs once more before, on copies of its memory, by code that counts. Launches with
    textures, with pointers in structs, or of more than 1 GiB are not counted.

    Parameters
    ----------
    counts : bool
        Whether to count bytes and operations.

    Attributes
    ----------
    launches : list of LaunchRecord
    evaluations : list of EvaluationRecord
    compilations : list of CompilationRecord
    counting : list of CountingRecord
    seconds : float
        Of the block.

    Examples
    --------
    >>> import metalloid as mtl, numpy as np
    >>> lib = mtl.library('''
    ... kernel void scale(device float* x, constant float& by, uint i [[thread_position_in_grid]])
    ... { x[i] *= by; }''')
    >>> x = np.ones(1000, np.float32)
    >>> with mtl.profile() as p:
    ...     for _ in range(3):
    ...         event = lib.scale(x, 2.0, threads=1000)
    >>> [launch.kernel for launch in p.launches]
    ['scale', 'scale', 'scale']
    >>> p.launches[0].counts.total.operations
    1000
    """

    def __init__(self, counts: bool = True) -> None:
        super().__init__()
        self._hooks = Hooks(counts)
        self._began = self._ended = 0

    def __enter__(self) -> profile:
        if self._began:
            raise ArgumentError("[profile] was used already. Make another one.")
        if not _active.acquire(blocking=False):
            raise ArgumentError("[profile] another profile is active. End it first.")
        self._began = time.perf_counter_ns()
        self._hooks.install()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None
    ) -> None:
        self._ended = time.perf_counter_ns()
        self._hooks.remove()
        _active.release()
        self._resolve()

    @property
    def seconds(self) -> float:
        """Seconds from the beginning to the end of the block, or to now."""
        return self._since(self._ended or time.perf_counter_ns())

    def _since(self, moment: int) -> float:
        return (moment - self._began) / 1e9

    def _resolve(self) -> None:
        """Make records of what was seen; waits for launches that are still running."""
        hooks = self._hooks
        lines: dict[int, tuple[int | None, str, int]] = {}  # of evaluations, by number
        for each in _records(RawEvaluation, hooks.evaluations):
            file, line = each.code.co_filename, line_of(each.code, each.instruction)
            lines[each.number] = len(self.evaluations), file, line
            self.evaluations.append(
                EvaluationRecord(
                    each.name, file, line, self._since(each.began),
                    (each.ended - each.began - each.counting) / 1e9, each.counting / 1e9,
                    each.thread,
                )
            )  # fmt: skip
        self.compilations += [
            CompilationRecord(subject, self._since(began), (ended - began) / 1e9)
            for subject, began, ended in hooks.compilations
        ]
        self.counting += [
            CountingRecord(kernel, self._since(began), (ended - began) / 1e9, thread)
            for kernel, began, ended, thread in hooks.counting
        ]
        free: dict[Device, float] = {}  # when the launches of a device so far have ended
        for launch in _records(RawLaunch, hooks.launches):
            if not isinstance(launch.event, Recorded):
                index, file, line = lines.get(launch.evaluation, (None, "", 0))
                if launch.code is not None:
                    file = launch.code.co_filename
                    line = line_of(launch.code, launch.instruction)
                self.launches.append(self._record(launch, free, index, file, line))
                self._devices[launch.device.name] = launch.device
        self._hooks = Hooks(counts=False)

    def _record(
        self, launch: RawLaunch, free: dict[Device, float], evaluation: int | None, file: str,
        line: int,
    ) -> LaunchRecord:  # fmt: skip
        ended, (seconds, failed) = self._since(launch.ended), _seconds(launch.event)
        began = self._since(launch.began)
        # A launch that had ended with its call ended last in it; others run one after another.
        started = max(began, free.get(launch.device, 0.0))
        if started + seconds <= ended:
            started = ended - seconds
        free[launch.device] = started + seconds
        return LaunchRecord(
            launch.name, launch.device.name, file, line, _size(launch.threads),
            _size(launch.group) if launch.group else None, began, ended - began, started, seconds,
            evaluation, launch.thread, launch.counts, failed,
        )  # fmt: skip

    def lines(self, kernel: str | None = None) -> LineProfile:
        """Work of the launches of a kernel, by line of its MSL text.

        Parameters
        ----------
        kernel : str, optional
            Its name; by default the kernel that took most time.

        Returns
        -------
        LineProfile

        Raises
        ------
        ArgumentError
            If there is no counted launch of it.

        Examples
        --------
        >>> import metalloid as mtl, numpy as np
        >>> lib = mtl.library('''kernel void twice(device float* x,
        ...                                      uint i [[thread_position_in_grid]]) {
        ...     x[i] *= 2;
        ... }''')
        >>> with mtl.profile() as p:
        ...     event = lib.twice(np.ones(8, np.float32), threads=8)
        >>> {row.line: row.cost.operations for row in p.lines("twice") if row.line}
        {3: 8}
        """
        return line_profile(self.launches, kernel)

    def to_perfetto(self, path: str | os.PathLike[str]) -> None:
        """Write a trace that https://ui.perfetto.dev and chrome://tracing open.

        Parameters
        ----------
        path : path-like
            A ``.json`` file.

        Examples
        --------
        >>> import metalloid as mtl, tempfile, json, pathlib
        >>> with mtl.profile() as p:
        ...     mtl.eval(mtl.arange(8.0) + 1)
        >>> path = pathlib.Path(tempfile.mkdtemp(), "trace.json")
        >>> p.to_perfetto(path)
        >>> any(event["ph"] == "X" for event in json.loads(path.read_text())["traceEvents"])
        True
        """
        perfetto.write(self, path)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the timeline, and the kernels under the roofline.

        Parameters
        ----------
        path : path-like, optional
            An image file to write.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        MetalloidError
            If matplotlib is not installed (``pip install 'metalloid[plot]'``), or cannot write
            files of this kind.
        """
        return plot.draw(self, path)

    def __str__(self) -> str:
        return profile_text(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def __repr__(self) -> str:
        return (
            f"<profile: {len(self.launches)} launches, {len(self.evaluations)} evaluations, "
            f"{len(self.compilations)} compilations in {self.seconds:.3g} s>"
        )


def _records(type_: type[R], fields: list[Any]) -> Iterator[R]:
    """The records whose fields stand in a list one after another."""
    make: Callable[..., R] = type_
    return itertools.starmap(make, zip(*[iter(fields)] * len(type_._fields), strict=True))


def _seconds(event: Event | float) -> tuple[float, bool]:
    """The time that the device spent on a launch, and whether it failed."""
    if isinstance(event, float):
        return event, False
    try:
        return event.seconds, False
    except MetalloidError:
        return 0.0, True


def _size(threads: Any) -> Size:
    extents = (threads,) if isinstance(threads, int) else tuple(map(int, threads))
    x, y, z = (*extents, 1, 1)[:3]
    return (x, y, z)
