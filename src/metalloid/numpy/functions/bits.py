"""Bits of bytes as elements, with NumPy's arguments."""

from __future__ import annotations

import operator
from typing import Any

from metalloid.arrays.array import Array, as_array
from metalloid.arrays.functions import elementwise as ew
from metalloid.arrays.functions.evenly_spaced import arange
from metalloid.arrays.functions.manipulation import moveaxis, pad
from metalloid.arrays.ir.dtypes import bool_, kind_of, uint8
from metalloid.arrays.ir.node import TRACED
from metalloid.arrays.ir.operands import axes_of
from metalloid.arrays.library.bits import packed_bits, unpacked_bits
from metalloid.numpy.known_calls import structural_function

_BITS = 8


def _rows(x: Array, axis: Any, bitorder: str, where: str) -> tuple[Array, int, bool]:
    """The array with the axis last, flattened for none; the axis; whether low bits are first."""
    if bitorder not in ("big", "little"):
        raise ValueError(f"[{where}] bitorder must be 'big' or 'little', got {bitorder!r}.")
    if axis is None:
        x, axis = x.ravel(), 0
    (along,) = axes_of(where, axis, x.ndim)
    return moveaxis(x, along, -1), along, bitorder == "little"


def _shifts(x: Array, is_little: bool) -> Array:
    numbers = arange(_BITS, dtype=uint8, device=x.device)
    return numbers if is_little else numbers[::-1]


@structural_function(1)
def packbits(a: Any, /, axis: Any = None, bitorder: str = "big") -> Array:
    """Eight elements along an axis as the bits of a byte: whether each is nonzero.

    Parameters
    ----------
    bitorder : "big" or "little"
        Whether the first element is the highest bit, or the lowest.
    """
    x = as_array(a, "packbits")
    if kind_of(x.dtype) not in "biu":
        raise TypeError(f"[packbits] expected integers or booleans, got {x.dtype}.")
    x, along, is_little = _rows(x.astype(bool_), axis, bitorder, "packbits")
    if rest := -x.shape[-1] % _BITS:
        x = pad(x, [*((0, 0),) * (x.ndim - 1), (0, rest)])
    shape = (*x.shape[:-1], x.shape[-1] // _BITS)
    if x._node.flags & TRACED or not x.size:
        bits = x.reshape(*shape, _BITS).astype(uint8) << _shifts(x, is_little)
        packed = bits.sum(-1, dtype=uint8)
    else:
        packed = Array(packed_bits(x.ravel()._node, is_little)).reshape(shape)
    return moveaxis(packed, -1, along)


@structural_function(1)
def unpackbits(a: Any, /, axis: Any = None, count: Any = None, bitorder: str = "big") -> Array:
    """The bits of bytes as elements of 0 or 1 along an axis.

    Parameters
    ----------
    count : int, optional
        Number of elements: zeros follow the bits. A negative number leaves out the last ones.
    bitorder : "big" or "little"
        Whether the highest bit is the first element, or the lowest.
    """
    x = as_array(a, "unpackbits")
    if x.dtype != uint8:
        raise TypeError(f"[unpackbits] expected uint8, got {x.dtype}.")
    x, along, is_little = _rows(x, axis, bitorder, "unpackbits")
    shape = (*x.shape[:-1], x.shape[-1] * _BITS)
    if x._node.flags & TRACED or not x.size:
        bits = ew.bitwise_and(x[..., None] >> _shifts(x, is_little), 1).astype(uint8)
    else:
        bits = Array(unpacked_bits(x.ravel()._node, is_little))
    bits = bits.reshape(shape)
    if count is not None:
        requested = operator.index(count)
        requested += shape[-1] if requested < 0 else 0
        if requested < 0:
            raise ValueError(f"[unpackbits] count {count} leaves out more than {shape[-1]} bits.")
        bits = bits[..., :requested]
        if requested > shape[-1]:
            bits = pad(bits, [*((0, 0),) * (bits.ndim - 1), (0, requested - shape[-1])])
    return moveaxis(bits, -1, along)
