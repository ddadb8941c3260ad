"""NumPy's namespace: ``import metalloid.numpy as np`` runs a NumPy program as Metal kernels.

Functions have NumPy's names, arguments, default types and promotion. Arrays are `ndarray`: lazy
arrays of `metalloid` with NumPy's methods. `metalloid.config.numpy_floats` chooses 32-bit floats.
docs/numpy.md lists every name and how it is computed.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as _numpy

from metalloid.arrays.functions import data_types, evaluation
from metalloid.errors import unknown_attribute
from metalloid.numpy import fft, host, linalg, methods
from metalloid.numpy import polynomial as polynomial
from metalloid.numpy import random as random
from metalloid.numpy.array import ndarray as ndarray
from metalloid.numpy.functions import (
    along_axes,
    bits,
    convolution,
    creation,
    diagonals,
    indexing,
    insertion,
    logic,
    manipulation,
    mathematics,
    nanfunctions,
    pad,
    polynomials,
    products,
    quantiles,
    reductions,
    scans,
    sorting,
    statistics,
    windows,
)
from metalloid.numpy.ufunc import UFUNCS
from metalloid.numpy.ufunc import ufunc as ufunc

__array_namespace_info__ = data_types.array_namespace_info
__array_api_version__ = "2025.12"
__version__ = _numpy.__version__

#: The chapters, whose functions of NumPy's names are this namespace.
CHAPTERS: tuple[ModuleType, ...] = (
    creation, manipulation, insertion, indexing, diagonals, logic, reductions, scans,
    nanfunctions, sorting, along_axes, statistics, quantiles, mathematics, convolution, polynomials,
    products, windows, pad, bits, host,
)  # fmt: skip
_ALIASES = {
    "amax": reductions.max, "amin": reductions.min, "around": logic.round,
    "select": indexing.select_function, "pad": pad.pad, "sinc": mathematics.sinc,
}  # fmt: skip

flatiter = methods.flatiter
eval, explain = evaluation.eval, evaluation.explain


def _names() -> dict[str, Any]:
    """All names of NumPy, with what this package has for them."""
    names: dict[str, Any] = {name: getattr(_numpy, name) for name in host.SAME}
    names |= {name: host.on_host(name) for name in host.ON_HOST}
    for chapter in CHAPTERS:
        own = {
            n: v
            for n, v in vars(chapter).items()
            if getattr(v, "__module__", "") == chapter.__name__
        }
        names |= {name: value for name, value in own.items() if name in _numpy.__all__}
        names |= {n: v for n, v in vars(chapter).items() if n in ("mgrid", "ogrid", "r_", "c_")}
    return names | UFUNCS | _ALIASES


_NAMES = _names()
globals().update(_NAMES)


def _counterparts() -> dict[Any, Any]:
    """Functions of this package by the function objects of NumPy."""
    table = {}
    for own, theirs in ((_NAMES, _numpy), (vars(linalg), _numpy.linalg), (vars(fft), _numpy.fft)):
        for name, value in own.items():
            function = getattr(theirs, name, None)
            is_function = hasattr(function, "_implementation") or isinstance(function, _numpy.ufunc)
            if is_function and name not in host.ON_HOST and value is not function:
                table[function] = value
    return table


#: Functions of this package by NumPy's function objects, which call ``__array_function__``.
COUNTERPARTS = _counterparts()


def __getattr__(name: str) -> Any:
    if name in host.MISSING:
        raise AttributeError(f"metalloid.numpy has no {name!r}: {host.MISSING[name]}.")
    raise unknown_attribute("metalloid.numpy", name, __dir__())


def __dir__() -> list[str]:
    return sorted({*__all__, "linalg", "fft", "polynomial", "random"})


__all__ = sorted({*_NAMES, "eval", "explain", "ndarray", "ufunc"})
