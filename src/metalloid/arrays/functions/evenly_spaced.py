"""Evenly spaced numbers: `arange` and `linspace`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from metalloid.arrays.array import Array, as_arrays
from metalloid.arrays.ir.dtypes import (
    DType,
    as_dtype,
    bfloat16,
    default_dtype,
    default_float,
    float16,
    float32,
    float64,
    int64,
    kind_of,
    promote,
    real_of,
    type_rules,
)
from metalloid.arrays.ir.extents import SymbolicExtent, as_extent
from metalloid.arrays.ir.host_arrays import from_numpy
from metalloid.arrays.ir.node import cast, iota
from metalloid.arrays.ir.operands import as_number, is_scalar, op, unary, where_node
from metalloid.runtime.devices.device import Device
from metalloid.runtime.devices.registry import get_device

#: From here on, numbers are computed by a kernel instead of NumPy. The axes of a grid have fewer,
#: and its kernel would compute them for each element.
_MANY_ELEMENTS = 2**12


def arange(start: float, /, stop: float | None = None, step: float = 1, dtype: Any = None, *,
           device: str | Device | None = None) -> Array:  # fmt: skip
    """Return evenly spaced numbers in the half-open interval from `start` (0) to `stop`.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.arange(2, 10, 3)
    array([2, 5, 8], dtype=int64)
    """
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("[arange] the step must not be 0.")
    is_integer = all(isinstance(n, int | np.integer) for n in (start, stop, step))
    result_dtype = (int64 if is_integer else default_float()) if dtype is None else as_dtype(dtype)
    if is_integer:
        start, stop, step = map(as_extent, (start, stop, step))
    size = -((start - stop) // step) if is_integer else math.ceil((stop - start) / step)
    size = max(as_extent(size), 0)
    target = get_device(device)
    is_symbolic = any(isinstance(n, SymbolicExtent) for n in (start, stop, step))
    if is_integer and (
        is_symbolic or _are_integers(size, max(abs(start), abs(stop)), result_dtype)
    ):
        scaled = Array(iota((size,), 0, target)) * step + start
        return Array(cast(scaled._node, result_dtype))
    first, step, second = _progression(start, step, result_dtype)
    if size < _MANY_ELEMENTS or not _has_kernel(first.dtype, result_dtype, target):
        with np.errstate(all="ignore"):
            exact = first + step * np.arange(size).astype(first.dtype)
            exact[:2] = (first, second)[:size]
            return Array(from_numpy(exact.astype(result_dtype), target))
    numbers = _counted(size, first, step, target)
    for k, number in enumerate((first, second)):
        with np.errstate(all="ignore"):
            is_another = (first + step * first.dtype.type(k)).tobytes() != number.tobytes()
        numbers = _with_element(numbers, k, number) if is_another else numbers
    return Array(cast(numbers._node, result_dtype))


def _are_integers(size: int, largest: float, dtype: DType) -> bool:
    """Whether numbers of a type are computed as integers, which they equal or are rounded to."""
    limit = 2**24 if dtype == float32 and type_rules.are_numpys else 2**53
    is_exact = dtype in (float32, float64) and largest < limit
    return kind_of(dtype) in "iu" or (is_exact and size >= _MANY_ELEMENTS)


def _progression(start: float, step: float, dtype: DType) -> tuple[Any, Any, Any]:
    """The first number, the distance of the others and the second number, as NumPy's scalars.

    NumPy rounds the first two numbers to the type of the result, and takes their distance from
    then on. By the rules of the array API all numbers are those of float64, rounded.
    """
    computed: DType = float64
    if type_rules.are_numpys and dtype != bfloat16 and kind_of(dtype) in "iufc":
        computed = float32 if dtype == float16 else real_of(dtype)
        with np.errstate(all="ignore"):
            first, second = (
                np.asarray(x).astype(dtype).real.astype(computed)[()] for x in (start, start + step)
            )
            return first, second - first, second
    return np.float64(start), np.float64(step), np.float64(start) + np.float64(step)


def _has_kernel(computed: DType, dtype: DType, device: Device) -> bool:
    return kind_of(dtype) in "iuf" and (computed != float64 or device.has_float64)


def _counted(size: int, start: Any, step: Any, device: Device) -> Array:
    """``start + step * k`` for scalars of NumPy, in their type."""
    dtype = start.dtype
    indices = Array(cast(iota((size,), 0, device), dtype))
    scaled = indices if step == 1 else indices * Array(as_number(step.item(), dtype, device))
    is_sum = start != 0 or step < 0  # the first number is not -0
    return scaled + Array(as_number(start.item(), dtype, device)) if is_sum else scaled


def _with_element(numbers: Array, index: int, value: Any) -> Array:
    indices = Array(iota((numbers.size,), 0, numbers.device))
    number = as_number(float(value), numbers.dtype, numbers.device)
    return Array(where_node(indices == index, Array(number), numbers))


def linspace(start: Any, stop: Any, /, num: int = 50, endpoint: bool = True, *,
             dtype: Any = None, device: str | Device | None = None) -> Array:  # fmt: skip
    """Return `num` evenly spaced numbers from `start` to `stop`.

    Parameters
    ----------
    start, stop : number or Array
        Of arrays, the numbers are along a new first axis.
    endpoint : bool
        Whether `stop` is the last number.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.linspace(0, 1, 5)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    if not (is_scalar(start) and is_scalar(stop)):
        return _between(as_arrays("linspace", start, stop), num, endpoint, dtype)
    is_complex = isinstance(start, complex) or isinstance(stop, complex)
    result_dtype = (
        default_dtype(complex if is_complex else float) if dtype is None else as_dtype(dtype)
    )
    target = get_device(device)
    is_long = num >= _MANY_ELEMENTS and _has_kernel(float64, result_dtype, target)
    if not is_complex and is_long:
        step = (np.float64(stop) - np.float64(start)) / (num - bool(endpoint))
        if step and math.isfinite(step):
            numbers = _counted(num, np.float64(start), step, target)
            numbers = _with_element(numbers, num - 1, stop) if endpoint else numbers
            numbers = (
                Array(unary(op("floor"), numbers)) if kind_of(result_dtype) in "iu" else numbers
            )
            return Array(cast(numbers._node, result_dtype))
    exact = np.linspace(start, stop, num, endpoint=endpoint)
    if kind_of(result_dtype) in "iu":
        exact = np.floor(exact)
    return Array(from_numpy(exact.astype(result_dtype), target))


def _between(limits: list[Array], num: int, endpoint: bool, dtype: Any) -> Array:
    """Evenly spaced numbers between the elements of arrays, along a new first axis."""
    start, stop = limits
    computed = promote(promote(start.dtype, stop.dtype), default_float())
    rank = max(start.ndim, stop.ndim)
    start, stop = start.astype(computed), stop.astype(computed)
    index = Array(cast(iota((num, *(1,) * rank), 0, start.device), real_of(computed)))
    result = start + index * ((stop - start) / max(num - endpoint, 1))
    if endpoint and num > 1:
        result = Array(where_node(index == num - 1, stop, result))
    result_dtype = computed if dtype is None else as_dtype(dtype)
    if kind_of(result_dtype) in "iu":
        result = Array(unary(op("floor"), result))
    return Array(cast(result._node, result_dtype))
