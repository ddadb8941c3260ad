"""Rotary positional encoding: a rotation of pairs of features, as one elementwise expression."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from metalloid.arrays.array import Array, as_array
from metalloid.arrays.functions.elementwise import cos, sin
from metalloid.arrays.functions.evenly_spaced import arange
from metalloid.arrays.functions.manipulation import concat, flip, reshape
from metalloid.arrays.ir.dtypes import DType, int64, kind_of
from metalloid.arrays.ir.host_arrays import from_numpy
from metalloid.arrays.ir.operands import as_number, is_number
from metalloid.nn.primitives import as_float, call, computed_type, define_composition
from metalloid.runtime.devices.device import Device


def rope(x: Any, dims: int, *, traditional: bool, base: float | None, scale: float,
         offset: Any, freqs: Any = None) -> Array:  # fmt: skip
    """Rotate pairs of features by angles that are proportional to their positions.

    Parameters
    ----------
    x : Array of shape (batch, ..., positions, features)
    dims : int
        Number of features to rotate. The others stay unchanged.
    traditional : bool
        Whether pairs are consecutive features; otherwise a feature of the first half of `dims` and
        one of the second.
    base : float or None
        Pair `k` turns by ``base ** (-2 * k / dims)`` from one position to the next.
    scale : float
        Factor of the positions.
    offset : int or Array
        The first position: one, or one for each element of the batch.
    freqs : Array, optional
        Of shape (dims / 2,): the reciprocals of the angles by which pairs turn, instead of `base`.

    Raises
    ------
    ValueError
        If shapes are incompatible, or both or neither of `base` and `freqs` are given.

    References
    ----------
    J. Su et al., "RoFormer: enhanced transformer with rotary position embedding", 2021.

    Examples
    --------
    >>> import metalloid as mtl
    >>> x = mtl.asarray([1.0, 0.0]).reshape(1, 1, 2)
    >>> mtl.nn.rope(x, 2, traditional=True, base=1e4, scale=1.0, offset=1).flatten()
    array([0.5403023 , 0.84147096], dtype=float32)
    """
    x = as_float("rope", x)
    if x.ndim < 3:
        raise ValueError(f"[rope] expected at least three axes, got shape {x.shape}.")
    if dims % 2 or not 0 < dims <= x.shape[-1]:
        raise ValueError(f"[rope] dims must be even and at most {x.shape[-1]}, got {dims}.")
    if (base is None) == (freqs is None):
        raise ValueError(f"[rope] give either base or freqs, got base={base} and freqs={freqs}.")
    dtype = computed_type(x.dtype)
    if base is not None:
        rates = _rates(x.device, dims, float(base), dtype)
    else:
        rates = 1 / as_float("rope", freqs).astype(dtype)
        if rates.shape != (dims // 2,):
            raise ValueError(f"[rope] freqs must have shape {(dims // 2,)}, got {rates.shape}.")
    params = dims, bool(traditional), float(scale)
    return call("nn.rope", [x, _first_position(x, offset), rates], params, x.dtype, x.shape)


def _first_position(x: Array, offset: Any) -> Array:
    if is_number(offset):
        return Array(as_number(offset, int64, x.device))
    first = as_array(offset, "rope", x.device)
    if kind_of(first.dtype) not in "iu" or first.shape not in ((), (1,), x.shape[:1]):
        raise ValueError(
            f"[rope] offset must be an integer or {x.shape[0]} of them, got {first.dtype} of shape "
            f"{first.shape}."
        )
    return first


@functools.lru_cache(maxsize=64)
def _rates(device: Device, dims: int, base: float, dtype: DType) -> Array:
    """The angles by which pairs turn from one position to the next."""
    exponents = np.arange(dims // 2) / (dims // 2)
    return Array(from_numpy((base**-exponents).astype(dtype), device))


@functools.lru_cache(maxsize=64)
def _signs(device: Device, dtype: DType) -> Array:
    return Array(from_numpy(np.array([-1, 1], dtype), device))


def _rope(x: Array, first: Array, rates: Array, dims: int, traditional: bool,
          scale: float) -> Array:  # fmt: skip
    dtype = rates.dtype
    positions = arange(x.shape[-2], device=x.device) + reshape(first, (-1, 1))
    angles = (positions.astype(dtype) * scale)[..., None] * rates
    middle = (1,) * (x.ndim - 3)
    angles = reshape(angles, (angles.shape[0], *middle, x.shape[-2], dims // 2))
    axis = -1 if traditional else -2
    pairs = (dims // 2, 2) if traditional else (2, dims // 2)
    rotated = reshape(x[..., :dims].astype(dtype), (*x.shape[:-1], *pairs))
    angles = angles[..., :, None] if traditional else angles[..., None, :]
    signs = reshape(_signs(x.device, dtype), (1, 2) if traditional else (2, 1))
    result = rotated * cos(angles) + flip(rotated, axis=axis) * (sin(angles) * signs)
    result = reshape(result.astype(x.dtype), (*x.shape[:-1], dims))
    return result if dims == x.shape[-1] else concat([result, x[..., dims:]], axis=-1)


define_composition("nn.rope", _rope, is_stackable=False)
