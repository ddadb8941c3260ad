"""Offline devices: their kernels can be compiled and inspected, but not run."""

from __future__ import annotations

from typing import Any, NoReturn

from metalloid.errors import DeviceUnavailable
from metalloid.runtime.devices.device import Device, DeviceInfo
from metalloid.runtime.launch.event import Event
from metalloid.runtime.launch.launches import Arguments
from metalloid.runtime.launch.program import Size


class OfflineDevice(Device):
    """Base of offline devices: refuses everything except `compile`."""

    memory = "own"

    def info(self) -> DeviceInfo:
        """See `Device.info`."""
        return DeviceInfo(self.name, f"compiles for {self.target.name} only", 0, 0)

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
