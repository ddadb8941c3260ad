"""Frequencies of the results of transforms, and their order for plots."""

from __future__ import annotations

from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.functions.elementwise import divide
from metalloid.arrays.functions.evenly_spaced import arange
from metalloid.arrays.functions.manipulation import roll
from metalloid.arrays.functions.select import where
from metalloid.arrays.ir.dtypes import DType, as_dtype, default_float, kind_of
from metalloid.arrays.ir.operands import axes_of, to_node
from metalloid.arrays.lowering.reductions import Axis
from metalloid.runtime.devices.device import Device


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None,
            device: str | Device | None = None) -> Array:  # fmt: skip
    """Return the frequencies of the results of `fft`: non-negative ones, then negative ones.

    Parameters
    ----------
    n : int
        Length of the transform.
    d : float
        Distance between samples.
    dtype : dtype, optional
        A float type; float32 by default.

    Raises
    ------
    ValueError
        If `n` is less than 1.
    TypeError
        If the type is not a float type.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.fft.fftfreq(4)
    array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    result_dtype = _checked("fftfreq", n, dtype)
    index = arange(n, device=device)
    cycles = where(index < (n + 1) // 2, index, index - n)
    return divide(cycles.astype(result_dtype), n * d)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None,
             device: str | Device | None = None) -> Array:  # fmt: skip
    """Return the frequencies of the results of `rfft`, in ascending order; see `fftfreq`.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.fft.rfftfreq(4)
    array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    result_dtype = _checked("rfftfreq", n, dtype)
    return divide(arange(n // 2 + 1, dtype=result_dtype, device=device), n * d)


def _checked(where: str, n: int, dtype: Any) -> DType:
    if n < 1:
        raise ValueError(f"[{where}] n must be at least 1, got {n}.")
    result_dtype = default_float() if dtype is None else as_dtype(dtype)
    if kind_of(result_dtype) != "f":
        raise TypeError(f"[{where}] frequencies must be floats, got {result_dtype}.")
    return result_dtype


def fftshift(x: Any, /, *, axes: Axis = None) -> Array:
    """Swap the halves of the axes, so that frequency 0 is in the middle.

    Parameters
    ----------
    axes : int or tuple of int, optional
        All axes by default.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.fft.fftshift(mtl.fft.fftfreq(4))
    array([-0.5 , -0.25,  0.  ,  0.25], dtype=float32)
    """
    array = Array(to_node(x, "fftshift"))
    along = axes_of("fftshift", axes, array.ndim)
    return roll(array, [array.shape[k] // 2 for k in along], axis=along)


def ifftshift(x: Any, /, *, axes: Axis = None) -> Array:
    """Invert `fftshift`; the two differ for odd extents."""
    array = Array(to_node(x, "ifftshift"))
    along = axes_of("ifftshift", axes, array.ndim)
    return roll(array, [-(array.shape[k] // 2) for k in along], axis=along)
