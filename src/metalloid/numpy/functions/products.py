"""Products of vectors, matrices and tensors, with NumPy's arguments."""

from __future__ import annotations

import operator
import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from metalloid import linalg
from metalloid.arrays.array import Array, as_array, as_arrays
from metalloid.arrays.functions import einsum as contractions
from metalloid.arrays.functions import elementwise as ew
from metalloid.arrays.functions import tensor_contractions as products
from metalloid.arrays.functions.einsum_text import read
from metalloid.arrays.functions.manipulation import broadcast_to, moveaxis, stack
from metalloid.arrays.ir.dtypes import as_dtype, bool_, int64, kind_of
from metalloid.arrays.ir.operands import axes_of
from metalloid.numpy.array import store
from metalloid.numpy.known_calls import structural_function


@structural_function(2)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """Product over the last axis of `a` and the last but one of `b`.

    Examples
    --------
    >>> import metalloid.numpy as np
    >>> np.dot([1, 2], [3, 4])
    np.int64(11)
    """
    x, y = as_arrays("dot", a, b)
    if not x.ndim or not y.ndim:
        return store(x * y, out, "dot")
    if x.ndim <= 2 and y.ndim <= 2:
        return store(products.matmul(x, y), out, "dot")
    axis = y.ndim - 2 if y.ndim > 1 else 0
    return store(products.tensordot(x, y, axes=((x.ndim - 1,), (axis,))), out, "dot")


@structural_function(2)
def vdot(a: Any, b: Any, /) -> Any:
    """Sum of the products of all elements; those of `a` are conjugated."""
    x, y = (z.ravel() for z in as_arrays("vdot", a, b))
    return products.matmul(ew.conj(x) if kind_of(x.dtype) == "c" else x, y)


@structural_function(2)
def inner(a: Any, b: Any, /) -> Any:
    """Product over the last axes."""
    x, y = as_arrays("inner", a, b)
    if not x.ndim or not y.ndim:
        return x * y
    return products.tensordot(x, y, axes=((x.ndim - 1,), (y.ndim - 1,)))


@structural_function(2)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    """Products of all pairs of elements of two flattened arrays."""
    x, y = (z.ravel() for z in as_arrays("outer", a, b))
    return store(x[:, None] * y[None, :], out, "outer", broadcasts=True)


@structural_function(2)
def kron(a: Any, b: Any) -> Array:
    """Kronecker product."""
    x, y = as_arrays("kron", a, b)
    rank = max(x.ndim, y.ndim)
    x = x.reshape((1,) * (rank - x.ndim) + x.shape)
    y = y.reshape((1,) * (rank - y.ndim) + y.shape)
    rows = x.reshape([n for extent in x.shape for n in (extent, 1)])
    columns = y.reshape([n for extent in y.shape for n in (1, extent)])
    return (rows * columns).reshape([m * n for m, n in zip(x.shape, y.shape, strict=True)])


@structural_function(2)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Product over pairs of axes."""
    x, y = as_arrays("tensordot", a, b)
    if not isinstance(axes, int | np.integer):
        first, second = axes
        pairs = [tuple(np.atleast_1d(np.asarray(k)).tolist()) for k in (first, second)]
        axes = tuple(axes_of("tensordot", k, z.ndim) for k, z in zip(pairs, (x, y), strict=True))
    return products.tensordot(x, y, axes=axes)


@structural_function()
def einsum(*operands: Any, out: Any = None, dtype: Any = None, order: str = "K",
           casting: str = "safe", optimize: Any = False) -> Any:  # fmt: skip
    """Sum of products by Einstein's convention; see `metalloid.einsum`."""
    if not operands:
        raise ValueError("[einsum] expected subscripts and arrays, or arrays and their labels.")
    text, *rest = operands if isinstance(operands[0], str) else _with_text(operands)
    arrays = as_arrays("einsum", *rest)
    if dtype is not None and not (out is None and _is_view(text, arrays)):
        arrays = [x.astype(as_dtype(dtype)) for x in arrays]
    if arrays and all(x.dtype == bool_ for x in arrays):
        result = contractions.einsum(text, *(x.astype(int64) for x in arrays)).astype(bool_)
    else:
        result = contractions.einsum(text, *arrays)
    return store(result, out, "einsum", "same_kind" if casting == "safe" else casting)


def _is_view(text: str, arrays: Sequence[Array]) -> bool:
    """Whether NumPy returns a view of the one operand, whose type it keeps despite ``dtype``."""
    if len(arrays) != 1:
        return False
    labels, output_labels = read(text, [arrays[0].shape])
    return set(labels[0]) <= set(output_labels)


def _with_text(operands: Sequence[Any]) -> list[Any]:
    """Subscripts and operands for operands that alternate with lists of integers as labels."""
    words = []
    for labels in operands[1::2] if len(operands) % 2 == 0 else (*operands[1::2], operands[-1]):
        word = ""
        for label in labels:
            if label is Ellipsis:
                word += "..."
            elif not 0 <= (number := operator.index(label)) < len(_LETTERS):
                raise ValueError(
                    f"[einsum] labels must be integers below {len(_LETTERS)}, got {label}."
                )
            else:
                word += _LETTERS[number]
        words.append(word)
    inputs = len(operands) // 2
    output = ["->" + word for word in words[inputs:]]
    return ["".join([",".join(words[:inputs]), *output]), *operands[: 2 * inputs : 2]]


#: Labels by number.
_LETTERS = string.ascii_uppercase + string.ascii_lowercase


@structural_function(1)
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None,
          out: Any = None) -> Any:  # fmt: skip
    """Sum of a diagonal."""
    return store(diagonal(a, offset, axis1, axis2).sum(axis=-1, dtype=dtype), out, "trace")


@structural_function(1)
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Diagonal of matrices, along a new last axis."""
    x = as_array(a, "diagonal")
    if x.ndim < 2:
        raise ValueError(f"[diagonal] expected at least two axes, got shape {x.shape}.")
    plane = axes_of("diagonal", (axis1, axis2), x.ndim)
    return linalg.diagonal(moveaxis(x, plane, (-2, -1)), offset=operator.index(offset))


@structural_function(2)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1,
          axis: int | None = None) -> Array:  # fmt: skip
    """Cross product of vectors of three elements; two are completed by 0."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = as_arrays("cross", a, b)
    x, y = moveaxis(x, axisa, -1), moveaxis(y, axisb, -1)
    extents = x.shape[-1], y.shape[-1]
    if not set(extents) <= {2, 3}:
        raise ValueError(f"[cross] vectors must have 2 or 3 elements, got {extents}.")

    def element(z: Array, k: int) -> Any:
        return z[..., k] if k < z.shape[-1] else None

    def part(i: int, j: int) -> Any:
        terms = []
        for first, second, sign in ((i, j, 1), (j, i, -1)):
            p, q = element(x, first), element(y, second)
            if p is not None and q is not None:
                terms.append((sign, p * q))
        total: Any = None
        for sign, term in terms:
            total = (term if sign > 0 else -term) if total is None else total + sign * term
        return total

    if extents == (2, 2):
        return part(0, 1)  # type: ignore[no-any-return]
    parts = [part(1, 2), part(2, 0), part(0, 1)]
    shape = next(p for p in parts if p is not None).shape
    return moveaxis(stack([broadcast_to(p, shape) for p in parts], -1), -1, axisc)
