"""Continuous distributions, and Bernoulli trials: functions of random bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.functions.elementwise import (
    copysign,
    erf,
    erfinv,
    log,
    maximum,
    minimum,
    nextafter,
)
from metalloid.arrays.ir.dtypes import DType, as_dtype, float32, float64, kind_of, uint32, uint64
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.node import TRACED, apply
from metalloid.arrays.ir.operands import is_number, to_node
from metalloid.arrays.ir.ops import NO_DERIVATIVE, Op
from metalloid.random.integers import Shape, random_bits
from metalloid.random.parameters import parameter, shape_of
from metalloid.transforms.rules.control import stopped

UNIT = Op("unit", "numpy::unit<{T}>({0})", "u", "In [0, 1)", cost=2, file="random",
          tangents=NO_DERIVATIVE)  # fmt: skip
OPEN_UNIT = Op("open_unit", "numpy::open_unit<{T}>({0})", "u", "In (0, 1)", cost=3,
               file="random", tangents=NO_DERIVATIVE)  # fmt: skip
SYMMETRIC_UNIT = Op("symmetric_unit", "numpy::symmetric_unit<{T}>({0})", "u", "In (-1, 1)",
                    cost=3, file="random", tangents=NO_DERIVATIVE)  # fmt: skip


def _floats(where: str, row: Op, shape: Ints, dtype: DType, key: Array | None) -> Array:
    """Apply a row of the table to random bits, 64 of them for float64 and otherwise 32."""
    source = random_bits(where, shape, uint64 if dtype == float64 else uint32, key)
    return Array(apply(row, dtype, source))


def _types(where: str, dtype: Any) -> tuple[DType, DType]:
    """Return the type of the result and of the computation; half floats are rounded at the end.

    Raises
    ------
    TypeError
        If it is not a float type.
    """
    result_dtype = as_dtype(dtype)
    if kind_of(result_dtype) != "f":
        raise TypeError(f"[{where}] expected a float type, got {result_dtype}.")
    return result_dtype, result_dtype if result_dtype.itemsize >= 4 else float32


def _sample(name: str, row: Op, transform: Callable[[Array], Array], shape: Shape | None,
            dtype: Any, loc: Any, scale: Any, key: Array | None) -> Array:  # fmt: skip
    """Transform uniform numbers, then scale and shift them where necessary."""
    where = f"random.{name}"
    result_dtype, computed = _types(where, dtype)
    loc, scale = (parameter(where, p, computed) for p in (loc, scale))
    x = transform(_floats(where, row, shape_of(where, shape, loc, scale), computed, key))
    if not is_number(scale) or scale != 1:
        x = x * scale
    if not is_number(loc) or loc != 0:
        x = x + loc
    return x.astype(result_dtype)


def _before(limit: Array, start: Array) -> Array:
    """The number next to a limit, in the direction of `start`; a constant for derivatives."""
    node = nextafter(limit, start)._node
    return Array(stopped(node) if node.flags & TRACED else node)


def _is_shape(low: tuple[Any, ...], high: Any) -> bool:
    """Whether the limits of `uniform` are a shape and the default: no interval starts at them."""
    return isinstance(high, int) and high == 1 and all(isinstance(n, int) for n in low)


def uniform(low: Any = 0, high: Any = 1, shape: Shape | None = None, dtype: Any = float32,
            key: Array | None = None) -> Array:  # fmt: skip
    """Draw from the uniform distribution in the half-open interval from `low` to `high`.

    Parameters
    ----------
    low, high : number or Array
        Arrays broadcast to `shape`, and determine it by default. A tuple of integers as the only
        argument is the shape.
    shape : int or sequence of int, optional
    dtype : dtype
        A float type.
    key : Array, optional
        The key; by default the next of the sequence of `seed`. Several keys, of shape (..., 2),
        each yield the numbers that they yield alone; their axes come first in the result.

    Notes
    -----
    Between 0 and 1 the results are multiples of 2**-24 in float32, 2**-53 in float64, 2**-11 in
    float16 and 2**-8 in bfloat16, with equal probabilities.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.random.uniform(shape=3, key=mtl.random.key(0))
    array([0.94766706, 0.9785799 , 0.33229148], dtype=float32)
    """
    where = "random.uniform"
    if isinstance(low, tuple) and shape is None and _is_shape(low, high):
        low, shape = 0, low
    result_dtype, _ = _types(where, dtype)
    first, last = (parameter(where, limit, result_dtype) for limit in (low, high))
    unit = _floats(where, UNIT, shape_of(where, shape, first, last), result_dtype, key)
    if is_number(first) and is_number(last):
        if (first, last) == (0, 1):
            return unit
        first, last = (
            Array(to_node(limit, where, result_dtype, unit.device)) for limit in (first, last)
        )
    # Rounding may reach the end of the interval, which is excluded.
    return minimum(unit * (last - first) + first, _before(last, first))


def normal(shape: Shape | None = None, dtype: Any = float32, loc: Any = 0, scale: Any = 1,
           key: Array | None = None) -> Array:  # fmt: skip
    """Draw from the normal distribution.

    Parameters
    ----------
    loc, scale : number or Array
        Mean and standard deviation.
    shape, dtype, key
        See `uniform`.

    Notes
    -----
    The inverse of the cumulative distribution function of one uniform number that is symmetric
    about 0: at most 5.42 standard deviations in float32, 8.29 in float64. Unlike the Box-Muller
    method it uses one uniform number per result and is monotonic: larger bits give larger numbers,
    here and in `truncated_normal`.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.random.normal(3, key=mtl.random.key(0))
    array([ 1.6226426 ,  2.0252647 , -0.43359444], dtype=float32)
    """
    return _sample(name="normal", row=SYMMETRIC_UNIT, transform=lambda x: erfinv(x) * math.sqrt(2),
                  shape=shape, dtype=dtype, loc=loc, scale=scale, key=key)  # fmt: skip


def truncated_normal(lower: Any, upper: Any, shape: Shape | None = None, dtype: Any = float32,
                     key: Array | None = None) -> Array:  # fmt: skip
    """Draw from the standard normal distribution, truncated to an open interval.

    Parameters
    ----------
    lower, upper : number or Array
        Limits, both excluded. float32 has little resolution beyond 5.4 standard deviations.
    shape, dtype, key
        See `uniform`.

    Examples
    --------
    >>> import metalloid as mtl
    >>> x = mtl.random.truncated_normal(-1, 1, 1000, key=mtl.random.key(0))
    >>> bool((abs(x) < 1).all())
    True
    """
    where = "random.truncated_normal"
    result_dtype, computed = _types(where, dtype)
    limits = [parameter(where, limit, computed) for limit in (lower, upper)]
    shape = shape_of(where, shape, *limits)
    first, last = (Array(to_node(limit, where, computed)) for limit in limits)
    low, high = erf(first * math.sqrt(0.5)), erf(last * math.sqrt(0.5))
    x = erfinv(uniform(low, high, shape, computed, key)) * math.sqrt(2)
    return maximum(minimum(x, _before(last, first)), _before(first, last)).astype(result_dtype)


def exponential(shape: Shape | None = None, dtype: Any = float32, scale: Any = 1,
                key: Array | None = None) -> Array:  # fmt: skip
    """Draw from the exponential distribution with the mean `scale`; never 0.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.random.exponential(2, scale=10, key=mtl.random.key(0))
    array([0.53751975, 0.21652801], dtype=float32)
    """
    return _sample(
        name="exponential",
        row=OPEN_UNIT,
        transform=lambda x: -log(x),
        shape=shape,
        dtype=dtype,
        loc=0,
        scale=scale,
        key=key,
    )


def gumbel(shape: Shape | None = None, dtype: Any = float32, loc: Any = 0, scale: Any = 1,
           key: Array | None = None) -> Array:  # fmt: skip
    """Draw from the Gumbel distribution, that of the maximum of many numbers.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.random.gumbel(2, key=mtl.random.key(0))
    array([2.923375 , 3.8326204], dtype=float32)
    """
    return _sample(
        name="gumbel",
        row=OPEN_UNIT,
        transform=lambda x: -log(-log(x)),
        shape=shape,
        dtype=dtype,
        loc=loc,
        scale=scale,
        key=key,
    )


def laplace(shape: Shape | None = None, dtype: Any = float32, loc: Any = 0, scale: Any = 1,
            key: Array | None = None) -> Array:  # fmt: skip
    """Draw from the Laplace distribution: exponential on both sides of `loc`.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.random.laplace(2, key=mtl.random.key(0))
    array([2.2569828, 3.1502788], dtype=float32)
    """
    return _sample(
        name="laplace",
        row=SYMMETRIC_UNIT,
        transform=lambda x: copysign(log(1 - abs(x)), x),
        shape=shape,
        dtype=dtype,
        loc=loc,
        scale=scale,
        key=key,
    )


def bernoulli(p: Any = 0.5, shape: Shape | None = None, key: Array | None = None) -> Array:
    """Draw truth values that are true with the probability `p`.

    Parameters
    ----------
    p : number or Array
        Between 0 and 1, with a resolution of 2**-24.
    shape, key
        See `uniform`.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.random.bernoulli(0.5, 4, key=mtl.random.key(1))
    array([ True, False,  True,  True], dtype=bool)
    """
    where = "random.bernoulli"
    p = parameter(where, p, float32)
    result: Array = _floats(where, UNIT, shape_of(where, shape, p), float32, key) < p
    return result


__all__ = ["bernoulli", "exponential", "gumbel", "laplace", "normal", "truncated_normal",
           "uniform"]  # fmt: skip
