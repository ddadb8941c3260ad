"""Windows of signals, with NumPy's arguments, as expressions of their positions."""

from __future__ import annotations

import math

from metalloid.arrays.array import Array
from metalloid.arrays.functions import elementwise as ew
from metalloid.arrays.functions.creation import ones
from metalloid.arrays.functions.evenly_spaced import arange
from metalloid.arrays.functions.select import where
from metalloid.arrays.ir.dtypes import default_float, float32, float64
from metalloid.numpy.known_calls import structural_function
from metalloid.runtime.devices.registry import get_device


def _positions(M: float) -> Array:
    """From -1 to 1; of fewer than two numbers, 0."""
    wide = float64 if get_device(None).has_float64 else float32
    return arange(1 - M, M, 2, wide) / (M - 1 if M != 1 else 1)


def _cosines(M: float, *factors: float) -> Array:
    """A sum of cosines of multiples of the position: ``factors[k] * cos(k * pi * x)``."""
    x = _positions(M) * math.pi
    result = ones(x.shape, x.dtype) * factors[0]
    for k, factor in enumerate(factors[1:], 1):
        result = result + factor * ew.cos(k * x)
    return result.astype(default_float())


@structural_function(0)
def bartlett(M: int) -> Array:
    """Triangular window of `M` numbers, whose ends are 0; see ``numpy.bartlett``."""
    x = _positions(M)
    return where(x <= 0, 1 + x, 1 - x).astype(default_float())


@structural_function(0)
def blackman(M: int) -> Array:
    """Window of `M` numbers, a sum of three cosines; see ``numpy.blackman``."""
    return _cosines(M, 0.42, 0.5, 0.08)


@structural_function(0)
def hamming(M: int) -> Array:
    """Raised cosine of `M` numbers, whose ends are 0.08; see ``numpy.hamming``."""
    return _cosines(M, 0.54, 0.46)


@structural_function(0)
def hanning(M: int) -> Array:
    """Raised cosine of `M` numbers, whose ends are 0; see ``numpy.hanning``.

    Examples
    --------
    >>> import metalloid.numpy as np
    >>> np.hanning(5)
    array([0. , 0.5, 1. , 0.5, 0. ])
    """
    return _cosines(M, 0.5, 0.5)


@structural_function(0)
def kaiser(M: int, beta: float) -> Array:
    """Window of `M` numbers by a Bessel function of the first kind; see ``numpy.kaiser``.

    Parameters
    ----------
    beta : float
        Shape: 0 is a rectangle, and larger numbers are narrower.
    """
    x = _positions(M)
    peak = ew.i0(ones((), x.dtype) * beta)
    return (ew.i0(beta * ew.sqrt(1 - x * x)) / peak).astype(default_float())
