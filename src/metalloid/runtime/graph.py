"""Graphs: launches that are recorded once and run repeatedly."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from metalloid.errors import ArgumentError, LaunchError
from metalloid.runtime.devices.device import Device
from metalloid.runtime.devices.registry import get_device
from metalloid.runtime.launch.event import Event, FinishedEvent
from metalloid.runtime.launch.launches import (
    Arguments,
    Launch,
    LaunchBuffer,
    buffers_of,
    clear_seen_failures,
    note_first_writes,
)
from metalloid.runtime.launch.program import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Graph:
    """A recorded sequence of launches, which is checked and bound once.

    Inside ``with graph:`` launches of this thread on the device are recorded instead of run.
    `launch` runs all of them in order, with the same buffers and the same numbers. On an NVIDIA GPU
    it is a CUDA graph, which needs one driver call for any number of launches.

    Parameters
    ----------
    device : str or Device, optional
        By default the default device.

    Examples
    --------
    >>> import metalloid as mtl, numpy as np
    >>> lib = mtl.library('''
    ... kernel void scale(device float* x, constant float& by, uint i [[thread_position_in_grid]])
    ... { x[i] *= by; }''')
    >>> x = mtl.Buffer(np.ones(4, np.float32))
    >>> graph = mtl.Graph()
    >>> with graph:
    ...     for by in (2.0, 5.0):
    ...         event = lib.scale(x, by, threads=4)
    >>> event = graph.launch()
    >>> event = graph.launch()
    >>> np.asarray(x).tolist()
    [100.0, 100.0, 100.0, 100.0]
    """

    observes: bool = False
    run_frame: Callable[..., object] | None = None

    def __init__(self, device: str | Device | None = None) -> None:
        self.device = get_device(device)
        self._launches: list[Launch] = []
        self._buffers: list[LaunchBuffer] = []
        self._replay: Callable[[], Event] | None = None
        self._thread = 0

    def __enter__(self) -> Graph:
        if self._replay is not None:
            raise LaunchError("[Graph] has already been recorded. Create another one.")
        if isinstance(self.device.recording, Graph):
            raise LaunchError(f"[Graph] another graph is being recorded on {self.device.name}.")
        self._thread = threading.get_ident()
        self.device.recording = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None
    ) -> None:
        self.device.recording = self.device.default_recorder
        try:
            if kind is None:
                self._replay = self.device.prepare(self._launches)
                self._buffers = buffers_of(self._launches)
        finally:
            if self._replay is None:  # recording failed
                self._launches.clear()

    def __len__(self) -> int:
        return len(self._launches)

    def record(self, program: Any, arguments: Arguments, grid: Size, group: Size) -> Event | None:
        """Record a launch; None if it comes from another thread than the recording one."""
        if threading.get_ident() != self._thread:
            return None
        if arguments.staged:
            raise ArgumentError(
                f"[{program.signature.name}] a graph on {self.device.name} can only use memory of "
                f"the device: pass metalloid.Buffer(x, device={self.device.name!r}), not host "
                "memory."
            )
        self._launches.append(Launch(program, arguments, grid, group))
        return Recorded(program.signature.name)

    def refuse(self, name: str) -> None:
        """Refuse work that is not a kernel launch, if it comes from the recording thread.

        Raises
        ------
        LaunchError
        """
        if threading.get_ident() == self._thread:
            raise LaunchError(
                f"[{name}] calls a library of the device, which a graph cannot record. Call it "
                "before recording, or choose kernels or the host: metalloid.config.products, "
                ".decompositions, .transforms."
            )

    def launch(self, wait: bool = False) -> Event:
        """Run the recorded launches in order.

        Parameters
        ----------
        wait : bool
            Whether to return only when all of them have ended.

        Returns
        -------
        Event
            Of all launches, or on devices without graphs of the last one.

        Raises
        ------
        LaunchError
            If nothing has been recorded.
        KernelFault
            If a kernel failed and `wait` is true.
        """
        return self._launch(wait)

    def _launch(
        self, wait: bool = False, run: Callable[[Sequence[Launch]], Event] | None = None
    ) -> Event:
        """See `launch`; a function that is given runs the launches and returns the event."""
        if self._replay is None:
            raise LaunchError("[Graph] nothing was recorded: make launches inside `with graph:`.")
        event: Event = FinishedEvent(0.0)
        if self._launches:
            event = run(self._launches) if run else self._replay()
        for buffer in self._buffers:
            buffer.used_by(event)
        for recorded in self._launches:
            note_first_writes(recorded.arguments)
        if any(buffer.failure for buffer in self._buffers):
            for recorded in self._launches:
                clear_seen_failures(recorded.program.signature, recorded.arguments)
        if wait:
            event.wait()
        return event

    def __repr__(self) -> str:
        return f"<Graph of {len(self)} launches on {self.device.name}>"


class Recorded(Event):
    """The event of a recorded launch, which has not run."""

    __slots__ = ("_kernel",)

    def __init__(self, kernel: str) -> None:
        self._kernel = kernel

    def _refuse(self) -> NoReturn:
        raise LaunchError(
            f"[{self._kernel}] was recorded in a graph and has not run: wait for Graph.launch()."
        )

    def wait(self, timeout: float | None = None) -> Event:
        """See `Event.wait`."""
        self._refuse()

    @property
    def done(self) -> bool:
        """See `Event.done`."""
        return False

    @property
    def seconds(self) -> float:
        """See `Event.seconds`."""
        self._refuse()


_launch = Graph.launch


def observe_graphs(
    observer: Callable[[Callable[..., Event]], Callable[..., Event]] | None,
) -> None:
    """Let an observer replace `Graph.launch` by a function; None ends it.

    It gets one that takes the graph, `wait`, and a function that runs the launches, or None.
    """
    graphs: Any = Graph
    graphs.launch = _launch if observer is None else observer(Graph._launch)
