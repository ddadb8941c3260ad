"""Primitives that are stated as compositions of array functions.

A composition defines the values of such a primitive. Unless it states better ones, its derivative
and its batched form are those of the composition, and so is its implementation: the planner fuses
it with the expressions around it. As one node it is bound, and its plan is looked up, faster than
its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from metalloid.arrays.array import Array, as_array
from metalloid.arrays.ir.dtypes import DType, float32, kind_of
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.node import Node, broadcast
from metalloid.arrays.ir.primitives import Implementation, bind, implement
from metalloid.transforms.batching import batch
from metalloid.transforms.forward import push_forward
from metalloid.transforms.rules.registry import Rule, Tangents, Transpose, define_rule, stacks
from metalloid.transforms.tracing import Trace

Nodes = Sequence["Node | None"]
#: From the operands and the parameters to the result.
Compose = Callable[..., Array]


def define_composition(name: str, compose: Compose, *special: Implementation,
                       tangents: Tangents | None = None, transpose: Transpose | None = None,
                       is_stackable: bool = True) -> None:  # fmt: skip
    """Register a primitive with one result.

    Parameters
    ----------
    name : str
    compose : callable
        From arrays and the parameters to an array.
    special : Implementation
        Implementations that are preferred to the composition where they apply.
    tangents, transpose : callable, optional
        As those of `Rule`.
    is_stackable : bool
        Whether a batch may be one more axis before those of the first operand.
    """

    def build(*operands: Any) -> Node:
        nodes, params = _split(operands)
        return compose(*map(Array, nodes), *params)._node

    def traced_tangents(args: Sequence[Node], params: Any, results: Any, along: Nodes) -> Nodes:
        trace = Trace("jvp")
        tracers = [trace.tracer(arg) for arg in args]
        expression = build(*tracers, *params)
        known = {tracer: t for tracer, t in zip(tracers, along, strict=True) if t is not None}
        pushed = push_forward([expression], known)
        trace.end([node for node in pushed if node is not None])
        return pushed

    def batched(args: Sequence[Node], is_batched: Sequence[bool], params: Any) -> list[Node]:
        if is_stackable and is_batched[0] and not any(is_batched[1:]):
            shape = (args[0].shape[0], *_result(args, is_batched, params).shape)
            return [bind(name, args, params, (_result(args, is_batched, params).dtype, shape))[0]]
        return [_batched_expression(build, args, is_batched, params)]

    def _result(args: Sequence[Node], is_batched: Sequence[bool], params: Any) -> Node:
        trace = Trace("vmap")
        element = trace.placeholder(args[0], args[0].shape[1:])
        return build(element, *args[1:], *params)

    implement(name, *special, build, is_structural=True)
    define_rule(name, Rule(tangents or traced_tangents, batched, transpose))


def _split(operands: Sequence[Any]) -> tuple[list[Node], list[Any]]:
    nodes = [operand for operand in operands if isinstance(operand, Node)]
    return nodes, list(operands[len(nodes) :])


def _batched_expression(build: Callable[..., Node], args: Sequence[Node],
                        is_batched: Sequence[bool], params: Any) -> Node:  # fmt: skip
    trace = Trace("vmap")
    stacked = stacks(args, is_batched)
    tracers = [trace.placeholder(stack, stack.shape[1:]) for stack in stacked]
    batched = dict(zip(tracers, stacked, strict=True))
    expression = build(*tracers, *params)
    batch([expression], batched)
    return batched.get(expression) or broadcast(expression, (stacked[0].shape[0],
                                                             *expression.shape))  # fmt: skip


def call(name: str, args: Sequence[Array], params: tuple[Any, ...], dtype: DType,
         shape: Ints) -> Array:  # fmt: skip
    """The result of a primitive."""
    return Array(bind(name, [arg._node for arg in args], params, (dtype, shape))[0])


def as_float(where: str, x: Any) -> Array:
    """Convert to an array of floats: integers and truth values become float32.

    Raises
    ------
    TypeError
        If the elements are complex.
    """
    array = as_array(x, where)
    kind = kind_of(array.dtype)
    if kind == "c":
        raise TypeError(f"[{where}] expected real numbers, got {array.dtype}.")
    return array if kind == "f" else array.astype(float32)


def computed_type(dtype: DType) -> DType:
    """The type in which floats are computed: halves are rounded once, at the end."""
    return dtype if dtype.itemsize >= 4 else float32
