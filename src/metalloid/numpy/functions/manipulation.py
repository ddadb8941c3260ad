"""Shapes, axes, concatenation and division of arrays, with NumPy's arguments."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metalloid.arrays.array import Array, as_array, as_arrays
from metalloid.arrays.functions import elementwise as ew
from metalloid.arrays.functions import manipulation as base
from metalloid.arrays.functions.creation import zeros
from metalloid.arrays.ir.dtypes import as_dtype
from metalloid.arrays.ir.operands import axes_of
from metalloid.numpy.array import check_out, numpy_function, store
from metalloid.numpy.known_calls import structural_function
from metalloid.numpy.memory_order import flattened, is_column_major


@structural_function(1)
def reshape(a: Any, /, shape: Any, order: str = "C", *, copy: Any = None) -> Array:
    """Change the shape; one extent may be -1."""
    if str(order).upper() == "A":
        order = "F" if is_column_major(as_array(a, "reshape")) else "C"
    return base.reshape(a, shape, order)


@structural_function(1)
def ravel(a: Any, order: str = "C") -> Array:
    """Collapse to one axis."""
    return flattened(as_array(a, "ravel"), order)


@structural_function(1)
def transpose(a: Any, axes: Any = None) -> Array:
    """Permute the axes; by default, reverse them."""
    return base.transpose(a, axes)


permute_dims = transpose


@structural_function(1)
def matrix_transpose(x: Any, /) -> Array:
    """Transpose every matrix."""
    return as_array(x, "matrix_transpose").mT


@structural_function(1)
def moveaxis(a: Any, source: Any, destination: Any) -> Array:
    """Move axes to other positions."""
    return base.moveaxis(a, source, destination)


@structural_function(1)
def rollaxis(a: Any, axis: int, start: int = 0) -> Array:
    """Move an axis before another one."""
    x = as_array(a, "rollaxis")
    (along,) = axes_of("rollaxis", axis, x.ndim)
    start = start + x.ndim if start < 0 else start
    if not 0 <= start <= x.ndim:
        raise np.exceptions.AxisError(
            f"[rollaxis] start {start} is out of range for {x.ndim} axes."
        )
    return base.moveaxis(x, along, start - (along < start))


@structural_function(1)
def swapaxes(a: Any, axis1: int, axis2: int) -> Array:
    """Exchange two axes."""
    x = as_array(a, "swapaxes")
    order = list(range(x.ndim))
    (first,), (second,) = axes_of("swapaxes", axis1, x.ndim), axes_of("swapaxes", axis2, x.ndim)
    order[first], order[second] = second, first
    return base.permute_dims(x, order)


@structural_function(1)
def expand_dims(a: Any, axis: Any) -> Array:
    """Insert axes of extent 1 at these positions of the result."""
    return base.expand_dims(a, axis)


@structural_function(1)
def squeeze(a: Any, axis: Any = None) -> Array:
    """Remove axes of extent 1."""
    return base.squeeze(a, None if np.ndim(a) == 0 and axis in (0, -1) else axis)


def _at_least(name: str, shape_of: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Any:
    @numpy_function
    def function(*arys: Any) -> Any:
        results = tuple(x.reshape(shape_of(x.shape)) for x in as_arrays(name, *arys))
        return results[0] if len(arys) == 1 else results

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Arrays with at least {name[8]} axes; see ``numpy.{name}``."
    return function


def _three_axes(shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) == 2:
        return (*shape, 1)
    return shape if len(shape) > 2 else (1, *(shape or (1,)), 1)


atleast_1d = _at_least("atleast_1d", lambda shape: shape or (1,))
atleast_2d = _at_least("atleast_2d", lambda shape: (1,) * (2 - len(shape)) + shape)
atleast_3d = _at_least("atleast_3d", _three_axes)


@structural_function(1)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Array:
    """Broadcast to a shape."""
    return base.broadcast_to(array, shape)


@structural_function()
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Array, ...]:
    """Broadcast arrays to their common shape."""
    return base.broadcast_arrays(*args)


def broadcast_shapes(*args: Any) -> tuple[int, ...]:
    """Shape that shapes broadcast to."""
    shapes = [(n,) if isinstance(n, int) else tuple(n) for n in args]
    return base.broadcast_shapes(*shapes)


# -- joined arrays


def _joined(result: Array, out: Any, dtype: Any, casting: Any, where: str) -> Any:
    check_out(where, result, out, dtype)
    target = getattr(out, "dtype", None) if dtype is None else as_dtype(dtype)
    if target is not None and not np.can_cast(result.dtype, target, casting):
        raise TypeError(f"[{where}] {result.dtype} does not convert to {target} by {casting!r}.")
    return store(result if dtype is None else result.astype(as_dtype(dtype)), out, where, casting)


def _sequence(arrays: Any, where: str) -> list[Any]:
    """The arrays to join, which NumPy takes as a sequence only."""
    if not hasattr(arrays, "__getitem__"):
        raise TypeError(
            f"[{where}] the arrays must be in a sequence such as a list, got "
            f"{type(arrays).__name__}."
        )
    return list(arrays)


@structural_function(1)
def concatenate(arrays: Any, /, axis: int | None = 0, out: Any = None, *, dtype: Any = None,
                casting: str = "same_kind") -> Any:  # fmt: skip
    """Join arrays along an axis, or flattened if it is None."""
    return _joined(
        base.concat(_sequence(arrays, "concatenate"), axis), out, dtype, casting, "concatenate"
    )


concat = concatenate


@structural_function(1)
def stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None,
          casting: str = "same_kind") -> Any:  # fmt: skip
    """Stack arrays of one shape along a new axis."""
    return _joined(base.stack(_sequence(arrays, "stack"), axis), out, dtype, casting, "stack")


@structural_function(1)
def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Join arrays by rows."""
    arrays = [atleast_2d(x) for x in _sequence(tup, "vstack")]
    return _joined(base.concat(arrays, 0), None, dtype, casting, "vstack")


row_stack = vstack


@structural_function(1)
def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Join arrays by columns; along the first axis if they have one only."""
    arrays = [atleast_1d(x) for x in _sequence(tup, "hstack")]
    axis = 0 if arrays and arrays[0].ndim == 1 else 1
    return _joined(base.concat(arrays, axis), None, dtype, casting, "hstack")


@structural_function(1)
def dstack(tup: Any) -> Any:
    """Join arrays along the third axis."""
    return base.concat([atleast_3d(x) for x in _sequence(tup, "dstack")], 2)


@structural_function(1)
def column_stack(tup: Any) -> Any:
    """Join vectors as the columns of a matrix."""
    arrays = as_arrays("column_stack", *_sequence(tup, "column_stack"))
    return base.concat([x.reshape(x.size, 1) if x.ndim < 2 else x for x in arrays], 1)


@numpy_function
def block(arrays: Any) -> Any:
    """Join nested lists of blocks: the innermost lists along the last axis."""

    def depth(value: Any) -> int:
        return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0

    def rank(value: Any) -> int:
        if isinstance(value, list):
            return max(map(rank, value), default=0)
        return int(as_array(value, "block").ndim)

    levels = depth(arrays)
    axes = max(levels, rank(arrays))

    def joined(value: Any, level: int) -> Array:
        if isinstance(value, list):
            if not value:
                raise ValueError("[block] lists of blocks must not be empty.")
            pieces = [joined(item, level + 1) for item in value]
            return base.concat(pieces, axes - levels + level)
        x = as_array(value, "block")
        return x.reshape((1,) * (axes - x.ndim) + x.shape)

    return joined(arrays, 0)


@structural_function(2)
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """Join values to the end of an array."""
    x, y = as_arrays("append", arr, values)
    return base.concat([x.ravel(), y.ravel()]) if axis is None else base.concat([x, y], axis)


# -- divided arrays


@numpy_function
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Split an array at indices, or into sections of almost equal length."""
    x = as_array(ary, "array_split")
    (along,) = axes_of("array_split", axis, x.ndim)
    extent = x.shape[along]
    if hasattr(indices_or_sections, "__len__"):
        starts = [int(k) for k in indices_or_sections]
        limits = [0, *starts, extent]
    else:
        count = operator.index(indices_or_sections)
        if count <= 0:
            raise ValueError(f"[array_split] the number of sections must be positive, got {count}.")
        size, longer = divmod(extent, count)
        limits = [k * size + min(k, longer) for k in range(count + 1)]
    before = (slice(None),) * along
    return [x[(*before, slice(a, b))] for a, b in itertools.pairwise(limits)]


@numpy_function
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Split an array at indices, or into sections of equal length."""
    x = as_array(ary, "split")
    (along,) = axes_of("split", axis, x.ndim)
    if not hasattr(indices_or_sections, "__len__") and x.shape[along] % indices_or_sections:
        raise ValueError(
            f"[split] {x.shape[along]} elements are not divisible into {indices_or_sections} equal "
            "sections. Use array_split."
        )
    return array_split(x, indices_or_sections, along)


def _split_along(name: str, axis: int) -> Callable[[Any, Any], list[Array]]:
    @numpy_function
    def function(ary: Any, indices_or_sections: Any) -> list[Array]:
        x = as_array(ary, name)
        if x.ndim < max(axis, 1) + (name != "hsplit" and axis == 0):
            raise ValueError(f"[{name}] an array of shape {x.shape} has too few axes.")
        return split(x, indices_or_sections, 0 if name == "hsplit" and x.ndim == 1 else axis)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Split an array along axis {axis}; see `split`."
    return function


hsplit, vsplit, dsplit = (
    _split_along(name, axis) for name, axis in (("hsplit", 1), ("vsplit", 0), ("dsplit", 2))
)


@numpy_function
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Split an array into the subarrays along an axis."""
    return base.unstack(x, axis)


# -- order of elements


@structural_function(1)
def flip(m: Any, axis: Any = None) -> Array:
    """Reverse the elements along axes, or along all axes."""
    return base.flip(m, axis)


@structural_function(1)
def fliplr(m: Any) -> Array:
    """Reverse the columns."""
    return base.flip(m, 1)


@structural_function(1)
def flipud(m: Any) -> Array:
    """Reverse the rows."""
    return base.flip(m, 0)


@structural_function(1)
def roll(a: Any, shift: Any, axis: Any = None) -> Array:
    """Shift elements along axes, cyclically."""
    x, shift = as_array(a, "roll"), np.asarray(shift)
    if not x.ndim:
        return x
    if axis is None or (np.ndim(axis) == 0 and np.ndim(shift) == 0):
        return base.roll(x, int(np.sum(shift)), axis)
    shifts, axes = np.broadcast_arrays(np.atleast_1d(shift), np.atleast_1d(axis))
    for by, along in zip(shifts.tolist(), axes.tolist(), strict=True):
        x = base.roll(x, by, along)
    return x


@structural_function(1)
def rot90(m: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Array:
    """Rotate by 90 degrees in the plane of two axes, from the first to the second.

    Examples
    --------
    >>> import metalloid.numpy as np
    >>> np.rot90(np.array([[1, 2], [3, 4]]))
    array([[2, 4],
           [1, 3]])
    """
    x = as_array(m, "rot90")
    plane = axes_of("rot90", tuple(axes), x.ndim)
    if len(plane) != 2:
        raise ValueError(f"[rot90] expected two axes, got {axes}.")
    k %= 4
    if k == 0:
        return x.copy()
    if k == 2:
        return base.flip(x, plane)
    if k == 1:
        return swapaxes(base.flip(x, plane[1]), *plane)
    return base.flip(swapaxes(x, *plane), plane[1])


# -- repeated elements


@structural_function(1)
def tile(A: Any, reps: Any) -> Array:
    """Repeat the whole array along each axis."""
    return base.tile(A, reps if np.ndim(reps) else operator.index(reps))


@structural_function(1)
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Array:
    """Repeat every element."""
    return base.repeat(a, operator.index(repeats) if np.ndim(repeats) == 0 else repeats, axis)


@structural_function(1)
def resize(a: Any, new_shape: Any) -> Array:
    """Change the number of elements; the array is repeated if there are too few."""
    x = as_array(a, "resize").ravel()
    shape = (operator.index(new_shape),) if np.ndim(new_shape) == 0 else tuple(new_shape)
    size = 1
    for extent in shape:
        size *= extent
        if extent < 0:
            raise ValueError(f"[resize] extents must not be negative, got {shape}.")
    if x.size == 0:
        return zeros(shape, x.dtype, device=x.device)
    return base.tile(x, -(-size // x.size))[:size].reshape(shape) if size else x[:0].reshape(shape)


@numpy_function
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Array:
    """Remove zeros at the start and at the end of axes."""
    x, trim = as_array(filt, "trim_zeros"), trim.lower()
    if trim not in ("f", "b", "fb", "bf"):
        raise ValueError(f"[trim_zeros] unexpected character(s) in `trim`: {trim!r}")
    is_other = np.asarray(ew.not_equal(x, 0))
    index = [slice(None)] * x.ndim
    for along in axes_of("trim_zeros", axis, x.ndim):
        line: Any = is_other.any(axis=tuple(k for k in range(x.ndim) if k != along))
        is_any = bool(line.any())
        first = int(line.argmax()) if is_any and "f" in trim else 0
        from_end = int(line[::-1].argmax()) if is_any and "b" in trim else 0
        index[along] = slice(first, line.size - from_end if is_any else 0)
    return x[tuple(index)]


# -- elements inserted and removed
