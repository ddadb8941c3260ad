"""`compile`: functions as programs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import metalloid as mtl
from metalloid.arrays.ir.node import ABSTRACT, TRACED
from metalloid.compat.mlx.core.array import array, wrap
from metalloid.compat.mlx.core.tape import NotRecorded, recorded
from metalloid.compat.mlx.core.tree import (
    arrays_of,
    fill,
    mapped,
    structure_of,
    with_arrays,
)

__all__ = [
    "compile", "disable_compile", "enable_compile",
]  # fmt: skip

_is_enabled = [True]
_CONSTANTS = (bool, int, float, str, bytes, type(None))


def enable_compile() -> None:
    """Let `compile` compile."""
    _is_enabled[0] = True


def disable_compile() -> None:
    """Let compiled functions run as they are."""
    _is_enabled[0] = False


def compile(fun: Callable[..., Any], inputs: Any = None, outputs: Any = None,
            shapeless: bool = False) -> Callable[..., Any]:  # fmt: skip
    """A function that traces `fun` once per structure of its arguments, and runs as a program.

    With `shapeless`, calls with arguments of other shapes do not call `fun`: the operations that
    it called run for these shapes, with the parameters that they had.
    """
    return functools.wraps(fun)(_Compiled(fun, inputs, outputs, shapeless))


class _Result:
    """The structure of the results of a trace."""

    def __init__(self, tree: Any) -> None:
        self.tree = tree


class _Compiled:
    """A function, and its program for each structure of the arguments."""

    def __init__(self, fun: Callable[..., Any], inputs: Any, outputs: Any,
                 shapeless: bool) -> None:  # fmt: skip
        self._fun, self._inputs, self._outputs = fun, inputs, outputs
        self._shapeless = shapeless
        self._programs: dict[Any, Any] = {}

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not _is_enabled[0]:
            return self._fun(*args, **kwargs)
        key = structure_of((args, kwargs), _constant)
        captured = arrays_of(self._inputs) if self._inputs is not None else []
        key = key, structure_of(self._inputs, type) if captured else None
        leaves = [*arrays_of((args, kwargs)), *captured]
        if self._shapeless:
            key = key, *((leaf.dtype, leaf.ndim) for leaf in leaves)
        program = self._programs.get(key)
        if program is None:
            flat = self._flat(args, kwargs, len(captured))
            program = self._programs[key] = mtl.compile(self._replayed(flat, leaves))
            program.is_lazy = True
        values = [leaf._a for leaf in leaves]
        results, outputs, result = program(*values)
        if self._outputs is not None:
            given = iter(outputs)
            fill(self._outputs, lambda _: wrap(next(given)))
        return with_arrays(result.tree, map(wrap, results))

    def _replayed(self, flat: Callable[..., Any], leaves: list[array]) -> Callable[..., Any]:
        """The recorded operations of a function, if other shapes are not to call it."""
        if not self._shapeless or any(leaf._a._node.flags & TRACED for leaf in leaves):
            return flat
        values: list[Any] = []

        def call(inputs: list[array]) -> list[array]:
            results, outputs, result = flat(*(value._a for value in inputs))
            values.extend((len(results), result))
            return [wrap(value) for value in (*results, *outputs)]

        try:
            recording = recorded("compile", call, leaves, reads_values=False)
        except NotRecorded:
            return flat
        count, result = values

        def replay(*inputs: mtl.Array) -> Any:
            computed = [value._a for value in recording.run(list(map(wrap, inputs)))]
            return computed[:count], computed[count:], result

        return replay

    def _flat(self, args: Any, kwargs: Any, captured: int) -> Callable[..., Any]:
        """A function of arrays; other leaves are constants of it."""
        holes = _without_values((args, kwargs))

        def flat(*values: mtl.Array) -> Any:
            given = list(map(wrap, values))
            own, state = given[: len(given) - captured], given[len(given) - captured :]
            positional, named = with_arrays(holes, own)
            before = self._replace(state)
            try:
                value = self._fun(*positional, **named)
                captures = arrays_of(self._outputs) if self._outputs is not None else []
                outputs = [leaf._a for leaf in captures]
            finally:
                if before is not None:
                    _restore(self._inputs, before)
            result = [leaf._a for leaf in arrays_of(value)]
            return result, outputs, _Result(_without_values(value))

        flat.__name__ = getattr(self._fun, "__name__", "function")
        return flat

    def _replace(self, state: list[array]) -> Any:
        """Put tracers into the containers of the inputs, and return a copy of these."""
        if not state:
            return None
        before = mapped(lambda leaf: leaf, self._inputs)
        given = iter(state)
        fill(self._inputs, lambda _: next(given))
        return before


def _restore(tree: Any, before: Any) -> None:
    """Put arrays of a copy back where a tree now has arrays without values."""
    pairs: Any = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(pairs):
        is_known = key in before if isinstance(before, dict) else key < len(before)
        if isinstance(value, array):
            if value._a._node.flags & ABSTRACT and is_known:
                tree[key] = before[key]
        elif isinstance(value, list | tuple | dict) and is_known:
            _restore(value, before[key])


_hole = wrap(mtl.zeros(0))


def _without_values(tree: Any) -> Any:
    return mapped(lambda leaf: _hole if isinstance(leaf, array) else leaf, tree)


def _constant(leaf: Any) -> Any:
    """The key of a leaf that is no array.

    Raises
    ------
    ValueError
        If it cannot be a constant.
    """
    if isinstance(leaf, _CONSTANTS):
        return type(leaf), leaf
    raise ValueError(
        "[compile] Function arguments must be trees of arrays or constants (floats, ints, strings, "
        f"or None), but received type {type(leaf).__name__}."
    )
