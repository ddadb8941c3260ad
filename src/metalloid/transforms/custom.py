"""Functions with rules of their own: `custom_function` and `checkpoint`.

The primitive ``custom_function`` stands for a call. Its tangents are ``custom_derivative``, which
is linear in the tangents of the arguments: forward mode evaluates it by the user's `jvp`, reverse
mode transposes it by the user's `vjp`. So neither mode needs the rule of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.ir.dtypes import DType
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.node import Node, broadcast
from metalloid.arrays.ir.operands import to_node
from metalloid.arrays.ir.primitives import bind, implement
from metalloid.arrays.ir.views import moved_axes
from metalloid.transforms.batching import batch
from metalloid.transforms.custom_call import CustomCall, CustomFunction
from metalloid.transforms.forward import push_forward
from metalloid.transforms.gradients import jvp, vjp
from metalloid.transforms.rules.control import barrier
from metalloid.transforms.rules.registry import Rule, define_rule, stacks
from metalloid.transforms.tangents import zeros_like
from metalloid.transforms.tracing import Trace
from metalloid.transforms.tree import flatten


def custom_function(fun: Callable[..., Any]) -> CustomFunction:
    """Return a function whose derivatives and batching can be stated.

    It is the means by which a kernel takes part in `grad` and `vmap`. What is not stated follows
    from what the function computes.

    Parameters
    ----------
    fun : callable
        From arrays, or nested lists, tuples and dictionaries of them, to the same.

    Examples
    --------
    >>> import metalloid as mtl
    >>> @mtl.custom_function
    ... def clipped(x):
    ...     return mtl.minimum(x, 1.0)
    >>> @clipped.vjp
    ... def straight_through(x, cotangent, output):
    ...     return cotangent
    >>> mtl.grad(lambda x: clipped(x).sum())(mtl.asarray([0.5, 2.0]))
    array([1., 1.], dtype=float32)
    """
    return CustomFunction(fun)


def checkpoint(fun: Callable[..., Any]) -> CustomFunction:
    """Return a function whose intermediate values are computed again for its gradient.

    They need not stay in memory between the function and its gradient (T. Chen et al., "Training
    deep nets with sublinear memory cost", 2016).

    Parameters
    ----------
    fun : callable
        From arrays, or nested lists, tuples and dictionaries of them, to the same.

    Examples
    --------
    >>> import metalloid as mtl
    >>> layer = mtl.checkpoint(lambda x: mtl.sin(mtl.exp(x)))
    >>> mtl.grad(lambda x: layer(x).sum())(mtl.zeros(1))
    array([0.5403023], dtype=float32)
    """
    return CustomFunction(fun, recomputes=True)


Nodes = Sequence["Node | None"]


def _split(operands: Sequence[Any], call: CustomCall) -> tuple[Any, Any, Any]:
    """Arguments, results, and the tangents of arguments if there are some."""
    end = call.arguments + call.results
    return operands[: call.arguments], operands[call.arguments : end], operands[end:]


def _types(nodes: Sequence[Node]) -> list[tuple[DType, Ints]]:
    return [(node.dtype, node.shape) for node in nodes]


def _arrays(nodes: Sequence[Node]) -> list[Array]:
    return list(map(Array, nodes))


def _tangents(args: Sequence[Node], params: Any, results: Any, tangents: Nodes) -> Nodes:
    (call,) = params
    of_arguments, of_results, _ = _split(tangents, call)
    if not call.function.has_derivative:
        return list(of_results)
    arguments, _, _ = _split(args, call)
    along = [t or zeros_like(arg) for t, arg in zip(of_arguments, arguments, strict=True)]
    # The results of this call, not what the function computed: they have its derivative.
    return bind("custom_derivative", [*arguments, *results, *along], (call,), *_types(results))


def _batch(args: Sequence[Node], is_batched: Sequence[bool], params: Any) -> Sequence[Node]:
    (call,) = params
    rule = call.function.vmap_rule
    if rule is None:
        stacked = stacks(args, is_batched)
        return bind("custom_function", stacked, (call,), *_types(_split(stacked, call)[1]))
    given, _ = call.argument_tree(_arrays(_split(args, call)[0]))
    axes, _ = call.argument_tree([0 if own else None for own in _split(is_batched, call)[0]])
    returned = rule(given, axes)
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise ValueError(
            "[custom_function] the rule of vmap must return the results and their axes, got "
            f"{type(returned).__name__}."
        )
    values, positions = (flatten(tree)[0] for tree in returned)
    if len(positions) != len(values):
        raise ValueError(
            f"[custom_function] the rule of vmap returned {len(positions)} axes for {len(values)} "
            "results."
        )
    pairs = zip(values, positions, strict=True)
    return [moved_axes(to_node(value, "vmap"), axis, 0) for value, axis in pairs]


def _forward(*operands: Any) -> tuple[Node, ...]:
    """The tangents of the results: by the rule, or else those of the function itself."""
    *nodes, call = operands
    arguments, results, along = _split(nodes, call)
    rule = call.function.jvp_rule
    if rule is None:
        _, tangents = jvp(call.flat, _arrays(arguments), _arrays(along))
    else:
        primals, _ = call.argument_tree(_arrays(arguments))
        tangents, _ = call.argument_tree(_arrays(along))
        tangents = flatten(rule(primals, tangents))[0]
        if len(tangents) != len(results):
            raise ValueError(
                f"[custom_function] the rule of jvp returned {len(tangents)} arrays for "
                f"{len(results)} results."
            )
    pairs = zip(tangents, results, strict=True)
    return tuple(_like(tangent, result) for tangent, result in pairs)


def _like(value: Any, node: Node) -> Node:
    """A tangent or cotangent of a node's type and shape."""
    array = Array(to_node(value, "custom_function", device=node.device)).astype(node.dtype)
    return broadcast(array._node, node.shape)


def _transpose(cotangents: Nodes, args: Nodes, params: Any) -> Nodes:
    (call,) = params
    arguments, results, _ = _split(args, call)
    primals, outputs = _arrays(arguments), _arrays(results)
    given = [
        Array(zeros_like(output._node) if ct is None else ct)
        for ct, output in zip(cotangents, outputs, strict=True)
    ]
    rule = call.function.vjp_rule
    if rule is None:
        # The barrier keeps recomputed values apart from the values of the function.
        recomputed = [Array(barrier(primal._node)) for primal in primals]
        _, shares = vjp(call.flat, recomputed if call.function.recomputes else primals, given)
    else:
        tree, named = call.argument_tree(primals)
        returned = rule(tree, call.result_tree(given), call.result_tree(outputs), **named)
        shares = [share for share in flatten(returned)[0] if isinstance(share, Array)]
        if len(shares) != len(primals):
            raise ValueError(
                f"[custom_function] the rule of vjp must return {len(primals)} arrays, one for "
                f"each array of the arguments, got {len(shares)}."
            )
    pairs = zip(shares, arguments, strict=True)
    return [*(None,) * (len(primals) + len(outputs)), *(_like(s, arg) for s, arg in pairs)]


def _tangents_of_derivative(args: Sequence[Node], params: Any, results: Any,
                            tangents: Nodes) -> Nodes:  # fmt: skip
    """The derivative of the expression that forward mode uses."""
    trace = Trace("jvp")
    tracers = [trace.tracer(arg) for arg in args]
    expressions = _forward(*tracers, *params)
    known = {
        tracer: tangent
        for tracer, tangent in zip(tracers, tangents, strict=True)
        if tangent is not None
    }
    pushed = push_forward(expressions, known)
    trace.end([node for node in pushed if node is not None])
    return pushed


def _batch_of_derivative(args: Sequence[Node], is_batched: Sequence[bool],
                         params: Any) -> Sequence[Node]:  # fmt: skip
    trace = Trace("vmap")
    stacked = stacks(args, is_batched)
    tracers = [trace.placeholder(stack, stack.shape[1:]) for stack in stacked]
    batched = dict(zip(tracers, stacked, strict=True))
    expressions = _forward(*tracers, *params)
    batch(expressions, batched)
    size = stacked[0].shape[0]
    return [batched.get(node) or broadcast(node, (size, *node.shape)) for node in expressions]


def _arguments_if(has_rule: Callable[[CustomFunction], bool]) -> Callable[[Node], Sequence[Node]]:
    """The operands that a rule needs: without what the function computed, if it is not used."""

    def operands(node: Node) -> Sequence[Node]:
        (call,) = node.data.params
        return node.args[: call.arguments] if has_rule(call.function) else node.args

    return operands


def _results(*operands: Any) -> tuple[Node, ...]:
    *nodes, call = operands
    return tuple(_split(nodes, call)[1])


implement("custom_function", _results)
implement("custom_derivative", _forward)
define_rule(
    "custom_function",
    Rule(
        _tangents,
        _batch,
        operands_of_tangents=_arguments_if(lambda function: function.has_derivative),
        operands_of_batch=_arguments_if(lambda function: function.vmap_rule is not None),
    ),
)
define_rule("custom_derivative", Rule(_tangents_of_derivative, _batch_of_derivative, _transpose))
