"""Who sorts and searches: kernels of ours, or NumPy on the memory of arrays."""

from __future__ import annotations

from metalloid.arrays.ir.dtypes import DType, kind_of
from metalloid.runtime.devices.device import Device
from metalloid.settings import settings

_NEVER = 2**32
#: By function: from how many elements on kernels are faster, as `benchmarks/sorting.py` measures on
#: one thread. With fewer, a launch and its arguments take longer than the work.
_ENOUGH = {
    "sort": _NEVER,  # NumPy's vector code is 2 to 4 times as fast
    "argsort": 2**12,
    "top_k": 2**12,
    "searchsorted": 2**11,
    "isin": 2**13,
    "unique_all": 2**15,
    "unique_counts": 2**18,
    "bincount": 2**17,
    "bincount by sorting": _NEVER,
}


def by_kernels(what: str, dtype: DType, device: Device, size: int) -> bool:
    """Whether kernels do it; on other devices than the CPU they always do.

    Parameters
    ----------
    what : str
        The function.
    dtype : numpy.dtype
    device : Device
    size : int
        How many elements are sorted or searched for.
    """
    if kind_of(dtype) == "c" or size >= 2**32:  # they have no order; places are 32-bit
        return False
    if device.name != "cpu" or settings.sorting == "kernels":
        return True
    if settings.sorting == "host" or size < _ENOUGH[what]:
        return False
    if what in ("argsort", "unique_all"):  # NumPy sorts short integers by their digits as well
        return kind_of(dtype) == "f" or dtype.itemsize >= 4
    return what != "isin" or dtype.itemsize > 1  # NumPy has a table of what occurs among few values
