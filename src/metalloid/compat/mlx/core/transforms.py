"""Transforms: derivatives, batching, and evaluation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import metalloid as mtl
from metalloid.arrays.ir.node import TRACED
from metalloid.compat.mlx.core import dtypes
from metalloid.compat.mlx.core.array import array, wrap
from metalloid.compat.mlx.core.devices import failures
from metalloid.compat.mlx.core.tree import (
    arrays_of,
    copy_writes,
    leaves_of,
    mapped,
    unwrapped,
    with_arrays,
    wrapped,
)

__all__ = [
    "async_eval", "checkpoint", "custom_function", "depends", "eval", "grad", "jvp",
    "value_and_grad", "vjp", "vmap",
]  # fmt: skip

Function = Callable[..., Any]


# -- evaluation


def eval(*args: Any) -> None:
    """Evaluate the arrays of trees; other leaves are ignored, as MLX does."""
    arrays = [x._a for x in arrays_of(args)]
    if arrays:
        try:
            mtl.eval(*arrays)
        except np.linalg.LinAlgError as error:
            raise RuntimeError(str(error)) from None


def async_eval(*args: Any) -> None:
    """Start to evaluate the arrays of trees; on the CPU, end it, too.

    There, Python has no other processor to run on meanwhile, and a known evaluation that ends
    before the call returns takes less time to start.
    """
    arrays = [x._a for x in arrays_of(args)]
    if any(a._node.flags & TRACED for a in arrays):
        raise ValueError("[async_eval] Not allowed inside a graph transformation.")
    if arrays:
        try:
            is_host = all(a.device.memory == "host" for a in arrays)
            (mtl.eval if is_host else mtl.async_eval)(*arrays)
        except np.linalg.LinAlgError as error:
            failures.append(error)


def depends(inputs: Any, dependencies: Any) -> Any:
    """The inputs; what they depend on is evaluated with them when it is needed."""
    for leaf in (*leaves_of(inputs), *leaves_of(dependencies)):
        if not isinstance(leaf, array):
            raise TypeError("depends(): incompatible function arguments: expected arrays.")
    return mapped(lambda leaf: wrap(leaf._a), inputs)


# -- derivatives


def _numbers(tag: str, argnums: Any, names: tuple[str, ...]) -> tuple[int, ...]:
    if argnums is None:
        argnums = () if names else (0,)
    numbers = (argnums,) if isinstance(argnums, int) else tuple(sorted(argnums))
    if not numbers and not names:
        raise ValueError(f"{tag} Gradient wrt no argument requested")
    if numbers and numbers[0] < 0:
        raise ValueError(
            f"{tag} Can't compute the gradient of negative argument index {numbers[0]}"
        )
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"{tag} Duplicate argument index {numbers[0]} is not allowed.")
    return numbers


def _check_call(tag: str, numbers: tuple[int, ...], names: tuple[str, ...], args: Any,
                kwargs: Any) -> None:  # fmt: skip
    if numbers and numbers[-1] >= len(args):
        raise ValueError(
            f"{tag} Can't compute the gradient of argument index {numbers[-1]} because the "
            f"function is called with only {len(args)} positional arguments."
        )
    for key in names:
        if key not in kwargs:
            raise ValueError(
                f"{tag} Can't compute the gradient of keyword argument '{key}' because the "
                f"function is called with the following keyword arguments {{{','.join(kwargs)}}}"
            )


def _check_value(tag: str, value: Any, only_scalar: bool) -> array:
    if isinstance(value, array):
        return value
    kind = type(value).__name__
    intro = f"{tag} The return value of the function whose gradient we want to compute should be"
    if only_scalar:
        raise ValueError(f"{intro} a scalar array; but {kind} was returned.")
    if not isinstance(value, tuple) or not value or not isinstance(value[0], array):
        raise ValueError(
            f"{intro} either a scalar array or a tuple with the first value being a scalar array "
            f"(Union[array, tuple[array, Any, ...]]); but {kind} was returned."
        )
    return value[0]


def _differentiated(tag: str, fun: Function, argnums: Any, argnames: Any,
                    only_scalar: bool) -> Function:  # fmt: skip
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames)
    numbers = _numbers(tag, argnums, names)

    @functools.wraps(fun)
    def differentiated(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        _check_call(tag, numbers, names, args, kwargs)
        chosen = [args[k] for k in numbers], {key: kwargs[key] for key in names}
        for leaf in leaves_of(chosen):
            if not isinstance(leaf, array):
                raise ValueError("[tree_flatten] The argument should contain only arrays")
        leaves = arrays_of(chosen)
        template = mapped(lambda leaf: leaf, chosen)  # the function may change its arguments
        is_smooth = [dtypes.is_inexact(leaf.dtype) for leaf in leaves]
        values: list[Any] = []

        def flat(*smooth: mtl.Array) -> Any:
            given = iter(smooth)
            inputs = [wrap(next(given)) if own else leaf
                      for own, leaf in zip(is_smooth, leaves, strict=True)]  # fmt: skip
            positional, named = with_arrays(chosen, inputs)
            called = list(args)
            for k, value in zip(numbers, positional, strict=True):
                called[k] = value
            value = fun(*called, **{**kwargs, **named})
            copy_writes(chosen, (positional, named), set(map(id, inputs)))
            loss = _check_value(tag, value, only_scalar)
            if loss.size != 1 or loss.ndim:
                raise ValueError(
                    f"{tag} The function whose gradient we want to compute should return a scalar "
                    "but got an array with "
                    f"shape {loss.shape}."
                )
            values.append(value)
            return loss._a, [leaf._a for leaf in arrays_of(value)]

        smooth = [leaf._a for leaf, own in zip(leaves, is_smooth, strict=True) if own]
        if smooth:
            numbers_of_smooth = tuple(range(len(smooth)))
            _, results = mtl.value_and_grad(flat, argnums=numbers_of_smooth)(*smooth)
            gradients = iter([results] if len(smooth) == 1 else results)
        else:
            flat()
            gradients = iter(())
        by_leaf = [wrap(next(gradients)) if own else wrap(mtl.zeros_like(leaf._a))
                   for own, leaf in zip(is_smooth, leaves, strict=True)]  # fmt: skip
        positional, named = with_arrays(template, by_leaf, as_dict=True)
        own = None if not numbers else positional[0] if len(numbers) == 1 else tuple(positional)
        return values[0], (own, named) if names else own

    return differentiated


def value_and_grad(fun: Function, argnums: int | Sequence[int] | None = None,
                   argnames: str | Sequence[str] = ()) -> Function:  # fmt: skip
    """A function that computes the value of `fun` and its gradient."""
    return _differentiated("[value_and_grad]", fun, argnums, argnames, only_scalar=False)


def grad(fun: Function, argnums: int | Sequence[int] | None = None,
         argnames: str | Sequence[str] = ()) -> Function:  # fmt: skip
    """A function that computes the gradient of `fun`."""
    both = _differentiated("[grad]", fun, argnums, argnames, only_scalar=True)

    @functools.wraps(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[1]

    return gradient


def _flat_function(where: str, fun: Function) -> Function:
    def flat(*values: mtl.Array) -> list[mtl.Array]:
        result = fun(*map(wrap, values))
        items = [result] if isinstance(result, array) else result
        if not isinstance(items, list | tuple) or not all(isinstance(i, array) for i in items):
            raise ValueError(f"[{where}] The function must return an array or a list of arrays.")
        return [item._a for item in items]

    return flat


def _list_of(where: str, values: Any) -> list[mtl.Array]:
    if not isinstance(values, list | tuple) or not all(isinstance(v, array) for v in values):
        raise TypeError(f"{where}(): incompatible function arguments: expected a list of arrays.")
    return [value._a for value in values]


def vjp(fun: Function, primals: list[array],
        cotangents: list[array]) -> tuple[list[array], list[array]]:  # fmt: skip
    """The values of `fun`, and cotangents times its Jacobian."""
    values, products = mtl.vjp(_flat_function("vjp", fun), _list_of("vjp", primals),
                               _list_of("vjp", cotangents))  # fmt: skip
    return list(map(wrap, values)), list(map(wrap, products))


def jvp(fun: Function, primals: list[array],
        tangents: list[array]) -> tuple[list[array], list[array]]:  # fmt: skip
    """The values of `fun`, and its Jacobian times tangents."""
    values, products = mtl.jvp(_flat_function("jvp", fun), _list_of("jvp", primals),
                               _list_of("jvp", tangents))  # fmt: skip
    return list(map(wrap, values)), list(map(wrap, products))


# -- batching


def vmap(fun: Function, in_axes: Any = 0, out_axes: Any = 0) -> Function:
    """A function that applies `fun` along an axis of its arguments."""

    def flat(*args: Any) -> Any:
        result = fun(*wrapped(args))
        return unwrapped(result)

    @functools.wraps(fun)
    def batched(*args: Any) -> Any:
        for leaf in leaves_of(args):
            if not isinstance(leaf, array):
                raise ValueError("[vmap] The arguments should contain only arrays")
        return wrapped(mtl.vmap(flat, in_axes, out_axes)(*unwrapped(args)))

    return batched


# -- rules of the user


class custom_function:
    """A function whose derivatives and batching the user states.

    Examples
    --------
    >>> from metalloid.compat.mlx import core as mx
    >>> @mx.custom_function
    ... def f(x):
    ...     return mx.sin(x)
    >>> @f.vjp
    ... def f_vjp(primals, cotangent, output):
    ...     return cotangent * 10
    >>> mx.grad(f)(mx.array(0.0))
    array(10, dtype=float32)
    """

    def __init__(self, f: Function) -> None:
        functools.update_wrapper(self, f)
        self._own = mtl.custom_function(lambda *a, **k: unwrapped(f(*wrapped(a), **wrapped(k))))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return wrapped(self._own(*unwrapped(args), **unwrapped(kwargs)))

    def vjp(self, f: Function) -> custom_function:
        """State the product of cotangents with the Jacobian."""

        def rule(primals: Any, cotangents: Any, outputs: Any, **named: Any) -> Any:
            trees = wrapped((primals, cotangents, outputs))
            result = unwrapped(f(*trees, **wrapped(named)))
            if named:  # positional and keyword arguments, as a pair
                result = [result[0], result[1]] if isinstance(result, tuple) else result
            return result

        self._own.vjp(rule)
        return self

    def jvp(self, f: Function) -> custom_function:
        """State the product of the Jacobian with tangents."""
        self._own.jvp(lambda primals, tangents: unwrapped(f(wrapped(primals), wrapped(tangents))))
        return self

    def vmap(self, f: Function) -> custom_function:
        """State the rule of `vmap`."""

        def rule(arguments: Any, axes: Any) -> Any:
            returned = f(wrapped(arguments), axes)
            if not isinstance(returned, tuple) or len(returned) != 2:
                raise ValueError("[custom vmap] Vmap function should return a tuple with 2 items.")
            return unwrapped(returned[0]), returned[1]

        self._own.vmap(rule)
        return self


def checkpoint(fun: Function) -> Function:
    """A function whose intermediate values are computed again for its gradient."""
    own = mtl.checkpoint(lambda *a, **k: unwrapped(fun(*wrapped(a), **wrapped(k))))

    @functools.wraps(fun)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        return wrapped(own(*unwrapped(args), **unwrapped(kwargs)))

    return checkpointed
