"""Offline devices: their kernels can be compiled and inspected, but not run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.errors import DeviceUnavailable
from metalloid.msl.entry_points import EntryPoint
from metalloid.runtime.devices.device import Device, DeviceInfo
from metalloid.runtime.launch.event import Event
from metalloid.runtime.launch.launches import Arguments
from metalloid.runtime.launch.program import Size


class OfflineDevice(Device):
    """Base of offline devices: refuses everything except `compile`."""

    memory = "own"
    can_check_accesses = True

    def info(self) -> DeviceInfo:
        """See `Device.info`."""
        return DeviceInfo(self.name, f"compiles for {self.target.name} only", 0, 0)

    def bundle_files(
        self, unit: TranslationUnit, entry: EntryPoint, constants: Mapping[int, str]
    ) -> dict[str, bytes]:
        """Compile a kernel of `unit` to files that `Device.restore` runs without a compiler.

        Raises
        ------
        CompileError
            If it does not compile.
        DeviceUnavailable
            If bundles cannot have code for this target.
        """
        raise NotImplementedError

    def native_libraries(self) -> dict[str, bytes]:
        """Shared objects of our own that such files need, by `native_build.sources_digest`."""
        raise NotImplementedError

    def _refuse(self) -> NoReturn:
        raise DeviceUnavailable(
            f"[{self.name}] is a target to compile for: kernels of it cannot run here. "
            "Look at kernel.asm, or leave target= out."
        )

    def allocate(self, nbytes: int) -> int:
        """Refused."""
        self._refuse()

    def free(self, address: int, nbytes: int) -> None:
        """Refused."""
        self._refuse()

    def copy_in(self, address: int, source: memoryview) -> None:
        """Refused."""
        self._refuse()

    def copy_out(self, address: int, destination: memoryview) -> None:
        """Refused."""
        self._refuse()

    def launch(
        self, program: Any, arguments: Arguments, grid: Size, group: Size, wait: bool
    ) -> Event:
        """Refused."""
        self._refuse()

    def synchronize(self) -> None:
        """Refused."""
        self._refuse()
