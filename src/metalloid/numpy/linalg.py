"""Linear algebra, with the arguments of ``numpy.linalg``."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from metalloid import linalg as base
from metalloid.arrays.array import Array, as_array, as_arrays
from metalloid.arrays.functions import elementwise as ew
from metalloid.arrays.functions import evaluation
from metalloid.arrays.functions.creation import triu, zeros
from metalloid.arrays.functions.manipulation import moveaxis
from metalloid.arrays.functions.select import where
from metalloid.arrays.functions.tensor_contractions import matmul as _matmul
from metalloid.arrays.functions.tensor_contractions import vecdot as _vecdot
from metalloid.arrays.interop.numpy_functions import call_on_host
from metalloid.arrays.ir.dtypes import default_float, kind_of
from metalloid.arrays.ir.operands import axes_of
from metalloid.arrays.ir.substitute import is_traced
from metalloid.errors import unknown_attribute
from metalloid.linalg import LinAlgError
from metalloid.numpy.array import numpy_function
from metalloid.numpy.functions import products
from metalloid.numpy.known_calls import structural_function


class EigResult(NamedTuple):
    """The result of `eig`."""

    eigenvalues: Any
    eigenvectors: Any


class EighResult(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: Any
    eigenvectors: Any


class QRResult(NamedTuple):
    """The result of `qr`."""

    Q: Any
    R: Any


class SVDResult(NamedTuple):
    """The result of `svd`."""

    U: Any
    S: Any
    Vh: Any


class SlogdetResult(NamedTuple):
    """The result of `slogdet`."""

    sign: Any
    logabsdet: Any


def _square(a: Any, where: str) -> Array:
    """Matrices, of which NumPy's error is a `LinAlgError` if they are not square."""
    x = as_array(a, where)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise LinAlgError(f"[{where}] expected square matrices, got shape {x.shape}.")
    return x


@structural_function(1)
def cholesky(a: Any, /, *, upper: bool = False) -> Array:
    """Cholesky factor; see `metalloid.linalg.cholesky`."""
    return base.cholesky(a, upper=upper)


@structural_function(1)
def det(a: Any) -> Array:
    """Determinants."""
    return base.det(_square(a, "det"))


@structural_function(1)
def slogdet(a: Any) -> SlogdetResult:
    """Signs and logarithms of determinants."""
    return SlogdetResult(*base.slogdet(_square(a, "slogdet")))


@structural_function(1)
def inv(a: Any) -> Array:
    """Inverses."""
    return base.inv(_square(a, "inv"))


@structural_function(2)
def solve(a: Any, b: Any) -> Array:
    """Solution of linear equations."""
    return base.solve(_square(a, "solve"), b)


@numpy_function
def lstsq(a: Any, b: Any, rcond: float | None = None) -> tuple[Any, ...]:
    """Least squares solution, residuals, rank, and singular values."""
    x, y = as_arrays("lstsq", a, b)
    if y.ndim not in (1, 2) or x.ndim != 2 or x.shape[0] != y.shape[0]:
        raise LinAlgError(f"[lstsq] incompatible shapes {x.shape} and {y.shape}.")
    if x.device.name == "cpu" and not (is_traced(x._node) or is_traced(y._node)):
        # All at once: as the rank is read, an expression of the results would take longer.
        results = call_on_host(np.linalg.lstsq, (x, y, rcond), {})
        return *results[:2], as_array(np.int32(results[2]), "lstsq", x.device), results[3]
    solution, residuals, rank, values = base.lstsq(x, y, rtol=rcond if rcond != -1 else 0.0)
    number = int(rank)  # all results are computed with it
    rows, columns = x.shape
    if number < columns or rows <= columns:
        residuals = zeros((0,), residuals.dtype)
    elif y.ndim == 1:
        residuals = residuals.reshape(1)
    return solution, residuals, as_array(np.int32(number), "lstsq", x.device), values


def _hermitian(a: Any, UPLO: str, where: str) -> Array:
    """A Hermitian matrix of which one triangle is given."""
    if UPLO.upper() not in ("L", "U"):
        raise ValueError(f"[{where}] UPLO must be 'L' or 'U', got {UPLO!r}.")
    x = _square(a, where)
    x = x.astype(default_float()) if kind_of(x.dtype) == "b" else x
    if UPLO.upper() == "U":
        upper = triu(x, 1)
        diagonal = x - triu(x, 1) - triu(x.mT, 1).mT
        x = (ew.conj(upper) if kind_of(x.dtype) == "c" else upper).mT + diagonal
    return x


@structural_function(1)
def eigh(a: Any, UPLO: str = "L") -> EighResult:
    """Eigenvalues and eigenvectors of Hermitian matrices."""
    return EighResult(*base.eigh(_hermitian(a, UPLO, "eigh")))


@structural_function(1)
def eigvalsh(a: Any, UPLO: str = "L") -> Array:
    """Eigenvalues of Hermitian matrices."""
    return base.eigvalsh(_hermitian(a, UPLO, "eigvalsh"))


#: Before, eigenvalues of real matrices are real if all of them are; later they are always complex.
_HAS_REAL_EIGENVALUES = np.lib.NumpyVersion(np.__version__) < "2.5.0"


def _is_real(x: Array, values: Array) -> bool:
    return _HAS_REAL_EIGENVALUES and kind_of(x.dtype) != "c" and bool((values.imag == 0).all())


@numpy_function
def eig(a: Any) -> EigResult:
    """Eigenvalues and eigenvectors; before NumPy 2.5 real if all eigenvalues are."""
    x = as_array(a, "eig")
    values, vectors = base.eig(x)
    if _is_real(x, values):
        values, vectors = values.real, vectors.real
    return EigResult(values, vectors)


@numpy_function
def eigvals(a: Any) -> Array:
    """Eigenvalues; before NumPy 2.5 real if all of them are."""
    x = as_array(a, "eigvals")
    values = base.eigvals(x)
    return values.real if _is_real(x, values) else values


@structural_function(1)
def qr(a: Any, mode: str = "reduced") -> Any:
    """QR decomposition.

    Parameters
    ----------
    mode : "reduced", "complete", "r" or "raw"
        "r": the triangle only; "raw": LAPACK's result, by NumPy.
    """
    if mode == "raw":
        return call_on_host(np.linalg.qr, (as_array(a, "qr"), mode), {})
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"[qr] unknown mode {mode!r}.")
    result = base.qr(a, mode="complete" if mode == "complete" else "reduced")
    return result[1] if mode == "r" else QRResult(*result)


@structural_function(1)
def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """Singular value decomposition, or the singular values only."""
    if not compute_uv:
        return base.svdvals(a)
    return SVDResult(*base.svd(a, full_matrices=full_matrices))


@structural_function(1)
def svdvals(x: Any, /) -> Array:
    """Singular values."""
    return base.svdvals(x)


@structural_function(1)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Array:
    """Pseudo-inverses."""
    if rtol is not np._NoValue and rcond is not None:
        raise ValueError("[pinv] `rtol` and `rcond` can't be both set.")
    if rtol is np._NoValue:
        x = as_array(a, "pinv")
        eps = float(np.finfo(x.dtype if kind_of(x.dtype) in "fc" else default_float()).eps)
        rtol = (1e-15 if eps < 1e-10 else max(x.shape[-2:]) * eps) if rcond is None else rcond
    return base.pinv(a, rtol=rtol)


@numpy_function
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:
    """Ranks: numbers of singular values above a limit."""
    if rtol is not None and tol is not None:
        raise ValueError("[matrix_rank] `tol` and `rtol` can't be both set.")
    x = as_array(A, "matrix_rank")
    if x.ndim < 2:
        return ew.logical_not((x == 0).all()).astype(np.int64)
    if tol is None:
        return base.matrix_rank(x, rtol=rtol)
    values = base.svdvals(x)
    limit = as_array(tol, "matrix_rank")
    return (values > (limit[..., None] if limit.ndim else limit)).astype(np.int64).sum(-1)


@structural_function(1)
def matrix_power(a: Any, n: int) -> Array:
    """Powers of matrices."""
    x, n = _square(a, "matrix_power"), operator.index(n)
    if kind_of(x.dtype) != "b" or n < 0:
        return base.matrix_power(x, n)
    power = zeros(x.shape, x.dtype) | np.eye(x.shape[-1], dtype=bool)
    while n:  # by squares
        power = _matmul(power, x) if n % 2 else power
        n //= 2
        x = _matmul(x, x) if n else x
    return power


@structural_function(1)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """Norm of vectors or matrices; see `metalloid.linalg.norm`."""
    array = as_array(x, "norm")
    if kind_of(array.dtype) not in "fc":
        array = array.astype(default_float())
    if ord is None:
        return base.vector_norm(array, axis=axis, keepdims=keepdims)
    axes = axes_of("norm", axis, array.ndim)
    if len(axes) == 1:
        return base.vector_norm(array, axis=axis, keepdims=keepdims, ord=ord)
    if len(axes) != 2:
        raise ValueError(f"[norm] improper number of dimensions to norm: {len(axes)}.")
    matrices = moveaxis(array, axes, (-2, -1))
    result = base.matrix_norm(matrices, ord=ord, keepdims=keepdims)
    return moveaxis(result, (-2, -1), axes) if keepdims else result


@structural_function(1)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """Norm of vectors."""
    return base.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)


@structural_function(1)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Norm of matrices."""
    return base.matrix_norm(x, keepdims=keepdims, ord=ord)


@numpy_function
def cond(x: Any, p: Any = None) -> Array:
    """Condition numbers: of the 2-norm by singular values, of others by the inverse.

    Examples
    --------
    >>> import metalloid.numpy as np
    >>> np.linalg.cond(np.array([[2.0, 0.0], [0.0, 0.5]]))
    np.float64(4.0)
    """
    matrices = as_array(x, "cond")
    if matrices.ndim < 2:
        raise LinAlgError(f"[cond] expected matrices, got shape {matrices.shape}.")
    if 0 in matrices.shape[-2:]:
        raise LinAlgError(
            f"[cond] cond is not defined on empty arrays, got shape {matrices.shape}."
        )
    if p in (None, 2, -2):
        values = base.svdvals(matrices)
        first, last = values[..., 0], values[..., -1]
        result = last / first if p == -2 else first / last
        is_infinite = ew.logical_and(ew.isnan(result), ~ew.isnan(matrices).any(axis=(-2, -1)))
        return where(is_infinite, np.inf, result)  # a quotient of zeros
    try:
        inverse = base.inv(matrices)
        if not is_traced(inverse._node):
            evaluation.eval(inverse)  # raises if a matrix is singular
        return base.matrix_norm(matrices, ord=p) * base.matrix_norm(inverse, ord=p)
    except LinAlgError:
        return call_on_host(np.linalg.cond, (matrices, p), {})  # type: ignore[no-any-return]


@numpy_function
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """Product of several matrices, in the order with the fewest operations."""
    from metalloid.numpy.array import store

    operands = as_arrays("multi_dot", *arrays)
    if len(operands) < 2:
        raise ValueError("[multi_dot] expected at least two arrays.")
    is_row, is_column = operands[0].ndim == 1, operands[-1].ndim == 1
    if is_row:
        operands[0] = operands[0][None, :]
    if is_column:
        operands[-1] = operands[-1][:, None]
    if any(x.ndim != 2 for x in operands):
        raise LinAlgError("[multi_dot] expected matrices, and vectors at the ends only.")
    result = _chain(operands, [*(x.shape[0] for x in operands), operands[-1].shape[1]])
    result = result[0] if is_row else result
    return store(result[..., 0] if is_column else result, out, "multi_dot")


def _chain(operands: list[Array], sizes: list[int]) -> Array:
    """Multiply in the best order (T. Cormen et al., "Introduction to Algorithms", 15.2)."""
    count = len(operands)
    costs = {(k, k): (0, k) for k in range(count)}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            costs[i, j] = min(
                (costs[i, k][0] + costs[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )

    def multiplied(i: int, j: int) -> Array:
        if i == j:
            return operands[i]
        k = costs[i, j][1]
        return _matmul(multiplied(i, k), multiplied(k + 1, j))

    return multiplied(0, count - 1)


@structural_function(2)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Array:
    """Solution of a tensor equation ``tensordot(a, x, x.ndim) == b``."""
    x, y = as_arrays("tensorsolve", a, b)
    if axes is not None:
        order = [k for k in range(x.ndim) if k not in axes]
        order += list(axes)
        x = x.transpose(*order)
    shape = x.shape[y.ndim :]
    size = math.prod(shape)
    if x.size != size * y.size or size != y.size:
        raise LinAlgError(f"[tensorsolve] the tensor of shape {x.shape} is not square.")
    return base.solve(x.reshape(y.size, size), y.ravel()).reshape(shape)


@structural_function(1)
def tensorinv(a: Any, ind: int = 2) -> Array:
    """Inverse of a tensor for `tensordot` over `ind` axes."""
    x = as_array(a, "tensorinv")
    if ind <= 0:
        raise ValueError(f"[tensorinv] ind must be positive, got {ind}.")
    rows, columns = x.shape[:ind], x.shape[ind:]
    if math.prod(rows) != math.prod(columns):
        raise LinAlgError(f"[tensorinv] {rows} and {columns} have not as many elements.")
    return base.inv(x.reshape(math.prod(rows), -1)).reshape(*columns, *rows)


@structural_function(1)
def diagonal(x: Any, /, *, offset: int = 0) -> Array:
    """Diagonals of matrices, the last two axes."""
    return base.diagonal(x, offset=offset)


@structural_function(1)
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Sums of the diagonals of matrices, the last two axes."""
    return base.trace(x, offset=offset, dtype=dtype)


@structural_function(1)
def matrix_transpose(x: Any, /) -> Array:
    """Transpose the last two axes."""
    return base.matrix_transpose(as_array(x, "matrix_transpose"))


@structural_function(2)
def outer(x1: Any, x2: Any, /) -> Array:
    """Products of all pairs of elements of two vectors."""
    return base.outer(x1, x2)


@structural_function(2)
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """Cross product of vectors of three elements."""
    return base.cross(x1, x2, axis=axis)


@structural_function(2)
def matmul(x1: Any, x2: Any, /) -> Array:
    """Matrix product."""
    return _matmul(x1, x2)


@structural_function(2)
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """Dot products of vectors; those of `x1` are conjugated."""
    return _vecdot(x1, x2, axis=axis)


tensordot = products.tensordot

__all__ = [
    "LinAlgError", "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals",
    "eigvalsh", "inv", "lstsq", "matmul", "matrix_norm", "matrix_power", "matrix_rank",
    "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd",
    "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip


if not TYPE_CHECKING:  # for checkers, other names are errors

    def __getattr__(name: str) -> Any:
        raise unknown_attribute(__name__, name, __all__)
