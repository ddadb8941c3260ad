"""The contract between devices and everything above them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.compiler.toolchain.target import Target
from metalloid.msl.entry_points import EntryPoint
from metalloid.runtime.exchange import Exchange
from metalloid.runtime.launches import Launcher
from metalloid.runtime.libraries import Libraries
from metalloid.runtime.program import Program
from metalloid.runtime.traits import MANY_THREADS, DeviceTraits

if TYPE_CHECKING:
    import numpy as np


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


class _Opening(type):
    """Lets ``Device("cpu")`` be the device of that name: a class that opens its objects."""

    if not TYPE_CHECKING:

        def __call__(cls, *args, **named):
            if cls is not Device:
                return super().__call__(*args, **named)
            from metalloid.runtime.registry import get_device

            return get_device(*args, **named)


class Device(Launcher, metaclass=_Opening):
    """A machine that runs kernels; ``Device("cpu")`` is the one of that name.

    It is opened on first use; without a name it is the default one. Names are kinds, ``"cpu"`` or
    ``"cuda"``, for the first device of its kind; ``"cuda:1"`` is the second. `DeviceUnavailable`
    tells why this machine has none.

    Launches of one device run in the order they were made (`Launcher`). All methods may be called
    from any thread.
    """

    if TYPE_CHECKING:

        def __init__(self, name: str | Device | None = None) -> None: ...

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
    #: What generated kernels should look like.
    traits: DeviceTraits = MANY_THREADS

    @functools.cached_property
    def exchange(self) -> Exchange:
        """How other libraries and this device use each other's memory."""
        return Exchange(self)

    @functools.cached_property
    def libraries(self) -> Libraries:
        """What the maker of this device has written for it, beside kernels."""
        return Libraries()

    def info(self) -> DeviceInfo:
        """What this device is."""
        raise NotImplementedError

    def details(self) -> dict[str, str]:
        """More of what it is, for reports: its limits, and what it can do."""
        return {}

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
        raise NotImplementedError

    def allocate(self, nbytes: int) -> int:
        """Address of `nbytes` zeroed bytes, aligned for every type of MSL.

        Raises
        ------
        OutOfMemory
        """
        raise NotImplementedError

    def allocate_visible(self, nbytes: int) -> int:
        """The same, of memory that Python sees where it lies, once launches have ended.

        Raises
        ------
        OutOfMemory
        """
        return self.allocate(nbytes)

    def free(self, address: int, nbytes: int) -> None:
        """Give back what `allocate` or `allocate_visible` gave."""
        raise NotImplementedError

    def host_memory(self, nbytes: int) -> np.ndarray:
        """Bytes of the host, with anything in them, that are quickly copied to."""
        import numpy as np

        return np.empty(nbytes, np.uint8)

    def copy_in(self, address: int, source: memoryview) -> None:
        """Copy host bytes to device memory, after the launches so far."""
        raise NotImplementedError

    def copy_out(self, address: int, destination: memoryview) -> None:
        """Copy device memory to host bytes, after the launches so far."""
        raise NotImplementedError

    def synchronize(self) -> None:
        """Wait for every launch made so far."""
        raise NotImplementedError

    def settle(self, seconds: float = 0.0) -> None:
        """Find out which launches failed, and tell the buffers they wrote to.

        Parameters
        ----------
        seconds : float
            Time to give to launches that have not ended.
        """

    def __repr__(self) -> str:
        return f"<Device {self.name}: {self.info().description}>"
