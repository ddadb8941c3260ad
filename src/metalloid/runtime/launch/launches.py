"""What a launch is, and what a device does with one or several."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from metalloid.msl.signature import Signature
from metalloid.runtime.launch.event import Event
from metalloid.runtime.launch.failures import Failure
from metalloid.runtime.launch.program import Size

if TYPE_CHECKING:
    import numpy as np


class HostMirror(Protocol):
    """The host's copy of a buffer, where Python does not see the device's memory."""

    def to_device(self) -> None:
        """Copy to the device what Python may have written."""


class LaunchBuffer(Protocol):
    """What launches use of a `metalloid.Buffer`.

    Attributes
    ----------
    address, nbytes : int
    failure : Failure or None
        Of a launch that wrote to it; reads raise it.
    """

    address: int
    nbytes: int
    failure: Failure | None

    @property
    def host_copy(self) -> HostMirror | None:
        """The host's copy, where Python does not see the memory itself."""

    def used_by(self, event: Event) -> None:
        """Record the latest launch that uses this buffer."""


class LaunchRecorder(Protocol):
    """What takes the launches of a device instead of running them: a `metalloid.Graph`."""

    def record(self, program: Any, arguments: Arguments, grid: Size, group: Size) -> Event | None:
        """Keep a launch for later; None if it is to run at once."""

    def refuse(self, name: str) -> None:
        """Raise `LaunchError` for work that is no launch, if it would have to be recorded."""


class HostMemory(NamedTuple):
    """Memory of the host that a launch uses.

    Attributes
    ----------
    address, nbytes : int
    written : bool
        Whether the kernel may write to it.
    position : int
        Of the word that points to it; -1 if other memory does.
    """

    address: int
    nbytes: int
    written: bool
    position: int = -1


#: A limit that no launch reaches, as the runtimes take it.
NO_LIMIT = 2**64 - 1


def nanoseconds(seconds: float) -> int:
    """A time limit for `Arguments.limit_ns`."""
    return min(math.ceil(seconds * 1e9), NO_LIMIT) if math.isfinite(seconds) else NO_LIMIT


class Arguments:
    """What a launch binds to the parameters of a program.

    Attributes
    ----------
    words : list of int
        One per parameter of the kernel: an address, the offset of threadgroup memory, or 0 for ids.
    threadgroup_bytes : int
        Threadgroup memory the launch brings with it.
    keep : list
        Objects that must live until the launch has ended.
    buffers : list of Buffer
        Those the launch reads or writes; their contents are due when it has ended.
    host_memory : bool
        Whether it uses memory that Python can see without asking, so that it should have ended when
        the call returns.
    constants : list of (int, bytes)
        Numbers by the position of their word, where kernels do not use the memory of the host.
    staged : list of HostMemory
        What a device has to bring to its own memory, and back; empty where kernels use the memory
        of the host in place.
    pointers : list of int
        Addresses, in memory of `staged`, of pointers to memory of `staged`.
    limit_ns : int
        Nanoseconds that the launch may run; 0 if the settings say how long.
    """

    __slots__ = (
        "buffers", "constants", "host_memory", "keep", "limit_ns", "pointers", "staged",
        "threadgroup_bytes", "words",
    )  # fmt: skip

    def __init__(self, parameters: int) -> None:
        self.words = [0] * parameters
        self.threadgroup_bytes = 0
        self.keep: list[Any] = []
        self.buffers: list[LaunchBuffer] = []
        self.host_memory = False
        self.constants: list[tuple[int, bytes]] = []
        self.staged: list[HostMemory] = []
        self.pointers: list[int] = []
        self.limit_ns = 0


class Launch(NamedTuple):
    """A launch that has been checked and bound."""

    program: Any
    arguments: Arguments
    grid: Size
    group: Size


class PlainParameter(NamedTuple):
    """What a parameter takes that can be bound by itself: a buffer, an array, or a number.

    Attributes
    ----------
    position : int
        Of its word.
    bytes, least_bytes : int
        Of an element, and of a buffer at least.
    number : str
        "f", "i" or "u" if a number may stand for it, else "".
    number_bytes : int
        Of the number's type.
    dtype : numpy.dtype or None
        Of an array that needs no look at more than its bytes; None if there is none.
    writes : bool
        Whether the kernel may write to it.
    alignment : int
        Of an array's address.
    """

    position: int
    bytes: int
    least_bytes: int
    number: str
    number_bytes: int
    dtype: np.dtype[Any] | None
    writes: bool
    alignment: int


#: Of arguments, threads and the size of a threadgroup as a kernel is called with them: the event,
#: or None if that launch is not a usual one, and nothing was done.
FastLaunch = Callable[[tuple[Any, ...], Any, Any], Event | None]


def buffers_of(launches: Sequence[Launch]) -> list[LaunchBuffer]:
    """The buffers that some launches use, each once."""
    buffers = (buffer for launch in launches for buffer in launch.arguments.buffers)
    return list({id(buffer): buffer for buffer in buffers}.values())


def written_buffers(signature: Signature, arguments: Arguments) -> list[LaunchBuffer]:
    """The buffers a launch may write to: all but those that only read-only pointers lead to."""
    words = [(arguments.words[p.position], p.layout.read_only) for p in signature.buffers]

    def is_written(buffer: LaunchBuffer) -> bool:
        start, end = buffer.address, buffer.address + max(buffer.nbytes, 1)
        read_only = [is_read_only for word, is_read_only in words if start <= word < end]
        return not read_only or not all(read_only)

    return [buffer for buffer in arguments.buffers if is_written(buffer)]


def clear_seen_failures(signature: Signature, arguments: Arguments) -> None:
    """Forget failures that the program has seen, of buffers that another launch writes to."""
    for buffer in written_buffers(signature, arguments):
        if buffer.failure is not None and buffer.failure.is_seen:
            buffer.failure = None


class Launcher:
    """Who runs launches, in the order they were made."""

    #: What takes the launches instead, for now.
    recording: LaunchRecorder | None = None

    def launch(
        self, program: Any, arguments: Arguments, grid: Size, group: Size, wait: bool
    ) -> Event:
        """Run a program that `compile` made, and wait for its end if `wait`.

        Parameters
        ----------
        grid, group : tuple of int
            Threads of the grid and of a threadgroup, (x, y, z).

        Raises
        ------
        KernelFault
            If it failed and was waited for; otherwise the event's `wait` raises it.
        """
        raise NotImplementedError

    def quick(
        self, program: Any, parameters: Sequence[PlainParameter], sizes: Mapping[Any, Any]
    ) -> FastLaunch | None:
        """A function that binds and makes the usual launches of a program; None if there is none.

        Parameters
        ----------
        sizes : mapping
            Grid and threadgroup, by the threads and the size that calls have asked for before.
        """
        return None

    def launch_batch(self, launches: Sequence[Launch], wait: bool) -> Sequence[Event]:
        """Run programs one after another: `launch` for each, with less in between if possible.

        Raises
        ------
        KernelFault
            See `launch`. What stands behind the one that failed is not run, if that was waited for.
        """
        return [self.launch(*launch, wait) for launch in launches]

    def prepare(self, launches: Sequence[Launch]) -> Callable[[], Event]:
        """A function that makes these launches, again and again; gives the event of the last."""

        def replay() -> Event:
            return [self.launch(*launch, wait=False) for launch in launches][-1]

        return replay
