"""Dispatch of sorts and searches to kernels or to NumPy."""

from __future__ import annotations

from metalloid.arrays.ir.dtypes import DType, kind_of
from metalloid.runtime.devices.device import Device
from metalloid.settings import settings

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

#: NumPy sorts words with AVX-512, in 0.3 to 0.9 of the time that kernels take on one thread, from
#: rows of so many elements on, by bytes of an element.
_ROW_OF_WORDS = {4: 100, 8: 32}
#: Sorts of one row of so many elements take a few threads as long as one.
_SHORT_FOR_THREADS = 2**13
_AVX512_BYTES = 64


def cores(device: Device) -> int:
    """Number of cores of a device that kernels may use."""
    return min(device.traits.cores, settings.num_threads or device.traits.cores)


def _has_vectorized_sort(dtype: DType, device: Device, row: int, total: int) -> bool:
    is_word = kind_of(dtype) in "iuf" and dtype.itemsize in _ROW_OF_WORDS
    is_usable = is_word and row >= _ROW_OF_WORDS[dtype.itemsize]
    is_usable &= cores(device) == 1 or row == total <= _SHORT_FOR_THREADS
    return is_usable and device.traits.vector_bytes == _AVX512_BYTES


def by_kernels(
    what: str, dtype: DType, device: Device, size: int, setting: str, total: int = 0
) -> bool:
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
    total : int
        Number of elements to sort in all rows.
    """
    if kind_of(dtype) == "c" or size >= 2**32:  # no order; indices are 32-bit
        return False
    if device.name != "cpu" or setting == "kernels":
        return True
    if setting == "host" or size < _ENOUGH[what]:
        return False
    is_sort = what in ("sort", "unique_counts")
    if is_sort and _has_vectorized_sort(dtype, device, size, max(size, total)):
        return False
    if what in ("sort", "argsort", "unique_all") and size >= _LONG_FOR_SHORT_INTEGERS:
        return kind_of(dtype) == "f" or dtype.itemsize >= (2 if what == "sort" else 4)
    return what != "isin" or dtype.itemsize > 1  # NumPy uses a lookup table for bytes
