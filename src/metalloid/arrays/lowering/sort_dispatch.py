"""Dispatch of sorts and searches to kernels or to NumPy."""

from __future__ import annotations

from metalloid.arrays.ir.dtypes import DType, kind_of
from metalloid.runtime.devices.device import Device

_NEVER = 2**32
#: By function: the minimum elements for which kernels are faster, measured with
#: `benchmarks/sorting.py` on one thread. Below it, the launch takes longer than the work.
_ENOUGH = {
    "sort": 0,
    "argsort": 0,
    "top_k": 0,
    "searchsorted": 2**11,
    "isin": 2**13,
    "unique_all": 2**15,
    "unique_counts": 2**18,
    "bincount": 2**17,
}

#: From this length on, NumPy's radix sort of short integers is faster.
_LONG_FOR_SHORT_INTEGERS = 2**12


def by_kernels(what: str, dtype: DType, device: Device, size: int, setting: str) -> bool:
    """Whether to use kernels; devices other than the CPU always do.

    Parameters
    ----------
    what : str
        Name of the function.
    dtype : numpy.dtype
    device : Device
    size : int
        Number of elements of a row to sort, or to search for.
    setting : str
        ``settings.sorting`` when the function was called.
    """
    if kind_of(dtype) == "c" or size >= 2**32:  # no order; indices are 32-bit
        return False
    if device.name != "cpu" or setting == "kernels":
        return True
    if setting == "host" or size < _ENOUGH[what]:
        return False
    if what in ("sort", "argsort", "unique_all") and size >= _LONG_FOR_SHORT_INTEGERS:
        return kind_of(dtype) == "f" or dtype.itemsize >= (2 if what == "sort" else 4)
    return what != "isin" or dtype.itemsize > 1  # NumPy uses a lookup table for bytes
