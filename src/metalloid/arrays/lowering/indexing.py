"""Lower indexing: slices become views, index arrays gathers, and masks index arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from metalloid.arrays.execution.calls import read_array, to_host
from metalloid.arrays.execution.evaluate import evaluate
from metalloid.arrays.ir.dtypes import int64, kind_of, uint64
from metalloid.arrays.ir.extents import as_extent, slice_numbers
from metalloid.arrays.ir.host_arrays import from_numpy, from_result
from metalloid.arrays.ir.index_checks import (
    IndexCheck,
    checked,
    out_of_range,
    read_indices,
    users_line,
)
from metalloid.arrays.ir.layout import Ints, reach
from metalloid.arrays.ir.node import (
    ABSTRACT,
    GATHER,
    IOTA,
    TRACED,
    Node,
    broadcast,
    cast,
    iota,
    permute,
    reshape,
)
from metalloid.arrays.ir.operands import as_number, binary, op, to_node, where_node
from metalloid.arrays.ir.primitives import bind
from metalloid.arrays.ir.views import sliced
from metalloid.arrays.lowering import host_compaction
from metalloid.arrays.lowering.compaction import (
    MSL_BITS,
    counts_of_true,
    elements_at_true,
    indices_of_true,
)
from metalloid.arrays.lowering.sort_dispatch import cores
from metalloid.kernels.operands import MAX_ELEMENTS
from metalloid.kernels.strides import broadcast_shape

#: The elements of larger arrays at a mask are copied by several threads, if there are.
_SMALL_FOR_THREADS = 2**16


class Selection:
    """A parsed index: a slice of every axis, new axes, and index arrays for some axes.

    Attributes
    ----------
    slices : list of (start, step, count)
        One for each axis.
    shape : list of int
        Extents after slicing, with new axes, without the axes indexed by an integer.
    arrays : list of (int, Node)
        Axis of `shape`, and the indices along it.
    mask : Node or None
        A mask of the array's whole shape.
    items : tuple
        The index, with arrays replaced by nodes.
    """

    def __init__(self, node: Node, key: Any) -> None:
        self.slices: list[tuple[int, int, int]] = []
        self.shape: list[int] = []
        self.arrays: list[tuple[int, Node]] = []
        self.mask: Node | None = None
        items = key if isinstance(key, tuple) else (key,)
        self._given: dict[Node, np.ndarray] = {}  # arrays of the host
        items = tuple(self._plain_item(item, node) for item in items)
        if len(items) == 1 and is_mask(items[0]) and items[0].shape == node.shape:
            self.mask = items[0]
        self.items = items
        self._read(node, items)

    @property
    def is_separated(self) -> bool:
        """Whether a slice or new axis separates index arrays; integers count as index arrays.

        NumPy then moves the axes of the indices to the front.
        """
        kinds = [isinstance(item, int | Node) for item in self.items]
        return False in kinds[kinds.index(True) : len(kinds) - kinds[::-1].index(True)]

    def _read(self, node: Node, items: tuple[Any, ...]) -> None:
        used = sum(_axes_used(item) for item in items)
        rank = len(node.shape)
        if used > rank:
            raise IndexError(f"[index] too many indices: got {used} for an array with {rank} axes.")
        if items.count(Ellipsis) > 1:
            raise IndexError("[index] more than one ellipsis.")
        if Ellipsis not in items:
            items = (*items, Ellipsis)
        for item in items:
            axis = len(self.slices)
            if item is Ellipsis:
                for extent in node.shape[axis : axis + rank - used]:
                    self._add_slice((0, 1, extent))
            elif item is None:
                self.shape.append(1)
            elif isinstance(item, slice):
                self._add_slice(slice_numbers(item, node.shape[axis]))
            elif isinstance(item, Node):
                self._array(item, node)
            else:
                self.slices.append((_in_range(item, node.shape[axis], axis), 1, 1))

    def _add_slice(self, numbers: tuple[int, int, int]) -> None:
        if numbers[2] <= 1:  # the step is irrelevant
            numbers = (numbers[0] if numbers[2] else 0, 1, numbers[2])
        self.slices.append(numbers)
        self.shape.append(numbers[2])

    def _array(self, item: Node, node: Node) -> None:
        axis = len(self.slices)
        if kind_of(item.dtype) == "b":
            extents = node.shape[axis : axis + len(item.shape)]
            # An extent of 0 matches any: according to the standard, nothing is selected.
            if len(item.shape) != len(extents) or any(
                n not in (0, own) for n, own in zip(item.shape, extents, strict=True)
            ):
                raise IndexError(
                    f"[index] a mask of shape {item.shape} does not match axes of {extents}."
                )
            if not item.shape:  # a scalar mask is a new axis of extent 0 or 1
                (item,) = evaluate([item])
                chosen = np.zeros(int(to_host(item)), np.int64)
                self.arrays.append((len(self.shape), from_numpy(chosen, item.device)))
                self.shape.append(1)
                return
            indices: tuple[Node, ...] = nonzero_indices(item)
        else:
            indices = (checked_index(item, node.shape[axis], axis, self._given.get(item)),)
        for index in indices:
            self.arrays.append((len(self.shape), index))
            self._add_slice((0, 1, node.shape[len(self.slices)]))

    def _plain_item(self, item: Any, node: Node) -> Any:
        """Convert an item of an index to None, Ellipsis, slice, int or Node."""
        if item is None or item is Ellipsis or isinstance(item, slice):
            return item
        if isinstance(item, bool | np.bool_):
            return to_node(np.asarray(item), "index", device=node.device)
        own = getattr(item, "_node", None)
        if own is None:
            try:
                return as_extent(item)
            except TypeError:
                own = to_node(item, "index", device=node.device)
                if isinstance(item, list) and not own.size:  # of no type
                    item = np.zeros(own.shape, np.int64)
                    own = to_node(item, "index", device=node.device)
                if isinstance(item, list | np.ndarray):
                    self._given[own] = np.asarray(item, own.dtype)
        if kind_of(own.dtype) not in "biu":
            raise IndexError(f"[index] expected integers or masks, got {own.dtype}.")
        if own.shape == () and kind_of(own.dtype) != "b" and not own.flags & ABSTRACT:
            (own,) = evaluate([own])
            return int(to_host(own))
        return own


def is_mask(item: Any) -> bool:
    """Whether an item of an index is an array of booleans."""
    return isinstance(item, Node) and kind_of(item.dtype) == "b"


def _axes_used(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    return len(item.shape) if is_mask(item) else 1


def _in_range(index: int, extent: int, axis: int) -> int:
    if not -extent <= index < extent:
        raise out_of_range(index, extent, axis)
    return index % extent


def checked_index(index: Node, extent: int, axis: int, values: np.ndarray | None = None) -> Node:
    """Return non-negative int64 indices.

    They are validated here, so that no kernel reads out of bounds. Those that have no value yet or
    are on a device of its own memory are validated when they are evaluated, unless the host has the
    `values`.

    Raises
    ------
    IndexError
    """
    if not index.size:
        return cast(index, int64)
    is_known = values is not None or index.kind is IOTA or index.device.memory != "own"
    if index.flags & ABSTRACT or not is_known:
        if index.dtype == uint64:  # the largest ones are no int64
            index = binary(op("minimum"), Operand(index), 2**63 - 1)
        return checked(cast(index, int64), IndexCheck(extent, axis, users_line()))
    low, high = _limits(index, extent, values)
    if low < -extent or high >= extent:
        wrong = low if low < -extent else high
        raise out_of_range(wrong, extent, axis)
    wide = cast(index, int64)
    if read_indices.nodes is not None and index.kind is not IOTA:
        read_indices.nodes.append((index, extent if low >= 0 else -1))
    return wide if low >= 0 else _wrapped(wide, extent)


def are_in_range(index: Node, extent: int) -> bool | None:
    """Whether no index is negative or too large; None if a device has them, or has none yet."""
    if index.flags & ABSTRACT or index.device.memory == "own" or not index.size:
        return None
    low, high = _limits(index, extent, None)
    if read_indices.nodes is not None and index.kind is not IOTA:
        read_indices.nodes.append((index, extent if low >= 0 and high < extent else -1))
    return low >= 0 and high < extent


def _wrapped(index: Node, extent: int) -> Node:
    """Indices in which negative ones count from the end."""
    number = as_number(extent, int64, index.device)
    is_negative = binary(op("less"), Operand(index), 0)
    shifted = binary(op("add"), Operand(index), Operand(number))
    return where_node(Operand(is_negative), Operand(shifted), Operand(index))


def _limits(index: Node, extent: int, values: np.ndarray | None) -> tuple[int, int]:
    """Return the extremes of indices; only bounds of them if all are in ``[0, extent)``."""
    if index.kind is IOTA:
        return reach(index.layout)
    values = _values(index) if values is None else values
    # Fast path for valid indices: as unsigned integers, negative ones are large.
    top = int(values.view(f"u{values.itemsize}").max())
    if top < extent:
        return 0, top
    return int(values.min()), int(values.max())


class Operand:
    """Wraps a node as an operand of `binary` and `where_node`."""

    def __init__(self, node: Node) -> None:
        self._node = node


def nonzero_indices(mask: Node) -> tuple[Node, ...]:
    """Return the indices of true elements, one array per axis. The mask is evaluated."""
    if mask.device.memory == "own" and mask.shape and 0 < mask.size <= MAX_ELEMENTS:
        return _nonzero_by_kernels(mask)
    values = _values(mask)
    if len(mask.shape) == 1:
        return (host_compaction.indices_of_true(values, mask.device),)
    return tuple(from_result(index, mask.device) for index in np.nonzero(values))


def _values(node: Node) -> np.ndarray:
    """The values of a node, which is evaluated."""
    (leaf,) = evaluate([node])
    values = read_array()(leaf)
    return to_host(leaf) if values is None else values


def _nonzero_by_kernels(mask: Node) -> tuple[Node, ...]:
    """The same by kernels; the host reads the number of true elements alone."""
    vector, ends, count = _counted_mask(mask)
    if not count:
        return (from_numpy(np.zeros(0, np.int64), mask.device),) * len(mask.shape)
    rest = indices_of_true(vector, ends, count)
    indices = []
    for extent in mask.shape[:0:-1]:
        number = Operand(as_number(extent, int64, mask.device))
        indices.append(binary(op("remainder"), Operand(rest), number))
        rest = binary(op("floor_divide"), Operand(rest), number)
    return (rest, *reversed(indices))


def _counted_mask(mask: Node) -> tuple[Node, Node, int]:
    """A mask as a vector, its true elements up to the end of each chunk, and their number."""
    vector = reshape(mask, (mask.size,))
    counts = counts_of_true(vector)
    (ends,) = bind("scan", [counts], ("cumulative_sum", 0), (counts.dtype, counts.shape))
    vector, ends = evaluate([vector, ends])
    return vector, ends, int(to_host(sliced(ends, [(ends.size - 1, 1, 1)]))[0])


def _is_plain_mask(node: Node, key: Any) -> bool:
    """Whether an index is a mask of all elements, on whose values nothing else depends."""
    mask = getattr(key, "_node", None)
    if mask is None or not is_mask(mask) or mask.shape != node.shape or not node.shape:
        return False
    return not (node.flags | mask.flags) & (ABSTRACT | TRACED) and mask.device is node.device


def _is_compacted(node: Node) -> bool:
    """Whether kernels write the elements at a mask one after another.

    Where derivatives or symbolic extents depend on them, they are gathered.
    """
    is_simple = node.dtype.itemsize in MSL_BITS
    return is_simple and 0 < node.size <= MAX_ELEMENTS and node.device.memory == "own"


def _is_by_host(node: Node) -> bool:
    """Whether the host copies elements at a mask, which takes a thread less time than a gather."""
    is_small = cores(node.device) == 1 or node.size <= _SMALL_FOR_THREADS
    return is_small and node.device.memory != "own"


def _compacted(node: Node, mask: Node) -> Node:
    vector, ends, count = _counted_mask(mask)
    values = reshape(node, (node.size,))
    return elements_at_true(values, vector, ends, count) if count else sliced(values, [(0, 1, 0)])


def selected(node: Node, key: Any) -> Node:
    """Return the elements at an index."""
    item = key[0] if isinstance(key, tuple) and len(key) == 1 else key
    if _is_plain_mask(node, item):
        if _is_compacted(node):
            return _compacted(node, item._node)
        if _is_by_host(node):
            values, flags = (_values(x).reshape(-1) for x in (node, item._node))
            return host_compaction.elements_at_true(values, flags, node.device)
    selection = Selection(node, key)
    base = reshape(sliced(node, selection.slices), tuple(selection.shape))
    if not selection.arrays:
        return base
    axes = [axis for axis, _ in selection.arrays]
    indices = [index for _, index in selection.arrays]
    result = gathered(base, axes, indices)
    return permute(result, order_of_axes(selection, base, len(result.shape)))


def order_of_axes(selection: Selection, base: Node, rank: int) -> Ints:
    """Where the axes of the result are in that of a gather, which has those of the indices first.

    NumPy keeps the axes of adjacent index arrays at their position.
    """
    first = selection.arrays[0][0]
    if not first or selection.is_separated:
        return tuple(range(rank))
    lead = rank - (len(base.shape) - len(selection.arrays))
    rest = range(lead, rank)
    return (*rest[:first], *range(lead), *rest[first:])


def indices_along(indices: Node, axis: int) -> list[Node]:
    """One array of indices for each axis."""
    axes = range(len(indices.shape))
    return [indices if k == axis else iota(indices.shape, k, indices.device) for k in axes]


def gathered(node: Node, axes: list[int], indices: list[Node]) -> Node:
    """Gather elements at indices along some axes; the indices' axes come first in the result."""
    shape = broadcast_shape("index", *(index.shape for index in indices))
    indices = [broadcast(index, shape) for index in indices]
    rest = [axis for axis in range(len(node.shape)) if axis not in axes]
    base = permute(node, (*axes, *rest))
    result = (*shape, *(node.shape[axis] for axis in rest))
    return Node(GATHER, len(axes), (base, *indices), node.dtype, result, node.device)
