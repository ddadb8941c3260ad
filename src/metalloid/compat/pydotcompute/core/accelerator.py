"""The devices of this machine, as PyDotCompute lists them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import metalloid as mtl
from metalloid.compat.pydotcompute.backends.metal import MetalBackend


class DeviceType(Enum):
    """Kinds of devices."""

    CPU = 1
    CUDA = 2
    METAL = 3


@dataclass(frozen=True)
class DeviceProperties:
    """The properties of a device."""

    device_id: int
    device_type: DeviceType
    name: str
    compute_capability: tuple[int, int] | None
    total_memory: int
    multiprocessor_count: int
    max_threads_per_block: int
    max_block_dims: tuple[int, int, int]
    max_grid_dims: tuple[int, int, int]
    warp_size: int
    is_available: bool = True

    @property
    def compute_capability_str(self) -> str:
        """Its two numbers with a point between them; "N/A" without."""
        return ".".join(map(str, self.compute_capability)) if self.compute_capability else "N/A"

    @property
    def total_memory_gb(self) -> float:
        """Memory in GiB."""
        return self.total_memory / 2**30


class Accelerator:
    """The one list of devices; every call of the class gives the same.

    Examples
    --------
    >>> Accelerator() is get_accelerator()
    True
    """

    _instance: Accelerator | None = None
    _backend: MetalBackend
    _current: int

    def __new__(cls) -> Accelerator:
        """The one there is."""
        if cls._instance is None:
            cls._instance = super().__new__(cls)
            cls._instance._backend, cls._instance._current = MetalBackend(), 0
        return cls._instance

    @property
    def metal_available(self) -> bool:
        """True: kernels in MSL run on every machine."""
        return True

    @property
    def cuda_available(self) -> bool:
        """False: its CUDA backend has no stand-in here."""
        return False

    @property
    def devices(self) -> list[DeviceProperties]:
        """The device that kernels run on."""
        info = mtl.Device().info()
        threads = 1024
        return [
            DeviceProperties(
                device_id=0,
                device_type=DeviceType.METAL,
                name=info.description,
                compute_capability=None,
                total_memory=info.memory_bytes,
                multiprocessor_count=info.threads,
                max_threads_per_block=threads,
                max_block_dims=(threads,) * 3,
                max_grid_dims=(2**31 - 1,) * 3,
                warp_size=32,
            )
        ]

    @property
    def device_count(self) -> int:
        """The number of devices."""
        return len(self.devices)

    @property
    def current_device(self) -> DeviceProperties:
        """The one in use."""
        return self.devices[self._current]

    def get_device(self, device_id: int = 0) -> DeviceProperties:
        """A device by its number.

        Raises
        ------
        ValueError
        """
        self._check(device_id)
        return self.devices[device_id]

    def set_device(self, device_id: int) -> None:
        """Use another device.

        Raises
        ------
        ValueError
        """
        self._check(device_id)
        self._current = device_id

    def _check(self, device_id: int) -> None:
        if not 0 <= device_id < self.device_count:
            raise ValueError(
                f"Invalid device ID: {device_id}. The number of devices is {self.device_count}."
            )

    def synchronize(self) -> None:
        """Wait for everything."""
        self._backend.synchronize()

    def get_memory_info(self) -> dict[str, Any]:
        """Bytes in use, kept, and at most so far; free and total are not known."""
        info = self._backend.get_memory_info()
        return {
            "free": 0, "total": 0, "used": info["allocated"], "cache_memory": info["cache_memory"],
            "peak_memory": info["peak_memory"],
        }  # fmt: skip

    def __repr__(self) -> str:
        return (
            f"Accelerator(devices={self.device_count}, cuda_available={self.cuda_available}, "
            f"metal_available={self.metal_available}, current_device={self.current_device.name})"
        )


def get_accelerator() -> Accelerator:
    """The one `Accelerator`."""
    return Accelerator()


def cuda_available() -> bool:
    """See `Accelerator.cuda_available`."""
    return Accelerator().cuda_available


def metal_available() -> bool:
    """See `Accelerator.metal_available`."""
    return Accelerator().metal_available
