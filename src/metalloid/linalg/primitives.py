"""Nodes of the primitives of this package: operations on stacks of matrices.

Modules that hold the public functions state the implementations; ``rules`` how transforms see them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from metalloid.arrays.execution.calls import host_call
from metalloid.arrays.ir.dtypes import DType, complex_of, int64, real_of
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.node import Node
from metalloid.arrays.ir.primitives import bind
from metalloid.kernels.strides import broadcast_shape
from metalloid.linalg.solver_calls import is_for_solver
from metalloid.settings import settings

Type = tuple[DType, Ints]


def call(name: str, args: Sequence[Node], *params: Any) -> tuple[Node, ...]:
    """Nodes of the results of a primitive.

    Its last parameter is the backend: that of the settings at the time of the call.
    """
    return call_with(name, args, (*params, settings.decompositions))


def call_with(name: str, args: Sequence[Node], params: tuple[Any, ...]) -> tuple[Node, ...]:
    """Nodes of the results of a primitive, with all parameters, as in a rule."""
    return bind(name, args, params, *types_of(name, *args, *params))


def for_solver(method: str) -> Callable[..., bool]:
    """Whether the vendor library computes a primitive of one operand; see `is_for_solver`."""

    def is_applicable(x: Node, *params: Any) -> bool:
        return is_for_solver(method, x, params[-1])

    return is_applicable


def by_host(name: str, function: Callable[..., Any]) -> Callable[..., tuple[Node, ...]]:
    """Implementation by a host function of the operands and the parameters before the backend."""

    def build(*args: Any) -> tuple[Node, ...]:
        nodes = [arg for arg in args if isinstance(arg, Node)]
        return host_call(function, nodes, args[len(nodes) : -1], *types_of(name, *args))

    return build


def types_of(name: str, *args: Any) -> tuple[Type, ...]:
    """Types and shapes of the results, from the operands and parameters."""
    return _TYPES[name](*args)


def solution_shape(name: str, a: Node, b: Node) -> Ints:
    """Shape of the solution of equations whose right-hand sides are the columns of `b`."""
    stack = broadcast_shape(name, a.shape[:-2], b.shape[:-2])
    return (*stack, a.shape[-1], b.shape[-1])


def _same(x: Node, *params: Any) -> tuple[Type, ...]:
    return ((x.dtype, x.shape),)


def _determinant(x: Node, *params: Any) -> tuple[Type, ...]:
    return ((x.dtype, x.shape[:-2]),)


def _sign_and_logarithm(x: Node, *params: Any) -> tuple[Type, ...]:
    return (x.dtype, x.shape[:-2]), (real_of(x.dtype), x.shape[:-2])


def _solution(a: Node, b: Node, *params: Any) -> tuple[Type, ...]:
    return ((b.dtype, solution_shape("solve", a, b)),)


def _least_squares(a: Node, b: Node, *params: Any) -> tuple[Type, ...]:
    *stack, rows, columns = solution_shape("lstsq", a, b)
    real, own = real_of(b.dtype), a.shape[:-2]
    return (
        (b.dtype, (*stack, rows, columns)),
        (real, (*stack, columns)),
        (int64, own),
        (real, (*own, min(a.shape[-2:]))),
    )


def _pseudo_inverse(x: Node, *params: Any) -> tuple[Type, ...]:
    *stack, rows, columns = x.shape
    return ((x.dtype, (*stack, columns, rows)),)


def _lu(x: Node, *params: Any) -> tuple[Type, ...]:
    *stack, rows, columns = x.shape
    small = min(rows, columns)
    return (
        (real_of(x.dtype), (*stack, rows, rows)),
        (x.dtype, (*stack, rows, small)),
        (x.dtype, (*stack, small, columns)),
    )


def _qr(x: Node, mode: str, backend: str) -> tuple[Type, ...]:
    *stack, rows, columns = x.shape
    inner = rows if mode == "complete" else min(rows, columns)
    return (x.dtype, (*stack, rows, inner)), (x.dtype, (*stack, inner, columns))


def _svd(x: Node, is_full: bool, backend: str) -> tuple[Type, ...]:
    *stack, rows, columns = x.shape
    small = min(rows, columns)
    return (
        (x.dtype, (*stack, rows, rows if is_full else small)),
        (real_of(x.dtype), (*stack, small)),
        (x.dtype, (*stack, columns if is_full else small, columns)),
    )


def _singular_values(x: Node, *params: Any) -> tuple[Type, ...]:
    return ((real_of(x.dtype), (*x.shape[:-2], min(x.shape[-2:]))),)


def _real_eigenvalues(x: Node, *params: Any) -> tuple[Type, ...]:
    return ((real_of(x.dtype), x.shape[:-1]),)


def _eigh(x: Node, *params: Any) -> tuple[Type, ...]:
    return (*_real_eigenvalues(x), (x.dtype, x.shape))


def _eigenvalues(x: Node, *params: Any) -> tuple[Type, ...]:
    return ((complex_of(real_of(x.dtype)), x.shape[:-1]),)


def _eig(x: Node, *params: Any) -> tuple[Type, ...]:
    return (*_eigenvalues(x), (complex_of(real_of(x.dtype)), x.shape))


_TYPES: dict[str, Callable[..., tuple[Type, ...]]] = {
    "adjugate": _same,
    "cholesky": _same,
    "det": _determinant,
    "eig": _eig,
    "eigh": _eigh,
    "eigvals": _eigenvalues,
    "eigvalsh": _real_eigenvalues,
    "inv": _same,
    "lstsq": _least_squares,
    "lu": _lu,
    "pinv": _pseudo_inverse,
    "qr": _qr,
    "slogdet": _sign_and_logarithm,
    "solve": _solution,
    "svd": _svd,
    "svdvals": _singular_values,
}
