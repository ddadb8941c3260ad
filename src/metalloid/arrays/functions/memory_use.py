"""Memory statistics of arrays, with the names that MLX uses."""

from __future__ import annotations

from metalloid.arrays.ir.memory import Pool, pool_of
from metalloid.runtime.devices.device import Device
from metalloid.runtime.devices.registry import get_device


def _pool(device: str | Device | None) -> Pool:
    return pool_of(get_device(device))


def get_active_memory(device: str | Device | None = None) -> int:
    """Return the bytes that arrays use now, excluding memory shared by other libraries.

    Examples
    --------
    >>> import metalloid as mtl
    >>> before = mtl.get_active_memory()
    >>> x = mtl.zeros(1024) + 1
    >>> mtl.eval(x)
    >>> mtl.get_active_memory() - before
    4096
    """
    return _pool(device).live_bytes


def get_peak_memory(device: str | Device | None = None) -> int:
    """Return the maximum bytes in use at once since `reset_peak_memory`."""
    return _pool(device).peak_bytes


def reset_peak_memory(device: str | Device | None = None) -> None:
    """Reset `get_peak_memory` to the bytes in use now."""
    _pool(device).reset_peak()


def get_cache_memory(device: str | Device | None = None) -> int:
    """Return the bytes of free memory that is cached for later arrays."""
    return _pool(device).free_bytes


def clear_cache(device: str | Device | None = None) -> None:
    """Return cached memory to the device.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.clear_cache()
    >>> mtl.get_cache_memory()
    0
    """
    _pool(device).clear()
