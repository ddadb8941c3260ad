"""``mx.metal``: Apple's GPUs."""

from __future__ import annotations

from typing import Any

from metalloid.compat.mlx.core import devices
from metalloid.compat.mlx.core.devices import (
    clear_cache,
    get_active_memory,
    get_cache_memory,
    get_peak_memory,
    reset_peak_memory,
    set_cache_limit,
    set_memory_limit,
    set_wired_limit,
)
from metalloid.runtime.devices.registry import default_device

__all__ = [
    "clear_cache",
    "device_info",
    "get_active_memory",
    "get_cache_memory",
    "get_peak_memory",
    "is_available",
    "reset_peak_memory",
    "set_cache_limit",
    "set_memory_limit",
    "set_wired_limit",
    "start_capture",
    "stop_capture",
]


def is_available() -> bool:
    """Whether arrays are on an Apple GPU, or `metalloid.compat.mlx.install` says so.

    Kernels in Metal run without one, too.
    """
    return devices.reports_metal[0] or default_device().name.startswith("metal")


def device_info() -> dict[str, Any]:
    """Properties of the default device."""
    return devices.device_info()


def start_capture(path: str) -> None:
    """Record launches: use `metalloid.profile`.

    Raises
    ------
    RuntimeError
        Always.
    """
    raise RuntimeError("[start_capture] not supported: use metalloid.profile.")


def stop_capture() -> None:
    """Stop to record launches: use `metalloid.profile`.

    Raises
    ------
    RuntimeError
        Always.
    """
    raise RuntimeError("[stop_capture] not supported: use metalloid.profile.")
