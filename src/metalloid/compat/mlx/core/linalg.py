"""``mx.linalg``: decompositions, solutions and norms."""

from __future__ import annotations

from typing import Any

import numpy as np

import metalloid as mtl
from metalloid.compat.mlx.core import dtypes
from metalloid.compat.mlx.core.array import array, operand, wrap
from metalloid.compat.mlx.core.dtypes import dtype_of
from metalloid.compat.mlx.core.ops.shapes import text
from metalloid.compat.mlx.core.ops.wrapping import (
    as_float,
    normalized_axes,
    normalized_axis,
    pair_of_arrays,
    with_stream,
)


def _matrices(a: Any, where: str, is_square: bool = False, complex_too: bool = False) -> mtl.Array:
    """Matrices of a type that decompositions support.

    Raises
    ------
    ValueError
        If they are none.
    """
    x = operand(a)
    allowed = [dtypes.float32, dtypes.float64] + [dtypes.complex64] * complex_too
    if dtype_of(x.dtype) not in allowed:
        raise ValueError(
            f"[linalg::{where}] Arrays must have type float32, float64"
            f"{' or complex64' if complex_too else ''}. Received array with type {x.dtype.name}."
        )
    if x.ndim < 2:
        raise ValueError(
            f"[linalg::{where}] Arrays must have >= 2 dimensions. Received array with {x.ndim} "
            "dimensions."
        )
    if is_square and x.shape[-1] != x.shape[-2]:
        raise ValueError(
            f"[linalg::{where}] Inputs must be square matrices, got shape {text(x.shape)}."
        )
    return x


@with_stream
def norm(a: Any, /, ord: Any = None, axis: Any = None, keepdims: bool = False) -> array:
    """Norm of vectors or matrices."""
    x = as_float(operand(a))
    if ord is None and axis is None:
        flat = x.reshape(-1)
        result = _vector_norm(flat, 2.0, (0,), False)
        return wrap(result.reshape((1,) * x.ndim) if keepdims else result)
    axes = normalized_axes(axis, x.ndim, "linalg::norm")
    if ord is None:
        return wrap(_vector_norm(x, 2.0, axes, keepdims))
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ValueError(f"[linalg::norm] Invalid ord '{ord}' for vectors.")
        return wrap(_vector_norm(x, float(ord), axes, keepdims))
    if len(axes) != 2:
        raise ValueError("[linalg::norm] Received too many axes for norm.")
    return wrap(_matrix_norm(x, ord, axes, keepdims))


def _vector_norm(x: mtl.Array, ord: float, axes: tuple[int, ...], keepdims: bool) -> mtl.Array:
    magnitude = mtl.abs(x)
    if ord == 0:
        return mtl.sum((x != 0).astype(magnitude.dtype), axis=axes, keepdims=keepdims)
    if ord == np.inf:
        return mtl.max(magnitude, axis=axes, keepdims=keepdims)
    if ord == -np.inf:
        return mtl.min(magnitude, axis=axes, keepdims=keepdims)
    if ord == 1:
        return mtl.sum(magnitude, axis=axes, keepdims=keepdims)
    if ord == 2:
        squares = magnitude * magnitude
        return mtl.sqrt(mtl.sum(squares, axis=axes, keepdims=keepdims))
    return mtl.sum(magnitude**ord, axis=axes, keepdims=keepdims) ** (1 / ord)


def _matrix_norm(x: mtl.Array, ord: Any, axes: tuple[int, ...], keepdims: bool) -> mtl.Array:
    rows, columns = axes
    if ord in ("f", "fro"):
        return _vector_norm(x, 2.0, axes, keepdims)
    if ord == "nuc" or (not isinstance(ord, str) and abs(ord) == 2):
        others = [k for k in range(x.ndim) if k not in axes]
        values = mtl.linalg.svdvals(mtl.permute_dims(x, (*others, rows, columns)))
        result = (values.sum(axis=-1) if ord == "nuc" else values.max(axis=-1) if ord > 0
                  else values.min(axis=-1))  # fmt: skip
        if keepdims:
            result = mtl.expand_dims(result, tuple(sorted(axes)))
        return result
    if isinstance(ord, str) or abs(ord) not in (1, np.inf):
        raise ValueError(f"[linalg::norm] Invalid ord {ord} for matrix norm.")
    summed, chosen = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = mtl.sum(mtl.abs(x), axis=summed, keepdims=True)
    extreme = mtl.max if ord > 0 else mtl.min
    result = extreme(sums, axis=chosen, keepdims=True)
    return result if keepdims else result.squeeze(axes)


@with_stream
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> array:
    """Norm of matrices, over the last two axes."""
    return norm(x, ord, [-2, -1], keepdims)


@with_stream
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> array:
    """Norm of vectors."""
    a = as_float(operand(x))
    axes = normalized_axes(axis, a.ndim, "linalg::vector_norm")
    return wrap(_vector_norm(a, float(ord), axes, keepdims))


@with_stream
def qr(a: Any) -> tuple[array, array]:
    """QR decomposition."""
    q, r = mtl.linalg.qr(_matrices(a, "qr"))
    return wrap(q), wrap(r)


@with_stream
def svd(a: Any, compute_uv: bool = True) -> Any:
    """Singular value decomposition."""
    x = _matrices(a, "svd", complex_too=True)
    if not compute_uv:
        return wrap(mtl.linalg.svdvals(x))
    return tuple(map(wrap, mtl.linalg.svd(x, full_matrices=True)))


@with_stream
def inv(a: Any) -> array:
    """Inverses."""
    return wrap(mtl.linalg.inv(_matrices(a, "inv", is_square=True)))


@with_stream
def tri_inv(a: Any, upper: bool = False) -> array:
    """Inverses of triangles."""
    x = _matrices(a, "tri_inv", is_square=True)
    triangle = mtl.triu if upper else mtl.tril
    return wrap(triangle(mtl.linalg.inv(triangle(x))))


@with_stream
def cholesky(a: Any, upper: bool = False) -> array:
    """Cholesky decomposition."""
    return wrap(mtl.linalg.cholesky(_matrices(a, "cholesky", is_square=True), upper=upper))


@with_stream
def cholesky_inv(a: Any, upper: bool = False) -> array:
    """Inverses of matrices, from their Cholesky decompositions."""
    x = _matrices(a, "cholesky_inv", is_square=True)
    factor = mtl.linalg.inv(mtl.triu(x) if upper else mtl.tril(x))
    adjoint = mtl.matrix_transpose(factor)
    return wrap(mtl.matmul(factor, adjoint) if upper else mtl.matmul(adjoint, factor))


@with_stream
def pinv(a: Any) -> array:
    """Pseudo-inverses."""
    x = _matrices(a, "pinv")
    if not x.size:
        return wrap(mtl.matrix_transpose(x))
    u, s, vt = mtl.linalg.svd(x, full_matrices=False)
    limit = np.finfo(x.dtype).eps * max(x.shape[-2:]) * mtl.max(s, axis=-1, keepdims=True)
    reciprocals = mtl.where(s > limit, 1 / mtl.where(s > limit, s, 1), 0)
    left = mtl.matrix_transpose(vt) * mtl.expand_dims(reciprocals, -2)
    return wrap(mtl.matmul(left, mtl.matrix_transpose(u)))


@with_stream
def cross(a: Any, b: Any, axis: int = -1) -> array:
    """Cross product of vectors of 2 or 3 elements."""
    x, y, _ = pair_of_arrays(a, b)
    k = normalized_axis(axis, x.ndim, "linalg::cross")
    if {x.shape[k], y.shape[axis]} - {2, 3}:
        raise ValueError(
            "[linalg::cross] The specified axis must have size 2 or 3, got "
            f"{x.shape[k]} and {y.shape[axis]}."
        )
    x, y = mtl.moveaxis(x, axis, -1), mtl.moveaxis(y, axis, -1)
    if x.shape[-1] == y.shape[-1] == 2:
        return wrap(x[..., 0] * y[..., 1] - x[..., 1] * y[..., 0])
    x, y = (mtl.concat([v, mtl.zeros((*v.shape[:-1], 1), dtype=v.dtype)], axis=-1)
            if v.shape[-1] == 2 else v for v in (x, y))  # fmt: skip
    x, y = mtl.broadcast_arrays(x, y)
    return wrap(mtl.moveaxis(mtl.linalg.cross(x, y), -1, axis))


@with_stream
def eig(a: Any) -> tuple[array, array]:
    """Eigenvalues and eigenvectors."""
    values, vectors = mtl.linalg.eig(_matrices(a, "eig", is_square=True, complex_too=True))
    return wrap(values.astype(mtl.complex64)), wrap(vectors.astype(mtl.complex64))


@with_stream
def eigvals(a: Any) -> array:
    """Eigenvalues."""
    values = mtl.linalg.eigvals(_matrices(a, "eigvals", is_square=True, complex_too=True))
    return wrap(values.astype(mtl.complex64))


def _symmetric(a: Any, UPLO: str, where: str) -> mtl.Array:
    if UPLO not in ("L", "U"):
        raise ValueError(f"[linalg::{where}] Invalid UPLO {UPLO!r}: use 'L' or 'U'.")
    x = _matrices(a, where, is_square=True, complex_too=True)
    triangle = mtl.tril(x, k=-1) if UPLO == "L" else mtl.triu(x, k=1)
    adjoint = mtl.matrix_transpose(triangle)
    if x.dtype.kind == "c":
        adjoint = mtl.conj(adjoint)
    return triangle + adjoint + mtl.tril(mtl.triu(x))


@with_stream
def eigh(a: Any, UPLO: str = "L") -> tuple[array, array]:
    """Eigenvalues and eigenvectors of symmetric matrices."""
    values, vectors = mtl.linalg.eigh(_symmetric(a, UPLO, "eigh"))
    return wrap(values), wrap(vectors)


@with_stream
def eigvalsh(a: Any, UPLO: str = "L") -> array:
    """Eigenvalues of symmetric matrices."""
    return wrap(mtl.linalg.eigvalsh(_symmetric(a, UPLO, "eigvalsh")))


@with_stream
def lu(a: Any) -> tuple[array, array, array]:
    """Rows in the order of the pivots, and two triangles."""
    p, lower, upper = mtl.linalg.lu(_matrices(a, "lu"))
    return wrap(_rows(p)), wrap(lower), wrap(upper)


def _rows(permutation: mtl.Array) -> mtl.Array:
    """The index of the row of L for each row of a matrix."""
    return mtl.argmax(permutation, axis=-1).astype(mtl.uint32)


@with_stream
def lu_factor(a: Any) -> tuple[array, array]:
    """Both triangles in one matrix, and the pivots."""
    x = _matrices(a, "lu_factor")
    p, lower, upper = mtl.linalg.lu(x)
    rows, columns = x.shape[-2:]
    count = min(rows, columns)
    strict = mtl.tril(lower, k=-1)
    strict = mtl.pad(strict, [(0, 0)] * (x.ndim - 1) + [(0, columns - count)])
    triangle = mtl.pad(upper, [(0, 0)] * (x.ndim - 2) + [(0, rows - count), (0, 0)])
    return wrap(strict + triangle), wrap(mtl.asarray(_pivots(np.asarray(p), count)))


def _pivots(permutations: np.ndarray, count: int) -> np.ndarray:
    """The exchanges of rows that give a permutation, as LAPACK stores them."""
    orders = permutations.argmax(axis=-2).reshape(-1, permutations.shape[-1])
    pivots = np.zeros((len(orders), count), np.uint32)
    for order, pivot in zip(orders, pivots, strict=True):
        current = list(range(len(order)))
        for k in range(count):
            pivot[k] = current.index(order[k])
            current[k], current[pivot[k]] = current[pivot[k]], current[k]
    return pivots.reshape((*permutations.shape[:-2], count))


@with_stream
def solve(a: Any, b: Any) -> array:
    """Solutions of linear equations."""
    x = _matrices(a, "solve", is_square=True)
    y = operand(b)
    if not y.ndim or y.shape[-2 if y.ndim >= x.ndim and y.ndim > 1 else -1] != x.shape[-1]:
        raise ValueError(
            f"[linalg::solve] Incompatible shapes {text(x.shape)} and {text(y.shape)}."
        )
    if dtype_of(y.dtype) not in (dtypes.float32, dtypes.float64):
        raise ValueError(
            "[linalg::solve] Input arrays must promote to float32 or float64. Received "
            f"{y.dtype.name}."
        )
    is_vector = y.ndim == x.ndim - 1
    result = mtl.linalg.solve(x, mtl.expand_dims(y, -1) if is_vector else y)
    return wrap(result.squeeze(-1) if is_vector else result)


@with_stream
def solve_triangular(a: Any, b: Any, *, upper: bool = False) -> array:
    """Solutions of equations with triangles."""
    x = _matrices(a, "solve_triangular", is_square=True)
    return solve(wrap(mtl.triu(x) if upper else mtl.tril(x)), b)


@with_stream
def det(a: Any) -> array:
    """Determinants."""
    return wrap(mtl.linalg.det(_matrices(_floats(a), "det", is_square=True)))


@with_stream
def slogdet(a: Any) -> tuple[array, array]:
    """Signs, and logarithms of absolute values, of determinants."""
    sign, logarithm = mtl.linalg.slogdet(_matrices(_floats(a), "slogdet", is_square=True))
    return wrap(sign), wrap(logarithm)


def _floats(a: Any) -> array:
    x = operand(a)
    return wrap(x.astype(mtl.float32) if x.dtype.kind in "biu" else x)
