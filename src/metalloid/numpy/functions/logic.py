"""Comparisons of arrays and tests of their elements, with NumPy's arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from metalloid.arrays.array import Array, as_array, as_arrays
from metalloid.arrays.functions import elementwise as ew
from metalloid.arrays.functions.select import clip as clip_elements
from metalloid.arrays.functions.select import round as round_elements
from metalloid.arrays.functions.select import where
from metalloid.arrays.ir.dtypes import as_dtype, bool_, default_float, int64, kind_of, promote
from metalloid.arrays.ir.node import broadcast
from metalloid.kernels.strides import broadcast_shape
from metalloid.numpy import complex_order
from metalloid.numpy.array import as_ndarrays, numpy_function, store
from metalloid.numpy.composed import as_floats
from metalloid.numpy.known_calls import structural_function
from metalloid.numpy.memory_order import addresses_of


@structural_function(2)
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Array:
    """Whether numbers differ by at most ``atol + rtol * abs(b)``."""
    x, y = as_arrays("isclose", a, b)
    if kind_of(y.dtype) not in "fc":
        y = y.astype(default_float())
    limit = ew.add(atol, ew.multiply(rtol, ew.abs(y)))
    is_near = ew.less_equal(ew.abs(x - y), limit)
    result = ew.logical_and(is_near, ew.logical_and(ew.isfinite(x), ew.isfinite(y)))
    result = ew.logical_or(result, ew.equal(x, y))
    if equal_nan:
        result = ew.logical_or(result, ew.logical_and(ew.isnan(x), ew.isnan(y)))
    return result


@structural_function(2)
def _are_close(a: Any, b: Any, rtol: Any, atol: Any, equal_nan: bool) -> Array:
    return isclose(a, b, rtol, atol, equal_nan).all()


def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all numbers are close; see `isclose`."""
    return bool(_are_close(a, b, rtol, atol, equal_nan))


@structural_function(2)
def _are_equal(a: Any, b: Any, equal_nan: bool) -> Array | bool:
    x, y = as_arrays("array_equal", a, b)
    if x.shape != y.shape:
        return False
    result = ew.equal(x, y)
    if equal_nan:
        result = ew.logical_or(result, ew.logical_and(ew.isnan(x), ew.isnan(y)))
    return result.all()


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Whether two arrays have the same shape and elements."""
    return bool(_are_equal(a1, a2, equal_nan))


@structural_function(2)
def _are_equivalent(a: Any, b: Any) -> Array | bool:
    x, y = as_arrays("array_equiv", a, b)
    try:
        broadcast_shape("array_equiv", x.shape, y.shape)
    except ValueError:
        return False
    return ew.equal(x, y).all()


def array_equiv(a1: Any, a2: Any) -> bool:
    """Whether two arrays have the same elements after they are broadcast."""
    return bool(_are_equivalent(a1, a2))


def _infinite(name: str, is_positive: bool) -> Any:
    @numpy_function
    def function(x: Any, out: Any = None) -> Any:
        values = as_array(x, name)
        if kind_of(values.dtype) == "c":
            raise TypeError(f"[{name}] complex numbers have no order.")
        values = as_floats(values, name)
        result = ew.equal(values, np.inf if is_positive else -np.inf)
        return store(result, out, name, broadcasts=True)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Whether numbers are {'positive' if is_positive else 'negative'} infinity."
    return function


isposinf, isneginf = _infinite("isposinf", True), _infinite("isneginf", False)


@structural_function(1)
def iscomplex(x: Any) -> Array:
    """Whether elements have an imaginary part."""
    return ew.not_equal(as_array(x, "iscomplex").astype(as_dtype(complex)).imag, 0)


@structural_function(1)
def isreal(x: Any) -> Array:
    """Whether elements have no imaginary part."""
    return ew.logical_not(iscomplex(x))


def iscomplexobj(x: Any) -> bool:
    """Whether an array has a complex type."""
    return kind_of(as_array(x, "iscomplexobj").dtype) == "c"


def isrealobj(x: Any) -> bool:
    """Whether an array has a real type."""
    return not iscomplexobj(x)


def isscalar(element: Any) -> bool:
    """Whether a value is a number; arrays without axes are, as NumPy's results are scalars."""
    return element.ndim == 0 if isinstance(element, Array) else np.isscalar(element)


def isfortran(a: Any) -> bool:
    """Whether elements are in column-major order in memory, and not in row-major order, too."""
    array = as_ndarrays(as_array(a, "isfortran"))
    return bool(array.flags.fnc)


def shares_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    """Whether elements of two arrays have the same memory; no write to one changes the other."""
    return np.shares_memory(addresses_of(a), addresses_of(b), max_work)


def may_share_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    """Whether the ranges of memory of two arrays overlap; see `shares_memory`."""
    return np.may_share_memory(addresses_of(a), addresses_of(b), max_work)


def iterable(y: Any) -> bool:
    """Whether a value can be iterated over."""
    return bool(y.ndim) if isinstance(y, Array) else np.iterable(y)


@structural_function(1)
def real(val: Any) -> Array:
    """Real part."""
    return as_array(val, "real").real


@structural_function(1)
def imag(val: Any) -> Array:
    """Imaginary part."""
    x = as_array(val, "imag")
    return x.imag if kind_of(x.dtype) != "b" else x.astype(bool_) & False


@structural_function(1)
def angle(z: Any, deg: bool = False) -> Array:
    """Angle of complex numbers, in radians or degrees."""
    x = as_array(z, "angle")
    x = x.astype(default_float()) if kind_of(x.dtype) == "b" else as_floats(x, "angle")
    is_complex = kind_of(x.dtype) == "c"
    imaginary = x.imag if is_complex else where(ew.isnan(x), x, 0)
    result = ew.atan2(imaginary, x.real)
    return result * (180 / np.pi) if deg else result


@numpy_function
def real_if_close(a: Any, tol: float = 100) -> Array:
    """Real part, if all imaginary parts are a few units in the last place of 1 at most."""
    x = as_array(a, "real_if_close")
    if kind_of(x.dtype) != "c":
        return x
    limit = tol * float(np.finfo(x.dtype).eps) if tol > 1 else tol
    return x.real if bool((ew.abs(x.imag) < limit).all()) else x


# -- limits and rounding


@structural_function(3)
def clip(a: Any, a_min: Any = np._NoValue, a_max: Any = np._NoValue, out: Any = None, *,
         min: Any = np._NoValue, max: Any = np._NoValue, **options: Any) -> Any:  # fmt: skip
    """Limit elements to an interval."""
    limits = [
        first if first is not np._NoValue else None if second is np._NoValue else second
        for first, second in ((a_min, min), (a_max, max))
    ]
    x = as_array(a, "clip")
    dtype, shapes, operands = x.dtype, [x.shape], []
    for limit in limits:
        if hasattr(limit, "dtype") or isinstance(limit, list | tuple):
            limit = as_array(limit, "clip", x.device)
            dtype, shapes = promote(dtype, limit.dtype), [*shapes, limit.shape]
        elif isinstance(limit, float) and kind_of(x.dtype) not in "fc":
            dtype = default_float()
        elif isinstance(limit, int) and not isinstance(limit, bool) and kind_of(dtype) == "b":
            dtype = int64
        elif isinstance(limit, int) and kind_of(x.dtype) in "iu":
            info = np.iinfo(x.dtype)  # limits beyond the type have no effect
            limit = sorted((int(info.min), limit, int(info.max)))[1]
        operands.append(limit)
    if dtype != x.dtype or len(shapes) > 1:
        x = Array(broadcast(x.astype(dtype)._node, broadcast_shape("clip", *shapes)))
    if kind_of(dtype) == "c":
        for name, limit in zip(("maximum", "minimum"), operands, strict=True):
            if limit is not None:
                x = complex_order.FUNCTIONS[name](x, as_array(limit, "clip", x.device))
    else:
        x = clip_elements(x, *operands)
    return store(x, out, "clip", options.get("casting", "same_kind"), broadcasts=True)


@structural_function(1)
def round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """Round to a number of decimals, to the even one of two."""
    x = as_array(a, "round")
    if kind_of(x.dtype) == "b":
        x = x.astype(np.float16)
    return store(round_elements(x, decimals), out, "round")


@structural_function(1)
def fix(x: Any, out: Any = None) -> Any:
    """Round towards zero."""
    array = as_array(x, "fix")
    result = array if kind_of(array.dtype) == "b" else ew.trunc(array)
    return store(result, out, "fix", broadcasts=True)
