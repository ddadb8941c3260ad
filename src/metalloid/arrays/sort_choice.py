"""Who sorts and searches: kernels of ours, or NumPy on the memory of arrays."""

from __future__ import annotations

from metalloid.arrays.types import DType, kind_of
from metalloid.runtime.device import Device
from metalloid.settings import settings


def by_kernels(what: str, dtype: DType, count: int, device: Device) -> bool:
    """Whether kernels do it; on other devices than the CPU they always do.

    Parameters
    ----------
    what : str
        The function.
    count : int
        Elements that are sorted together, or searched for.
    """
    if kind_of(dtype) == "c":
        return False
    if device.name != "cpu" or settings.sorting == "kernels":
        return True
    return settings.sorting == "measured" and False
