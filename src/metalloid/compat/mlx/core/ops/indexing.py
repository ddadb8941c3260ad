"""Indexing: elements, slices, gathers and scatters, and other views of memory."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import metalloid as mtl
from metalloid.compat.mlx.core.array import array, number_type, operand, wrap
from metalloid.compat.mlx.core.dtypes import dtype_of, promoted
from metalloid.compat.mlx.core.ops.shapes import converted, text
from metalloid.compat.mlx.core.ops.wrapping import arrays_only, normalized_axis, with_stream
from metalloid.compat.mlx.core.tape import OPERATIONS, current

__all__ = [
    "ArrayAt", "put_along_axis", "slice", "slice_update", "take", "take_along_axis",
]  # fmt: skip

_slice = builtins.slice
#: References to the array that a wrapper holds while it is indexed, if it is the only owner.
_SOLE_REFERENCES = 3


def _key(key: Any, ndim: int, takes_masks: bool = False) -> Any:
    """A key for metalloid's arrays.

    Raises
    ------
    ValueError
        If MLX has no such index.
    """
    items = key if isinstance(key, tuple) else (key,)
    results, used = [], 0
    for item in items:
        value = _key_item(item, takes_masks)
        if value is not None and value is not Ellipsis:
            used += value.ndim if _is_mask(value) else 1
        results.append(value)
    if sum(item is Ellipsis for item in results) > 1:
        raise ValueError("An index can only have a single ellipsis (...)")
    if used > ndim:
        raise ValueError(
            "too many indices for array: array is 0-dimensional"
            if not ndim
            else f"Too many indices for array with {ndim} dimensions."
        )
    return tuple(results)


def _is_mask(value: Any) -> bool:
    return isinstance(value, mtl.Array) and value.dtype.kind == "b"


def _key_item(item: Any, takes_masks: bool) -> Any:
    if item is None or item is Ellipsis:
        return item
    if isinstance(item, _slice):
        return _slice(*(_bound(v) for v in (item.start, item.stop, item.step)))
    if isinstance(item, list):
        item = array(item) if item else array([], dtype_of(np.dtype(np.int32)))
    if isinstance(item, array | np.ndarray):
        index = operand(item)
        if index.dtype.kind == "b" and not takes_masks:
            raise ValueError("boolean indices are not yet supported")
        if index.dtype.kind not in "biu":
            raise ValueError("[gather] Got indices with invalid dtype. Indices must be integral.")
        return index
    if isinstance(item, bool | np.bool_):
        if takes_masks:
            return mtl.asarray(bool(item))
        raise ValueError("boolean indices are not yet supported")
    if isinstance(item, int | np.integer) or hasattr(item, "__index__"):
        return _bound(item)
    raise ValueError("Cannot index mlx array using the given type.")


def _bound(value: Any) -> int | None:
    if value is None:
        return None
    try:
        number = value.__index__()
    except (AttributeError, TypeError):
        raise ValueError("Slice indices must be integers or None.") from None
    if not -(2**31) <= number < 2**31:
        raise ValueError("Slice indices must be 32-bit integers.")
    return int(number)


def get_item(self: array, key: Any) -> array:
    """``x[key]``."""
    if current.tape is not None:
        result: array = current.tape.call("indexing:get_item", _selected, (self, key), {})
        return result
    return _selected(self, key)


def _selected(self: array, key: Any) -> array:
    return wrap(self._a[_key(key, self._a.ndim)])


def set_item(self: array, key: Any, value: Any) -> None:
    """``x[key] = value``."""
    tape = current.tape
    if tape is None:
        _assign(self, key, value)
        return
    self._a = tape.call("indexing:with_item", with_item, (self, key, value), {})._a


def with_item(a: array, key: Any, value: Any) -> array:
    """The array with other elements at an index."""
    result = wrap(a._a)
    _assign(result, key, value)
    return result


def updated_at(a: array, key: Any, method: str, value: Any) -> array:
    """``a.at[key].method(value)``."""
    selected: Any = ArrayAt(a)[key]
    updated: array = getattr(selected, method)(value)
    return updated


OPERATIONS["indexing:get_item"] = _selected
OPERATIONS["indexing:with_item"] = with_item
OPERATIONS["indexing:updated_at"] = updated_at


def _assign(self: array, key: Any, value: Any) -> None:
    a = self._a
    index = _key(key, a.ndim, takes_masks=True)
    if isinstance(value, array | np.ndarray) or hasattr(value, "__mlx_array__"):
        update: Any = converted(operand(value), dtype_of(a.dtype))
    elif isinstance(value, bool | int | float | complex | np.generic):
        own = dtype_of(a.dtype)
        kind = value.item() if isinstance(value, np.generic) else value
        update = converted(operand(kind, promoted(number_type(kind, own), own)), own)
    else:
        update = converted(operand(array(value)), dtype_of(a.dtype))
    if any(map(_is_mask, index)):
        self._a = _masked(a, index, update)
        return
    update = _fitting(a, index, update)
    try:
        if sys.getrefcount(self._a) <= _SOLE_REFERENCES:
            a[index] = update  # in place, if nothing else uses the memory
        else:
            self._a = a.at[index].set(update)
    except IndexError as error:
        raise IndexOutOfRange(str(error)) from None


class IndexOutOfRange(IndexError, ValueError):
    """An index of an assignment is out of range: MLX raises ValueError for shapes that differ."""


def _fitting(a: mtl.Array, index: Any, update: mtl.Array) -> mtl.Array:
    """The update without leading axes of extent 1 that the indexed elements lack."""
    if not update.ndim:
        return update
    leading = 0
    while leading < update.ndim - 1 and update.shape[leading] == 1:
        leading += 1
    if not leading:
        return update
    return update.reshape(update.shape[leading:])


def _masked(a: mtl.Array, index: tuple[Any, ...], update: mtl.Array) -> mtl.Array:
    """Assignment where a mask is true."""
    masks = [item for item in index if item is not Ellipsis]
    if len(masks) == 1 and index[0] is masks[0] and _is_mask(masks[0]):
        mask = masks[0]
        if mask.ndim > a.ndim or mask.shape != a.shape[: mask.ndim]:
            raise ValueError(
                f"[scatter] The mask {text(mask.shape)} does not match the array {text(a.shape)}."
            )
        wide = mask.reshape((*mask.shape, *(1,) * (a.ndim - mask.ndim)))
        tail = a.ndim - mask.ndim
        while update.ndim > tail and update.shape[0] == 1:
            update = update.reshape(update.shape[1:])
        if update.ndim <= tail:
            return mtl.where(wide, update, a)
        # The k-th true element of the mask gets the k-th row of the update.
        rows = mtl.cumulative_sum(mask.reshape(-1).astype(mtl.int32)) - 1
        rows = mtl.clip(rows, 0, update.shape[0] - 1).reshape(mask.shape)
        return mtl.where(wide, update[rows], a)
    return a.at[index].set(update)


class ArrayAt:
    """The value of ``x.at``; indexing it selects elements that its methods update in a copy."""

    def __init__(self, values: array) -> None:
        self._values, self._index, self._given = values, None, None

    def __getitem__(self, indices: Any) -> ArrayAt:
        selected = ArrayAt(self._values)
        selected._index = _key(indices, self._values.ndim)
        selected._given = indices
        return selected

    def _updated(self, method: str, value: Any) -> array:
        if self._index is None:
            raise ValueError("Must give indices to array.at (e.g. `x.at[0].add(4)`).")
        tape = current.tape
        if tape is not None and not tape.is_inside:
            own = {"max": "maximum", "min": "minimum"}.get(method, method)
            given = self._values, self._given, own, value
            recorded: array = tape.call("indexing:updated_at", updated_at, given, {})
            return recorded
        a = self._values._a
        update = converted(operand(value, dtype_of(a.dtype)), dtype_of(a.dtype))
        update = _fitting(a, self._index, update)
        if method == "divide":
            method, update = "multiply", 1 / update
        return wrap(getattr(a.at[self._index], method)(update))

    def add(self, value: Any) -> array:
        """Add a value, repeatedly for repeated indices."""
        return self._updated("add", value)

    def subtract(self, value: Any) -> array:
        """Subtract a value, repeatedly for repeated indices."""
        return self._updated("subtract", value)

    def multiply(self, value: Any) -> array:
        """Multiply by a value, repeatedly for repeated indices."""
        return self._updated("multiply", value)

    def divide(self, value: Any) -> array:
        """Divide by a value, repeatedly for repeated indices."""
        return self._updated("divide", value)

    def maximum(self, value: Any) -> array:
        """Replace elements by their maximum with a value."""
        return self._updated("max", value)

    def minimum(self, value: Any) -> array:
        """Replace elements by their minimum with a value."""
        return self._updated("min", value)


# -- functions


def _integral(indices: Any, where: str) -> mtl.Array:
    index = operand(indices)
    if not index.size:
        return index.astype(mtl.int32)
    if index.dtype.kind not in "biu":
        raise ValueError(f"[{where}] Got indices with invalid dtype. Indices must be integral.")
    return index.astype(mtl.uint8) if index.dtype.kind == "b" else index


@with_stream
@arrays_only
def take(a: array, /, indices: Any, axis: int | None = None) -> array:
    """Elements at indices along an axis, or of the flattened array."""
    x = a._a
    if axis is None:
        x, axis = x.reshape(-1), 0
    k = normalized_axis(axis, x.ndim, "take")
    index = _integral(indices, "take")
    if x.shape[k] == 0 and index.size:
        raise ValueError("[take] Cannot do a non-empty take from an array with zero elements.")
    return wrap(x[(*(_slice(None),) * k, index)])


@with_stream
@arrays_only
def take_along_axis(a: array, /, indices: Any, axis: int | None = -1) -> array:
    """Elements at indices of the same number of axes."""
    x, index = a._a, _integral(indices, "take_along_axis")
    if axis is None:
        return wrap(x.reshape(-1)[index.reshape(-1)])
    k = normalized_axis(axis, x.ndim, "take_along_axis")
    if index.ndim != x.ndim:
        raise ValueError(
            f"[take_along_axis] Indices of dimension {index.ndim} does not match array of "
            f"dimension {x.ndim}."
        )
    return wrap(mtl.take_along_axis(*_along(x, index, k), axis=k))


def _along(x: mtl.Array, index: mtl.Array, axis: int) -> tuple[mtl.Array, mtl.Array]:
    """Array and indices of one shape on the other axes."""
    others = tuple(
        builtins.max(n, m) if k != axis and n != 0 != m else n
        for k, (n, m) in enumerate(zip(x.shape, index.shape, strict=True))
    )
    wide = (*others[:axis], x.shape[axis], *others[axis + 1 :])
    long = (*others[:axis], index.shape[axis], *others[axis + 1 :])
    return mtl.broadcast_to(x, wide), mtl.broadcast_to(index, long)


@with_stream
@arrays_only
def put_along_axis(a: array, /, indices: Any, values: Any, axis: int | None = None) -> array:
    """The array with values at indices of the same number of axes."""
    x, index = a._a, _integral(indices, "put_along_axis")
    update = converted(operand(values, dtype_of(x.dtype)), dtype_of(x.dtype))
    if axis is None:
        flat = (
            x.reshape(-1).at[index.reshape(-1)].set(update.reshape(-1) if update.ndim else update)
        )
        return wrap(flat.reshape(x.shape))
    k = normalized_axis(axis, x.ndim, "put_along_axis")
    if index.ndim != x.ndim:
        raise ValueError(
            f"[put_along_axis] Indices of dimension {index.ndim} does not match array of "
            f"dimension {x.ndim}."
        )
    _, index = _along(x, index, k)
    grid = [
        mtl.arange(n, dtype=mtl.int32).reshape([-1 if j == i else 1 for j in range(x.ndim)])
        for i, n in enumerate(index.shape)
    ]
    grid[k] = index
    return wrap(x.at[tuple(grid)].set(mtl.broadcast_to(update, index.shape)))


def _positions(start: Any, axes: Sequence[int], ndim: int, where: str) -> list[int]:
    index = operand(start)
    if index.dtype.kind not in "iu":
        raise ValueError(f"[{where}] Start indices must be integers.")
    if index.size != len(axes):
        raise ValueError(
            f"[{where}] Expected one start index for each axis but got {index.size} indices and "
            f"{len(axes)} axes."
        )
    positions = [normalized_axis(axis, ndim, where) for axis in axes]
    if len(set(positions)) < len(positions):
        raise ValueError(f"[{where}] Received duplicate axes.")
    return positions


def _windows(start: Any, positions: list[int], sizes: Sequence[int],
             extents: Sequence[int]) -> list[mtl.Array]:  # fmt: skip
    """Indices of a window along axes; its start is clamped so that it fits."""
    starts = operand(start).reshape(-1)
    count = len(positions)
    windows = []
    for k, (size, extent) in enumerate(zip(sizes, extents, strict=True)):
        first = mtl.clip(starts[k].astype(mtl.int32), 0, extent - size)
        index = first + mtl.arange(size, dtype=mtl.int32)
        windows.append(index.reshape([-1 if j == k else 1 for j in range(count)]))
    return windows


@with_stream
@arrays_only
def slice(a: array, start_indices: Any, axes: Sequence[int], slice_size: Sequence[int]) -> array:
    """A window of an array, whose start is an array."""
    x = a._a
    positions = _positions(start_indices, axes, x.ndim, "slice")
    if len(slice_size) != x.ndim:
        raise ValueError("[slice] slice_size must have one extent for each axis of the array.")
    if any(n > m or n < 0 for n, m in zip(slice_size, x.shape, strict=True)):
        raise ValueError(f"[slice] Invalid slice_size {slice_size} for shape {text(x.shape)}.")
    for k, n in enumerate(slice_size):
        if k not in positions:
            x = x[(*(_slice(None),) * k, _slice(0, n))]
    sizes = [slice_size[k] for k in positions]
    others = [k for k in range(x.ndim) if k not in positions]
    moved = mtl.permute_dims(x, (*positions, *others))
    windows = _windows(start_indices, positions, sizes, [x.shape[k] for k in positions])
    result = moved[tuple(windows)] if windows else moved
    return wrap(mtl.permute_dims(result, _inverse([*positions, *others])))


@with_stream
@arrays_only
def slice_update(a: array, update: Any, start_indices: Any, axes: Sequence[int]) -> array:
    """The array with a window replaced, whose start is an array."""
    x = a._a
    positions = _positions(start_indices, axes, x.ndim, "slice_update")
    value = converted(operand(update), dtype_of(x.dtype))
    value = value.reshape((*(1,) * (x.ndim - value.ndim), *value.shape))
    shape = tuple(value.shape[k] if k in positions else n for k, n in enumerate(x.shape))
    partial = [
        k for k in range(x.ndim) if k not in positions and value.shape[k] not in (1, x.shape[k])
    ]
    positions, starts = [*positions, *partial], operand(start_indices).reshape(-1)
    if partial:
        shape = tuple(value.shape[k] if k in partial else n for k, n in enumerate(shape))
        starts = mtl.concat([starts, mtl.zeros(len(partial), dtype=starts.dtype)])
    value = mtl.broadcast_to(value, shape)
    others = [k for k in range(x.ndim) if k not in positions]
    order = (*positions, *others)
    moved = mtl.permute_dims(x, order)
    sizes = [shape[k] for k in positions]
    windows = _windows(wrap(starts), positions, sizes, [x.shape[k] for k in positions])
    moved = moved.at[tuple(windows)].set(mtl.permute_dims(value, order))
    return wrap(mtl.permute_dims(moved, _inverse(order)))


def _inverse(order: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(range(len(order)), key=order.__getitem__))
