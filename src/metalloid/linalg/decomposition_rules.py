"""Rules of matrix decompositions for transforms of functions.

Formulas divide by differences of eigenvalues or singular values: derivatives of eigenvectors and
singular vectors that belong to equal ones are infinite or NaN, as they are not defined. Vectors are
determined up to a factor of absolute value 1; functions of them that depend on it have no
derivative, except for `eig`, whose vectors have a convention.
"""

from __future__ import annotations

from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.functions.creation import eye, tril, triu
from metalloid.arrays.functions.elementwise import abs, imag, real
from metalloid.arrays.functions.evenly_spaced import arange
from metalloid.arrays.functions.manipulation import pad
from metalloid.arrays.functions.searching import take_along_axis
from metalloid.arrays.functions.select import where
from metalloid.arrays.ir.dtypes import kind_of, real_of
from metalloid.errors import TraceError
from metalloid.linalg.decompositions import eig, eigh, svd
from metalloid.linalg.equations import solve
from metalloid.linalg.products import diagonal
from metalloid.linalg.rules import adjoint, define_stacked
from metalloid.transforms.tangents import conjugate


def _unit(like: Array, n: int) -> Array:
    """The unit matrix of real numbers of the precision of an array."""
    return eye(n, dtype=real_of(like.dtype), device=like.device)


def _hermitian(x: Array) -> Array:
    """The part that a factorisation of Hermitian matrices depends on, as if it read all of it."""
    return (x + adjoint(x)) / 2


def _inverse_gaps(values: Array) -> Array:
    """Element (i, j) is 1 / (values[j] - values[i]), and 0 on the diagonal."""
    unit = _unit(values, values.shape[-1])
    return (1 - unit) / (values[..., None, :] - values[..., :, None] + unit)


def _cholesky(a: Array, da: Array, factor: Array, params: Any) -> list[Array]:
    """See I. Murray, "Differentiation of the Cholesky decomposition", 2016."""
    is_upper = params[0]
    lower = adjoint(factor) if is_upper else factor
    inner = solve(lower, adjoint(solve(lower, _hermitian(da))))
    change = lower @ (tril(inner) * (1 - _unit(a, a.shape[-1]) / 2))
    return [adjoint(change) if is_upper else change]


def _lu(a: Array, da: Array, p: Array, lower: Array, upper: Array,
        params: Any) -> list[Array | None]:  # fmt: skip
    """Factors that are not square are extended by rows and columns of the unit matrix."""
    rows, columns = a.shape[-2:]
    small = min(rows, columns)
    left, right = _extended(lower, rows), _extended(upper, columns)
    inner = solve(right.mT, solve(left, p.mT @ da).mT).mT
    change = (left @ tril(inner, k=-1))[..., :small]
    return [None, change, (triu(inner) @ right)[..., :small, :]]


def _extended(x: Array, n: int) -> Array:
    rows, columns = x.shape[-2:]
    widths = [(0, 0)] * (x.ndim - 2) + [(0, n - rows), (0, n - columns)]
    is_new = arange(n, device=x.device) >= min(rows, columns)
    return pad(x, widths) + _unit(x, n) * is_new


def _qr(a: Array, da: Array, q: Array, r: Array, params: Any) -> list[Array]:
    """The derivative for matrices of full rank with at least as many rows as columns.

    S. F. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions with
    application in optimum experimental design", 2010.
    """
    mode, rows, columns = params[0], *a.shape[-2:]
    if rows < columns or (mode == "complete" and rows > columns):
        raise TraceError(
            f"[qr] there is no derivative for mode {mode!r} of matrices of shape {a.shape[-2:]}. "
            "Use mode 'reduced' on matrices with at least as many rows as columns."
        )
    change = solve(r.mT, da.mT).mT
    inner = adjoint(q) @ change
    below = tril(inner, k=-1)
    rotation = below - adjoint(below)
    if kind_of(a.dtype) == "c":  # the diagonal of R stays real
        rotation = rotation + _unit(a, columns) * (inner - real(inner))
    return [q @ (rotation - inner) + change, (inner - rotation) @ r]


def _svd(a: Array, da: Array, u: Array, s: Array, vh: Array, params: Any) -> list[Array]:
    """See J. Townsend, "Differentiating the singular value decomposition", 2016."""
    is_full, rows, columns = params[0], *a.shape[-2:]
    if is_full and rows != columns:
        raise TraceError(
            f"[svd] there is no derivative of all singular vectors of matrices of shape "
            f"{a.shape[-2:]}. Use full_matrices=False, or svdvals."
        )
    v, ut = adjoint(vh), adjoint(u)
    inner = ut @ da @ v
    gaps = _inverse_gaps(s) / _sums(s)
    along, across = inner * s[..., None, :], s[..., :, None] * inner
    du = u @ (gaps * (along + adjoint(along)))
    dv = v @ (gaps * (across + adjoint(across)))
    inverse = where(s == 0, 0, 1 / where(s == 0, 1, s))[..., None, :]
    if kind_of(a.dtype) == "c":
        du = du + u * (1j * imag(diagonal(inner)) * inverse[..., 0, :])[..., None, :]
    if rows > columns:
        image = da @ v
        du = du + (image - u @ (ut @ image)) * inverse
    if columns > rows:
        image = adjoint(da) @ u
        dv = dv + (image - v @ (vh @ image)) * inverse
    return [du, real(diagonal(inner)), adjoint(dv)]


def _sums(s: Array) -> Array:
    """Element (i, j) is s[j] + s[i], and 1 on the diagonal, of which no use is made."""
    unit = _unit(s, s.shape[-1])
    return (s[..., None, :] + s[..., :, None]) * (1 - unit) + unit


def _svdvals(a: Array, da: Array, s: Array, params: Any) -> list[Array]:
    u, _, vh = svd(a, full_matrices=False)
    return [_diagonal_of_product(u, da @ adjoint(vh))]


def _diagonal_of_product(x: Array, y: Array) -> Array:
    """The real part of the diagonal of ``adjoint(x) @ y``."""
    return real((conjugate(x) * y).sum(-2))


def _eigh(a: Array, da: Array, values: Array, vectors: Array, params: Any) -> list[Array]:
    inner = adjoint(vectors) @ _hermitian(da) @ vectors
    return [real(diagonal(inner)), vectors @ (_inverse_gaps(values) * inner)]


def _eigvalsh(a: Array, da: Array, values: Array, params: Any) -> list[Array]:
    vectors = eigh(a).eigenvectors
    return [_diagonal_of_product(vectors, _hermitian(da) @ vectors)]


def _eig(a: Array, da: Array, values: Array, vectors: Array, params: Any) -> list[Array]:
    """Eigenvectors stay of length 1, and their largest component real, as LAPACK's are."""
    inner = solve(vectors, da @ vectors)
    gaps = values[..., None, :] - values[..., :, None]
    unit = _unit(values, values.shape[-1])
    change = vectors @ (inner * ((1 - unit) / (gaps + unit)))
    length = _diagonal_of_product(vectors, change)
    sizes = where(imag(vectors) == 0, abs(vectors), -1)
    largest = sizes.argmax(axis=-2, keepdims=True)
    turn = take_along_axis(change, largest, axis=-2) / take_along_axis(vectors, largest, axis=-2)
    return [diagonal(inner), change - vectors * (length[..., None, :] + 1j * imag(turn))]


def _eigvals(a: Array, da: Array, values: Array, params: Any) -> list[Array]:
    vectors = eig(a).eigenvectors
    return [diagonal(solve(vectors, da @ vectors))]


define_stacked("cholesky", _cholesky)
define_stacked("eig", _eig)
define_stacked("eigh", _eigh)
define_stacked("eigvals", _eigvals)
define_stacked("eigvalsh", _eigvalsh)
define_stacked("lu", _lu)
define_stacked("qr", _qr)
define_stacked("svd", _svd)
define_stacked("svdvals", _svdvals)
