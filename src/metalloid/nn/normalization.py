"""Normalization over the last axis: fused into one kernel, with sums in float32 or better."""

from __future__ import annotations

from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.functions.elementwise import sqrt
from metalloid.arrays.ir.dtypes import DType, promote
from metalloid.nn.primitives import as_float, call, computed_type, define_composition


def rms_norm(x: Any, weight: Any, eps: float) -> Array:
    """Divide rows by their root mean square.

    Parameters
    ----------
    x : Array
        Rows are along the last axis.
    weight : Array or None
        Factors of the elements of a row.
    eps : float
        Added to the mean square.

    Returns
    -------
    Array
        Of the promoted type of `x` and `weight`.

    Raises
    ------
    ValueError
        If the shapes are incompatible.

    References
    ----------
    B. Zhang and R. Sennrich, "Root mean square layer normalization", NeurIPS 2019.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.nn.rms_norm(mtl.asarray([3.0, -3.0]), None, 0.0)
    array([ 1., -1.], dtype=float32)
    """
    return _normalized("rms_norm", x, [("weight", weight)], eps)


def layer_norm(x: Any, weight: Any, bias: Any, eps: float) -> Array:
    """Subtract the mean of rows, and divide by their standard deviation.

    Parameters
    ----------
    x : Array
        Rows are along the last axis.
    weight, bias : Array or None
        Factors of the elements of a row, and summands.
    eps : float
        Added to the variance.

    Returns
    -------
    Array
        Of the promoted type of all operands.

    Raises
    ------
    ValueError
        If the shapes are incompatible.

    References
    ----------
    J. L. Ba et al., "Layer normalization", 2016.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.nn.layer_norm(mtl.asarray([1.0, 3.0]), None, mtl.asarray([5.0, 5.0]), 0.0)
    array([4., 6.], dtype=float32)
    """
    return _normalized("layer_norm", x, [("weight", weight), ("bias", bias)], eps)


def _normalized(where: str, x: Any, optional: list[tuple[str, Any]], eps: float) -> Array:
    x = as_float(where, x)
    if x.ndim == 0:
        raise ValueError(f"[{where}] expected at least one axis, got shape ().")
    operands, dtype = [x], x.dtype
    for name, value in optional:
        if value is None:
            continue
        vector = as_float(where, value)
        if vector.shape != x.shape[-1:]:
            raise ValueError(
                f"[{where}] {name} must have shape {x.shape[-1:]}, one number for each element of "
                f"the last axis, got {vector.shape}."
            )
        operands.append(vector)
        dtype = promote(dtype, vector.dtype)
    given = tuple(value is not None for _, value in optional)
    return call(f"nn.{where}", operands, (float(eps), given, dtype), dtype, x.shape)


def _rms_norm(*operands: Any) -> Array:
    x, *vectors, eps, given, dtype = operands
    values = x.astype(computed_type(dtype))
    mean = (values * values).sum(-1, keepdims=True) / x.shape[-1]
    return _scaled(values * (1 / sqrt(mean + eps)), vectors, given, dtype)


def _layer_norm(*operands: Any) -> Array:
    x, *vectors, eps, given, dtype = operands
    values = x.astype(computed_type(dtype))
    centred = values - values.sum(-1, keepdims=True) / x.shape[-1]
    variance = (centred * centred).sum(-1, keepdims=True) / x.shape[-1]
    return _scaled(centred * (1 / sqrt(variance + eps)), vectors, given, dtype)


def _scaled(values: Array, vectors: list[Array], given: tuple[bool, ...], dtype: DType) -> Array:
    vectors = [vector.astype(values.dtype) for vector in vectors]
    if given[0]:
        values = values * vectors.pop(0)
    if vectors:
        values = values + vectors[0]
    return values.astype(dtype)


define_composition("nn.rms_norm", _rms_norm)
define_composition("nn.layer_norm", _layer_norm)
