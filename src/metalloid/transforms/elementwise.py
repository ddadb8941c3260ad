"""Derivatives of elementwise operations, from the expressions in the table of operations."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import CodeType
from typing import Any

from metalloid.arrays.ir.dtypes import kind_of
from metalloid.arrays.ir.node import CONSTANT, Node, broadcast, cast
from metalloid.arrays.ir.operands import binary, unary, where_node
from metalloid.arrays.ir.ops import OPS, Op
from metalloid.arrays.operators import Operators
from metalloid.errors import TraceError

_POWER = OPS["pow"]


def tangent(op: Op, k: int, args: tuple[Node, ...], out: Node, t: Node) -> Node | None:
    """The contribution of one operand's tangent to the tangent of a result.

    Parameters
    ----------
    op : Op
    k : int
        Index of the operand.
    args : tuple of Node
        Operands of the operation.
    out : Node
        Its result.
    t : Node
        Tangent of the operand, of its shape and type.

    Returns
    -------
    Node or None
        Of the shape and the type of `out`, and linear in `t`. None if it is zero for all operands,
        or if the operand or the result is not a float or complex number.

    Raises
    ------
    TraceError
        If the operation has no derivative.
    """
    if kind_of(args[k].dtype) not in "fc" or kind_of(out.dtype) not in "fc":
        return None
    is_complex = kind_of(args[k].dtype) == "c"
    expressions = op.complex_tangents if is_complex and op.complex_tangents else op.tangents
    if not expressions:
        raise TraceError(
            f"[{op.name}] the operation has no derivative. Use stop_gradient on its operands."
        )
    if expressions[k] == "0":
        return None
    direction = _Expression(t)
    if op is _POWER and k == 0 and args[1].kind is CONSTANT:
        result = _derivative_of_power(_Expression(args[0]), args[1].data, direction)
    else:
        operands = dict(zip("xyz", map(_Expression, args), strict=False))
        variables = {**operands, "out": _Expression(out), "t": direction}
        result = eval(_compiled(expressions[k]), _FUNCTIONS, variables)
    return None if result is None else broadcast(cast(result._node, out.dtype), out.shape)


class _Expression(Operators):
    """A node with the operators of arrays, which never evaluates it."""

    __slots__ = ()

    def __init__(self, node: Node) -> None:
        self._node = node

    def _new(self, node: Node) -> _Expression:
        return _Expression(node)


def _derivative_of_power(x: Any, exponent: Any, t: Any) -> Any:
    """The derivative of ``x ** exponent`` for a number, which needs fewer operations."""
    if exponent == 0:
        return None
    if exponent == 1:
        return t
    return t * (exponent * (x if exponent == 2 else x ** (exponent - 1)))


@functools.cache
def _compiled(expression: str) -> CodeType:
    return compile(expression, "<table of operations>", "eval")


def _function(op: Op) -> Callable[..., _Expression]:
    apply: Callable[..., Node] = unary if op.operands == 1 else binary
    return lambda *operands: _Expression(apply(op, *operands))


#: What expressions of the table may use, in addition to operators.
_FUNCTIONS: dict[str, Any] = {
    **{name: _function(op) for name, op in OPS.items()},
    "where": lambda condition, a, b: _Expression(where_node(condition, a, b)),
    "inf": math.inf,
}
