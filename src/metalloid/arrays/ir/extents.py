"""Symbolic extents: sizes of arrays that stay variables while a function is traced.

A shape, and the parameters of a view or a primitive, may hold some. `at_extents` copies an
expression for other sizes.
"""

from __future__ import annotations

import dataclasses
import operator
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from metalloid.arrays.ir.node import BUFFER, IOTA, TRACER, Node
from metalloid.arrays.ir.operands import SymbolicNumber
from metalloid.arrays.ir.substitute import with_sizes

#: From a symbolic extent to its size.
Evaluate = Callable[["SymbolicExtent"], Any]

#: Traces with symbolic extents that have not ended.
open_traces: set[object] = set()
_by_topological_id = operator.attrgetter("topological_id")


class SymbolicExtent(SymbolicNumber):
    """An extent, or arithmetic of some."""

    @abstractmethod
    def __index__(self) -> int:
        """Read the size: the trace is valid for this one only."""


def as_extent(value: Any) -> int:
    """An integer; a symbolic extent stays one.

    Raises
    ------
    TypeError
        If it is no integer.
    """
    if type(value) is int or (isinstance(value, SymbolicExtent) and value.type is int):
        return value  # type: ignore[return-value]
    return operator.index(value)


def slice_numbers(item: slice, extent: int) -> tuple[int, int, int]:
    """Start, step and count of a slice of an axis."""
    if not open_traces:
        start, stop, step = item.indices(extent)
        return start, step, len(range(start, stop, step))
    step = 1 if item.step is None else operator.index(item.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (0, extent) if step > 0 else (-1, extent - 1)
    bounds = ((item.start, low), (item.stop, high)) if step > 0 else (
        (item.start, high), (item.stop, low))  # fmt: skip
    start, stop = (
        default if n is None else _clipped(as_extent(n), extent, low, high) for n, default in bounds
    )
    is_empty = start >= stop if step > 0 else start <= stop
    return start, step, 0 if is_empty else (abs(stop - start) + abs(step) - 1) // abs(step)


def _clipped(index: int, extent: int, low: int, high: int) -> int:
    """A bound of a slice within the axis; a negative one counts from its end."""
    if index < 0:
        index += extent
        return low if index < low else index
    return high if index > high else index


def at_sizes(value: Any, evaluate: Evaluate) -> Any:
    """A value with sizes in place of the symbolic extents in its tuples, lists and dataclasses."""
    if isinstance(value, SymbolicExtent):
        return evaluate(value)
    if isinstance(value, tuple | list):
        items = [at_sizes(item, evaluate) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        sizes = {key: at_sizes(item, evaluate) for key, item in value.items()}
        return value if all(sizes[key] is item for key, item in value.items()) else sizes
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        old = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        new = {name: at_sizes(item, evaluate) for name, item in old.items()}
        if any(new[name] is not item for name, item in old.items()):
            return dataclasses.replace(value, **new)
    return value


def read_sizes(value: Any) -> Any:
    """A value without symbolic extents, whose sizes are read."""
    return at_sizes(value, operator.index) if open_traces else value


def at_extents(roots: Sequence[Node], known: dict[Node, Node], evaluate: Evaluate) -> list[Node]:
    """Copies of expressions for other sizes.

    Nodes that depend on neither a node in `known` nor a symbolic extent are not copied.

    Parameters
    ----------
    known : dict
        Copies that exist, by node: those of inputs. All others are added.
    """
    for node in _nodes_below(roots, known):
        if node.kind is TRACER and node.args:  # of a transform inside: its value
            known[node] = known[node.args[0]]
            continue
        args = tuple(known[arg] for arg in node.args)
        shape, data = at_sizes((node.shape, node.data), evaluate)
        if args == node.args and shape is node.shape and data is node.data:
            known[node] = node
        elif node.kind is BUFFER or node.kind is IOTA:
            known[node] = Node(node.kind, data, (), node.dtype, shape, node.device, node.memory)
        else:
            known[node] = with_sizes(node, args, data, shape)
    return [known[root] for root in roots]


def _nodes_below(roots: Iterable[Node], known: dict[Node, Node]) -> list[Node]:
    """All nodes that `roots` depend on, down to known ones; operands first."""
    pending = [root for root in dict.fromkeys(roots) if root not in known]
    reached = {*known, *pending}
    for node in pending:  # grows while it is traversed
        for arg in node.args:
            if arg not in reached:
                reached.add(arg)
                pending.append(arg)
    pending.sort(key=_by_topological_id)
    return pending
