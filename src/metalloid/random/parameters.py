"""Parameters of distributions: numbers or arrays that broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np

from metalloid.arrays.array import Array
from metalloid.arrays.ir.dtypes import DType
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.operands import is_number, to_node
from metalloid.arrays.ir.views import as_shape
from metalloid.kernels.strides import broadcast_shape
from metalloid.random.integers import Shape


def shape_of(where: str, shape: Shape | None, *parameters: Any) -> Ints:
    """Return the requested shape, by default that of the parameters.

    Raises
    ------
    ValueError
        If parameters do not broadcast to it.
    """
    own = [p.shape for p in parameters if not is_number(p)]
    if shape is None:
        return broadcast_shape(where, *own)
    extents = as_shape(where, shape)
    if own and broadcast_shape(where, extents, *own) != extents:
        raise ValueError(f"[{where}] parameters of shape {own} do not broadcast to {extents}.")
    return extents


def parameter(where: str, value: Any, dtype: DType) -> Any:
    """Convert a parameter to a float or an array."""
    return (
        float(value)
        if is_number(value) or isinstance(value, np.floating)
        else Array(to_node(value, where)).astype(dtype)
    )
