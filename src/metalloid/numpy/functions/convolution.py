"""Convolution and correlation of vectors, with NumPy's arguments: direct, or by Fourier transforms.

Large operands are multiplied as their transforms (T. G. Stockham, "High-speed convolution and
correlation", 1966), in the type of the operands.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from metalloid.arrays.array import Array, as_arrays
from metalloid.arrays.functions import elementwise as ew
from metalloid.arrays.functions.convolution import correlation
from metalloid.arrays.ir.dtypes import float32, int32, kind_of, promote
from metalloid.arrays.ir.node import cast
from metalloid.arrays.lowering.windows import Overlaps
from metalloid.fft import fft, ifft, irfft, rfft
from metalloid.numpy.known_calls import structural_function

#: Real multiplications of the direct form for each element and step of a transform from which on
#: transforms are used. They are three times as fast then, which outweighs their larger errors.
_TRANSFORM_COST = 128


@structural_function(2)
def convolve(a: Any, v: Any, mode: str = "full") -> Array:
    """Convolution of two vectors.

    Parameters
    ----------
    mode : "full", "same" or "valid"
        All overlaps; as many as the longer vector has elements; complete overlaps only.

    Notes
    -----
    Large vectors of floating-point or complex numbers are convolved by Fourier transforms, as in
    CuPy. The error of a result is then relative to the largest results, and a NaN or an infinity
    makes all results NaN.

    Examples
    --------
    >>> import metalloid.numpy as np
    >>> np.convolve([1, 2, 3], [1, 1])
    array([1, 3, 5, 3])
    """
    x, y = as_arrays("convolve", a, v)
    if x.ndim > 1 or y.ndim > 1:
        raise ValueError(f"[convolve] expected vectors, got shapes {x.shape} and {y.shape}.")
    x, y = x.reshape(-1), y.reshape(-1)
    if y.size > x.size:
        x, y = y, x
    if not y.size:
        raise ValueError("[convolve] the vectors must not be empty.")
    return _correlated(x, y, mode, "convolve", flips=True)


@structural_function(2)
def correlate(a: Any, v: Any, mode: str = "valid") -> Array:
    """Cross-correlation of two vectors; `v` is conjugated. See `convolve`."""
    x, y = as_arrays("correlate", a, v)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"[correlate] expected vectors, got shapes {x.shape} and {y.shape}.")
    if not x.size or not y.size:
        raise ValueError("[correlate] the vectors must not be empty.")
    y = ew.conj(y) if kind_of(y.dtype) == "c" else y
    if y.size > x.size:
        return _correlated(y, x, mode, "correlate")[::-1]
    return _correlated(x, y, mode, "correlate")


def _correlated(x: Array, y: Array, mode: str, where: str, flips: bool = False) -> Array:
    """Sums of the products of a short vector with each window of a long one."""
    n = y.size
    borders = {"valid": (0, 0), "same": (n // 2, n - 1 - n // 2), "full": (n - 1, n - 1)}
    if mode is None:
        raise TypeError(f"[{where}] mode must be 'full', 'same' or 'valid', got None.")
    mode = dict(enumerate(("valid", "same", "full"))).get(mode, mode)  # type: ignore[call-overload]
    if mode not in borders:
        raise ValueError(f"[{where}] mode must be 'full', 'same' or 'valid', got {mode!r}.")
    left, right = borders[mode]
    dtype = promote(x.dtype, y.dtype)
    kind = kind_of(dtype)
    wide = float32 if kind == "f" and dtype.itemsize == 2 else int32 if kind == "b" else dtype
    overlaps = Overlaps(x.size, n, left, x.size + left + right - n + 1, flips)
    x, y = Array(cast(x._node, wide)), Array(cast(y._node, wide))
    if _is_faster_by_transforms(x, overlaps):
        return _by_transforms(x, y, overlaps).astype(dtype)
    return Array(cast(correlation(x._node, y._node, overlaps), dtype))


def _is_faster_by_transforms(x: Array, overlaps: Overlaps) -> bool:
    products_per_pair = {"f": 1, "c": 4}.get(kind_of(x.dtype), 0)
    length = _transform_length(overlaps.size + overlaps.width - 1)
    products = overlaps.windows * overlaps.width * products_per_pair
    return products > _TRANSFORM_COST * length * math.log2(length)


def _by_transforms(x: Array, y: Array, overlaps: Overlaps) -> Array:
    y = y if overlaps.flips else y[::-1]
    length = _transform_length(overlaps.size + overlaps.width - 1)
    first = overlaps.width - 1 - overlaps.left
    if kind_of(x.dtype) == "c":
        result = ifft(fft(x, n=length) * fft(y, n=length))
    else:
        result = irfft(rfft(x, n=length) * rfft(y, n=length), n=length)
    return result[first : first + overlaps.windows]


@functools.lru_cache(maxsize=256)
def _transform_length(size: int) -> int:
    """The least product of a power of two and 1, 3, 5 or 9 that is at least `size`."""
    return min(odd << (-(-size // odd) - 1).bit_length() for odd in (1, 3, 5, 9))
