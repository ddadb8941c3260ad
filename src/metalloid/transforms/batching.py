"""`vmap`: a function of single elements becomes a function of stacks of them.

The function is traced once, with tracers that lack the batch axis. Each node is then rebuilt with
the batch along axis 0 of those operands that have it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.functions.creation import asarray
from metalloid.arrays.ir.layout import Ints, ViewOp
from metalloid.arrays.ir.node import (
    CONSTANT,
    CUSTOM_CALL,
    ELEMENTWISE,
    GATHER,
    GET_TUPLE_ITEM,
    PRIMITIVE,
    REDUCE,
    SCATTER_SLICES,
    TRACER,
    VIEW,
    Node,
    broadcast,
    iota,
    move,
    permute,
    reduce,
    reshape,
)
from metalloid.arrays.ir.operands import axes_of
from metalloid.arrays.ir.substitute import traced_nodes
from metalloid.arrays.ir.views import moved_axes
from metalloid.errors import TraceError
from metalloid.transforms.rules.registry import operands_of_batch, rule_of
from metalloid.transforms.tracing import Trace
from metalloid.transforms.tree import TreeDef, flatten

Axes = Any


def vmap(fun: Callable[..., Any], in_axes: Axes = 0, out_axes: Axes = 0) -> Callable[..., Any]:
    """Return a function that applies `fun` to every element along an axis.

    Parameters
    ----------
    fun : callable
        From arrays, or nested lists, tuples and dictionaries of them, to the same.
    in_axes : int, None, or a structure of them
        The axis of each argument; None for one that all calls share. It may be a number for all
        arguments, a sequence with one item for each, or have the structure of the arguments.
    out_axes : int, None, or a structure of them
        The axis of each result. None for one that does not depend on the elements.

    Returns
    -------
    callable
        Of positional arguments.

    Raises
    ------
    ValueError
        From the function returned: if no argument has an axis, or the extents differ.
    TraceError
        From the function returned: if `fun` reads values, or uses a kernel without a rule.

    Examples
    --------
    >>> import metalloid as mtl
    >>> rows = mtl.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> mtl.vmap(lambda row, k: row.sum() * k, in_axes=(0, None))(rows, mtl.asarray(10.0))
    array([30., 70.], dtype=float32)
    """

    @functools.wraps(fun)
    def mapped(*args: Any) -> Any:
        leaves, structure = flatten(list(args))
        axes = _axes_of_leaves("in_axes", in_axes, structure)
        nodes = [_input(leaf) for leaf in leaves]
        size, axes = _batch_size(nodes, axes)
        trace = Trace("vmap")
        batched: dict[Node, Node] = {}
        given = []
        for node, axis in zip(nodes, axes, strict=True):
            if axis is None:
                given.append(node)
                continue
            tracer = trace.placeholder(node, node.shape[:axis] + node.shape[axis + 1 :])
            batched[tracer] = moved_axes(node, axis, 0)
            given.append(tracer)
        value = fun(*structure.unflatten(iter(map(Array, given))))
        results, result_structure = flatten(value)
        outputs = [_output(result) for result in results]
        batch(outputs, batched)
        where = _axes_of_leaves("out_axes", out_axes, result_structure)
        stacked = [
            _result(node, batched.get(node), axis, size)
            for node, axis in zip(outputs, where, strict=True)
        ]
        return result_structure.unflatten(iter(map(Array, stacked)))

    return mapped


def _input(leaf: Any) -> Node:
    if isinstance(leaf, str | bytes):
        raise ValueError(f"[vmap] the arguments must be arrays, got {type(leaf).__name__}.")
    return asarray(leaf)._node


def _output(result: Any) -> Node:
    if not isinstance(result, Array):
        raise ValueError(f"[vmap] the function must return arrays, got {type(result).__name__}.")
    return result._node


def _axes_of_leaves(name: str, axes: Axes, structure: TreeDef) -> list[int | None]:
    """One axis for each leaf of a structure."""
    if axes is None or isinstance(axes, int):
        return [axes] * _count(structure)
    if structure.type is None and isinstance(axes, list | tuple) and len(axes) == 1:
        return [*axes]  # of the only result
    if isinstance(axes, dict) and structure.type is list and len(structure.children) == 1:
        axes = [axes]  # of the only argument
    kinds = dict if structure.keys else list | tuple
    is_like = isinstance(axes, kinds) and structure.type is not None
    if isinstance(axes, dict):
        is_like &= set(axes) == set(structure.keys)
    if not is_like or len(axes) != len(structure.children):
        raise ValueError(
            f"[vmap] {name} must be an int, None, or have the structure of the "
            f"{'arguments' if name == 'in_axes' else 'results'}, got {axes!r}."
        )
    items = [axes[key] for key in structure.keys] if isinstance(axes, dict) else axes
    rows = zip(items, structure.children, strict=True)
    return [axis for item, child in rows for axis in _axes_of_leaves(name, item, child)]


def _count(structure: TreeDef) -> int:
    return 1 if structure.type is None else sum(map(_count, structure.children))


def _batch_size(nodes: Sequence[Node], axes: Sequence[int | None]) -> tuple[int, list[int | None]]:
    """The extent that all mapped axes share, and the axes as non-negative numbers."""
    normalised: list[int | None] = []
    sizes: dict[int, int] = {}
    for k, (node, axis) in enumerate(zip(nodes, axes, strict=True)):
        if axis is not None:
            (axis,) = axes_of("vmap", axis, len(node.shape))
            sizes[k] = node.shape[axis]
        normalised.append(axis)
    if not sizes:
        raise ValueError("[vmap] at least one of in_axes must not be None.")
    if any(size != next(iter(sizes.values())) for size in sizes.values()):
        shapes = ", ".join(f"{nodes[k].shape} along {normalised[k]}" for k in sizes)
        raise ValueError(f"[vmap] the mapped axes must have one extent, got {shapes}.")
    return next(iter(sizes.values())), normalised


def _result(node: Node, stacked: Node | None, axis: int | None, size: int) -> Node:
    if axis is None:
        if stacked is not None:
            raise ValueError("[vmap] out_axes is None for a result that depends on the elements.")
        return node
    if stacked is None:
        stacked = broadcast(node, (size, *node.shape))
    return moved_axes(stacked, 0, axis)


def batch(roots: Sequence[Node], batched: dict[Node, Node]) -> None:
    """Rebuild expressions for stacks of elements.

    Parameters
    ----------
    batched : dict
        By tracer, the stack along axis 0. It gets the stacks of all nodes in between.
    """
    results: dict[Node, Sequence[Node]] = {}  # of primitives
    for node in traced_nodes(roots, operands_of_batch):
        if node in batched:
            continue
        if node.kind is GET_TUPLE_ITEM:
            if node.args[0] in results:
                batched[node] = results[node.args[0]][node.data]
            continue
        is_batched = [arg in batched for arg in node.args]
        if not any(is_batched):
            continue
        args = [batched.get(arg, arg) for arg in node.args]
        if node.kind is PRIMITIVE:
            row = rule_of(node.data.name).batch(args, is_batched, node.data.params)
            results[node] = row
            if len(row) == 1:
                batched[node] = row[0]
        else:
            size = next(arg.shape[0] for arg, own in zip(args, is_batched, strict=True) if own)
            batched[node] = _batched(node, args, is_batched, size)


def _batched(node: Node, args: list[Node], is_batched: list[bool], size: int) -> Node:
    kind, data = node.kind, node.data
    if kind is TRACER:
        return args[0]
    if kind is CUSTOM_CALL:
        raise TraceError(
            f"[vmap] the kernel {data.name!r} has no rule for vmap. State one with "
            "custom_function, or call it in a loop."
        )
    shape = (size, *node.shape)
    if kind is ELEMENTWISE or kind is SCATTER_SLICES:
        if kind is SCATTER_SLICES:
            data = tuple(_with_axis(view_op, size) for view_op in data)
        # Constants of elementwise operations fit any shape.
        fits = [
            own or (arg.kind is CONSTANT and kind is ELEMENTWISE)
            for arg, own in zip(args, is_batched, strict=True)
        ]
        stacks = tuple(_stacks(args, fits, size))
        return Node(kind, data, stacks, node.dtype, shape, node.device)
    if kind is VIEW:
        return _viewed(args[0], data, shape)
    if kind is REDUCE:
        name, axes = data
        return reduce(args[0], name, tuple(axis + 1 for axis in axes))
    if kind is GATHER:
        return _gathered(node, args, is_batched, shape)
    raise AssertionError(node)


def _viewed(arg: Node, view_op: ViewOp, shape: Ints) -> Node:
    if view_op.kind == "reshape":
        return reshape(arg, shape)
    if view_op.kind == "broadcast":
        missing = len(shape) - len(arg.shape)
        return broadcast(reshape(arg, (shape[0], *(1,) * missing, *arg.shape[1:])), shape)
    if view_op.kind == "permute":
        return permute(arg, (0, *(axis + 1 for axis in view_op.numbers)))
    return move(arg, _with_axis(view_op, shape[0]))


def _with_axis(view_op: ViewOp, size: int) -> ViewOp:
    """A slice with the full batch axis before the others."""
    return ViewOp("slice", (0, 1, size, *view_op.numbers))


def _gathered(node: Node, args: list[Node], is_batched: list[bool], shape: Ints) -> Node:
    base, *indices = args
    count, has_base = node.data, is_batched[0]
    if not has_base:
        stacks = tuple(_stacks(indices, is_batched[1:], shape[0]))
        return Node(GATHER, count, (base, *stacks), node.dtype, shape, node.device)
    if any(is_batched[1:]):
        stacks = tuple(_stacks(indices, is_batched[1:], shape[0]))
        numbers = iota(stacks[0].shape, 0, node.device)
        return Node(GATHER, count + 1, (base, numbers, *stacks), node.dtype, shape, node.device)
    # The indexed axes first, then the batch: the result has it after the axes of the indices.
    rank, lead = len(base.shape), len(indices[0].shape)
    moved = permute(base, (*range(1, count + 1), 0, *range(count + 1, rank)))
    result_shape = (*indices[0].shape, base.shape[0], *base.shape[count + 1 :])
    result = Node(GATHER, count, (moved, *indices), node.dtype, result_shape, node.device)
    order = (lead, *range(lead), *range(lead + 1, len(result_shape)))
    return permute(result, order)


def _stacks(nodes: Sequence[Node], is_batched: Sequence[bool], size: int) -> list[Node]:
    """All operands with the batch axis."""
    return [
        node if own else broadcast(node, (size, *node.shape))
        for node, own in zip(nodes, is_batched, strict=True)
    ]
