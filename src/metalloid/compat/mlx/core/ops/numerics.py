"""Numerics of neural networks, and quantised products."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import metalloid as mtl
from metalloid import nn
from metalloid.compat.mlx.core.array import array, operand, wrap
from metalloid.compat.mlx.core.dtypes import Dtype, is_float
from metalloid.compat.mlx.core.ops.wrapping import (
    arrays_only,
    as_float,
    normalized_axes,
    with_stream,
)

__all__ = [
    "dequantize", "from_fp8", "gather_qmm", "gather_qqmm", "hadamard_transform", "logsumexp",
    "qqmm", "quantize", "quantized_matmul", "softmax", "to_fp8",
]  # fmt: skip


@with_stream
@arrays_only
def softmax(a: array, /, axis: Any = None, *, precise: bool = False) -> array:
    """Exponentials divided by their sum."""
    x = as_float(a._a)
    axes = normalized_axes(axis, x.ndim, "softmax")
    if not axes or not x.size:
        return wrap(mtl.ones_like(x))
    if x.dtype.kind == "c":
        e = mtl.exp(x - mtl.max(x.real, axis=axes, keepdims=True))
        return wrap(e / e.sum(axis=axes, keepdims=True))
    return wrap(nn.softmax(x, axis=axes, precise=precise))


@with_stream
@arrays_only
def logsumexp(a: array, /, axis: Any = None, keepdims: bool = False) -> array:
    """Logarithm of the sum of exponentials."""
    x = as_float(a._a)
    axes = normalized_axes(axis, x.ndim, "logsumexp")
    if not axes:
        return wrap(x)
    if x.size == 0:
        raise ValueError("[logsumexp] Received empty array.")
    if x.dtype.kind == "c":
        top = mtl.max(x.real, axis=axes, keepdims=True)
        result = mtl.log(mtl.exp(x - top).sum(axis=axes, keepdims=True)) + top
        return wrap(result if keepdims else result.squeeze(axes))
    return wrap(nn.logsumexp(x, axis=axes, keepdims=keepdims))


# -- quantisation

#: Names of the array arguments of functions of `metalloid.nn`.
_ARRAYS = ("x", "w", "scales", "biases", "lhs_indices", "rhs_indices", "global_scale")


def _quantised(name: str, doc: str) -> Callable[..., Any]:
    """A function of the same name and arguments of `metalloid.nn`."""
    implementation = getattr(nn, name)

    def function(*args: Any, **named: Any) -> Any:
        given = [a._a if isinstance(a, array) else a for a in args]
        named = {k: v._a if isinstance(v, array) else v for k, v in named.items()}
        if isinstance(named.get("dtype"), Dtype):
            if not is_float(named["dtype"]):
                raise ValueError(
                    f"[{name}] the dtype must be a floating type, got {named['dtype']._name}."
                )
            named["dtype"] = named["dtype"].numpy
        given = [a.numpy if isinstance(a, Dtype) else a for a in given]
        try:
            result = implementation(*given, **named)
        except TypeError as error:
            if str(error).startswith("["):  # a type of elements, which MLX refuses so
                raise ValueError(*error.args) from None
            raise
        return tuple(map(wrap, result)) if isinstance(result, tuple) else wrap(result)

    functools.update_wrapper(function, lambda: None)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return with_stream(function)


quantize = _quantised("quantize", "Quantise a matrix, in groups of its rows.")
dequantize = _quantised("dequantize", "The matrix that `quantize` has quantised.")
quantized_matmul = _quantised("quantized_matmul", "Product with a quantised matrix.")
gather_qmm = _quantised("gather_qmm", "Products with quantised matrices that indices select.")
to_fp8 = _quantised("to_fp8", "Floats as 8-bit floats (e4m3).")
from_fp8 = _quantised("from_fp8", "8-bit floats (e4m3) as floats.")


@with_stream
def qqmm(x: Any, w: Any, scales: Any = None, group_size: int | None = None,
         bits: int | None = None, mode: str = "nvfp4", global_scale_x: Any = None,
         global_scale_w: Any = None) -> array:  # fmt: skip
    """Product of two matrices that are both quantised."""
    if mode not in ("nvfp4", "mxfp8"):
        raise ValueError(
            "[qqmm] Only 'nvfp4' and 'mxfp8' quantization modes are supported but "
            f"'{mode}' was provided."
        )
    options = {"group_size": group_size, "bits": bits, "mode": mode}
    left = dequantize(*quantize(x, **options, global_scale=global_scale_x), **options,
                      global_scale=global_scale_x, dtype=x.dtype)  # fmt: skip
    if scales is None:
        w, scales = quantize(w, **options, global_scale=global_scale_w)
    right = dequantize(w, scales, **options, global_scale=global_scale_w, dtype=x.dtype)
    return wrap(mtl.matmul(left._a, mtl.matrix_transpose(right._a)))


@with_stream
def gather_qqmm(x: Any, w: Any, /, scales: Any = None, lhs_indices: Any = None,
                rhs_indices: Any = None, group_size: int | None = None, bits: int | None = None,
                mode: str = "nvfp4", global_scale_x: Any = None, global_scale_w: Any = None, *,
                sorted_indices: bool = False) -> array:  # fmt: skip
    """Products of quantised matrices that indices select."""
    left = x if lhs_indices is None else _taken(x, lhs_indices)
    right = w if rhs_indices is None else _taken(w, rhs_indices)
    own = scales if rhs_indices is None or scales is None else _taken(scales, rhs_indices)
    return qqmm(left, right, own, group_size, bits, mode, global_scale_x, global_scale_w)


def _taken(x: Any, indices: Any) -> array:
    values = operand(x)
    return wrap(mtl.take(values.reshape((-1, *values.shape[-2:])), operand(indices), axis=0))


# -- the Hadamard transform


@with_stream
def hadamard_transform(a: Any, scale: float | None = None) -> array:
    """The Hadamard transform along the last axis, of extent m * 2^k with m in 1, 12, 20, 28."""
    x = as_float(operand(a))
    if not x.ndim:
        return wrap(x if scale is None else x * scale)
    size = x.shape[-1]
    if not size:
        raise ValueError("[hadamard_transform] Does not work on an empty axis.")
    power = size & -size
    factor = size // power
    for m in (12, 20, 28):
        if size % m == 0 and size // m & (size // m - 1) == 0:
            factor, power = m, size // m
    if factor not in (1, 12, 20, 28):
        raise ValueError(
            "[hadamard_transform] Only supports n = m*2^k where m in (1, 12, 20, 28) and n < 2^26, "
            f"got {size}."
        )
    factor_scale = 1 / math.sqrt(size) if scale is None else scale
    # Sums of halves are rounded once.
    y = x.astype(mtl.float32) if x.dtype.itemsize == 2 else x
    y = y.reshape((*x.shape[:-1], factor, power))
    half = 1
    while half < power:
        pairs = y.reshape((*x.shape[:-1], factor, power // (2 * half), 2, half))
        even, odd = pairs[..., 0, :], pairs[..., 1, :]
        y = mtl.stack([even + odd, even - odd], axis=-2)
        half *= 2
    y = y.reshape((*x.shape[:-1], factor, power))
    if factor > 1:
        y = mtl.matmul(mtl.asarray(hadamard_matrix(factor), y.dtype), y)
    return wrap((y.reshape(x.shape) * factor_scale).astype(x.dtype))


#: First rows of the circulant blocks, four by four, of matrices of N. Sloane's library.
_CIRCULANTS = {
    20: ("+----+----++--++-++-", "-+++++-----+--+++--+", "--++-+-++-+-----++++",
         "-+--+--++-+----+----"),
    28: ("+------++----++-+--+-+--++--", "--++++-+-------++--+++-+--+-",
         "-+-++-++--++--+--------++++-", "-++--++-+-++-+++----++------"),
}  # fmt: skip


@functools.cache
def hadamard_matrix(size: int) -> np.ndarray:
    """A matrix of Hadamard of size 12, 20 or 28."""
    if size == 12:  # R. Paley's second construction, of the quadratic residues modulo 5
        residues = {0: 0, 1: 1, 2: -1, 3: -1, 4: 1}
        core = [[residues[(i - j) % 5] for j in range(5)] for i in range(5)]
        conference = np.array([[0, *[1] * 5], *([1, *row] for row in core)])
        zeros = np.kron(conference == 0, [[1, -1], [-1, -1]])
        return np.kron(conference, [[1, 1], [1, -1]]) + zeros
    rows = []
    for text in _CIRCULANTS[size]:
        first = np.array([1 if sign == "+" else -1 for sign in text]).reshape(4, -1)
        rows += [np.roll(first, k, axis=1).reshape(-1) for k in range(size // 4)]
    return np.array(rows)
