"""Functions that build views and concatenations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from metalloid.arrays.ir.dtypes import DType
from metalloid.arrays.ir.extents import as_extent
from metalloid.arrays.ir.layout import Ints, ViewOp
from metalloid.arrays.ir.node import SCATTER_SLICES, Node, move, permute, reshape
from metalloid.arrays.ir.operands import axes_of


def as_shape(where: str, shape: int | Sequence[int]) -> Ints:
    """Validate a shape.

    Raises
    ------
    ValueError
        For a negative extent.
    """
    extents = _as_ints(shape)
    if any(n < 0 for n in extents):
        raise ValueError(f"[{where}] a shape must not have negative extents, got {extents}.")
    return extents


def _as_ints(shape: int | Sequence[int]) -> Ints:
    try:
        return (as_extent(shape),)
    except TypeError:
        return tuple(map(as_extent, shape))  # type: ignore[arg-type]


def reshaped(node: Node, shape: int | Sequence[int], order: str = "C") -> Node:
    """Reshape; one extent may be -1.

    Parameters
    ----------
    order : "C", "A" or "F"
        Whether the last index changes fastest, or the first ("F"), in both shapes.

    Raises
    ------
    ValueError
        If the number of elements differs.
    """
    order = order.upper()
    if order == "F":
        extents = _as_ints(shape)
        result = reshaped(permute(node, _reversed(len(node.shape))), extents[::-1])
        return permute(result, _reversed(len(extents)))
    if order not in ("C", "A"):
        raise ValueError(f"[reshape] order must be 'C', 'A' or 'F', got {order!r}.")
    extents = _as_ints(shape)
    if extents.count(-1) == 1:
        known = -math.prod(extents)
        rest = node.size // known if known else 0
        extents = tuple(rest if n == -1 else n for n in extents)
    if any(n < 0 for n in extents) or math.prod(extents) != node.size:
        raise ValueError(
            f"[reshape] {node.size} elements of shape {node.shape} do not make {shape}."
        )
    return reshape(node, extents)


def _reversed(rank: int) -> Ints:
    return tuple(reversed(range(rank)))


def sliced(node: Node, numbers: Sequence[tuple[int, int, int]]) -> Node:
    """Slice by start, step and count along each axis."""
    flat = tuple(n for triple in numbers for n in triple)
    if all(
        start == 0 and step == 1 and count == n
        for (start, step, count), n in zip(numbers, node.shape, strict=True)
    ):
        return node
    return move(node, ViewOp("slice", flat))


def full_slices(shape: Ints) -> list[tuple[int, int, int]]:
    """The slice that covers a whole array."""
    return [(0, 1, n) for n in shape]


def flipped(node: Node, axes: Ints) -> Node:
    """Reverse along axes."""
    numbers = full_slices(node.shape)
    for axis in axes:
        n = node.shape[axis]
        numbers[axis] = (max(n - 1, 0), -1, n)
    return sliced(node, numbers)


def moved_axes(node: Node, source: Any, destination: Any) -> Node:
    """Move axes to other positions."""
    rank = len(node.shape)
    start, end = axes_of("moveaxis", source, rank), axes_of("moveaxis", destination, rank)
    if len(start) != len(end):
        raise ValueError(f"[moveaxis] {source} and {destination} differ in length.")
    order = [axis for axis in range(rank) if axis not in start]
    for to, axis in sorted(zip(end, start, strict=True)):
        order.insert(to, axis)
    return permute(node, tuple(order))


def joined(operands: Sequence[Node], slices: Sequence[Sequence[tuple[int, int, int]]], shape: Ints,
           dtype: DType) -> Node:  # fmt: skip
    """A new array assembled from operands; later ones overwrite earlier ones."""
    data = tuple(
        ViewOp("slice", tuple(n for triple in region for n in triple)) for region in slices
    )
    return Node(SCATTER_SLICES, data, tuple(operands), dtype, shape, operands[0].device)


def contiguous_copy(node: Node) -> Node:
    """A contiguous copy in its own memory."""
    return joined([node], [full_slices(node.shape)], node.shape, node.dtype)


def concatenated(nodes: Sequence[Node], axis: int) -> Node:
    """Concatenate along an axis."""
    extent = sum(node.shape[axis] for node in nodes)
    first = nodes[0]
    shape = (*first.shape[:axis], extent, *first.shape[axis + 1 :])
    operands, slices, start = [], [], 0
    for node in nodes:
        if node.size:
            region = full_slices(node.shape)
            region[axis] = (start, 1, node.shape[axis])
            operands.append(node)
            slices.append(region)
        start += node.shape[axis]
    if not operands:
        return reshape(first, shape)
    return joined(operands, slices, shape, first.dtype) if len(operands) > 1 else operands[0]
