"""LU decomposition with partial pivoting, vectorised over stacks of matrices.

NumPy's solvers use it but do not return the factors.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from metalloid.arrays.array import Array
from metalloid.arrays.functions.creation import eye, tril, triu
from metalloid.arrays.functions.evenly_spaced import arange
from metalloid.arrays.ir.dtypes import complex128, float64, kind_of, real_of
from metalloid.arrays.ir.node import Node, cast
from metalloid.arrays.ir.primitives import Implementation, implement
from metalloid.linalg import solver_calls
from metalloid.linalg.matrices import matrices
from metalloid.linalg.primitives import by_host, call, for_solver

_PANEL = 32  # columns per panel: eliminated one by one, the rest by a matrix product


class LU(NamedTuple):
    """The result of `lu`."""

    P: Array
    L: Array
    U: Array


def lu(x: Any, /) -> LU:
    """Return a permutation `P`, a lower and an upper triangle `L` and `U`: ``P @ L @ U == x``.

    Returns
    -------
    LU
        `L` has a unit diagonal and absolute values of at most 1 below it (partial pivoting).
        A singular matrix has zeros on the diagonal of `U`.

    Notes
    -----
    Columns are eliminated in blocks (J. J. Dongarra, I. S. Duff, D. C. Sorensen and H. A. van der
    Vorst, "Numerical Linear Algebra for High-Performance Computers", SIAM 1998, section 5.4).

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.linalg.lu(mtl.asarray([[1.0, 3.0], [2.0, 4.0]])).U
    array([[2., 4.],
           [0., 1.]], dtype=float32)
    """
    node, dtype = matrices("lu", x)
    p, lower, upper = call("lu", [node])
    return LU(Array(cast(p, real_of(dtype))), Array(cast(lower, dtype)), Array(cast(upper, dtype)))


def _by_library(x: Node, backend: str) -> tuple[Node, ...]:
    *_, rows, columns = x.shape
    small = min(rows, columns)
    both, order = map(Array, solver_calls.lu(x))
    unit = eye(rows, small, dtype=both.dtype, device=x.device)
    lower = tril(both[..., :small], k=-1) + unit
    became = order[..., None, :] == arange(rows, device=x.device)[:, None]
    upper = triu(both[..., :small, :])
    return became.astype(real_of(x.dtype))._node, lower._node, upper._node


def _lu(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    wide = complex128 if kind_of(a.dtype) == "c" else float64
    *stack, rows, columns = a.shape
    small = min(rows, columns)
    work = a.astype(wide).reshape(math.prod(stack), rows, columns)
    order = np.tile(np.arange(rows), (len(work), 1))
    for start in range(0, small, _PANEL):
        stop = min(start + _PANEL, small)
        _eliminate(work, order, start, stop)
        below, right = slice(stop, None), slice(stop, None)
        top = slice(start, stop)
        unit = np.tril(work[:, top, top], -1) + np.eye(stop - start)
        work[:, top, right] = np.linalg.solve(unit, work[:, top, right])
        work[:, below, right] -= work[:, below, top] @ work[:, top, right]
    lower = np.tril(work[:, :, :small], -1) + np.eye(rows, small)
    # Row k of the result was row order[k]: P restores the order.
    permutation = np.swapaxes(np.eye(rows)[order], -1, -2)
    return permutation, lower, np.triu(work[:, :small])


def _eliminate(work: np.ndarray, order: np.ndarray, start: int, stop: int) -> None:
    """Eliminate the columns of a panel one by one, exchanging whole rows."""
    each = np.arange(len(work))
    for k in range(start, stop):
        pivot = k + np.argmax(np.abs(work[:, k:, k]), axis=1)
        for rows in (work, order):
            rows[each, k], rows[each, pivot] = rows[each, pivot], rows[each, k]
        divisor = work[:, k, k, None]
        # A column of zeros needs no elimination.
        work[:, k + 1 :, k] /= np.where(divisor == 0, 1, divisor)
        rest = slice(k + 1, stop)
        work[:, k + 1 :, rest] -= work[:, k + 1 :, k, None] * work[:, k, None, rest]


implement(
    "lu", Implementation(_by_library, for_solver("lu")), by_host("lu", _lu), is_structural=True
)
