"""Launches: their arguments, and the interface of devices that run them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

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
    """The part of a `metalloid.Buffer` that launches use.

    Attributes
    ----------
    address, nbytes : int
    failure : Failure or None
        Of a launch that wrote to it; reads raise it.
    is_fresh : bool
        Whether nothing has written to it.
    is_zeroed : bool
        Whether it has zeros then.
    """

    address: int
    nbytes: int
    failure: Failure | None
    is_fresh: bool
    is_zeroed: bool

    @property
    def host_copy(self) -> HostMirror | None:
        """The host's copy, where Python does not see the memory itself."""

    def used_by(self, event: Event) -> None:
        """Record the latest launch that uses this buffer."""


class LaunchRecorder(Protocol):
    """Records the launches of a device instead of running them: a `metalloid.Graph`.

    Attributes
    ----------
    observes : bool
        Whether it only looks at launches, which native functions then run as usual.
    run_frame : callable or None
        Runs the launches of a frame of a `RepeatedPlan`, if they are separable; None if they are to
        be bound. It gets the frame, and the addresses of the run unless native functions have
        written them.
    """

    observes: bool = False
    run_frame: Callable[..., object] | None = None

    def record(self, program: Any, arguments: Arguments, grid: Size, group: Size) -> Event | None:
        """Record a launch; None if it is to run at once."""

    def refuse(self, name: str) -> None:
        """Raise `LaunchError` for work that cannot be recorded, while recording."""


class HostMemory(NamedTuple):
    """Memory of the host that a launch uses.

    Attributes
    ----------
    address, nbytes : int
    written : bool
        Whether the kernel may write to it.
    position : int
        Of the word that points to it; -1 if memory points to it.
    """

    address: int
    nbytes: int
    written: bool
    position: int = -1


#: Extent of memory whose size is unknown.
UNKNOWN_BYTES = 2**62
_UNKNOWN_POINTEE = UNKNOWN_BYTES // 2, UNKNOWN_BYTES
#: The time limit of launches without one, in nanoseconds.
NO_LIMIT = 2**64 - 1


def nanoseconds(seconds: float) -> int:
    """Seconds as `Arguments.limit_ns`."""
    return min(math.ceil(seconds * 1e9), NO_LIMIT) if math.isfinite(seconds) else NO_LIMIT


class Arguments:
    """The values that a launch binds to the parameters of a program.

    Attributes
    ----------
    words : list of int
        One per parameter of the kernel: an address, the offset of threadgroup memory, or 0 for ids.
    threadgroup_bytes : int
        Threadgroup memory that the launch asks for.
    keep_alive : list
        Objects that must live until the launch has ended.
    buffers : list of Buffer
        Buffers that the launch reads or writes.
    first_writes : list of Buffer
        Those that it may be the first one to write to.
    host_memory : bool
        Whether it uses NumPy arrays or other host memory, so that the launch has to be synchronous.
    constants : list of (int, bytes)
        Numbers by the position of their word, on devices whose kernels do not use host memory.
    staged : list of HostMemory
        Host memory that the device copies to its own memory, and back; empty where kernels use host
        memory in place.
    pointers : list of int
        Addresses, in memory of `staged`, of pointers to memory of `staged`.
    limit_ns : int
        Time limit in nanoseconds; 0 for that of the settings.
    extents : dict
        Bytes of the memory that a word points to, by its position, where that is known.
    pointees : dict
        The same of pointers in the memory of structs and tensors, by their address: bytes of the
        memory before the pointer, and in all.
    check : bool
        Whether the sanitizer checks the launch whatever the settings say.
    fault_record : object or None
        Where the device records a failed access, of kernels that check them on a GPU.
    """

    __slots__ = (
        "buffers", "check", "constants", "extents", "fault_record", "first_writes", "host_memory",
        "keep_alive", "limit_ns", "pointees", "pointers", "staged", "threadgroup_bytes", "words",
    )  # fmt: skip

    def __init__(self, parameters: int) -> None:
        self.words = [0] * parameters
        self.threadgroup_bytes = 0
        self.keep_alive: list[Any] = []
        self.buffers: list[LaunchBuffer] = []
        self.first_writes: list[LaunchBuffer] = []
        self.host_memory = False
        self.constants: list[tuple[int, bytes]] = []
        self.staged: list[HostMemory] = []
        self.pointers: list[int] = []
        self.limit_ns = 0
        self.extents: dict[int, int] = {}
        self.pointees: dict[int, tuple[int, int]] = {}
        self.check = False
        self.fault_record: Any = None

    def extent_words(
        self, unknown: Mapping[int, int], slots: Sequence[tuple[int, int]]
    ) -> list[int]:
        """The extents that a launch passes to a kernel with checks.

        Parameters
        ----------
        unknown : mapping
            `UNKNOWN_BYTES` for each word.
        slots : sequence of (int, int)
            Pointers in memory: position of the word that points to it, and the offset there.
        """
        extents = list({**unknown, **self.extents}.values())
        for position, offset in slots:
            extents += self.pointees.get(self.words[position] + offset, _UNKNOWN_POINTEE)
        return extents


class Launch(NamedTuple):
    """A launch that has been checked and bound."""

    program: Any
    arguments: Arguments
    grid: Size
    group: Size


class PlainParameter(NamedTuple):
    """A parameter that takes a buffer, an array or a number, in the form for fast launches.

    Attributes
    ----------
    position : int
        Of its word.
    bytes, least_bytes : int
        Of an element, and the minimum of a buffer.
    number : str
        "f", "i", "u" or "b" if it takes a number, else "".
    number_bytes : int
        Of the number's type.
    dtype : numpy.dtype or None
        Of arrays whose size in bytes is all there is to check; None if there are none.
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


#: From the arguments, threads and threadgroup size of a call, and whether it is to wait (None: if
#: it uses memory of the host), to the event of the launch; None, without a launch, if the call
#: needs the general path.
FastLaunch = Callable[[tuple[Any, ...], Any, Any, bool | None], Event | None]

#: By type of arrays, the address of a native function that binds them: from an array, a device, a
#: dtype, whether it is written, and pointers to its address and size in bytes to a new reference to
#: its memory. It returns null for arrays that the general path has to bind.
NATIVE_BINDERS: dict[type, int] = {}


class NativeStream(NamedTuple):
    """Functions that native ones call when a device adds launches to a stream.

    Attributes
    ----------
    acquire, release : callable
        Of the lock of the device.
    is_ready : callable
        Whether the launches need nothing else; called with the lock.
    finish : callable
        Records that launches write to some buffers; called with the lock, after the launches.
    constants : mapping
        From bytes to the address of their copy on the device.
    """

    acquire: Callable[[], Any]
    release: Callable[[], Any]
    is_ready: Callable[[], bool]
    finish: Callable[[Sequence[LaunchBuffer]], object]
    constants: Mapping[bytes, int]


class NativeRow(NamedTuple):
    """The launches of a repeater in the form for native functions.

    Attributes
    ----------
    run : int
        Address of a function from the jobs, their number and memory for an outcome of at most 256
        bytes to the number of launches that have succeeded.
    jobs : bytearray
        With a word for each address.
    launches : int
    words : sequence of (int, int)
        Index of a 64-bit word of `jobs`, and index of its value among the addresses of a run.
    fail : callable
        Raises the error of a launch, from the outcome and the index of the launch.
    params : tuple of (int, bytearray)
        Words of `jobs` that point to the device's copy of bytes.
    stream : NativeStream or None
        None if launches have ended when the function returns.
    alignment : int
        Of all addresses, in bytes.
    """

    run: int
    jobs: bytearray
    launches: int
    words: Sequence[tuple[int, int]]
    fail: Callable[[bytes, int], NoReturn]
    params: tuple[tuple[int, bytearray], ...] = ()
    stream: NativeStream | None = None
    alignment: int = 1


class SeparateLaunch(NamedTuple):
    """One launch of a repeater.

    Attributes
    ----------
    launch : Launch
        Its words are those of an earlier run.
    words : memoryview
        Its words now.
    params : sequence of (int, bytearray)
        Numbers that the device has a copy of, by the position of their word.
    run : callable
        Runs it. Returns its seconds if it has ended, else its event; raises its error.
    """

    launch: Launch
    words: memoryview
    params: Sequence[tuple[int, bytearray]]
    run: Callable[[], float | Event]


class Repeater(Protocol):
    """Runs launches again and again, for one thread at a time."""

    @property
    def native(self) -> NativeRow | None:
        """Its form for native functions; None if it has none."""

    def __call__(self, addresses: Sequence[int], written: Sequence[LaunchBuffer]) -> Event | None:
        """Run them with these addresses, writing to these buffers.

        Returns
        -------
        Event or None
            None if they have ended.
        """

    def is_separable(self, addresses: Sequence[int]) -> bool:
        """Whether `separate` runs the launches with these addresses."""

    def separate(self) -> Iterator[SeparateLaunch]:
        """The launches one by one, for observers: `write` is called before they run."""

    def write(self, addresses: Sequence[int]) -> None:
        """Let the launches use these addresses."""

    def finish(self, written: Sequence[LaunchBuffer]) -> Event | None:
        """Record that separate launches have written to buffers; None if they have ended."""


def buffers_of(launches: Sequence[Launch]) -> list[LaunchBuffer]:
    """The buffers that launches use, without duplicates."""
    buffers = (buffer for launch in launches for buffer in launch.arguments.buffers)
    return list({id(buffer): buffer for buffer in buffers}.values())


def written_buffers(signature: Signature, arguments: Arguments) -> list[LaunchBuffer]:
    """The buffers a launch may write to: all except those bound to read-only parameters only."""
    words = [(arguments.words[p.position], p.layout.read_only) for p in signature.buffers]

    def is_written(buffer: LaunchBuffer) -> bool:
        start, end = buffer.address, buffer.address + max(buffer.nbytes, 1)
        read_only = [is_read_only for word, is_read_only in words if start <= word < end]
        return not read_only or not all(read_only)

    return [buffer for buffer in arguments.buffers if is_written(buffer)]


def note_first_writes(arguments: Arguments) -> None:
    """Note that a launch has written to buffers."""
    for buffer in arguments.first_writes:
        buffer.is_fresh = False


def clear_seen_failures(signature: Signature, arguments: Arguments) -> None:
    """Clear failures that the program has seen, for buffers that another launch writes to."""
    for buffer in written_buffers(signature, arguments):
        if buffer.failure is not None and buffer.failure.is_seen:
            buffer.failure = None


class Launcher:
    """The interface of a device for launches, which it runs in order."""

    #: Records launches instead, while it is set.
    recording: LaunchRecorder | None = None
    #: The value of `recording` while no graph is being recorded.
    default_recorder: LaunchRecorder | None = None

    def launch(
        self, program: Any, arguments: Arguments, grid: Size, group: Size, wait: bool
    ) -> Event:
        """Run a program from `Device.compile`; return after its end if `wait`.

        Parameters
        ----------
        grid, group : tuple of int
            Threads of the grid and of a threadgroup, (x, y, z).

        Raises
        ------
        KernelFault
            If it failed and `wait` is true; otherwise the event's `wait` raises it.
        """
        raise NotImplementedError

    def read_times(self, events: Sequence[Event]) -> Sequence[float | None]:
        """Seconds of launches, in their order, that have ended without a failure; None for others.

        It does not wait. Empty on devices that read times no faster than `Event.seconds`.
        """
        return ()

    def fast_launcher(
        self, program: Any, parameters: Sequence[PlainParameter], sizes: Mapping[Any, Any]
    ) -> FastLaunch | None:
        """The fast launch path of a program, for usual arguments; None if there is none.

        Parameters
        ----------
        sizes : mapping
            Grid and threadgroup sizes, by the threads and size of earlier calls.
        """
        return None

    def launch_batch(self, launches: Sequence[Launch], wait: bool) -> Sequence[Event]:
        """Run several launches in order, with less overhead than `launch` for each.

        Raises
        ------
        KernelFault
            See `launch`. If `wait`, launches after the failed one do not run.
        """
        return [self.launch(*launch, wait) for launch in launches]

    def repeater(
        self,
        launches: Sequence[Launch],
        words: Sequence[tuple[int, int, int]],
        params: Sequence[tuple[int, int, bytearray]],
    ) -> Repeater | None:
        """A function that runs launches, each time with other addresses; None if there is none.

        Parameters
        ----------
        words : sequence of (int, int, int)
            The words that differ: index of the launch, position of the word, and index of its value
            among the addresses that are passed.
        params : sequence of (int, int, bytearray)
            The words that point to bytes, which may change between runs: index of the launch,
            position of the word, and the bytes.
        """
        return None

    def prepare(self, launches: Sequence[Launch]) -> Callable[[], Event]:
        """A function that repeats these launches, and returns the event of the last one."""

        def replay() -> Event:
            return [self.launch(*launch, wait=False) for launch in launches][-1]

        return replay
