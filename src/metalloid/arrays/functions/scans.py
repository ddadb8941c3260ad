"""Cumulative sums, products, maxima and minima: prefix scans."""

from __future__ import annotations

from typing import Any

import numpy as np

from metalloid.arrays.array import Array, as_array
from metalloid.arrays.execution.calls import host_call
from metalloid.arrays.ir.dtypes import as_dtype, bool_, float32, kind_of, uint8
from metalloid.arrays.ir.node import Node, broadcast, cast
from metalloid.arrays.ir.operands import axes_of, to_node, wide_integer
from metalloid.arrays.ir.primitives import Implementation, bind, implement
from metalloid.arrays.ir.views import concatenated
from metalloid.arrays.library.prefix_scans import has_columns, has_rows, scan_columns, scan_rows


def cumulative_sum(x: Any, /, axis: int | None = None, dtype: Any = None, *,
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
    return _running(
        as_array(x, "cumulative_sum"), "cumulative_sum", axis, dtype, include_initial, 0
    )


def cumulative_prod(x: Any, /, axis: int | None = None, dtype: Any = None, *,
                    include_initial: bool = False) -> Array:  # fmt: skip
    """Return the cumulative product along an axis; types as in `cumulative_sum`."""
    return _running(
        as_array(x, "cumulative_prod"), "cumulative_prod", axis, dtype, include_initial, 1
    )


def cummax(x: Any, /, axis: int | None = None) -> Array:
    """Return the cumulative maximum along an axis: of the elements up to each one.

    Parameters
    ----------
    x : Array
        Of real numbers or booleans.
    axis : int, optional
        Required unless there is exactly one axis.

    Notes
    -----
    From the first NaN on, results are NaN, as those of ``numpy.maximum.accumulate``.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.cummax(mtl.asarray([1, 3, 2]))
    array([1, 3, 3], dtype=int64)
    """
    return _extreme(as_array(x, "cummax"), "cummax", axis)


def cummin(x: Any, /, axis: int | None = None) -> Array:
    """Return the cumulative minimum along an axis; see `cummax`."""
    return _extreme(as_array(x, "cummin"), "cummin", axis)


def _extreme(x: Array, name: str, axis: int | None) -> Array:
    if kind_of(x.dtype) == "c":
        raise TypeError(f"[{name}] complex numbers have no order, got {x.dtype}.")
    along, node = _axis(x, name, axis), x._node
    node = cast(node, uint8) if x.dtype == bool_ else node
    (result,) = bind("scan", [node], (name, along), (node.dtype, x.shape))
    return Array(cast(result, x.dtype))


def _axis(x: Array, name: str, axis: int | None) -> int:
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"[{name}] an array of shape {x.shape} requires an axis.")
        axis = 0
    (along,) = axes_of(name, axis, x.ndim)
    return along


def _running(x: Array, name: str, axis: int | None, dtype: Any, initial: bool,
             start: int) -> Array:  # fmt: skip
    along = _axis(x, name, axis)
    result_dtype = x.dtype if kind_of(x.dtype) in "fc" else wide_integer(x.dtype)
    result_dtype = result_dtype if dtype is None else as_dtype(dtype)
    wide = float32 if kind_of(result_dtype) == "f" and result_dtype.itemsize == 2 else result_dtype
    (result,) = bind("scan", [cast(x._node, wide)], (name, along), (wide, x.shape))
    if initial:
        shape = tuple(1 if k == along else n for k, n in enumerate(x.shape))
        first = broadcast(to_node(start, name, wide, x.device), shape)
        result = concatenated([first, result], along)
    return Array(cast(result, result_dtype))


def _by_numpy(x: Node, name: str, axis: int) -> Node:
    return host_call(_scanned, [x], (name, axis), (x.dtype, x.shape))[0]


implement(
    "scan",
    Implementation(scan_columns, has_columns),
    Implementation(scan_rows, has_rows),
    _by_numpy,
    is_structural=True,
)


_UFUNCS = {
    "cumulative_sum": np.add,
    "cumulative_prod": np.multiply,
    "cummax": np.maximum,
    "cummin": np.minimum,
}


def _scanned(x: np.ndarray, name: str, axis: int) -> np.ndarray:
    scanned: np.ndarray = _UFUNCS[name].accumulate(x, axis=axis, dtype=x.dtype)
    return scanned
