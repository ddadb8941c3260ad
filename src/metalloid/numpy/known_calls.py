"""Calls of functions like earlier ones: the nodes of their results are made without the functions.

A structural function builds the same expression for all arrays of the same types and layouts.
Python takes most of the time of a small call to build it. The second call of a structure is
recorded, and ``arrays/native/known_call.c`` makes the nodes of those that follow. The only elements
that such a function reads are indices: they are in a range, which is a property of the call.
"""

from __future__ import annotations

import functools
import inspect
import sys
from array import array
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from metalloid.arrays.array import Array
from metalloid.arrays.execution.calls import host_reads
from metalloid.arrays.execution.evaluate import evaluate, settled
from metalloid.arrays.ir import native
from metalloid.arrays.ir.dtypes import kind_of, type_rules
from metalloid.arrays.ir.host_arrays import tables
from metalloid.arrays.ir.index_checks import read_indices
from metalloid.arrays.ir.layout import is_contiguous
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
    TRACED,
    VIEW,
    Node,
    cast,
    reshape,
)
from metalloid.numpy.array import ndarray, numpy_function
from metalloid.settings import settings

P = ParamSpec("P")
R = TypeVar("R")

#: Kinds of nodes that are the same for other operands.
#: Kinds of expressions that are operands. Functions look at nothing but their types and shapes.
_OPERANDS = {ELEMENTWISE, GATHER, IOTA, PRIMITIVE, REDUCE}
_COPIED = {ELEMENTWISE, GATHER, IOTA, LIBRARY_CALL, PRIMITIVE, REDUCE, SCATTER_SLICES, VIEW}
_MAX_ARRAYS, _MAX_NODES, _MAX_ITEMS, _MAX_DEPTH = 16, 128, 16, 2  # as in known_call.c
#: Of a function: known calls, and structures that were seen once.
_MAX_CALLS, _MAX_SEEN = 8, 256
#: After so many calls that were not known, only some are looked at: others may have other numbers
#: each time.
_LOOKED_AT, _SOME = 64, 16

_INTS = {int, type(None)}
_SINGLE = bool | type | np.dtype | type(Ellipsis)

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
            return self._array(value._node)
        if kind is int or kind is float or kind is str:
            return kind, value
        if kind is slice and {type(value.start), type(value.stop), type(value.step)} <= _INTS:
            return kind, value
        if value is None or value is np._NoValue or isinstance(value, _SINGLE):
            return (value,)
        if (kind is tuple or kind is list) and len(value) <= _MAX_ITEMS and depth < _MAX_DEPTH:
            return kind, tuple(self.check(v, may_be_array, depth + 1) for v in value), None
        raise _Unlike

    def _array(self, node: Node) -> _Check:
        is_leaf = node.kind is BUFFER
        flags = node.flags if is_leaf else node.flags & ~HAS_PRIMITIVES
        if flags or 0 in node.shape or not (is_leaf or node.kind in _OPERANDS):
            raise _Unlike
        self.nodes.append(node)
        if is_leaf:
            return node.dtype, node.shape, node.data, node.device
        data = node.data if node.kind is IOTA else None
        return node.dtype, node.shape, node.kind, node.device, node.flags, data

    def ranges(self, read: Sequence[tuple[Node, int]]) -> bytes:
        """The ranges of indices that a call has read; see known_call.c."""
        ranges = array("q")
        for index, extent in read:
            owners = [k for k, node in enumerate(self.nodes) if _have_same_elements(node, index)]
            if extent < 0 or not owners:
                raise _Unlike
            size = index.dtype.itemsize
            ranges.extend((owners[0], extent, index.size, size, index.data[1] * size))
        return ranges.tobytes()

    def first(self) -> bytes:
        """By array, the numbers of the first one that is the same, and that has its memory."""
        memories = [node.memory for node in self.nodes]
        same = [self.nodes.index(node) for node in self.nodes]
        return bytes(same + [memories.index(memory) for memory in memories])


class Watched:
    """A block that calls a function: the indices that it has checked, and whether that is all.

    A function that reads other values may put them into its results.

    Attributes
    ----------
    indices : list of (Node, int)
        See `read_indices`.
    is_structural : bool
    """

    def __enter__(self) -> Watched:
        self._before, read_indices.nodes = read_indices.nodes, []
        self._reads = host_reads()
        return self

    def __exit__(self, *error: object) -> None:
        self.indices = read_indices.nodes or []
        read_indices.nodes = self._before
        self.is_structural = host_reads() - self._reads == len(self.indices)


def _have_same_elements(node: Node, index: Node) -> bool:
    """Whether an array is an index array, perhaps in another shape."""
    if node.kind is not BUFFER or index.kind is not BUFFER or node.memory is not index.memory:
        return False
    is_same = node.dtype == index.dtype and node.size == index.size
    is_plain = is_contiguous(node.layout) and is_contiguous(index.layout)
    return is_same and is_plain and node.data[1] == index.data[1] and kind_of(node.dtype) in "iu"


class KnownCalls:
    """Calls of a function.

    Parameters
    ----------
    operands : int, optional
        Number of the first arguments that may be arrays; by default all positional ones. Others
        are parameters, whose values decide.
    named : tuple of str
        Names of arguments that may be arrays.

    Attributes
    ----------
    calls : tuple
        Those that are recorded, the latest first; see `native.known_call`.
    make : callable or None
        From a tuple to the function's class of results, if it has one.
    """

    def __init__(self, operands: int | None, named: tuple[str, ...] = ()) -> None:
        self.calls: tuple[Any, ...] = ()
        self.make: Callable[[Any], Any] | None = None
        self._operands, self._named = operands, named
        self._seen: dict[Any, bool] = {}  # by structure, whether it can be recorded
        self._unknown = 0

    def learn(self, args: tuple[Any, ...], options: dict[str, Any], result: Any,
              watched: Watched) -> None:  # fmt: skip
        """Note the structure of a call, and record it if it was noted before."""
        self._unknown += 1
        if not watched.is_structural:
            return
        if self._unknown > _LOOKED_AT and self._unknown % _SOME:
            return
        given = _Given(self._operands)
        try:
            checks = given.checks(args)
            by_name = tuple(given.check(v, k in self._named) for k, v in options.items())
            ranges = given.ranges(watched.indices)
        except _Unlike:
            return
        structure = checks, tuple(options), by_name, given.first()
        seen = structure if sys.version_info >= (3, 12) else repr(structure)  # slices have no hash
        if seen not in self._seen:
            if len(self._seen) == _MAX_SEEN:
                self._seen.clear()
            self._seen[seen] = True
        elif self._seen[seen]:
            self.make = getattr(type(result), "_make", None)
            recorded = _recorded(given.nodes, result)
            self._seen[seen] = recorded is not None
            if recorded is not None:
                call = *structure, *recorded, ranges, vars(settings), settings.version
                self.calls = (call, *self.calls[: _MAX_CALLS - 1])


def _recorded(
    arrays: list[Node], result: Any
) -> tuple[tuple[_Step, ...], tuple[Node, ...], tuple[int | None, ...]] | None:
    """Steps that make the nodes of a result, constants, and numbers of the results.

    None if they depend on more than the operands.
    """
    is_tuple = isinstance(result, tuple)
    results = result if is_tuple else (result,)
    if not all(type(value) is ndarray for value in results):
        return None
    roots = [value._node for value in results]
    number_of = {node: k for k, node in reversed(list(enumerate(arrays)))}
    built = _built(roots, number_of)
    latest = max((node.topological_id for node in arrays if node.kind is not BUFFER), default=-1)
    constants = [node for node in built if node.kind is CONSTANT or node in tables]
    steps: list[_Step] = []
    if any(node not in constants and node.topological_id < latest for node in built):
        return None  # the function has looked into an expression
    number_of |= {node: len(arrays) + k for k, node in enumerate(constants)}
    for node in built:
        if node in number_of:
            continue
        operands = _operands(node, arrays, number_of)
        if operands is None or len(steps) + len(constants) == _MAX_NODES:
            return None
        number_of[node] = len(arrays) + len(constants) + len(steps)
        steps.append((node.kind, node.data, operands, node.dtype, node.shape, node.flags,
                      node.device))  # fmt: skip
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
    operands: int | None = None, *, named: tuple[str, ...] = (), index: int | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator as `numpy_function`, of functions that read no elements but checked indices.

    Parameters
    ----------
    operands, named : int and tuple of str, optional
        See `KnownCalls`.
    index : int, optional
        The argument whose elements are checked, which is evaluated first.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        ordinary, known = numpy_function(function), KnownCalls(operands, named)

        @functools.wraps(function)
        def call(*args: P.args, **options: P.kwargs) -> R:
            if type_rules.are_chosen:
                return function(*args, **options)
            if index is not None and len(args) > index:
                _evaluate_indices(args[index])
            result: R | None = native.known_call(known.calls, args, options)
            if result is None:
                with Watched() as watched:
                    result = ordinary(*args, **options)
                if not any(result is value for value in args):
                    known.learn(args, options, result, watched)
            elif known.make is not None:
                return known.make(result)  # type: ignore[no-any-return]
            return result

        call.known_calls = known  # type: ignore[attr-defined]
        return call

    return decorate


def _evaluate_indices(value: Any) -> None:
    """Evaluate an expression whose elements a function checks at once, as indices on the host."""
    if type(value) is ndarray and value._node.kind is not BUFFER:
        node = value._node
        if kind_of(node.dtype) in "iu" and not node.flags & TRACED and node.device.memory != "own":
            evaluate([node])


def structural_update(
    operands: int | None = None, *, named: tuple[str, ...] = (), index: int | None = None
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Decorator of functions that give their first argument a new value, which they return.

    They return None if it does not change. See `structural_function`.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., None]:
        signature = inspect.signature(function)
        target, *_ = signature.parameters

        @structural_function(operands, named=named, index=index)
        def updated(*args: Any, **options: Any) -> Any:
            new = function(*args, **options)
            array = args[0] if args else options[target]
            return fitted(new, array) if new is not None and isinstance(array, Array) else new

        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> None:
            new = updated(*args, **options)
            array = args[0] if args else options[target]
            if new is None:
                return
            if isinstance(array, Array):
                array._node = settled(new._node)
            else:
                array[...] = np.asarray(new).reshape(array.shape)

        call.__signature__ = signature.replace(return_annotation="None")  # type: ignore[attr-defined]
        call.known_calls = updated.known_calls  # type: ignore[attr-defined]
        return call

    return decorate


def fitted(new: Array, array: Array) -> Array:
    """A new value of an array in its shape and type."""
    return Array(cast(reshape(new._node, array.shape), array.dtype))
