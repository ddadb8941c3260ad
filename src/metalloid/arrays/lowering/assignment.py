"""Lower assignments: copies of arrays with some elements replaced, and writes in place."""

from __future__ import annotations

import math
from typing import Any

from metalloid.arrays.execution.calls import to_host
from metalloid.arrays.execution.evaluate import evaluate
from metalloid.arrays.interop.dlpack import unshared
from metalloid.arrays.ir.dtypes import int64
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.node import ABSTRACT, TRACED, Node, broadcast, cast, permute, reshape
from metalloid.arrays.ir.operands import as_number, binary, converted, op, to_node, where_node
from metalloid.arrays.ir.primitives import bind
from metalloid.arrays.ir.views import full_slices, joined, sliced
from metalloid.arrays.lowering.indexing import (
    Operand,
    Selection,
    checked_index,
    gathered,
    is_mask,
    order_of_axes,
)
from metalloid.kernels.strides import broadcast_shape


def updated(node: Node, key: Any, value: Any, function: str = "set") -> Node:
    """Return a copy of an array with some elements replaced.

    Parameters
    ----------
    function : str
        ``"set"``, or the binary operation that combines the old element and `value`.
    """
    new = to_node(value, "setitem", device=node.device) if not _is_number(value) else as_number(
        value, node.dtype, node.device)  # fmt: skip
    new = converted(new, node.dtype)
    mask = getattr(key, "_node", None)
    if mask is not None and mask.flags & ABSTRACT and is_mask(mask) and mask.shape == node.shape:
        return _masked(node, mask, new, function)
    if function != "set":
        op(function).dtype(node.dtype)
    selection = Selection(node, key)
    if selection.mask is not None and new.shape == ():
        changed = new if function == "set" else binary(op(function), Operand(node), Operand(new))
        return where_node(Operand(selection.mask), Operand(changed), Operand(node))
    if selection.arrays:
        return _scatter_at(node, selection, new, function)
    shape = tuple(selection.shape)
    if function != "set":
        old = reshape(sliced(node, selection.slices), shape)
        new = binary(op(function), Operand(old), Operand(new))
    new = fitting(new, shape)
    region = tuple(count for _, _, count in selection.slices)
    if math.prod(region) == 0:
        return unshared(node)
    if selection.slices == full_slices(node.shape):
        return reshape(new, region)
    slices = [full_slices(node.shape), selection.slices]
    return joined([node, reshape(new, region)], slices, node.shape, node.dtype)


def _masked(node: Node, mask: Node, new: Node, function: str) -> Node:
    """A copy with new elements at a mask without a value, in order."""
    if new.shape not in ((), (1,)):
        size = (math.prod(node.shape),)
        number = cast(reshape(mask, size), int64)
        (count,) = bind("scan", [number], ("cumulative_sum", 0), (int64, size))
        order = binary(op("subtract"), Operand(count), 1)
        at = [checked_index(reshape(order, node.shape), new.shape[0], 0)]
        new = gathered(new, [0], at)
    if function != "set":
        new = binary(op(function), Operand(node), Operand(new))
    return where_node(Operand(mask), Operand(new), Operand(node))


def written(node: Node, key: Any, value: Any) -> bool:
    """Write elements in place, if the index is a basic slice; return whether it was.

    The caller owns the memory exclusively. Filling an array piecewise then takes linear time.
    """
    if node.device.memory == "own":
        return False
    selection = Selection(node, key)
    if selection.arrays or selection.mask is not None:
        return False
    new = as_number(value, node.dtype, node.device) if _is_number(value) else to_node(
        value, "setitem", device=node.device)  # fmt: skip
    new = fitting(converted(new, node.dtype), tuple(selection.shape))
    if new.flags & TRACED:
        return False
    (new,) = evaluate([new])
    region = sliced(node, selection.slices)
    shape = tuple(count for _, _, count in selection.slices)
    to_host(region)[...] = to_host(new).reshape(shape)
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | complex)


def fitting(new: Node, shape: Ints) -> Node:
    """A new value, broadcast to the shape of the elements that it replaces."""
    while len(new.shape) > len(shape) and new.shape[0] == 1:
        new = reshape(new, new.shape[1:])
    if broadcast_shape("setitem", new.shape, shape) != shape:
        raise ValueError(f"[setitem] a value of shape {new.shape} does not broadcast to {shape}.")
    return broadcast(new, shape)


def _scatter_at(node: Node, selection: Selection, new: Node, function: str) -> Node:
    """A copy with new elements at index arrays, within slices of the other axes."""
    region = tuple(count for _, _, count in selection.slices)
    base = reshape(sliced(node, selection.slices), tuple(selection.shape))
    axes = [axis for axis, _ in selection.arrays]
    lead = broadcast_shape("index", *(index.shape for _, index in selection.arrays))
    indices = [broadcast(index, lead) for _, index in selection.arrays]
    rest = [axis for axis in range(len(base.shape)) if axis not in axes]
    shape = (*lead, *(base.shape[axis] for axis in rest))
    order = order_of_axes(selection, base, len(shape))
    new = fitting(new, tuple(shape[axis] for axis in order))
    new = permute(new, tuple(order.index(k) for k in range(len(order))))
    moved = permute(base, (*axes, *rest))
    # The operands: an array, new elements, and indices along its first axes, valid and of one
    # shape. The parameter: "set", or the binary operation that combines old and new elements.
    (result,) = bind("scatter", [moved, new, *indices], (function,), (node.dtype, moved.shape))
    back = tuple([*axes, *rest].index(k) for k in range(len(base.shape)))
    result = reshape(permute(result, back), region)
    if region == node.shape and selection.slices == full_slices(node.shape):
        return result
    return joined([node, result], [full_slices(node.shape), selection.slices], node.shape,
                  node.dtype)  # fmt: skip
