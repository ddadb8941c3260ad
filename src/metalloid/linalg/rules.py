"""Rules of solvers, determinants and norms for transforms of functions.

Formulas are those of M. B. Giles, "Collected matrix derivative results for forward and reverse mode
algorithmic differentiation", 2008, unless another source is named. `decomposition_rules` holds
those of decompositions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.functions.elementwise import imag, real
from metalloid.arrays.functions.select import where
from metalloid.arrays.ir.dtypes import kind_of
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.node import Node, broadcast, reshape
from metalloid.arrays.ir.primitives import bind
from metalloid.arrays.ir.views import moved_axes
from metalloid.linalg.decompositions import svd
from metalloid.linalg.equations import inv, pinv
from metalloid.linalg.primitives import call, call_with
from metalloid.linalg.products import diagonal
from metalloid.transforms.rules.registry import Rule, Tangents, define_rule
from metalloid.transforms.tangents import added, conjugate

Nodes = Sequence["Node | None"]


def adjoint(x: Array) -> Array:
    """The conjugate transpose of every matrix."""
    return conjugate(x.mT)


def tangents_by(function: Callable[..., Sequence[Array | None]]) -> Tangents:
    """Tangents of a primitive of one differentiable operand.

    Parameters
    ----------
    function : callable
        From the operand, its tangent, the results and the parameters, as keyword ``params``, to the
        tangents of the results.
    """

    def rule(args: Sequence[Node], params: Any, results: Sequence[Node], tangents: Nodes) -> Nodes:
        if tangents[0] is None:
            return [None] * len(results)
        operands = map(Array, (args[0], tangents[0], *results))
        return [None if t is None else t._node for t in function(*operands, params=params)]

    return rule


def define_stacked(name: str, function: Callable[..., Sequence[Array | None]]) -> None:
    """Register a primitive of one operand, for which the batch is one more axis of the stack."""

    def batch(args: Sequence[Node], is_batched: object, params: Any) -> Sequence[Node]:
        return call_with(name, args, params)

    define_rule(name, Rule(tangents_by(function), batch))


def _aligned(args: Sequence[Node], is_batched: Sequence[bool], ranks: Sequence[int]) -> list[Node]:
    """Operands whose stacks have equally many axes, with the batch as the first axis.

    Parameters
    ----------
    ranks : sequence of int
        Number of axes of the elements of each stack.
    """
    rows = list(zip(args, is_batched, ranks, strict=True))
    size = next(arg.shape[0] for arg, own, _ in rows if own)
    max_rank = max(len(arg.shape) - own - rank for arg, own, rank in rows)
    aligned = []
    for arg, own, rank in rows:
        shape = arg.shape[1:] if own else arg.shape
        padded = (1,) * (max_rank + rank - len(shape)) + shape
        arg = reshape(arg, (size if own else 1, *padded))
        aligned.append(broadcast(arg, (size, *padded)))
    return aligned


# -- determinants and inverses


def _det(a: Array, da: Array, det: Array, params: Any) -> list[Array]:
    (adjugate,) = call("adjugate", [a._node])
    return [(Array(adjugate).mT * da).sum((-2, -1))]


def _adjugate(a: Array, da: Array, adjugate: Array, params: Any) -> list[Array]:
    """Requires an inverse, as second derivatives of the determinant do."""
    product = inv(a) @ da
    trace = diagonal(product).sum(-1)
    return [trace[..., None, None] * adjugate - product @ adjugate]


def _slogdet(a: Array, da: Array, sign: Array, size: Array, params: Any) -> list[Array | None]:
    trace = (inv(a).mT * da).sum((-2, -1))
    if kind_of(a.dtype) != "c":
        return [None, trace]
    return [sign * imag(trace) * 1j, real(trace)]


def _inv(a: Array, da: Array, inverse: Array, params: Any) -> list[Array]:
    return [-(inverse @ da @ inverse)]


def _pinv(a: Array, da: Array, inverse: Array, params: Any) -> list[Array]:
    """The derivative for matrices of constant rank.

    G. H. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares
    problems whose variables separate", SIAM Journal on Numerical Analysis 10, 1973.
    """
    p, pt, dat = inverse, adjoint(inverse), adjoint(da)
    left, right = p @ pt @ dat, dat @ pt @ p
    return [left - left @ a @ p + right - p @ a @ right - p @ da @ p]


def _pinv_batch(args: Sequence[Node], is_batched: Sequence[bool], params: Any) -> Sequence[Node]:
    return call_with("pinv", _aligned(args, is_batched, (2, 0)[: len(args)]), params)


define_stacked("det", _det)
define_stacked("adjugate", _adjugate)
define_stacked("slogdet", _slogdet)
define_stacked("inv", _inv)
define_rule("pinv", Rule(tangents_by(_pinv), _pinv_batch))


# -- equations


def _solve_tangents(args: Sequence[Node], params: Any, results: Any, tangents: Nodes) -> Nodes:
    (a, _), (da, db), (x,) = args, tangents, results
    change = _change_of_right_operand(None if da is None else Array(da), Array(x), db)
    if change is None:
        return [None]
    return call_with("solve", [a, broadcast(change, x.shape)], params)


def _change_of_right_operand(da: Array | None, x: Array, db: Node | None) -> Node | None:
    """The tangent of ``b``, less the product of the tangent of the matrices and the solution."""
    return added([db, None if da is None else (-(da @ x))._node])


def _solve_transpose(cotangents: Nodes, args: Nodes, params: Any) -> Nodes:
    (ct,), (a, _) = cotangents, args
    assert a is not None
    assert ct is not None
    return [None, *call_with("solve", [adjoint(Array(a))._node, ct], params)]


def _solve_batch(args: Sequence[Node], is_batched: Sequence[bool], params: Any) -> Sequence[Node]:
    if is_batched[0]:
        return call_with("solve", _aligned(args, is_batched, (2, 2)), params)
    a, b = args  # the matrices are the same: the batch becomes columns
    size, *stack, rows, columns = b.shape
    wide = reshape(moved_axes(b, 0, -2), (*stack, rows, size * columns))
    (x,) = call_with("solve", [a, wide], params)
    return [moved_axes(reshape(x, (*x.shape[:-1], size, columns)), -2, 0)]


def _lstsq_tangents(args: Sequence[Node], params: Any, results: Any, tangents: Nodes) -> Nodes:
    """The solution is a product with the pseudo-inverse; see `_pinv`."""
    a, b = map(Array, args)
    da = None if tangents[0] is None else Array(tangents[0])
    x, rtol = Array(results[0]), params[0]
    inverse = pinv(a, rtol=rtol)
    change = _change_of_right_operand(da, x, tangents[1])
    if change is None:
        return [None] * 4
    error, values = b - a @ x, None
    solution = inverse @ Array(change)
    residuals = 2 * real(conjugate(error) * Array(change)).sum(-2)
    if da is not None:
        along = adjoint(da) @ (adjoint(inverse) @ x)
        solution += inverse @ (adjoint(inverse) @ (adjoint(da) @ error))
        solution += along - inverse @ (a @ along)
        u, _, vh = svd(a, full_matrices=False)
        values = real(diagonal(adjoint(u) @ da @ adjoint(vh)))._node
    return [solution._node, residuals._node, None, values]


def _lstsq_batch(args: Sequence[Node], is_batched: Sequence[bool], params: Any) -> Sequence[Node]:
    a, b = _aligned(args, is_batched, (2, 2))
    solution, residuals, rank, values = call_with("lstsq", [a, b], params)
    own: Ints = args[0].shape[1:-2] if is_batched[0] else args[0].shape[:-2]
    stack = (a.shape[0], *own)
    return solution, residuals, reshape(rank, stack), reshape(values, (*stack, values.shape[-1]))


define_rule("solve", Rule(_solve_tangents, _solve_batch, _solve_transpose))
define_rule("lstsq", Rule(_lstsq_tangents, _lstsq_batch))


# -- norms


def _root(x: Array, dx: Array, root: Array, params: Any) -> list[Array]:
    (order,) = params
    is_zero = x == 0
    return [dx * where(is_zero, 0, root / (where(is_zero, 1, x) * order))]


def _root_batch(args: Sequence[Node], is_batched: object, params: Any) -> Sequence[Node]:
    (x,) = args
    return bind("root_of_norm", [x], params, (x.dtype, x.shape))


define_rule("root_of_norm", Rule(tangents_by(_root), _root_batch))
