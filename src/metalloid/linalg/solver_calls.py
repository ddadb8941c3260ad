"""Nodes that call the vendor library's decompositions.

LAPACK stores matrices column by column, so its matrix is the transpose of a row-major one. A call
gets transposed operands and its results are transposed: both are views, which cost no time. LAPACK
overwrites its operands, so they are copies.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from metalloid.arrays.array import Array
from metalloid.arrays.execution.calls import launch_call, to_host
from metalloid.arrays.functions.elementwise import conj
from metalloid.arrays.interop.dlpack import owned_copy
from metalloid.arrays.ir.dtypes import DType, int64, kind_of, real_of
from metalloid.arrays.ir.host_arrays import from_numpy
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.memory import Memory
from metalloid.arrays.ir.node import Node, fresh, permute
from metalloid.linalg.matrices import NO_EIGENVALUES, NO_SINGULAR_VALUES, refuse
from metalloid.runtime.devices.libraries import Solver, Stack
from metalloid.runtime.memory.buffer import Buffer


def is_for_solver(name: str, node: Node, backend: str) -> bool:
    """Whether to call the vendor library; `name` is a method of `Solver`."""
    solver = node.device.libraries.solver
    if solver is None or backend == "host" or 0 in node.shape:
        return False
    *stack, rows, columns = node.shape
    return backend == "cusolver" or solver.suits(name, math.prod(stack), rows, columns)


def cholesky(node: Node, upper: bool) -> Node:
    """Return one triangular factor; the other triangle is undefined."""
    (result,) = launch_call(_cholesky, [transposed(node)], (upper,), (node.dtype, node.shape))
    return transposed(result)


def solve(a: Node, b: Node, where: str = "solve") -> Node:
    """Solve equations for stacks of matrices and right-hand sides of equal shape."""
    right = transposed(b)
    (result,) = launch_call(_solve, [transposed(a), right], (where,), (b.dtype, right.shape))
    return transposed(result)


def lu(node: Node) -> tuple[Node, Node]:
    """Return both triangles in one matrix, and the permutation of the rows."""
    return _factored(_lu, node, int64, node.shape[-2:-1])


def lu_and_sign(node: Node) -> tuple[Node, Node]:
    """Return both triangles in one matrix, and the sign of the permutation."""
    return _factored(_lu_and_sign, node, real_of(node.dtype), ())


def qr(node: Node, inner: int) -> tuple[Node, Node]:
    """Return `inner` orthonormal columns, and R; its lower triangle is undefined."""
    start = transposed(node)
    *stack, _, rows = start.shape
    q, r = launch_call(
        _qr, [start], (inner,), (node.dtype, (*stack, inner, rows)), (node.dtype, start.shape)
    )
    return transposed(q), transposed(r)


def eigh(node: Node, vectors: bool) -> tuple[Node, Node]:
    """Return eigenvalues and eigenvectors; the latter are undefined unless `vectors`."""
    values, result = launch_call(
        _eigh, [transposed(node)], (vectors,),
        (real_of(node.dtype), node.shape[:-1]), (node.dtype, node.shape),
    )  # fmt: skip
    return values, transposed(result)


def svd(node: Node, is_full: bool) -> tuple[Node, Node, Node]:
    """Return left singular vectors, singular values, and right singular vectors."""
    *stack, rows, columns = node.shape
    small = min(rows, columns)
    left, values, right = launch_call(
        _svd, [transposed(node)], (is_full,),
        (node.dtype, (*stack, rows if is_full else small, rows)),
        (real_of(node.dtype), (*stack, small)),
        (node.dtype, (*stack, columns if is_full else small, columns)),
    )  # fmt: skip
    # The transposes of the right singular vectors, which are columns, are the rows of Vh.
    is_complex = kind_of(node.dtype) == "c"
    return transposed(left), values, conj(Array(right))._node if is_complex else right


def svdvals(node: Node) -> Node:
    """Return only singular values."""
    result = real_of(node.dtype), (*node.shape[:-2], min(node.shape[-2:]))
    return launch_call(_svdvals, [transposed(node)], (), result)[0]


def transposed(node: Node) -> Node:
    """Transpose every matrix."""
    rank = len(node.shape)
    return permute(node, (*range(rank - 2), rank - 1, rank - 2))


def _factored(
    function: Callable[..., list[Memory]], node: Node, dtype: DType, shape: Ints
) -> tuple[Node, Node]:
    start = transposed(node)
    more = dtype, (*node.shape[:-2], *shape)
    both, result = launch_call(function, [start], (), (node.dtype, start.shape), more)
    return transposed(both), result


# -- the calls, on evaluated transposes


def _cholesky(a: Node, upper: bool) -> list[Memory]:
    result = owned_copy(a)
    infos = _solver(a).cholesky(_stack(result), upper)
    refuse("cholesky", infos, _shape(a), "is not positive definite")
    return _memories(result)


def _solve(a: Node, b: Node, where: str) -> list[Memory]:
    result = owned_copy(b)
    matrix = owned_copy(a)
    refuse(where, _solver(a).solve(_stack(matrix), _stack(result)), _shape(a), "is singular")
    return _memories(result)


def _lu(a: Node) -> list[Memory]:
    result = owned_copy(a)
    _, pivots = _solver(a).lu(_stack(result))
    order = np.tile(np.arange(a.shape[-1], dtype=int64), (len(pivots), 1))
    each = np.arange(len(pivots))
    for k, other in enumerate(pivots.T - 1):
        order[each, k], order[each, other] = order[each, other], order[each, k]
    return _memories(result, from_numpy(order, a.device))


def _lu_and_sign(a: Node) -> list[Memory]:
    result = owned_copy(a)
    _, pivots = _solver(a).lu(_stack(result))
    exchanges = (pivots != np.arange(1, pivots.shape[1] + 1)).sum(axis=1)
    signs = np.where(exchanges % 2, -1, 1).astype(real_of(a.dtype))
    return _memories(result, from_numpy(signs, a.device))


def _qr(a: Node, inner: int) -> list[Memory]:
    result = owned_copy(a)
    columns = fresh(a.dtype, (*a.shape[:-2], inner, a.shape[-1]), a.device)
    _solver(a).qr(_stack(result), _stack(columns))
    return _memories(columns, result)


def _eigh(a: Node, vectors: bool) -> list[Memory]:
    result, values = owned_copy(a), fresh(real_of(a.dtype), a.shape[:-1], a.device)
    infos = _solver(a).eigh(_stack(result), _buffer(values), vectors)
    refuse(
        "eigh" if vectors else "eigvalsh", infos | _not_converged(values), _shape(a), NO_EIGENVALUES
    )
    return _memories(values, result)


def _svd(a: Node, is_full: bool) -> list[Memory]:
    *stack, columns, rows = a.shape
    small = min(rows, columns)
    values = fresh(real_of(a.dtype), (*stack, small), a.device)
    left, right = (
        fresh(a.dtype, (*stack, n if is_full else small, n), a.device) for n in (rows, columns)
    )
    matrix = owned_copy(a)
    infos = _solver(a).svd(_stack(matrix), _buffer(values), _stack(left), _stack(right))
    refuse("svd", infos | _not_converged(values), _shape(a), NO_SINGULAR_VALUES)
    return _memories(left, values, right)


def _svdvals(a: Node) -> list[Memory]:
    values = fresh(real_of(a.dtype), (*a.shape[:-2], min(a.shape[-2:])), a.device)
    matrix = owned_copy(a)
    infos = _solver(a).svd(_stack(matrix), _buffer(values), None, None)
    refuse("svdvals", infos | _not_converged(values), _shape(a), NO_SINGULAR_VALUES)
    return _memories(values)


def _solver(a: Node) -> Solver:
    solver = a.device.libraries.solver
    assert solver is not None
    return solver


def _shape(a: Node) -> Ints:
    """Return the shape of a stack from the shape of its transposes."""
    *stack, columns, rows = a.shape
    return (*stack, rows, columns)


def _memories(*nodes: Node) -> list[Memory]:
    return [node.memory for node in nodes if node.memory is not None]


def _buffer(node: Node) -> Buffer:
    (memory,) = _memories(node)
    buffer: Buffer = memory.bound
    return buffer


def _stack(node: Node) -> Stack:
    """Describe contiguous memory as a stack of LAPACK matrices."""
    *stack, columns, rows = node.shape
    return Stack(_buffer(node), math.prod(stack), rows, columns, node.dtype.name)


def _not_converged(values: Node) -> np.ndarray:
    """Mask of matrices with NaN or infinite results; LAPACK's info does not report these."""
    is_finite: np.ndarray = np.isfinite(to_host(values)).all(axis=-1)
    return ~is_finite.reshape(-1)
