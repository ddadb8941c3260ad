"""Matrix decompositions: Cholesky, QR, eigenvalues and singular values."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from metalloid.arrays.array import Array
from metalloid.arrays.execution.calls import host_call
from metalloid.arrays.functions.creation import tril, triu
from metalloid.arrays.ir.dtypes import complex_of, real_of
from metalloid.linalg import solver_calls
from metalloid.linalg.matrices import (
    NO_EIGENVALUES,
    NO_SINGULAR_VALUES,
    explained,
    matrices,
    square_matrices,
)
from metalloid.linalg.solver_calls import is_for_solver


class QR(NamedTuple):
    """The result of `qr`."""

    Q: Array
    R: Array


class SVD(NamedTuple):
    """The result of `svd`."""

    U: Array
    S: Array
    Vh: Array


class Eigh(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: Array
    eigenvectors: Array


class Eig(NamedTuple):
    """The result of `eig`."""

    eigenvalues: Array
    eigenvectors: Array


def cholesky(x: Any, /, *, upper: bool = False) -> Array:
    """Return the Cholesky factor: a lower triangular `L` with ``L @ conj(L).mT == x``.

    Parameters
    ----------
    x : Array
        Symmetric or Hermitian positive definite matrices. Only one triangle is read.
    upper : bool
        Return the upper triangle ``U = conj(L).mT``, read from the upper triangle of `x`.

    Raises
    ------
    LinAlgError
        At evaluation, if a matrix is not positive definite.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.linalg.cholesky(mtl.asarray([[4.0, 2.0], [2.0, 5.0]]))
    array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    node, dtype = square_matrices("cholesky", x)
    if is_for_solver("cholesky", node):
        factor = Array(solver_calls.cholesky(node, bool(upper)))
        return (triu(factor) if upper else tril(factor)).astype(dtype)
    return Array(*host_call(_cholesky, [node], (bool(upper),), (dtype, node.shape)))


def qr(x: Any, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QR:
    """Return the QR decomposition: orthonormal columns `Q`, upper triangular `R`, ``Q @ R == x``.

    Parameters
    ----------
    mode : "reduced" or "complete"
        Whether `Q` has ``min(M, N)`` columns or is square.

    Examples
    --------
    >>> import metalloid as mtl
    >>> q, r = mtl.linalg.qr(mtl.asarray([[3.0], [4.0]]))
    >>> mtl.abs(q), mtl.abs(r)
    (array([[0.6],
           [0.8]], dtype=float32), array([[5.]], dtype=float32))
    """
    if mode not in ("reduced", "complete"):
        raise ValueError(f"[qr] mode must be 'reduced' or 'complete', got {mode!r}.")
    node, dtype = matrices("qr", x)
    *stack, rows, columns = node.shape
    inner = rows if mode == "complete" else min(rows, columns)
    if is_for_solver("qr", node):
        q, r = map(Array, solver_calls.qr(node, inner))
        return QR(q.astype(dtype), triu(r[..., :inner, :]).astype(dtype))
    shapes = (*stack, rows, inner), (*stack, inner, columns)
    return QR(*map(Array, host_call(np.linalg.qr, [node], (mode,), *((dtype, s) for s in shapes))))


def svd(x: Any, /, *, full_matrices: bool = True) -> SVD:
    """Return the singular value decomposition: ``(U * S[..., None, :]) @ Vh == x``.

    The singular values `S` are in descending order.

    Parameters
    ----------
    full_matrices : bool
        Whether `U` and `Vh` are square; otherwise they have as many columns and rows as `S` has
        elements.

    Raises
    ------
    LinAlgError
        At evaluation, if the iteration does not converge.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.linalg.svd(mtl.asarray([[0.0, 2.0], [1.0, 0.0]])).S
    array([2., 1.], dtype=float32)
    """
    node, dtype = matrices("svd", x)
    *stack, rows, columns = node.shape
    small = min(rows, columns)
    if is_for_solver("svd", node):
        u, s, vh = map(Array, solver_calls.svd(node, bool(full_matrices)))
        return SVD(u.astype(dtype), s.astype(real_of(dtype)), vh.astype(dtype))
    left = (*stack, rows, rows if full_matrices else small)
    right = (*stack, columns if full_matrices else small, columns)
    results = (dtype, left), (real_of(dtype), (*stack, small)), (dtype, right)
    return SVD(*map(Array, host_call(_svd, [node], (bool(full_matrices),), *results)))


def svdvals(x: Any, /) -> Array:
    """Return only the singular values of `svd`."""
    node, dtype = matrices("svdvals", x)
    if is_for_solver("svd", node):
        return Array(solver_calls.svdvals(node)).astype(real_of(dtype))
    *stack, rows, columns = node.shape
    shape = (*stack, min(rows, columns))
    return Array(*host_call(_svdvals, [node], (), (real_of(dtype), shape)))


def eigh(x: Any, /) -> Eigh:
    """Return the eigenvalues and orthonormal eigenvectors of symmetric or Hermitian matrices.

    The eigenvalues are in ascending order.

    Parameters
    ----------
    x : Array
        Only the lower triangles are read.

    Returns
    -------
    Eigh
        ``eigenvalues``, which are real, and ``eigenvectors``, as columns.

    Raises
    ------
    LinAlgError
        At evaluation, if the iteration does not converge.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.linalg.eigh(mtl.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    array([1., 2.], dtype=float32)
    """
    node, dtype = square_matrices("eigh", x)
    if is_for_solver("eigh", node):
        values, vectors = map(Array, solver_calls.eigh(node, True))
        return Eigh(values.astype(real_of(dtype)), vectors.astype(dtype))
    results = (real_of(dtype), node.shape[:-1]), (dtype, node.shape)
    return Eigh(*map(Array, host_call(_eigh, [node], (), *results)))


def eigvalsh(x: Any, /) -> Array:
    """Return only the eigenvalues of `eigh`."""
    node, dtype = square_matrices("eigvalsh", x)
    if is_for_solver("eigh", node):
        values, _ = solver_calls.eigh(node, False)
        return Array(values).astype(real_of(dtype))
    return Array(*host_call(_eigvalsh, [node], (), (real_of(dtype), node.shape[:-1])))


def eig(x: Any, /) -> Eig:
    """Return the eigenvalues, in no particular order, and unit eigenvectors of square matrices.

    Returns
    -------
    Eig
        ``eigenvalues`` and ``eigenvectors``, as columns; both complex.

    Raises
    ------
    LinAlgError
        At evaluation, if a matrix holds infinities or NaNs.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.linalg.eig(mtl.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    array([2.+0.j, 1.+0.j], dtype=complex64)
    """
    node, dtype = square_matrices("eig", x)
    wide = complex_of(real_of(dtype))
    results = (wide, node.shape[:-1]), (wide, node.shape)
    return Eig(*map(Array, host_call(_eig, [node], (), *results)))


def eigvals(x: Any, /) -> Array:
    """Return only the eigenvalues of `eig`."""
    node, dtype = square_matrices("eigvals", x)
    wide = complex_of(real_of(dtype))
    return Array(*host_call(_eigvals, [node], (), (wide, node.shape[:-1])))


# -- on the host


def _triangle(a: np.ndarray, upper: bool) -> np.ndarray:
    return np.linalg.cholesky(a, upper=upper)


_cholesky = explained("cholesky", _triangle, "is not positive definite")
_eigh = explained("eigh", np.linalg.eigh, NO_EIGENVALUES)
_eigvalsh = explained("eigvalsh", np.linalg.eigvalsh, NO_EIGENVALUES)
_eig = explained("eig", np.linalg.eig, NO_EIGENVALUES)
_eigvals = explained("eigvals", np.linalg.eigvals, NO_EIGENVALUES)
_svd = explained("svd", np.linalg.svd, NO_SINGULAR_VALUES)
_svdvals = explained("svdvals", np.linalg.svdvals, NO_SINGULAR_VALUES)
