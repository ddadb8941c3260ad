"""Quantized matrices, in the formats of MLX, and products with them."""

from __future__ import annotations

import math
from typing import Any

from metalloid.arrays.array import Array, as_array
from metalloid.arrays.functions.manipulation import broadcast_to, reshape
from metalloid.arrays.functions.searching import take
from metalloid.arrays.ir.dtypes import (
    as_dtype,
    bfloat16,
    float32,
    kind_of,
    promote,
    uint8,
    uint32,
)
from metalloid.arrays.ir.node import Node
from metalloid.arrays.ir.primitives import Implementation
from metalloid.kernels.strides import broadcast_shape
from metalloid.nn import quantized_formats as formats
from metalloid.nn.gathered_products import pairs_of
from metalloid.nn.primitives import as_float, call, define_composition
from metalloid.nn.quantized_formats import Format, format_of
from metalloid.nn.quantized_launches import product_of_rows
from metalloid.nn.quantized_simt import MAX_ROWS


def quantize(w: Any, /, group_size: int | None = None, bits: int | None = None,
             mode: str = "affine", *, global_scale: Any = None) -> tuple[Array, ...]:  # fmt: skip
    """Quantize the rows of a matrix.

    Parameters
    ----------
    w : Array of shape (..., rows, columns)
    group_size : int, optional
        Number of consecutive elements with a common scale: 32, 64 (the default) or 128 for affine,
        32 for mxfp4 and mxfp8, 16 for nvfp4.
    bits : int, optional
        Bits of an element: 2, 3, 4 (the default), 5, 6 or 8 for affine.
    mode : str
        "affine": integers times a scale plus a bias. "mxfp4", "mxfp8", "nvfp4": floats of 4 or 8
        bits times a scale of 8 bits.
    global_scale : Array, optional
        The largest absolute value of a matrix in nvfp4, which extends the range of its scales.

    Returns
    -------
    words : Array of uint32
        Elements are packed from the lowest bits on.
    scales : Array
        One for each group: of the type of `w` for affine, otherwise of uint8.
    biases : Array
        For affine only.

    Raises
    ------
    ValueError
        If there is no such format, or the number of columns is no multiple of `group_size`.

    References
    ----------
    B. D. Rouhani et al., "Microscaling data formats for deep learning", 2023.

    Examples
    --------
    >>> import metalloid as mtl
    >>> words, scales, biases = mtl.nn.quantize(mtl.arange(64.0).reshape(1, 64), bits=8)
    >>> words.shape, scales.shape
    ((1, 16), (1, 1))
    """
    fmt = format_of("quantize", mode, group_size, bits)
    w = as_array(w, "quantize")
    if kind_of(w.dtype) != "f":
        raise TypeError(f"[quantize] expected floats, got {w.dtype}.")
    if w.ndim < 2 or w.shape[-1] % fmt.group_size:
        raise ValueError(
            f"[quantize] expected a matrix with a multiple of {fmt.group_size} columns, got shape "
            f"{w.shape}."
        )
    if global_scale is not None and mode != "nvfp4":
        raise ValueError(f"[quantize] only nvfp4 has a global scale, not {mode}.")
    groups = reshape(w, (*w.shape[:-1], -1, fmt.group_size))
    rows = (*w.shape[:-1], w.shape[-1])
    if mode == "affine":
        codes, scales, biases = formats.quantized_affine(groups, fmt.bits)
        words = formats.packed(reshape(codes, rows), fmt.bits)
        return words, scales[..., 0].astype(w.dtype), biases[..., 0].astype(w.dtype)
    total = None if global_scale is None else as_array(global_scale, "quantize")
    codes, scales = formats.quantized_floats(groups, mode, total)
    return formats.packed(reshape(codes, rows), fmt.bits), scales[..., 0]


def dequantize(w: Any, /, scales: Any, biases: Any = None, group_size: int | None = None,
               bits: int | None = None, mode: str = "affine", global_scale: Any = None,
               dtype: Any = None) -> Array:  # fmt: skip
    """Return the matrix of which `quantize` made words, scales and biases.

    Parameters
    ----------
    w : Array of uint32
    scales, biases : Array
    group_size, bits, mode, global_scale
        As those of `quantize`.
    dtype : dtype, optional
        By default the type of affine scales, otherwise bfloat16.

    Examples
    --------
    >>> import metalloid as mtl
    >>> x = mtl.arange(64.0).reshape(1, 64)
    >>> bool(abs(mtl.nn.dequantize(*mtl.nn.quantize(x, bits=8), bits=8) - x).max() < 0.2)
    True
    """
    fmt = format_of("dequantize", mode, group_size, bits)
    operands = _operands("dequantize", w, scales, biases, fmt)
    default = operands[1].dtype if mode == "affine" else bfloat16
    result = default if dtype is None else as_dtype(dtype)
    shape = (*operands[0].shape[:-1], operands[0].shape[-1] * 32 // fmt.bits)
    if global_scale is None:
        return call("nn.dequantize", operands, (fmt, result), result, shape)
    values = call("nn.dequantize", operands, (fmt, float32), float32, shape)
    factor = as_array(global_scale, "dequantize").astype(float32) / (448.0 * 6.0)
    return (values * factor).astype(result)


def quantized_matmul(x: Any, w: Any, /, scales: Any, biases: Any = None, transpose: bool = True,
                     group_size: int | None = None, bits: int | None = None,
                     mode: str = "affine") -> Array:  # fmt: skip
    """Multiply with a quantized matrix.

    Parameters
    ----------
    x : Array of shape (..., rows, depth)
    w, scales, biases : Array
        As `quantize` returns them.
    transpose : bool
        Whether to multiply with the transpose of the matrix, ``x @ w.T``, or ``x @ w``.
    group_size, bits, mode
        As those of `quantize`.

    Raises
    ------
    ValueError
        If the shapes are incompatible.

    Notes
    -----
    On CPUs, up to six rows of float16 or bfloat16 are rounded to integers of 16 bits for each group
    if the matrix has 2, 4 or 8 bits. No element is off by more than 2**-16 of the group's largest.

    Examples
    --------
    >>> import metalloid as mtl
    >>> w = mtl.nn.quantize(mtl.ones((2, 64)))
    >>> mtl.round(mtl.nn.quantized_matmul(mtl.ones((1, 64)), *w))
    array([[64., 64.]], dtype=float32)
    """
    where = "quantized_matmul"
    fmt = format_of(where, mode, group_size, bits)
    x, operands = as_float(where, x), _operands(where, w, scales, biases, fmt)
    outer = _outer_extent(where, x, operands[0], transpose, fmt)
    dtype = promote(x.dtype, operands[1].dtype) if mode == "affine" else x.dtype
    stack = broadcast_shape(where, x.shape[:-2], operands[0].shape[:-2])
    shape = (*stack, *x.shape[-2:-1], outer)
    return call(f"nn.{where}", [x, *operands], (fmt, transpose, dtype), dtype, shape)


def gather_qmm(x: Any, w: Any, /, scales: Any, biases: Any = None, lhs_indices: Any = None,
               rhs_indices: Any = None, transpose: bool = True, group_size: int | None = None,
               bits: int | None = None, mode: str = "affine", global_scale: Any = None, *,
               sorted_indices: bool = False) -> Array:  # fmt: skip
    """Multiply pairs of a stack of matrices and a stack of quantized ones, chosen by indices.

    Parameters
    ----------
    x : Array of shape (..., rows, depth)
    w, scales, biases : Array
        As `quantize` returns them for a stack of matrices.
    lhs_indices, rhs_indices : Array of integers, optional
        Flat indices into the stacks, which broadcast; by default all matrices in their order.
    transpose, group_size, bits, mode
        As those of `quantized_matmul`.
    global_scale : Array, optional
        As that of `dequantize`.
    sorted_indices : bool
        For compatibility.

    Examples
    --------
    >>> import metalloid as mtl
    >>> w = mtl.nn.quantize(mtl.arange(3.0).reshape(3, 1, 1) * mtl.ones((1, 64)))
    >>> x = mtl.ones((1, 1, 64))
    >>> left, right = mtl.asarray([0, 0]), mtl.asarray([2, 1])
    >>> products = mtl.nn.gather_qmm(x, *w, lhs_indices=left, rhs_indices=right)
    >>> mtl.round(products).flatten()
    array([128.,  64.], dtype=float32)
    """
    where = "gather_qmm"
    fmt = format_of(where, mode, group_size, bits)
    x, operands = as_float(where, x), _operands(where, w, scales, biases, fmt)
    outer = _outer_extent(where, x, operands[0], transpose, fmt)
    dtype = promote(x.dtype, operands[1].dtype) if mode == "affine" else x.dtype
    stack, left, right = pairs_of(where, x, operands[0], lhs_indices, rhs_indices)
    shape = (*stack, x.shape[-2], outer)
    params = fmt, transpose, dtype, stack
    result = call(f"nn.{where}", [x, *operands, left, right], params, dtype, shape)
    if global_scale is None:
        return result
    factor = as_array(global_scale, where).astype(float32) / (448.0 * 6.0)
    return (result * factor).astype(dtype)


def to_fp8(x: Any) -> Array:
    """Return the codes of the nearest floats of 8 bits (E4M3), as uint8.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.nn.to_fp8(mtl.asarray([1.0, -0.5, 1000.0]))
    array([ 56, 176, 126], dtype=uint8)
    """
    return formats.to_float8(as_float("to_fp8", x))


def from_fp8(x: Any, dtype: Any = bfloat16) -> Array:
    """Return floats of 8 bits (E4M3), given by their codes, in another type.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.nn.from_fp8(mtl.asarray([56, 176], dtype=mtl.uint8), mtl.float32)
    array([ 1. , -0.5], dtype=float32)
    """
    codes = as_array(x, "from_fp8")
    if codes.dtype != uint8:
        raise TypeError(f"[from_fp8] expected codes of uint8, got {codes.dtype}.")
    return formats.from_float8(codes).astype(as_dtype(dtype))


def _operands(where: str, w: Any, scales: Any, biases: Any, fmt: Format) -> list[Array]:
    """Words, scales and biases of a matrix, checked."""
    words, factors = as_array(w, where), as_array(scales, where)
    if words.dtype != uint32:
        raise TypeError(f"[{where}] a quantized matrix must be of uint32, got {words.dtype}.")
    if (biases is not None) != (fmt.mode == "affine"):
        expected = "needs biases" if fmt.mode == "affine" else "has no biases"
        raise ValueError(f"[{where}] a matrix in the mode {fmt.mode} {expected}.")
    is_right = kind_of(factors.dtype) == "f" if fmt.mode == "affine" else factors.dtype == uint8
    if not is_right:
        raise TypeError(f"[{where}] scales of {factors.dtype} are not those of {fmt.mode}.")
    columns = words.shape[-1] * 32 // fmt.bits if words.ndim else 0
    expected_shape = (*words.shape[:-1], columns // fmt.group_size)
    arrays = [words, factors] if biases is None else [words, factors, as_array(biases, where)]
    for name, array in zip(("scales", "biases"), arrays[1:], strict=False):
        if words.ndim < 2 or array.shape != expected_shape or columns % fmt.group_size:
            raise ValueError(
                f"[{where}] {name} of shape {array.shape} are incompatible with words of shape "
                f"{words.shape}: {fmt.bits} bits in groups of {fmt.group_size} need "
                f"{expected_shape}."
            )
    return arrays


def _outer_extent(where: str, x: Array, words: Array, transpose: bool, fmt: Format) -> int:
    """The number of columns of a product."""
    rows, columns = words.shape[-2], words.shape[-1] * 32 // fmt.bits
    inner, outer = (columns, rows) if transpose else (rows, columns)
    if x.ndim == 0 or x.shape[-1] != inner:
        raise ValueError(
            f"[{where}] x of shape {x.shape} is incompatible with a quantized matrix of shape "
            f"{(rows, columns)} with transpose={transpose}: expected {inner} as its last extent."
        )
    return outer


# -- compositions and implementations


def _dequantized(*operands: Any) -> Array:
    *arrays, fmt, dtype = operands
    return formats.dequantized(*_three(arrays), fmt, dtype)


def _three(arrays: list[Array]) -> tuple[Array, Array, Array | None]:
    words, scales, *biases = arrays
    return words, scales, biases[0] if biases else None


def _matmul(*operands: Any) -> Array:
    x, *arrays, fmt, transpose, dtype = operands
    matrix = formats.dequantized(*_three(arrays), fmt, dtype)
    product: Array = x.astype(dtype) @ (matrix.mT if transpose else matrix)
    return product


def _gather_matmul(*operands: Any) -> Array:
    x, *arrays, left, right, fmt, transpose, dtype, _ = operands
    flat = [reshape(array, (-1, *array.shape[-2:])) for array in (x, *arrays)]
    chosen = [take(flat[0], left, axis=0), *(take(array, right, axis=0) for array in flat[1:])]
    return _matmul(*chosen, fmt, transpose, dtype)


def _is_narrow(x: Node, words: Node, *rest: Any) -> bool:
    *_, transpose, dtype = rest
    rows = math.prod(x.shape[:-1])
    return (len(words.shape) == 2 and transpose and dtype.itemsize <= 4
            and 0 < rows <= MAX_ROWS and words.size > 0)  # fmt: skip


def _narrow_product(*operands: Any) -> Node:
    *nodes, fmt, _, dtype = operands
    x, *arrays = map(Array, nodes)
    result = product_of_rows(x, *_three(arrays), fmt, dtype)
    return reshape(result, (*x.shape[:-1], arrays[0].shape[-2]))._node


def _has_narrow_pairs(x: Node, words: Node, *rest: Any) -> bool:
    *_, transpose, dtype, stack = rest
    return (transpose and dtype.itemsize <= 4 and 0 < x.shape[-2] <= MAX_ROWS
            and x.size > 0 and words.size > 0 and math.prod(stack) > 0)  # fmt: skip


def _narrow_gather(*operands: Any) -> Node:
    *nodes, fmt, _, dtype, stack = operands
    x, *arrays, left, right = map(Array, nodes)
    indices = broadcast_to(left, stack), broadcast_to(right, stack)
    result = product_of_rows(x, *_three(arrays), fmt, dtype, indices)
    return reshape(result, (*stack, x.shape[-2], arrays[0].shape[-2]))._node


define_composition("nn.dequantize", _dequantized, is_stackable=False)
define_composition("nn.quantized_matmul", _matmul, Implementation(_narrow_product, _is_narrow))
define_composition(
    "nn.gather_qmm",
    _gather_matmul,
    Implementation(_narrow_gather, _has_narrow_pairs),
    is_stackable=False,
)
