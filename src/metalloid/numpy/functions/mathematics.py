"""Differences, integrals and interpolation, with NumPy's arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from metalloid.arrays.array import Array, as_array, as_arrays
from metalloid.arrays.functions import elementwise as ew
from metalloid.arrays.functions import searching
from metalloid.arrays.functions.manipulation import concat
from metalloid.arrays.functions.select import clip, where
from metalloid.arrays.functions.sorting import argsort
from metalloid.arrays.interop.numpy_functions import call_on_host
from metalloid.arrays.ir.dtypes import default_float, kind_of, promote
from metalloid.arrays.ir.operands import axes_of
from metalloid.numpy.functions.scans import cumsum, diff
from metalloid.numpy.known_calls import structural_function


def _between(x: Array, axis: int, start: int | None, stop: int | None) -> Array:
    return x[(slice(None),) * axis + (slice(start, stop),)]


@structural_function(1)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Derivatives by central differences, one-sided at the edges.

    Parameters
    ----------
    *varargs : number or array
        Distances of the elements, or their coordinates: one for all axes, or one each.
    edge_order : 1 or 2
        Order of accuracy at the edges.

    Examples
    --------
    >>> import metalloid.numpy as np
    >>> np.gradient(np.array([1.0, 2.0, 4.0, 7.0]))
    array([1. , 1.5, 2.5, 3. ])
    """
    x = as_array(f, "gradient")
    axes = axes_of("gradient", axis, x.ndim)
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError(f"[gradient] got {len(varargs)} distances for {len(axes)} axes.")
    if edge_order not in (1, 2):
        raise ValueError(f"[gradient] edge_order must be 1 or 2, got {edge_order}.")
    distances = (
        list(varargs) * len(axes) if len(varargs) == 1 else list(varargs) or [1.0] * len(axes)
    )
    x = x if kind_of(x.dtype) in "fc" else x.astype(default_float())
    results = [_derivative(x, k, h, edge_order) for k, h in zip(axes, distances, strict=True)]
    return results[0] if len(results) == 1 else tuple(results)


def _derivative(x: Array, axis: int, distance: Any, edge_order: int) -> Array:
    extent = x.shape[axis]
    if extent < edge_order + 1:
        raise ValueError(f"[gradient] axis {axis} requires at least {edge_order + 1} elements.")
    steps: Any = distance
    if np.ndim(distance):
        points = as_array(distance, "gradient", x.device)
        if points.ndim != 1 or points.size != extent:
            raise ValueError(f"[gradient] expected {extent} coordinates, got {points.shape}.")
        points = points if kind_of(points.dtype) in "fc" else points.astype(default_float())
        steps = searching.diff(points)
        if bool((steps == steps[0]).all()):
            steps = steps[0]
    is_even = not np.ndim(steps)
    before, after = _between(x, axis, None, -2), _between(x, axis, 2, None)
    if is_even:
        inner = (after - before) / (steps * 2)
        first = last = steps
        ends: Any = (steps,) * 4
    else:
        shape = [-1 if k == axis else 1 for k in range(x.ndim)]
        left, right = steps[:-1].reshape(shape), steps[1:].reshape(shape)
        middle = _between(x, axis, 1, -1)
        inner = (-right / (left * (left + right)) * before
                 + (right - left) / (left * right) * middle
                 + left / (right * (left + right)) * after)  # fmt: skip
        first, last = steps[0], steps[-1]
        ends = (steps[0], steps[1], steps[-2], steps[-1]) if edge_order == 2 else ()

    def line(k: int) -> Array:
        return _between(x, axis, k, k + 1 or None)

    if edge_order == 1:
        low = (line(1) - line(0)) / first
        high = (line(-1) - line(-2)) / last
    elif is_even:
        low = (line(0) * -1.5 + line(1) * 2.0 - line(2) * 0.5) / first
        high = (line(-3) * 0.5 - line(-2) * 2.0 + line(-1) * 1.5) / last
    else:
        a, b, c, d = ends
        low = (line(0) * (-(a * 2 + b) / (a * (a + b))) + line(1) * ((a + b) / (a * b))
               - line(2) * (a / (b * (a + b))))  # fmt: skip
        high = (line(-3) * (d / (c * (c + d))) - line(-2) * ((c + d) / (c * d))
                + line(-1) * ((d * 2 + c) / (d * (c + d))))  # fmt: skip
    return concat([part.astype(x.dtype) for part in (low, inner, high)], axis)


@structural_function(2)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integral along an axis by the trapezoidal rule."""
    values = as_array(y, "trapezoid")
    (along,) = axes_of("trapezoid", axis, values.ndim)
    width = dx
    if x is not None:
        points = as_array(x, "trapezoid", values.device)
        if points.ndim == 1:
            shape = [-1 if k == along else 1 for k in range(values.ndim)]
            width = searching.diff(points).reshape(shape)
        else:
            width = searching.diff(points, axis=along)
    sums = _between(values, along, 1, None) + _between(values, along, None, -1)
    return (sums * width / 2.0).sum(along)


@structural_function(3)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
           ) -> Any:  # fmt: skip
    """Piecewise linear interpolation between the points (`xp`, `fp`).

    Parameters
    ----------
    left, right : number, optional
        Values before and after all points; by default the first and the last one.
    period : number, optional
        Period of the coordinates.

    Examples
    --------
    >>> import metalloid.numpy as np
    >>> np.interp([0.5, 3.0], [0, 1, 2], [0, 10, 30])
    array([ 5., 30.])
    """
    values, points, heights = as_arrays("interp", x, xp, fp)
    if kind_of(heights.dtype) == "c":  # whose parts may be infinite independently
        return call_on_host(np.interp, (values, points, heights, left, right, period), {})
    if points.ndim != 1 or points.shape != heights.shape or not points.size:
        raise ValueError(
            f"[interp] expected points along one axis, got shapes {points.shape}, {heights.shape}."
        )
    wide = promote(promote(values.dtype, points.dtype), default_float())
    values, points = values.astype(wide), points.astype(wide)
    heights = heights.astype(promote(heights.dtype, default_float()))
    if period is not None:
        if period == 0:
            raise ValueError("[interp] the period must not be 0.")
        period = abs(period)
        values, points = values % period, points % period
        order = argsort(points)
        points, heights = points[order], heights[order]
        points = concat([points[-1:] - period, points, points[:1] + period])
        heights = concat([heights[-1:], heights, heights[:1]])
    low, high = points[0], points[-1]
    first = heights[0] if left is None or period is not None else left
    last = heights[-1] if right is None or period is not None else right
    if points.size == 1:
        return where(values < low, first, where(values > low, last, heights[0]))
    index = clip(searching.searchsorted(points, values, "right") - 1, 0, points.size - 2)
    segments = [points[:-1], heights[:-1], points[1:], heights[1:]]
    if values.size < points.size:
        segments = [searching.elements_at(each, index) for each in segments]
        x0, y0, slope = _lines(*segments)
    else:  # as NumPy, which divides once for each segment then
        x0, y0, slope = (searching.elements_at(each, index) for each in _lines(*segments))
    is_level = ew.logical_or(values == x0, slope == 0)
    result = where(is_level, y0, slope * (values - x0) + y0)
    result = where(ew.logical_and(values == low, ew.isinf(low)), heights[0], result)
    result = where(values == high, heights[-1], result)
    result = where(values < low, first, where(values > high, last, result))
    return where(ew.isnan(values), values, result)


def _lines(x0: Array, y0: Array, x1: Array, y1: Array) -> tuple[Array, Array, Array]:
    """A finite point of each line, the first one if both are finite, and its slope.

    The slope is NaN if no point is finite and the heights differ.
    """
    has_no_point = ew.logical_and(ew.isinf(x0), ew.isinf(x1))
    slope = where(has_no_point, np.nan, (y1 - y0) / (x1 - x0))
    slope = where(y0 == y1, 0, slope)
    is_right = ew.logical_or(ew.isinf(x0), ew.logical_and(ew.isinf(y0), ew.isfinite(y1)))
    return where(is_right, x1, x0), where(is_right, y1, y0), slope


@structural_function(1)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Array:
    """Remove jumps of angles by multiples of the period."""
    x = as_array(p, "unwrap")
    (along,) = axes_of("unwrap", axis, x.ndim)
    is_integer = kind_of(x.dtype) in "iu" and isinstance(period, int)
    steps = diff(x, axis=along)
    if kind_of(x.dtype) not in "fc" and not is_integer:
        x, steps = x.astype(default_float()), steps.astype(default_float())
    discont = period / 2 if discont is None else discont
    if is_integer:
        high, remainder = divmod(period, 2)
        is_ambiguous = remainder == 0
    else:
        high, is_ambiguous = period / 2, True
    low = -high
    wrapped = ew.remainder(steps - low, period) + low
    if is_ambiguous:
        wrapped = where(ew.logical_and(wrapped == low, steps > 0), high, wrapped)
    correction = where(ew.abs(steps) < discont, 0, wrapped - steps).astype(x.dtype)
    rest = _between(x, along, 1, None) + cumsum(correction, along, x.dtype)
    return concat([_between(x, along, 0, 1), rest], along)


@structural_function(1)
def sinc(x: Any) -> Array:
    """``sin(pi x) / (pi x)``, 1 at 0."""
    array = as_array(x, "sinc")
    values = array if kind_of(array.dtype) in "fc" else array.astype(default_float())
    angle = np.pi * where(values == 0, 1.0e-20 if values.dtype.itemsize > 2 else 1e-4, values)
    return ew.sin(angle) / angle


@structural_function(1)
def i0(x: Any) -> Array:
    """Modified Bessel function of the first kind, order 0."""
    values = as_array(x, "i0")
    if kind_of(values.dtype) == "c":
        raise TypeError("[i0] is not supported for complex numbers.")
    return ew.i0(values if kind_of(values.dtype) == "f" else values.astype(default_float()))
