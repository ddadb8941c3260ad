"""Manipulation functions of the array API: shapes, axes and concatenation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from metalloid.arrays.array import Array, as_array, as_arrays
from metalloid.arrays.interop.dlpack import unshared
from metalloid.arrays.ir import views
from metalloid.arrays.ir.dtypes import promote
from metalloid.arrays.ir.host_arrays import from_result
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.node import Node, broadcast, cast, permute
from metalloid.arrays.ir.node import reshape as reshape_node
from metalloid.arrays.ir.operands import as_number, axes_of
from metalloid.arrays.ir.views import as_shape, concatenated, flipped, moved_axes
from metalloid.arrays.lowering.indexing import gathered
from metalloid.arrays.lowering.reductions import Axis
from metalloid.kernels.strides import broadcast_shape


def reshape(x: Any, /, shape: int | Sequence[int], order: str = "C", *,
            copy: bool | None = None) -> Array:  # fmt: skip
    """Change the shape; one extent may be -1.

    Parameters
    ----------
    order : "C", "A" or "F"
        Whether the last index changes fastest, or the first ("F"), in both shapes.

    Raises
    ------
    ValueError
        If the number of elements differs.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.reshape(mtl.arange(4), (2, -1))
    array([[0, 1],
           [2, 3]], dtype=int64)
    """
    return Array(views.reshaped(as_array(x, "reshape")._node, shape, order))


def permute_dims(x: Any, /, axes: Sequence[int]) -> Array:
    """Permute the axes.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.permute_dims(mtl.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    x = as_array(x, "permute_dims")
    if len(axes) != x.ndim:
        raise ValueError(f"[permute_dims] expected {x.ndim} axes for {x.shape}, got {axes}.")
    return Array(permute(x._node, axes_of("permute_dims", axes, x.ndim)))


def transpose(x: Any, /, axes: Sequence[int] | None = None) -> Array:
    """Permute the axes; by default, reverse them.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.transpose(mtl.zeros((2, 3))).shape
    (3, 2)
    """
    x = as_array(x, "transpose")
    return x.T if axes is None else permute_dims(x, axes)


def moveaxis(x: Any, source: Any, destination: Any, /) -> Array:
    """Move axes to other positions; the remaining axes keep their order."""
    return Array(moved_axes(as_array(x, "moveaxis")._node, source, destination))


def expand_dims(x: Any, /, axis: int | Sequence[int] = 0) -> Array:
    """Insert axes of extent 1 at these positions of the result.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.expand_dims(mtl.arange(3), axis=0).shape
    (1, 3)
    """
    x = as_array(x, "expand_dims")
    new = (axis,) if isinstance(axis, int | np.integer) else tuple(axis)
    rank = x.ndim + len(new)
    if any(not -rank <= k < rank for k in new):
        raise np.exceptions.AxisError(
            f"[expand_dims] axis {axis} is out of range for a result with {rank} axes."
        )
    new_axes = axes_of("expand_dims", new, rank)
    rest = iter(x.shape)
    shape = tuple(1 if k in new_axes else next(rest) for k in range(rank))
    return Array(reshape_node(x._node, shape))


def squeeze(x: Any, /, axis: Axis = None) -> Array:
    """Remove axes of extent 1; by default, all of them."""
    return as_array(x, "squeeze").squeeze(axis)


def flip(x: Any, /, axis: Axis = None) -> Array:
    """Reverse the elements along axes, or along all axes.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.flip(mtl.arange(3))
    array([2, 1, 0], dtype=int64)
    """
    x = as_array(x, "flip")
    return Array(flipped(x._node, axes_of("flip", axis, x.ndim)))


def roll(x: Any, /, shift: int | Sequence[int], axis: Axis = None) -> Array:
    """Shift elements along axes; elements that leave at the end re-enter at the start.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.roll(mtl.arange(4), 1)
    array([3, 0, 1, 2], dtype=int64)
    """
    x = as_array(x, "roll")
    if axis is None:
        if not isinstance(shift, int | np.integer):
            raise ValueError("[roll] several shifts require as many axes.")
        flat = Array(reshape_node(x._node, (x.size,)))
        return reshape(roll(flat, shift, axis=0), x.shape)
    axes = axes_of("roll", axis, x.ndim)
    shifts = (shift,) * len(axes) if isinstance(shift, int | np.integer) else tuple(shift)
    if len(shifts) != len(axes):
        raise ValueError(f"[roll] got {len(shifts)} shifts for {len(axes)} axes.")
    node = x._node
    for k, by in zip(axes, shifts, strict=True):
        extent = node.shape[k]
        by = int(by) % extent if extent else 0
        if by:
            tail, head = views.full_slices(node.shape), views.full_slices(node.shape)
            tail[k], head[k] = (extent - by, 1, by), (0, 1, extent - by)
            node = concatenated([views.sliced(node, tail), views.sliced(node, head)], k)
    return Array(unshared(node))


def concat(arrays: Sequence[Any], /, axis: int | None = 0) -> Array:
    """Concatenate arrays along an axis, or flattened if the axis is None.

    Raises
    ------
    ValueError
        If the other extents differ.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.concat([mtl.arange(2), mtl.arange(3)])
    array([0, 1, 0, 1, 2], dtype=int64)
    """
    nodes = _alike([x._node for x in as_arrays("concat", *arrays)], "concat")
    if axis is None:
        nodes = [reshape_node(node, (node.size,)) for node in nodes]
        axis = 0
    (along,) = axes_of("concat", axis, len(nodes[0].shape))
    first = nodes[0].shape
    for node in nodes:
        if len(node.shape) != len(first) or any(
            a != b for k, (a, b) in enumerate(zip(node.shape, first, strict=True)) if k != along
        ):
            raise ValueError(
                f"[concat] the shapes {first} and {node.shape} differ outside axis {along}."
            )
    return Array(unshared(concatenated(nodes, along)))


def _alike(nodes: list[Node], where: str) -> list[Node]:
    """Convert nodes to their common type."""
    if not nodes:
        raise ValueError(f"[{where}] expected at least one array.")
    dtype = nodes[0].dtype
    for node in nodes[1:]:
        dtype = promote(dtype, node.dtype)
    return [cast(node, dtype) for node in nodes]


concatenate = concat


def stack(arrays: Sequence[Any], /, axis: int = 0) -> Array:
    """Stack arrays of one shape along a new axis."""
    arrays = as_arrays("stack", *arrays)
    if not arrays or any(x.shape != arrays[0].shape for x in arrays):
        shapes = sorted({x.shape for x in arrays})
        raise ValueError(f"[stack] expected arrays of one shape, got {shapes}.")
    return concat([expand_dims(x, axis) for x in arrays], axis=axis)


def unstack(x: Any, /, axis: int = 0) -> tuple[Array, ...]:
    """Split an array into the subarrays along an axis."""
    leading = Array(moved_axes(as_array(x, "unstack")._node, axis, 0))
    return tuple(leading[k] for k in range(leading.shape[0]))


def broadcast_to(x: Any, /, shape: int | Sequence[int]) -> Array:
    """Broadcast to a shape; nothing is copied.

    Raises
    ------
    ValueError
        If the shapes are incompatible.
    """
    x = as_array(x, "broadcast_to")
    extents = as_shape("broadcast_to", shape)
    if broadcast_shape("broadcast_to", x.shape, extents) != extents:
        raise ValueError(f"[broadcast_to] {x.shape} does not broadcast to {extents}.")
    return Array(broadcast(x._node, extents))


def broadcast_arrays(*arrays: Any) -> tuple[Array, ...]:
    """Broadcast arrays to their common shape."""
    operands = as_arrays("broadcast_arrays", *arrays)
    shape = broadcast_shape("broadcast_arrays", *(x.shape for x in operands))
    return tuple(Array(broadcast(x._node, shape)) for x in operands)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that shapes broadcast to.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return broadcast_shape("broadcast_shapes", *map(tuple, shapes))


def tile(x: Any, repetitions: int | Sequence[int], /) -> Array:
    """Repeat the whole array along each axis."""
    x = as_array(x, "tile")
    times = (repetitions,) if isinstance(repetitions, int) else tuple(repetitions)
    if min(times, default=0) < 0:
        raise ValueError(f"[tile] repetitions must not be negative, got {repetitions}.")
    rank = max(len(times), x.ndim)
    shape = (1,) * (rank - x.ndim) + x.shape
    times = (1,) * (rank - len(times)) + times
    own = tuple(n for pair in zip((1,) * rank, shape, strict=True) for n in pair)
    wide = tuple(n for pair in zip(times, shape, strict=True) for n in pair)
    result = tuple(t * n for t, n in zip(times, shape, strict=True))
    return _repeated(x, own, wide, result)


#: Copies of each element that a thread of a few cores writes, instead of a gather for each of them.
_MAX_JOINED = 8


def _repeated(x: Array, own: Ints, wide: Ints, shape: Ints) -> Array:
    """Reshape, broadcast, and reshape to the result."""
    node = reshape_node(broadcast(reshape_node(x._node, own), wide), shape)
    return Array(unshared(node))


def repeat(x: Any, repeats: Any, /, axis: int | None = None) -> Array:
    """Repeat every element; `repeats` is one count or an array of counts.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.repeat(mtl.asarray([1, 2]), 2)
    array([1, 1, 2, 2], dtype=int64)
    """
    x = as_array(x, "repeat")
    if axis is None:
        x, axis = Array(reshape_node(x._node, (x.size,))), 0
    (along,) = axes_of("repeat", axis, x.ndim)
    if isinstance(repeats, int | np.integer):
        if repeats < 0:
            raise ValueError(f"[repeat] a count must not be negative, got {repeats}.")
        own = (*x.shape[: along + 1], 1, *x.shape[along + 1 :])
        wide = (*x.shape[: along + 1], int(repeats), *x.shape[along + 1 :])
        result = (*x.shape[:along], x.shape[along] * int(repeats), *x.shape[along + 1 :])
        is_innermost = all(n == 1 for n in x.shape[along + 1 :])
        if is_innermost and 1 < repeats <= _MAX_JOINED and not x.device.traits.is_simt:
            node = reshape_node(x._node, (*x.shape[: along + 1], 1))
            return Array(reshape_node(concatenated([node] * int(repeats), along + 1), result))
        return _repeated(x, own, wide, result)
    counts = np.broadcast_to(np.asarray(repeats), (x.shape[along],))
    indices = from_result(np.repeat(np.arange(x.shape[along]), counts), x.device)
    repeated = gathered(x._node, [along], [indices])
    return Array(moved_axes(repeated, 0, along))


def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Array:
    """Pad an array.

    Parameters
    ----------
    pad_width : int, pair or sequence of pairs
        Elements before and after, along each axis.
    mode : "constant" or "edge"

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.pad(mtl.arange(3), 1)
    array([0, 0, 1, 2, 0], dtype=int64)
    """
    x = as_array(x, "pad")
    widths = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2)).tolist()
    shape = tuple(n + low + high for n, (low, high) in zip(x.shape, widths, strict=True))
    if mode == "edge":
        node = x._node
        for axis, (low, high) in enumerate(widths):
            indices = np.clip(np.arange(-low, node.shape[axis] + high), 0, node.shape[axis] - 1)
            index = from_result(indices, x.device)
            node = moved_axes(gathered(node, [axis], [index]), 0, axis)
        return Array(node)
    if mode != "constant":
        raise ValueError(f"[pad] mode must be 'constant' or 'edge', got {mode!r}.")
    border = broadcast(as_number(constant_values, x.dtype, x.device), shape)
    inside = [(low, 1, n) for n, (low, _) in zip(x.shape, widths, strict=True)]
    return Array(
        views.joined([border, x._node], [views.full_slices(shape), inside], shape, x.dtype)
    )
