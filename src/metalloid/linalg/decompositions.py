"""Matrix decompositions: Cholesky, QR, eigenvalues and singular values."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from metalloid.arrays.array import Array
from metalloid.arrays.functions.creation import tril, triu
from metalloid.arrays.ir.dtypes import complex_of, real_of
from metalloid.arrays.ir.node import Node, cast
from metalloid.arrays.ir.primitives import Implementation, implement
from metalloid.linalg import solver_calls
from metalloid.linalg.matrices import (
    NO_EIGENVALUES,
    NO_SINGULAR_VALUES,
    explained,
    matrices,
    square_matrices,
)
from metalloid.linalg.primitives import by_host, call, for_solver, types_of


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
    (factor,) = call("cholesky", [node], bool(upper))
    return Array(cast(factor, dtype))


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
    q, r = call("qr", [node], mode)
    return QR(Array(cast(q, dtype)), Array(cast(r, dtype)))


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
    u, s, vh = call("svd", [node], bool(full_matrices))
    return SVD(Array(cast(u, dtype)), Array(cast(s, real_of(dtype))), Array(cast(vh, dtype)))


def svdvals(x: Any, /) -> Array:
    """Return only the singular values of `svd`."""
    node, dtype = matrices("svdvals", x)
    (values,) = call("svdvals", [node])
    return Array(cast(values, real_of(dtype)))


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
    values, vectors = call("eigh", [node])
    return Eigh(Array(cast(values, real_of(dtype))), Array(cast(vectors, dtype)))


def eigvalsh(x: Any, /) -> Array:
    """Return only the eigenvalues of `eigh`."""
    node, dtype = square_matrices("eigvalsh", x)
    (values,) = call("eigvalsh", [node])
    return Array(cast(values, real_of(dtype)))


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
    values, vectors = call("eig", [node])
    return Eig(Array(cast(values, wide)), Array(cast(vectors, wide)))


def eigvals(x: Any, /) -> Array:
    """Return only the eigenvalues of `eig`."""
    node, dtype = square_matrices("eigvals", x)
    (values,) = call("eigvals", [node])
    return Array(cast(values, complex_of(real_of(dtype))))


# -- by the vendor library


def _cholesky_by_library(x: Node, upper: bool, backend: str) -> Node:
    factor = Array(solver_calls.cholesky(x, upper))
    return (triu(factor) if upper else tril(factor))._node


def _qr_by_library(x: Node, mode: str, backend: str) -> tuple[Node, Node]:
    (_, (*_, inner)), _ = types_of("qr", x, mode, backend)
    q, r = solver_calls.qr(x, inner)
    return q, triu(Array(r)[..., :inner, :])._node


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


implement(
    "cholesky",
    Implementation(_cholesky_by_library, for_solver("cholesky")),
    by_host("cholesky", _cholesky),
    is_structural=True,
)
implement(
    "qr",
    Implementation(_qr_by_library, for_solver("qr")),
    by_host("qr", np.linalg.qr),
    is_structural=True,
)
implement(
    "svd",
    Implementation(lambda x, is_full, backend: solver_calls.svd(x, is_full), for_solver("svd")),
    by_host("svd", _svd),
    is_structural=True,
)
implement(
    "svdvals",
    Implementation(lambda x, backend: solver_calls.svdvals(x), for_solver("svd")),
    by_host("svdvals", _svdvals),
    is_structural=True,
)
implement(
    "eigh",
    Implementation(lambda x, backend: solver_calls.eigh(x, True), for_solver("eigh")),
    by_host("eigh", _eigh),
    is_structural=True,
)
implement(
    "eigvalsh",
    Implementation(lambda x, backend: solver_calls.eigh(x, False)[0], for_solver("eigh")),
    by_host("eigvalsh", _eigvalsh),
    is_structural=True,
)
implement("eig", by_host("eig", _eig), is_structural=True)
implement("eigvals", by_host("eigvals", _eigvals), is_structural=True)
