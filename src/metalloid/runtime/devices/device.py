"""The interface of devices."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.compiler.toolchain.target import Target
from metalloid.msl.entry_points import EntryPoint
from metalloid.runtime.devices.traits import MANY_THREADS, DeviceTraits
from metalloid.runtime.interop.exchange import Exchange
from metalloid.runtime.launch.launches import Launcher
from metalloid.runtime.launch.program import Program

if TYPE_CHECKING:
    import numpy as np

    from metalloid.runtime.devices.libraries import Libraries
    from metalloid.runtime.launch.refutation import ThreadCode


class DeviceInfo(NamedTuple):
    """A description of a device.

    Attributes
    ----------
    name : str
        ``"cpu"``.
    description : str
        Model and size: ``"AMD EPYC 9354, 2 threads, AVX-512"``.
    memory_bytes : int
        Size of its memory.
    threads : int
        Threads of the operating system, or multiprocessors, that run in parallel.
    """

    name: str
    description: str
    memory_bytes: int
    threads: int


_open_by_name: Callable[..., Device] | None = None


def set_opener(open_by_name: Callable[..., Device]) -> None:
    """Let ``Device(name)`` call a function: that of the registry, which imports this module."""
    global _open_by_name
    _open_by_name = open_by_name


class _Opening(type):
    """Makes ``Device("cpu")`` open the device of that name."""

    if not TYPE_CHECKING:

        def __call__(cls, *args, **named):
            if cls is not Device:
                return super().__call__(*args, **named)
            assert _open_by_name is not None, "import metalloid.runtime.devices.registry"
            return _open_by_name(*args, **named)


class Device(Launcher, metaclass=_Opening):
    """A device that runs kernels; ``Device("cpu")`` opens the one of that name.

    Devices are opened on first use. ``Device()`` is the default device. A name is a kind,
    ``"cpu"`` or ``"cuda"``, for the first device of the kind; ``"cuda:1"`` is the second. If this
    machine has no such device, `DeviceUnavailable` gives the reason.

    Launches of one device run in the order they were made (`Launcher`). All methods may be called
    from any thread.
    """

    if TYPE_CHECKING:

        def __init__(self, name: str | Device | None = None) -> None: ...

    #: ``"cpu"``, ``"cuda:0"``, ``"metal:1"``: what `metalloid.Device` takes.
    name: str
    #: The compilation target.
    target: Target
    #: Whether it can be the default device.
    by_default = True
    #: ``"host"``: kernels use any memory of the process. ``"shared"``: memory of the device that
    #: Python can access. ``"own"``: memory of the device that is copied in and out.
    memory: Literal["host", "shared", "own"] = "own"
    #: Whether kernels may compute with ``double``.
    has_float64 = True
    #: Whether the sanitizer can check its launches.
    can_check = False
    #: Whether its kernels check their accesses; launches of others may be refuted.
    checks_accesses = False
    #: Parameters of code generation.
    traits: DeviceTraits = MANY_THREADS

    @property
    def can_check_accesses(self) -> bool:
        """Whether its kernels check their accesses with ``bounds="checked"``."""
        return self.checks_accesses

    @functools.cached_property
    def exchange(self) -> Exchange:
        """Import and export of memory between this device and other libraries."""
        return Exchange(self)

    @functools.cached_property
    def libraries(self) -> Libraries:
        """Vendor libraries of this device."""
        from metalloid.runtime.devices.libraries import Libraries

        return Libraries()

    def info(self) -> DeviceInfo:
        """A description of the device."""
        raise NotImplementedError

    def details(self) -> dict[str, str]:
        """The limits and features, for reports."""
        return {}

    def compile(
        self, unit: TranslationUnit, entry: EntryPoint, constants: Mapping[int, str]
    ) -> Program:
        """Compile a kernel of `unit`.

        Parameters
        ----------
        constants : mapping
            Function constants by index, as C++ text.

        Raises
        ------
        CompileError
        """
        raise NotImplementedError

    def restore(self, entry: EntryPoint, files: Mapping[str, bytes], target: str) -> Program:
        """The program of a kernel in a bundle.

        Parameters
        ----------
        files : mapping
            Those of `OfflineDevice.bundle_files`.
        target : str
            The target that they are for, one of `bundle_targets`.
        """
        raise NotImplementedError

    @property
    def bundle_abi(self) -> str:
        """Changes when code in bundles must be compiled again for this version of the device."""
        raise NotImplementedError

    def bundle_targets(self) -> Sequence[str]:
        """The names of targets whose code this device can run, the fastest first."""
        return ()

    def thread_code(
        self, unit: TranslationUnit, entry: EntryPoint, constants: Mapping[int, str]
    ) -> ThreadCode | None:
        """The code of one thread of a kernel, for refutations; None if the device makes none.

        Raises
        ------
        MetalloidError
            If it does not compile.
        """
        return None

    def allocate(self, nbytes: int) -> int:
        """Address of `nbytes` zeroed bytes, aligned for every type of MSL.

        Raises
        ------
        OutOfMemory
        """
        raise NotImplementedError

    def allocate_visible(self, nbytes: int) -> int:
        """Like `allocate`, but of memory that Python can access once launches have ended.

        Raises
        ------
        OutOfMemory
        """
        return self.allocate(nbytes)

    def free(self, address: int, nbytes: int) -> None:
        """Free memory from `allocate` or `allocate_visible`."""
        raise NotImplementedError

    def host_memory(self, nbytes: int) -> np.ndarray:
        """Uninitialised host memory that is fast to copy to and from."""
        import numpy as np

        return np.empty(nbytes, np.uint8)

    def copy_in(self, address: int, source: memoryview) -> None:
        """Copy host bytes to device memory, after the launches so far."""
        raise NotImplementedError

    def copy_out(self, address: int, destination: memoryview) -> None:
        """Copy device memory to host bytes, after the launches so far."""
        raise NotImplementedError

    def copy_out_combined(self, windows: Sequence[tuple[int, int]]) -> list[np.ndarray]:
        """Copies of a few kilobytes of device memory each, after the launches so far.

        Parameters
        ----------
        windows : sequence of (int, int)
            Addresses, and sizes in bytes.
        """
        copies = [self.host_memory(nbytes) for _, nbytes in windows]
        for (address, _), copy in zip(windows, copies, strict=True):
            self.copy_out(address, copy.data)
        return copies

    def synchronize(self) -> None:
        """Wait for every launch made so far."""
        raise NotImplementedError

    def settle(self, seconds: float = 0.0) -> None:
        """Check which launches failed, and set the failures of the buffers they wrote to.

        Parameters
        ----------
        seconds : float
            Maximum time to wait for running launches.
        """

    def _repr_html_(self) -> str:
        from metalloid.display import html_table

        info = self.info()
        rows = {
            "description": info.description,
            "memory": f"{info.memory_bytes / 2**30:.1f} GiB",
            "threads": info.threads,
            **self.details(),
        }
        return html_table(info.name, rows.items())

    def __repr__(self) -> str:
        return f"<Device {self.name}: {self.info().description}>"
