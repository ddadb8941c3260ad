"""Calls of functions like earlier ones: the nodes of their results are made without the functions.

A structural function builds the same expression for all arrays of the same types and layouts, as it
reads no elements. Python takes most of the time of a small call to build it. The second call of a
structure is recorded, and ``arrays/native/known_call.c`` makes the nodes of those that follow.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from metalloid.arrays.ir import native
from metalloid.arrays.ir.dtypes import type_rules
from metalloid.arrays.ir.node import (
    BUFFER,
    CONSTANT,
    ELEMENTWISE,
    GATHER,
    GET_TUPLE_ITEM,
    HAS_PRIMITIVES,
    IOTA,
    LIBRARY_CALL,
    PRIMITIVE,
    REDUCE,
    SCATTER_SLICES,
    VIEW,
    Node,
)
from metalloid.numpy.array import ndarray, numpy_function
from metalloid.settings import settings

P = ParamSpec("P")
R = TypeVar("R")

#: Kinds of nodes that are the same for other operands.
_COPIED = {ELEMENTWISE, GATHER, IOTA, LIBRARY_CALL, PRIMITIVE, REDUCE, SCATTER_SLICES, VIEW}
_MAX_ARRAYS, _MAX_NODES, _MAX_ITEMS, _MAX_DEPTH = 16, 128, 16, 2  # as in known_call.c
#: Of a function: known calls, and structures that were seen once.
_MAX_CALLS, _MAX_SEEN = 8, 256
#: After so many calls that were not known, only some are looked at: others may have other numbers
#: each time.
_LOOKED_AT, _SOME = 64, 16

_Check = tuple[Any, ...]
_Step = tuple[Any, ...]


class _Unlike(Exception):
    """A call has no structure that others could have."""


class _Given:
    """The arrays among arguments, and what arguments of a call like this one are."""

    def __init__(self, operands: int | None) -> None:
        self.nodes: list[Node] = []
        self._operands = operands

    def checks(self, args: Sequence[Any]) -> tuple[_Check, ...]:
        """Checks of the positional arguments."""
        operands = len(args) if self._operands is None else self._operands
        return tuple(self.check(value, k < operands) for k, value in enumerate(args))

    def check(self, value: Any, may_be_array: bool = False, depth: int = 0) -> _Check:
        """Requirement that a value of another call must meet; see known_call.c."""
        kind = type(value)
        if kind is ndarray and may_be_array and len(self.nodes) < _MAX_ARRAYS:
            node = value._node
            if node.kind is not BUFFER or node.flags or 0 in node.shape:
                raise _Unlike
            self.nodes.append(node)
            return node.dtype, node.shape, node.data, node.device
        if kind is int or kind is float or kind is str:
            return kind, value
        if value is None or value is np._NoValue or isinstance(value, bool | type | np.dtype):
            return (value,)
        if (kind is tuple or kind is list) and len(value) <= _MAX_ITEMS and depth < _MAX_DEPTH:
            return kind, tuple(self.check(v, may_be_array, depth + 1) for v in value), None
        raise _Unlike

    def first(self) -> bytes:
        """By array, the numbers of the first one that is the same, and that has its memory."""
        memories = [node.memory for node in self.nodes]
        same = [self.nodes.index(node) for node in self.nodes]
        return bytes(same + [memories.index(memory) for memory in memories])


class KnownCalls:
    """Calls of a function.

    Parameters
    ----------
    operands : int, optional
        Number of the first arguments that may be arrays; by default all positional ones. Others
        are parameters, whose values decide.

    Attributes
    ----------
    calls : tuple
        Those that are recorded, the latest first; see `native.known_call`.
    make : callable or None
        From a tuple to the function's class of results, if it has one.
    """

    def __init__(self, operands: int | None) -> None:
        self.calls: tuple[Any, ...] = ()
        self.make: Callable[[Any], Any] | None = None
        self._operands = operands
        self._seen: dict[Any, bool] = {}  # by structure, whether it can be recorded
        self._unknown = 0

    def learn(self, args: tuple[Any, ...], options: dict[str, Any], result: Any) -> None:
        """Note the structure of a call, and record it if it was noted before."""
        self._unknown += 1
        if self._unknown > _LOOKED_AT and self._unknown % _SOME:
            return
        given = _Given(self._operands)
        try:
            checks = given.checks(args)
            by_name = tuple(given.check(value) for value in options.values())
        except _Unlike:
            return
        structure = checks, tuple(options), by_name, given.first()
        if structure not in self._seen:
            if len(self._seen) == _MAX_SEEN:
                self._seen.clear()
            self._seen[structure] = True
        elif self._seen[structure]:
            self.make = getattr(type(result), "_make", None)
            recorded = _recorded(given.nodes, result)
            self._seen[structure] = recorded is not None
            if recorded is not None:
                call = *structure, *recorded, vars(settings), settings.version
                self.calls = (call, *self.calls[: _MAX_CALLS - 1])


def _recorded(
    arrays: list[Node], result: Any
) -> tuple[tuple[_Step, ...], tuple[Node, ...], tuple[int | None, ...]] | None:
    """Steps that make the nodes of a result, constants, and numbers of the results.

    None if they depend on more than the operands, or if an operand itself is a result.
    """
    is_tuple = isinstance(result, tuple)
    results = result if is_tuple else (result,)
    if not all(type(value) is ndarray for value in results):
        return None
    roots = [value._node for value in results]
    number_of = {node: k for k, node in reversed(list(enumerate(arrays)))}
    built = _built(roots, number_of)
    constants = [node for node in built if node.kind is CONSTANT]
    steps: list[_Step] = []
    number_of |= {node: len(arrays) + k for k, node in enumerate(constants)}
    for node in built:
        if node.kind is CONSTANT:
            continue
        operands = _operands(node, arrays, number_of)
        if operands is None or len(steps) + len(constants) == _MAX_NODES:
            return None
        number_of[node] = len(arrays) + len(constants) + len(steps)
        steps.append((node.kind, node.data, operands, node.dtype, node.shape, node.flags,
                      node.device))  # fmt: skip
    if any(root in arrays for root in roots):
        return None
    numbers = tuple(number_of[root] for root in roots)
    return tuple(steps), tuple(constants), (None, *numbers) if is_tuple else numbers


def _built(roots: Sequence[Node], known: dict[Node, int]) -> list[Node]:
    """All nodes that the roots depend on but the known ones, operands first."""
    pending = [root for root in dict.fromkeys(roots) if root not in known]
    reached = set(pending)
    for node in pending:  # grows while it is traversed
        for arg in node.args:
            if arg not in reached and arg not in known:
                reached.add(arg)
                pending.append(arg)
    return sorted(pending, key=lambda node: node.topological_id)


def _operands(node: Node, arrays: list[Node], number_of: dict[Node, int]) -> tuple[int, ...] | None:
    """Numbers of the operands of a node, or of the array with its memory; None for other nodes."""
    if node.kind is BUFFER:
        owners = [k for k, array in enumerate(arrays) if array.memory is node.memory]
        return (owners[0],) if owners else None
    is_item = node.kind is GET_TUPLE_ITEM and node.args[0].kind is PRIMITIVE
    if node.flags & ~HAS_PRIMITIVES or node.inlined or not (is_item or node.kind in _COPIED):
        return None
    return tuple(number_of[arg] for arg in node.args)


def structural_function(
    operands: int | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator as `numpy_function`, of functions that read no elements of arrays.

    Parameters
    ----------
    operands : int, optional
        See `KnownCalls`.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        ordinary, known = numpy_function(function), KnownCalls(operands)

        @functools.wraps(function)
        def call(*args: P.args, **options: P.kwargs) -> R:
            if type_rules.are_chosen:
                return function(*args, **options)
            result: R | None = native.known_call(known.calls, args, options)
            if result is None:
                result = ordinary(*args, **options)
                known.learn(args, options, result)
            elif known.make is not None:
                return known.make(result)  # type: ignore[no-any-return]
            return result

        call.known_calls = known  # type: ignore[attr-defined]
        return call

    return decorate
