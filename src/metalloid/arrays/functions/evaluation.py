"""Explicit evaluation of lazy arrays, and reports of what it would do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.execution.evaluate import evaluate
from metalloid.arrays.execution.explain import report
from metalloid.arrays.ir.node import BUFFER, Node


def eval(*values: Any) -> None:
    """Evaluate arrays immediately; common subexpressions are computed once.

    Parameters
    ----------
    *values : Array, or tuples, lists and dicts of arrays
        Other objects in them are ignored.

    Raises
    ------
    OutOfMemory, KernelFault
        The arrays are unchanged and can be evaluated again.

    Examples
    --------
    >>> import metalloid as mtl
    >>> x = mtl.arange(3) * 2
    >>> mtl.eval(x)
    """
    for value in values:
        if type(value) is not Array or value._node.kind is not BUFFER:
            is_one = type(value) is Array and len(values) == 1
            evaluate([value._node] if is_one else _nodes(values))
            break


def async_eval(*values: Any) -> None:
    """Start to evaluate arrays and return immediately; reading a value waits for it."""
    evaluate(_nodes(values), wait=False)


def explain(*values: Any) -> str:
    """Describe the evaluation of arrays: kernels, launches, traffic, and why each is materialized.

    Nothing is evaluated. Of a function made by `compile`: describe its programs, and why each was
    traced.

    Examples
    --------
    >>> import metalloid as mtl
    >>> x = mtl.asarray([1.0, 2.0])
    >>> print(mtl.explain(mtl.exp(x) + 1))
    1. array_exp_add -> float32[2]: requested
       2 threads; reads 8 bytes, writes 8 bytes
    <BLANKLINE>
    struct Params {
      long p0_start;
      float n2;
    };
    <BLANKLINE>
    kernel void array_exp_add(
        device const float *x0 [[buffer(0)]],
        device float *out [[buffer(1)]],
        constant Params &params [[buffer(2)]],
        uint3 at [[thread_position_in_grid]])
    {
      device const float *p0 = x0 + params.p0_start;
      device float *to = out;
      const float v0 = p0[at.x];
      const float v1 = exp(v0);
      const float v2 = params.n2;
      const float v3 = v1 + v2;
      to[at.x] = v3;
    }
    """
    compiled = [value.explain() for value in values if hasattr(value, "explain")]
    return "\n".join(compiled) if compiled else report(_nodes(values))


def _nodes(values: Iterable[Any]) -> list[Node]:
    nodes: list[Node] = []
    for value in values:
        if isinstance(value, Array):
            nodes.append(value._node)
        elif isinstance(value, dict):
            nodes += _nodes(value.values())
        elif isinstance(value, tuple | list):
            nodes += _nodes(value)
    return nodes
