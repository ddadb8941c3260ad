"""Calls of functions along axes, with NumPy's arguments."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from metalloid.arrays.array import as_array
from metalloid.arrays.functions.manipulation import expand_dims, moveaxis, stack
from metalloid.arrays.ir.operands import axes_of
from metalloid.numpy.array import as_ndarrays, numpy_function


@numpy_function
def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
                     ) -> Any:  # fmt: skip
    """Call a function with every vector along an axis."""
    x = as_array(arr, "apply_along_axis")
    (along,) = axes_of("apply_along_axis", axis, x.ndim)
    rows = moveaxis(x, along, -1)
    outer = rows.shape[:-1]
    if 0 in outer:
        raise ValueError("[apply_along_axis] there are no vectors along the axis.")
    flat = as_ndarrays(rows.reshape(math.prod(outer), x.shape[along]))
    results = [as_array(func1d(flat[k], *args, **kwargs), "apply_along_axis")
               for k in range(flat.shape[0])]  # fmt: skip
    joined = stack(results)
    joined = joined.reshape(*outer, *joined.shape[1:])
    inner = len(joined.shape) - len(outer)
    source = range(len(outer), len(outer) + inner)
    return moveaxis(joined, tuple(source), tuple(range(along, along + inner)))


@numpy_function
def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    """Call a function of an array and an axis for each axis; results keep their axes."""
    x = as_array(a, "apply_over_axes")
    rank = x.ndim
    for axis in (axes,) if isinstance(axes, int) else axes:
        result = as_array(func(x, operator.index(axis) % rank), "apply_over_axes")
        x = result if result.ndim == rank else expand_dims(result, operator.index(axis) % rank)
    return x
