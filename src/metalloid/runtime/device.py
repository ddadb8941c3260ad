"""The contract between devices and everything above them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from metalloid.compiler.target import Target
from metalloid.compiler.unit import TranslationUnit
from metalloid.msl.entry_points import EntryPoint
from metalloid.msl.signature import Signature
from metalloid.runtime.event import Event
from metalloid.runtime.traits import MANY_THREADS, Traits

if TYPE_CHECKING:
    import numpy as np

    from metalloid.runtime.borrowed import Borrowed
    from metalloid.runtime.buffer import Buffer
    from metalloid.runtime.graph import Graph

#: Threads of a simdgroup, on every device.
SIMDGROUP_WIDTH = 32
#: Threads a threadgroup may have, unless a kernel says less.
MAX_THREADS_PER_THREADGROUP = 1024

Size = tuple[int, int, int]


@dataclass(frozen=True)
class DeviceInfo:
    """What a device is.

    Attributes
    ----------
    name : str
        ``"cpu"``.
    description : str
        Model and size: ``"AMD EPYC 9354, 2 threads, AVX-512"``.
    memory_bytes : int
        Memory it has.
    threads : int
        Threads of the operating system, or multiprocessors, that work side by side.
    """

    name: str
    description: str
    memory_bytes: int
    threads: int


def spread(grid: Size, threads: int) -> Size:
    """A threadgroup of at most so many threads: wide in x, where neighbours in memory are.

    Examples
    --------
    >>> spread((100, 100, 1), 256)
    (100, 2, 1)
    """
    sizes = []
    for extent in grid:
        size = max(1, min(extent, threads))
        sizes.append(size)
        threads //= size
    return (sizes[0], sizes[1], sizes[2])


class Program(ABC):
    """A kernel compiled for a device.

    Attributes
    ----------
    signature : Signature
    engine : str
        Which of the device's ways to run kernels it uses, and why.
    max_group_size : int
        Threads a threadgroup may have.
    """

    signature: Signature
    engine: str
    max_group_size: int

    @property
    @abstractmethod
    def asm(self) -> Mapping[str, str]:
        """Text of every stage of compilation by name: ``"cpp"``, ``"ll"``, ``"x86"`` ..."""

    @abstractmethod
    def default_group_size(self, grid: Size) -> Size:
        """A good threadgroup size for a launch that names none."""


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


class Matrices(NamedTuple):
    """Matrices behind each other in a buffer.

    Attributes
    ----------
    buffer : Buffer
    start : int
        Where the first begins, in bytes.
    rows, columns : int
        Of each.
    row_bytes, matrix_bytes : int
        From a row, or a matrix, to the next.
    is_turned : bool
        Whether columns lie in memory where rows do elsewhere.
    dtype : str
    """

    buffer: Buffer
    start: int
    rows: int
    columns: int
    row_bytes: int
    matrix_bytes: int
    is_turned: bool
    dtype: str


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
    """

    __slots__ = (
        "buffers", "constants", "host_memory", "keep", "pointers", "staged", "threadgroup_bytes",
        "words",
    )  # fmt: skip

    def __init__(self, parameters: int) -> None:
        self.words = [0] * parameters
        self.threadgroup_bytes = 0
        self.keep: list[Any] = []
        self.buffers: list[Buffer] = []
        self.host_memory = False
        self.constants: list[tuple[int, bytes]] = []
        self.staged: list[HostMemory] = []
        self.pointers: list[int] = []


class Launch(NamedTuple):
    """A launch that has been checked and bound."""

    program: Any
    arguments: Arguments
    grid: Size
    group: Size


class Device(ABC):
    """A machine that runs kernels.

    Launches of one device run in the order they were made. All methods may be called from any
    thread.
    """

    #: ``"cpu"``, ``"cuda:0"``, ``"metal:1"``: what `metalloid.Device` takes.
    name: str
    #: What clang compiles for.
    target: Target
    #: Whether it may be chosen where no device is named.
    by_default = True
    #: ``"host"``: kernels use any memory of the process. ``"shared"``: the device's own memory,
    #: which Python sees where it lies. ``"own"``: memory that is copied in and out.
    memory: Literal["host", "shared", "own"] = "own"
    #: Whether kernels may compute with ``double``.
    has_float64 = True
    #: What takes the launches instead of the device, for now.
    recording: Graph | None = None
    #: What generated kernels should look like.
    traits: Traits = MANY_THREADS
    #: Where its memory is, for other libraries: DLPack's type of device, and number. (1, 0) is the
    #: host.
    dlpack_device: tuple[int, int] = (1, 0)
    #: The stream that its launches are in, for other libraries.
    stream_handle: int = 1

    @abstractmethod
    def info(self) -> DeviceInfo:
        """What this device is."""

    def details(self) -> dict[str, str]:
        """More of what it is, for reports: its limits, and what it can do."""
        return {}

    @abstractmethod
    def compile(
        self, unit: TranslationUnit, entry: EntryPoint, constants: Mapping[int, str]
    ) -> Program:
        """Make a kernel of `unit` ready to run.

        Parameters
        ----------
        constants : mapping
            Function constants by index, as C++ text.

        Raises
        ------
        CompileError
        """

    @abstractmethod
    def allocate(self, nbytes: int) -> int:
        """Address of `nbytes` zeroed bytes, aligned for every type of MSL.

        Raises
        ------
        OutOfMemory
        """

    def allocate_visible(self, nbytes: int) -> int:
        """The same, of memory that Python sees where it lies, once launches have ended.

        Raises
        ------
        OutOfMemory
        """
        return self.allocate(nbytes)

    @abstractmethod
    def free(self, address: int, nbytes: int) -> None:
        """Give back what `allocate` or `allocate_visible` gave."""

    def host_memory(self, nbytes: int) -> np.ndarray:
        """Bytes of the host, with anything in them, that are quickly copied to."""
        import numpy as np

        return np.empty(nbytes, np.uint8)

    @abstractmethod
    def copy_in(self, address: int, source: memoryview) -> None:
        """Copy host bytes to device memory, after the launches so far."""

    @abstractmethod
    def copy_out(self, address: int, destination: memoryview) -> None:
        """Copy device memory to host bytes, after the launches so far."""

    def borrow(self, value: Any) -> Borrowed | None:
        """The memory of another library's array, if it is this device's own and not the host's.

        Launches from now on see what the library has done to it so far.

        Raises
        ------
        ArgumentError
            If kernels cannot use it.
        """
        return None

    def hand_over(self, stream: int) -> None:
        """Let work on a stream of another library wait for the launches so far.

        Parameters
        ----------
        stream : int
            As in ``__dlpack__``.
        """
        self.synchronize()

    @abstractmethod
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

    def launch_row(self, launches: Sequence[Launch], wait: bool) -> Sequence[Event]:
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

    def multiplies(self) -> frozenset[str]:
        """Types of matrices that a library of its maker multiplies.

        Raises
        ------
        DeviceUnavailable
            If that is not installed.
        """
        return frozenset()

    def multiply(self, left: Matrices, right: Matrices, result: Matrices, count: int) -> Event:
        """Have so many matrices multiplied by that library, after the launches so far.

        Asked only for types that `multiplies` names.
        """
        raise NotImplementedError

    @abstractmethod
    def synchronize(self) -> None:
        """Wait for every launch made so far."""

    def __repr__(self) -> str:
        return f"<Device {self.name}: {self.info().description}>"
