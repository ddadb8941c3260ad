"""Gradients and Jacobian products: `grad`, `value_and_grad`, `vjp`, `jvp`, `stop_gradient`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.functions.creation import asarray
from metalloid.arrays.ir.dtypes import float32, kind_of
from metalloid.arrays.ir.node import Node, broadcast, cast
from metalloid.arrays.ir.operands import as_number
from metalloid.transforms.captures import copy_writes
from metalloid.transforms.forward import push_forward
from metalloid.transforms.rules.control import stopped
from metalloid.transforms.tangents import zeros_like
from metalloid.transforms.tracing import Trace
from metalloid.transforms.transpose import pull_back
from metalloid.transforms.tree import flatten

Function = Callable[..., Any]


def grad(fun: Function, argnums: int | Sequence[int] | None = None,
         argnames: str | Sequence[str] = ()) -> Function:  # fmt: skip
    """Return a function that computes the gradient of `fun`.

    Parameters
    ----------
    fun : callable
        Returns an array of shape ``()``. Arguments may be nested lists, tuples, dictionaries and
        dataclasses of arrays.
    argnums : int or sequence of int, optional
        Positional arguments to differentiate with respect to; the first by default, unless
        `argnames` is given.
    argnames : str or sequence of str
        Keyword arguments to differentiate with respect to.

    Returns
    -------
    callable
        Takes the arguments of `fun`. Returns the gradient in the structure of the argument, or a
        tuple of them for several `argnums`. With `argnames` it returns a tuple of that, or None,
        and a dictionary.

    Raises
    ------
    ValueError
        From the function returned: if the result has axes, or an argument is no array.
    TraceError
        From the function returned: if `fun` uses a kernel without a derivative.

    Notes
    -----
    Gradients of complex arguments are as in MLX and PyTorch: for a real function of ``x + iy``,
    the derivative by `x` plus `i` times the derivative by `y`: the direction of steepest ascent.
    JAX returns the complex conjugate.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.grad(lambda x: (x * x).sum())(mtl.asarray([1.0, 2.0, 3.0]))
    array([2., 4., 6.], dtype=float32)
    """
    differentiated = _value_and_grad("grad", fun, argnums, argnames, has_auxiliary=False)

    @functools.wraps(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        return differentiated(*args, **kwargs)[1]

    return gradient


def value_and_grad(fun: Function, argnums: int | Sequence[int] | None = None,
                   argnames: str | Sequence[str] = ()) -> Function:  # fmt: skip
    """Return a function that computes the value of `fun` and its gradient.

    Parameters
    ----------
    fun : callable
        As for `grad`. It may also return a tuple whose first item is the value to differentiate.
    argnums, argnames
        As for `grad`.

    Returns
    -------
    callable
        Returns what `fun` returns, and the gradient.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.value_and_grad(lambda x: x * x)(mtl.asarray(3.0))
    (array(9., dtype=float32), array(6., dtype=float32))
    """
    return _value_and_grad("value_and_grad", fun, argnums, argnames, has_auxiliary=True)


def _value_and_grad(name: str, fun: Function, argnums: int | Sequence[int] | None,
                    argnames: str | Sequence[str], has_auxiliary: bool) -> Function:  # fmt: skip
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames)
    numbers = _argument_numbers(name, argnums, names)

    @functools.wraps(fun)
    def differentiated(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        if numbers and numbers[-1] >= len(args):
            raise ValueError(
                f"[{name}] argument {numbers[-1]} of a call with {len(args)} positional arguments."
            )
        for key in names:
            if key not in kwargs:
                raise ValueError(
                    f"[{name}] keyword argument {key!r} of a call with {sorted(kwargs)}."
                )
        chosen = [args[k] for k in numbers], {key: kwargs[key] for key in names}
        leaves, structure = flatten(chosen)
        inputs = [_input(name, leaf) for leaf in leaves]
        trace = Trace(name)
        tracers = [trace.tracer(node) for node in inputs]
        positional, named = structure.unflatten(iter(map(Array, tracers)))
        given = list(args)
        for k, value in zip(numbers, positional, strict=True):
            given[k] = value
        value = fun(*given, **{**kwargs, **named})
        for own, passed in zip([*chosen[0], *chosen[1].values()], [*positional, *named.values()],
                               strict=True):  # fmt: skip
            copy_writes(own, passed, set(tracers))
        loss = _loss(name, value, has_auxiliary)
        gradients = _cotangents(trace, [loss], [_one(loss)], tracers)
        _end(trace, value, gradients)
        grads, by_name = structure.unflatten(iter(map(Array, gradients)))
        own = None if not numbers else grads[0] if len(numbers) == 1 else tuple(grads)
        return value, (own, by_name) if names else own

    return differentiated


def _argument_numbers(name: str, argnums: Any, names: tuple[str, ...]) -> tuple[int, ...]:
    if argnums is None:
        argnums = () if names else (0,)
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not all(isinstance(k, int) for k in numbers):
        raise TypeError(f"[{name}] argnums must be integers, got {argnums!r}.")
    if not numbers and not names:
        raise ValueError(f"[{name}] there is no argument to differentiate with respect to.")
    if any(k < 0 for k in numbers) or len(set(numbers)) < len(numbers):
        raise ValueError(f"[{name}] argnums must be distinct and not negative, got {argnums!r}.")
    return tuple(sorted(numbers))


def _input(name: str, leaf: Any) -> Node:
    if not isinstance(leaf, Array):
        raise ValueError(
            f"[{name}] the argument must consist of arrays, got {type(leaf).__name__} "
            f"{leaf!r:.40}. Convert it with asarray."
        )
    if kind_of(leaf.dtype) not in "fc":
        raise TypeError(
            f"[{name}] the argument must consist of floats or complex numbers, got {leaf.dtype}."
        )
    return leaf._node


def _loss(name: str, value: Any, has_auxiliary: bool) -> Node:
    first = value[0] if has_auxiliary and isinstance(value, tuple) and value else value
    if not isinstance(first, Array):
        raise ValueError(
            f"[{name}] the function must return an array of shape (), got {type(first).__name__}."
        )
    if first.shape != ():
        raise ValueError(
            f"[{name}] the function must return an array of shape (), got {first.shape}. "
            "Reduce it, for example with sum or mean, or use vjp."
        )
    if kind_of(first.dtype) not in "fc":
        raise TypeError(f"[{name}] the function must return a float, got {first.dtype}.")
    return first._node


def _one(node: Node) -> Node:
    return broadcast(as_number(1, node.dtype, node.device), node.shape)


def _cotangents(trace: Trace, outputs: Sequence[Node], cotangents: Sequence[Node],
                tracers: Sequence[Node]) -> list[Node]:  # fmt: skip
    """Cotangents of inputs, by transposition of the tangents."""
    directions = [trace.placeholder(node, node.shape) for node in tracers]
    tangents = push_forward(outputs, dict(zip(tracers, directions, strict=True)))
    shares = pull_back(tangents, cotangents, directions)
    return [share or zeros_like(node) for share, node in zip(shares, tracers, strict=True)]


def _end(trace: Trace, value: Any, more: Sequence[Node]) -> None:
    leaves = [leaf._node for leaf in flatten(value)[0] if isinstance(leaf, Array)]
    trace.end([*leaves, *more])


def vjp(fun: Function, primals: Sequence[Array],
        cotangents: Sequence[Array]) -> tuple[list[Array], list[Array]]:  # fmt: skip
    """Return the values of `fun` and a product of cotangents with its Jacobian.

    Parameters
    ----------
    fun : callable
        From arrays to an array, or to a list or tuple of them.
    primals : sequence of Array
        The arguments.
    cotangents : sequence of Array
        One for each result, of its shape.

    Returns
    -------
    values : list of Array
    products : list of Array
        One for each argument.

    Raises
    ------
    ValueError
        If the number or the shapes of the cotangents are not those of the results.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.vjp(lambda x: 2 * x, [mtl.asarray(1.0)], [mtl.asarray(3.0)])
    ([array(2., dtype=float32)], [array(6., dtype=float32)])
    """
    trace = Trace("vjp")
    tracers = [trace.tracer(node) for node in _arrays("vjp", primals)]
    outputs = _outputs("vjp", fun(*map(Array, tracers)))
    given = _like("vjp", "cotangents", _arrays("vjp", cotangents), outputs, "results")
    products = _cotangents(trace, outputs, given, tracers)
    trace.end([*outputs, *products])
    return list(map(Array, outputs)), list(map(Array, products))


def jvp(fun: Function, primals: Sequence[Array],
        tangents: Sequence[Array]) -> tuple[list[Array], list[Array]]:  # fmt: skip
    """Return the values of `fun` and a product of its Jacobian with tangents.

    Parameters
    ----------
    fun, primals
        As for `vjp`.
    tangents : sequence of Array
        One for each argument, of its shape.

    Returns
    -------
    values, products : list of Array
        One for each result.

    Raises
    ------
    ValueError
        If the number or the shapes of the tangents are not those of the arguments.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.jvp(mtl.sin, [mtl.asarray(0.0)], [mtl.asarray(2.0)])
    ([array(0., dtype=float32)], [array(2., dtype=float32)])
    """
    trace = Trace("jvp")
    nodes = _arrays("jvp", primals)
    given = _like("jvp", "tangents", _arrays("jvp", tangents), nodes, "arguments")
    tracers = [trace.tracer(node) for node in nodes]
    outputs = _outputs("jvp", fun(*map(Array, tracers)))
    pushed = push_forward(outputs, dict(zip(tracers, given, strict=True)))
    products = [tangent or _no_tangent(node) for tangent, node in zip(pushed, outputs, strict=True)]
    trace.end([*outputs, *products])
    return list(map(Array, outputs)), list(map(Array, products))


def _no_tangent(node: Node) -> Node:
    """Zeros: floats for truth values."""
    zeros = zeros_like(node)
    return cast(zeros, float32) if kind_of(node.dtype) == "b" else zeros


def _arrays(name: str, values: Sequence[Any]) -> list[Node]:
    if isinstance(values, Array) or not isinstance(values, Sequence):
        raise ValueError(f"[{name}] expected a list of arrays, got {type(values).__name__}.")
    return [asarray(value)._node for value in values]


def _outputs(name: str, value: Any) -> list[Node]:
    values = value if isinstance(value, list | tuple) else [value]
    for item in values:
        if not isinstance(item, Array):
            raise ValueError(
                f"[{name}] the function must return arrays, got {type(item).__name__}."
            )
    return [item._node for item in values]


def _like(name: str, what: str, given: list[Node], nodes: list[Node], whose: str) -> list[Node]:
    if len(given) != len(nodes):
        raise ValueError(f"[{name}] {len(given)} {what} for {len(nodes)} {whose}.")
    for node, like in zip(given, nodes, strict=True):
        if node.shape != like.shape:
            raise ValueError(
                f"[{name}] the {what} must have the shapes of the {whose}: got {node.shape} for "
                f"{like.shape}."
            )
    return [Array(node).astype(like.dtype)._node for node, like in zip(given, nodes, strict=True)]


def stop_gradient(x: Array, /) -> Array:
    """Return the same values, which transforms take for a constant.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.grad(lambda x: x * mtl.stop_gradient(x))(mtl.asarray(3.0))
    array(3., dtype=float32)
    """
    return Array(stopped(x._node))
