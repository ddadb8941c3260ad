"""Linear systems: solutions, inverses, determinants and ranks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from metalloid.arrays.array import Array
from metalloid.arrays.functions.creation import eye, zeros
from metalloid.arrays.functions.data_types import finfo
from metalloid.arrays.functions.elementwise import abs, log, sign
from metalloid.arrays.functions.tensor_contractions import diagonal_of
from metalloid.arrays.ir.dtypes import DType, complex128, float64, int64, kind_of, promote, real_of
from metalloid.arrays.ir.node import Node, broadcast, cast, reshape
from metalloid.arrays.ir.operands import binary_operands, to_node
from metalloid.arrays.ir.primitives import Implementation, implement
from metalloid.kernels.strides import broadcast_shape
from metalloid.linalg import solver_calls
from metalloid.linalg.decompositions import svdvals
from metalloid.linalg.matrices import (
    NO_SINGULAR_VALUES,
    check_square,
    explained,
    floats,
    matrices,
    square_matrices,
)
from metalloid.linalg.primitives import by_host, call, for_solver
from metalloid.linalg.small_matrices import (
    determinants,
    inverses,
    is_small,
    is_small_system,
    solutions,
)
from metalloid.linalg.solver_calls import is_for_solver

#: Condition number from which an adjugate is computed without the inverse.
_MAX_CONDITION = 1e8


class SlogDet(NamedTuple):
    """The result of `slogdet`."""

    sign: Array
    logabsdet: Array


class LeastSquares(NamedTuple):
    """The result of `lstsq`."""

    solution: Array
    residuals: Array
    rank: Array
    singular_values: Array


def det(x: Any, /) -> Array:
    """Return the determinant of every matrix.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.linalg.det(mtl.asarray([[2.0, 1.0], [0.0, 3.0]]))
    array(6., dtype=float32)
    """
    node, dtype = square_matrices("det", x)
    (result,) = call("det", [node])
    return Array(cast(result, dtype))


def slogdet(x: Any, /) -> SlogDet:
    """Return the sign and the logarithm of the absolute value of the determinant.

    Use it where `det` would overflow or underflow.

    Returns
    -------
    SlogDet
        ``sign`` and ``logabsdet``: 0 and minus infinity for a determinant of 0. The sign of a
        complex determinant is a complex number of absolute value 1.
    """
    node, dtype = square_matrices("slogdet", x)
    signs, size = call("slogdet", [node])
    return SlogDet(Array(cast(signs, dtype)), Array(cast(size, real_of(dtype))))


def inv(x: Any, /) -> Array:
    """Return the inverse of every matrix; `solve` is faster and more accurate for equations.

    Raises
    ------
    LinAlgError
        At evaluation, if a matrix is singular.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.linalg.inv(mtl.asarray([[2.0, 0.0], [0.0, 4.0]]))
    array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    node, dtype = square_matrices("inv", x)
    (inverse,) = call("inv", [node])
    return Array(cast(inverse, dtype))


def solve(x1: Any, x2: Any, /) -> Array:
    """Solve ``x1 @ x == x2`` for `x`.

    Parameters
    ----------
    x1 : Array
        Square matrices.
    x2 : Array
        A vector, if it has one axis; otherwise matrices whose columns are right-hand sides. Stacks
        broadcast.

    Raises
    ------
    LinAlgError
        At evaluation, if a matrix is singular.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.linalg.solve(mtl.asarray([[2.0, 0.0], [0.0, 4.0]]), mtl.asarray([2.0, 2.0]))
    array([1. , 0.5], dtype=float32)
    """
    a, b, dtype = _system("solve", x1, x2)
    check_square("solve", a, " See lstsq.")
    columns, is_vector = _columns(b)
    (solution,) = call("solve", [a, columns])
    return _without_columns(cast(solution, dtype), is_vector)


def _columns(b: Node) -> tuple[Node, bool]:
    """Right-hand sides as columns, and whether they were one vector."""
    is_vector = len(b.shape) == 1
    return reshape(b, (*b.shape, 1)) if is_vector else b, is_vector


def _without_columns(x: Node, is_vector: bool) -> Array:
    return Array(reshape(x, x.shape[:-1]) if is_vector else x)


def _system(name: str, x1: Any, x2: Any) -> tuple[Node, Node, DType]:
    """Return both operands in a common type, and the type of the result."""
    first, second = binary_operands(name, x1, x2)
    (a, dtype_a), (b, dtype_b) = matrices(name, Array(first)), floats(name, Array(second))
    if not b.shape or a.shape[-2] != b.shape[-2 if len(b.shape) > 1 else -1]:
        raise ValueError(f"[{name}] incompatible shapes {a.shape} and {b.shape}.")
    wide = promote(a.dtype, b.dtype)
    return cast(a, wide), cast(b, wide), promote(dtype_a, dtype_b)


def lstsq(x1: Any, x2: Any, /, *, rtol: float | None = None) -> LeastSquares:
    """Return the least-squares solution of ``x1 @ x == x2`` with minimum norm.

    Parameters
    ----------
    x1, x2 : Array
        As in `solve`, but `x1` need not be square.
    rtol : float, optional
        Singular values below `rtol` times the largest count as 0. By default ``max(M, N)`` times
        the machine epsilon of the type.

    Returns
    -------
    LeastSquares
        ``solution``; ``residuals``, the squared error of each column of `x2`, never empty;
        ``rank``; ``singular_values``.

    Examples
    --------
    >>> import metalloid as mtl
    >>> line = mtl.asarray([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> mtl.round(mtl.linalg.lstsq(line, mtl.asarray([1.0, 3.0, 5.0])).solution)
    array([2., 1.], dtype=float32)
    """
    a, b, dtype = _system("lstsq", x1, x2)
    real = real_of(dtype)
    tolerance = _tolerance("lstsq", a, dtype, None if rtol is None else float(rtol))
    columns, is_vector = _columns(b)
    solution, residuals, rank, values = call("lstsq", [a, columns], tolerance)
    return LeastSquares(
        _without_columns(cast(solution, dtype), is_vector),
        _without_columns(cast(residuals, real), is_vector),
        Array(rank),
        Array(cast(values, real)),
    )


def pinv(x: Any, /, *, rtol: float | Array | None = None) -> Array:
    """Return the Moore-Penrose pseudo-inverse of every matrix.

    Parameters
    ----------
    rtol : float or Array, optional
        Singular values up to `rtol` times the largest count as 0. One tolerance, or one per matrix
        of the stack. By default ``max(M, N)`` times the machine epsilon of the type.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.linalg.pinv(mtl.asarray([[2.0], [0.0]]))
    array([[0.5, 0. ]], dtype=float32)
    """
    node, dtype = matrices("pinv", x)
    tolerance = _tolerance("pinv", node, dtype, rtol)
    if isinstance(tolerance, float):
        (inverse,) = call("pinv", [node], tolerance)
    else:
        (inverse,) = call("pinv", [node, tolerance._node])
    return Array(cast(inverse, dtype))


def matrix_rank(x: Any, /, *, rtol: float | Array | None = None) -> Array:
    """Return the rank: the number of nonzero singular values; `rtol` is that of `pinv`.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.linalg.matrix_rank(mtl.ones((3, 3)))
    array(1, dtype=int64)
    """
    node, dtype = matrices("matrix_rank", x)
    if 0 in node.shape[-2:]:
        return zeros(node.shape[:-2], dtype=int64, device=node.device)
    s = svdvals(Array(node))
    tolerance = _tolerance("matrix_rank", node, dtype, rtol)
    factor = tolerance if isinstance(tolerance, float) else tolerance[..., None]
    is_nonzero = s > s.max(axis=-1, keepdims=True) * factor
    return is_nonzero.sum(axis=-1)


def _tolerance(where: str, node: Node, dtype: DType, rtol: Any) -> float | Array:
    """Return one tolerance for all matrices, or an array of one per matrix."""
    if rtol is None:
        return max(node.shape[-2:]) * float(finfo(dtype).eps)
    if isinstance(rtol, int | float):
        return float(rtol)
    tolerance = to_node(rtol, where, device=node.device)
    if kind_of(tolerance.dtype) != "f":
        raise TypeError(f"[{where}] rtol must be a float or float array, got {tolerance.dtype}.")
    stack = node.shape[:-2]
    if broadcast_shape(where, tolerance.shape, stack) != stack:
        raise ValueError(
            f"[{where}] rtol has shape {tolerance.shape}, the stack of matrices {stack}."
        )
    return Array(tolerance)


# -- by the vendor library


def _inverse(x: Node, backend: str) -> Node:
    unit = eye(x.shape[-1], dtype=x.dtype, device=x.device)._node
    return solver_calls.solve(x, broadcast(unit, x.shape), "inv")


def _is_solved_by_library(a: Node, b: Node, backend: str) -> bool:
    return is_for_solver("solve", a, backend) and 0 not in b.shape


def _solved(a: Node, b: Node, backend: str) -> Node:
    """Solve by the vendor library, which requires the stacks to have equal shapes."""
    stack = broadcast_shape("solve", a.shape[:-2], b.shape[:-2])
    return solver_calls.solve(
        broadcast(a, (*stack, *a.shape[-2:])), broadcast(b, (*stack, *b.shape[-2:]))
    )


def _product_of_pivots(x: Node, backend: str) -> Node:
    diagonal, exchanges = _eliminated(x)
    return cast((diagonal.prod(axis=-1) * exchanges)._node, x.dtype)


def _logarithms_of_pivots(x: Node, backend: str) -> tuple[Node, Node]:
    diagonal, exchanges = _eliminated(x)
    signs = sign(diagonal).prod(axis=-1) * exchanges
    size = log(abs(diagonal)).sum(axis=-1)
    return cast(signs._node, x.dtype), cast(size._node, real_of(x.dtype))


def _eliminated(node: Node) -> tuple[Array, Array]:
    """Return the diagonal of `U` in double precision, and the sign of the row exchanges."""
    both, exchanges = solver_calls.lu_and_sign(node)
    wide = complex128 if kind_of(node.dtype) == "c" else float64
    return Array(cast(diagonal_of(both), wide)), Array(cast(exchanges, float64))


# -- by kernels, a thread for each matrix


def _small_determinants(x: Node, backend: str) -> Node:
    return determinants(x)


def _small_inverses(x: Node, backend: str) -> Node:
    return inverses(x, _inv)


def _small_solutions(a: Node, b: Node, backend: str) -> Node:
    return solutions(a, b, _solve)


# -- on the host


def _double(a: np.ndarray) -> np.ndarray:
    return a.astype(np.promote_types(a.dtype, np.float64), copy=False)


def _pseudo_inverse(a: np.ndarray, rtol: Any) -> np.ndarray:
    inverse: np.ndarray = np.linalg.pinv(_double(a), rtol=rtol)
    return inverse


def _nearest(a: np.ndarray, b: np.ndarray, rtol: float) -> tuple[np.ndarray, ...]:
    """NumPy's `lstsq` for stacks of matrices."""
    a, b = _double(a), _double(b)
    if a.ndim == 2 and a.size:
        solution, residuals, number, s = np.linalg.lstsq(a, b, rtol)
        rank: Any = np.asarray(number)
        if residuals.size:  # not below full rank, nor for as many rows as columns
            return solution, residuals, rank, s
    else:
        u, s, vh = np.linalg.svd(a, full_matrices=False)
        significant = s > rtol * s.max(axis=-1, keepdims=True, initial=0)
        inverse = np.divide(1, s, where=significant, out=np.zeros_like(s))
        solution = _adjoint(vh) @ (inverse[..., None] * (_adjoint(u) @ b))
        rank = significant.sum(axis=-1)
    residuals = np.square(np.abs(a @ solution - b)).sum(axis=-2)
    return solution, residuals, rank, s


def _adjoint(a: np.ndarray) -> np.ndarray:
    adjoint: np.ndarray = np.conj(np.swapaxes(a, -1, -2))
    return adjoint


def _adjugate(a: np.ndarray) -> np.ndarray:
    """The determinant times the inverse; also of matrices without an inverse."""
    a = _double(a)
    if a.size == 0:
        return a
    determinant = np.asarray(np.linalg.det(a))
    has_inverse = determinant != 0
    inverse = np.linalg.inv(np.where(has_inverse[..., None, None], a, np.eye(a.shape[-1])))
    condition = np.linalg.norm(a, axis=(-2, -1)) * np.linalg.norm(inverse, axis=(-2, -1))
    result: np.ndarray = determinant[..., None, None] * inverse
    is_near_singular = ~(has_inverse & (condition < _MAX_CONDITION))
    if is_near_singular.any():
        result[is_near_singular] = _adjugate_by_svd(a[is_near_singular])
    return result


def _adjugate_by_svd(a: np.ndarray) -> np.ndarray:
    u, s, vh = np.linalg.svd(a)
    others = np.where(np.eye(s.shape[-1], dtype=bool), 1, s[..., None, :]).prod(axis=-1)
    factor = np.linalg.det(u) * np.linalg.det(vh)
    vectors = _adjoint(vh) * (factor[..., None] * others)[..., None, :]
    adjugate: np.ndarray = vectors @ _adjoint(u)
    return adjugate


_inv = explained("inv", np.linalg.inv, "is singular")
_solve = explained("solve", np.linalg.solve, "is singular")
_pinv = explained("pinv", _pseudo_inverse, NO_SINGULAR_VALUES)
_lstsq = explained("lstsq", _nearest, NO_SINGULAR_VALUES)

_by_pivots = for_solver("lu")
implement(
    "det",
    Implementation(_small_determinants, is_small),
    Implementation(_product_of_pivots, _by_pivots),
    by_host("det", np.linalg.det),
    is_structural=True,
)
implement(
    "slogdet",
    Implementation(_logarithms_of_pivots, _by_pivots),
    by_host("slogdet", np.linalg.slogdet),
    is_structural=True,
)
implement("adjugate", by_host("adjugate", _adjugate), is_structural=True)
implement(
    "inv",
    Implementation(_small_inverses, is_small),
    Implementation(_inverse, for_solver("solve")),
    by_host("inv", _inv),
    is_structural=True,
)
implement(
    "solve",
    Implementation(_small_solutions, is_small_system),
    Implementation(_solved, _is_solved_by_library),
    by_host("solve", _solve),
    is_structural=True,
)
implement("lstsq", by_host("lstsq", _lstsq), is_structural=True)
implement("pinv", by_host("pinv", _pinv), is_structural=True)
