"""Cumulative sums and products: prefix scans."""

from __future__ import annotations

from typing import Any

import numpy as np

from metalloid.arrays.array import Array
from metalloid.arrays.execution.calls import host_call, launch_call
from metalloid.arrays.ir.dtypes import as_dtype, float32, kind_of
from metalloid.arrays.ir.node import Node, broadcast, cast, permute
from metalloid.arrays.ir.operands import axes_of, to_node, wide_integer
from metalloid.arrays.ir.primitives import Implementation, bind, implement
from metalloid.arrays.ir.views import concatenated
from metalloid.arrays.library.prefix_scans import has_columns, has_rows, scan_columns, scan_rows
from metalloid.arrays.library.scan import scanned_rows
from metalloid.kernels.operands import MAX_ELEMENTS


def cumulative_sum(x: Array, /, *, axis: int | None = None, dtype: Any = None,
                   include_initial: bool = False) -> Array:  # fmt: skip
    """Return the cumulative sum along an axis.

    Parameters
    ----------
    axis : int, optional
        Required unless there is exactly one axis.
    dtype : dtype, optional
        Type of the result. By default integers are summed in 64 bits.
    include_initial : bool
        Whether the result starts with an additional 0.

    Notes
    -----
    Floats are added in the order of a tree (G. E. Blelloch, "Prefix sums and their applications",
    CMU-CS-90-190, 1990), or one after another with what rounding has cut off (Kahan): the error
    grows with the logarithm of the length at most.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.cumulative_sum(mtl.asarray([1, 2, 3]))
    array([1, 3, 6], dtype=int64)
    """
    return _running(x, "cumulative_sum", axis, dtype, include_initial, 0)


def cumulative_prod(x: Array, /, *, axis: int | None = None, dtype: Any = None,
                    include_initial: bool = False) -> Array:  # fmt: skip
    """Return the cumulative product along an axis; types as in `cumulative_sum`."""
    return _running(x, "cumulative_prod", axis, dtype, include_initial, 1)


def _running(x: Array, name: str, axis: int | None, dtype: Any, initial: bool,
             start: int) -> Array:  # fmt: skip
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"[{name}] an array of shape {x.shape} requires an axis.")
        axis = 0
    (along,) = axes_of(name, axis, x.ndim)
    result_dtype = x.dtype if kind_of(x.dtype) in "fc" else wide_integer(x.dtype)
    result_dtype = result_dtype if dtype is None else as_dtype(dtype)
    wide = float32 if kind_of(result_dtype) == "f" and result_dtype.itemsize == 2 else result_dtype
    (result,) = bind("scan", [cast(x._node, wide)], (name, along), (wide, x.shape))
    if initial:
        shape = tuple(1 if k == along else n for k, n in enumerate(x.shape))
        first = broadcast(to_node(start, name, wide, x.device), shape)
        result = concatenated([first, result], along)
    return Array(cast(result, result_dtype))


def _is_by_launches(x: Node, name: str, axis: int) -> bool:
    is_real = kind_of(x.dtype) != "c"
    return x.device.traits.is_simt and is_real and 0 < x.size <= MAX_ELEMENTS


def _by_launches(x: Node, name: str, axis: int) -> Node:
    order = (*(k for k in range(len(x.shape)) if k != axis), axis)
    rows = permute(x, order)
    (result,) = launch_call(scanned_rows, [rows], (name,), (x.dtype, rows.shape))
    return permute(result, tuple(order.index(k) for k in range(len(order))))


def _by_numpy(x: Node, name: str, axis: int) -> Node:
    return host_call(_scanned, [x], (name, axis), (x.dtype, x.shape))[0]


implement(
    "scan",
    Implementation(scan_columns, has_columns),
    Implementation(_by_launches, _is_by_launches),
    Implementation(scan_rows, has_rows),
    _by_numpy,
)


def _scanned(x: np.ndarray, name: str, axis: int) -> np.ndarray:
    function = np.cumsum if name == "cumulative_sum" else np.cumprod
    scanned: np.ndarray = function(x, axis=axis, dtype=x.dtype)
    return scanned
