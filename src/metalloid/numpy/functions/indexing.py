"""Elements at indices, masks and choices, with NumPy's arguments."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from metalloid.arrays.array import Array, as_array, as_arrays
from metalloid.arrays.functions import elementwise as ew
from metalloid.arrays.functions import scans, searching, select
from metalloid.arrays.functions.creation import full
from metalloid.arrays.functions.data_types import result_type
from metalloid.arrays.functions.evenly_spaced import arange
from metalloid.arrays.functions.manipulation import (  # fmt: skip
    broadcast_arrays,
    broadcast_to,
    stack,
)
from metalloid.arrays.ir.dtypes import bool_, int64, kind_of, uint32
from metalloid.arrays.ir.node import iota
from metalloid.arrays.ir.operands import axes_of, is_number
from metalloid.arrays.lowering.indexing import are_in_range
from metalloid.numpy.array import numpy_function, store
from metalloid.numpy.known_calls import structural_function, structural_update

#: Maximum arrays of `choose` of which all elements are read, as by `where`, instead of copied.
_MAX_SELECTED = 8

# -- reading


def _in_mode(index: Array, extent: int, mode: str) -> Array:
    """Indices as the modes of NumPy interpret them."""
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"[index] mode must be 'raise', 'wrap' or 'clip', got {mode!r}.")
    if mode == "wrap":
        return index % extent
    return select.clip(index, 0, extent - 1) if mode == "clip" else index


def _of_one_type(where: str, values: Sequence[Any]) -> list[Array]:
    """Arrays of the type that all have in common; Python's numbers adopt that of the arrays."""
    operands = [x if is_number(x) else as_array(x, where) for x in values]
    arrays = as_arrays(where, *operands)
    dtype = result_type(*(arrays if all(map(is_number, operands)) else operands))
    return [x.astype(dtype) for x in arrays]


@structural_function(2, index=1)
def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise"
         ) -> Any:  # fmt: skip
    """Elements of the flattened array, or subarrays along an axis, at indices.

    Parameters
    ----------
    mode : "raise", "wrap" or "clip"
        The meaning of indices that are out of range.
    """
    x, index = as_arrays("take", a, indices)
    x = x if x.ndim else x.reshape(1)
    extent = x.size if axis is None else x.shape[axes_of("take", axis, x.ndim)[0]]
    index = index.astype(int64) if kind_of(index.dtype) == "b" or not index.size else index
    return store(searching.take(x, _in_mode(index, extent, mode), axis), out, "take")


@structural_function(2, index=1)
def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Any:
    """Elements along an axis, at indices that vary along the other axes."""
    x, index = as_arrays("take_along_axis", arr, indices)
    x, along = _along_axis(x, index, axis, "take_along_axis")
    shape = np.broadcast_shapes(_without(x.shape, along), _without(index.shape, along))
    x = broadcast_to(x, (*shape[:along], x.shape[along], *shape[along:]))
    index = broadcast_to(index, (*shape[:along], index.shape[along], *shape[along:]))
    return searching.take_along_axis(x, index, along)


def _along_axis(x: Array, index: Array, axis: int | None, where: str) -> tuple[Array, int]:
    """The array whose axis indices are along, flattened for none, and the axis."""
    flat = x.ravel() if axis is None else x
    if index.ndim != flat.ndim:
        raise ValueError(
            f"[{where}] got indices with {index.ndim} axes for an array with {flat.ndim}; "
            "both need the same number of axes, and a single dimension for axis=None."
        )
    return flat, axes_of(where, 0 if axis is None else axis, flat.ndim)[0]


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


@numpy_function
def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
    """Subarrays along an axis where a condition is true."""
    x = as_array(a, "compress")
    if axis is None:
        x, axis = x if x.ndim == 1 else x.ravel(), 0
    mask = as_array(condition, "compress", x.device)
    if x.ndim == 1 and mask.shape == x.shape and kind_of(mask.dtype) == "b":
        return store(x[mask], out, "compress")
    (along,) = axes_of("compress", axis, x.ndim)
    before = (slice(None),) * along
    mask = mask.ravel().astype(bool_)
    extent = x.shape[along]
    if mask.size > extent:  # which is an error if it is true there
        (selected,) = searching.nonzero(mask)
        return store(searching.take(x, selected, along), out, "compress")
    if mask.size < extent:
        x = x[(*before, slice(mask.size))]
    return store(x[(*before, mask)], out, "compress")


@numpy_function
def extract(condition: Any, arr: Any) -> Any:
    """Elements where a condition is true, of the flattened array."""
    return compress(condition, arr)


@numpy_function
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """Elements of several arrays, of which an array of indices chooses one each."""
    options = broadcast_arrays(as_array(a, "choose"), *_of_one_type("choose", choices))
    index = options[0]
    if kind_of(index.dtype) == "b":
        index = index.astype(int64)
    if mode == "raise" and index.size:
        is_outside = ew.logical_or(index < 0, index >= len(options) - 1)
        if bool(is_outside.any()):
            raise ValueError(f"[choose] an index is outside of the {len(options) - 1} choices.")
    index = _in_mode(index, len(options) - 1, mode)
    if not 1 < len(options) <= _MAX_SELECTED:
        chosen = searching.take_along_axis(stack(list(options[1:])), index[None], 0)[0]
        return store(chosen, out, "choose", "unsafe")
    *others, result = options[1:]
    for k, values in enumerate(others):
        result = select.where(index == k, values, result)
    return store(result, out, "choose", "unsafe")


@numpy_function
def select_function(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """Elements of the array whose condition is the first that is true.

    Examples
    --------
    >>> import metalloid.numpy as np
    >>> x = np.arange(5)
    >>> np.select([x < 2, x > 3], [x, x * 10], default=-1)
    array([ 0,  1, -1, -1, 40])
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError("[select] expected as many choices as conditions, at least one.")
    *choices, result = _of_one_type("select", [*choicelist, default])
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        mask = as_array(condition, "select")
        if kind_of(mask.dtype) != "b":
            raise TypeError(f"[select] conditions must be boolean, got {mask.dtype}.")
        result = select.where(mask, choice, result)
    return result


@structural_function(3)
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """Elements of `x` where a condition is true, and of `y` elsewhere; or its indices."""
    mask = as_array(condition, "where")
    if x is None and y is None:
        return nonzero(mask)
    return select.where(mask.astype(bool_), x, y)


@numpy_function
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """Results of functions, each for the elements where its condition is true.

    Every function is called with all elements.
    """
    values = as_array(x, "piecewise")
    if not isinstance(condlist, list | tuple) or (
        condlist and not hasattr(condlist[0], "__len__") and values.ndim
    ):
        condlist = [condlist]
    masks = [as_array(mask, "piecewise", values.device).astype(bool_) for mask in condlist]
    functions = list(funclist)
    if len(functions) == len(masks) + 1:
        rest = functools.reduce(ew.logical_or, masks)
        masks.append(ew.logical_not(rest))
    elif len(functions) != len(masks):
        raise ValueError(
            f"[piecewise] {len(masks)} conditions require {len(masks)} or {len(masks) + 1} "
            f"functions, got {len(functions)}."
        )
    result = full(values.shape, 0, values.dtype, device=values.device)
    for mask, function in zip(masks, functions, strict=True):
        new = function(values, *args, **kw) if callable(function) else function
        new = as_array(new, "piecewise", values.device).astype(values.dtype)
        result = select.where(mask, new, result)
    return result


@numpy_function
def nonzero(a: Any) -> tuple[Array, ...]:
    """Indices of the nonzero elements, one array per axis."""
    return searching.nonzero(a)


@numpy_function
def flatnonzero(a: Any) -> Array:
    """Indices of the nonzero elements of the flattened array."""
    return searching.nonzero(as_array(a, "flatnonzero").ravel())[0]


@numpy_function
def argwhere(a: Any) -> Array:
    """Indices of the nonzero elements, one row each."""
    x = as_array(a, "argwhere")
    if x.ndim == 0:
        return full((int(bool(x)), 0), 0)
    if x.ndim == 1:
        return searching.nonzero(x)[0].reshape(-1, 1)
    return stack(list(searching.nonzero(x)), axis=1)


@numpy_function
def ix_(*args: Any) -> tuple[Array, ...]:
    """Indices of an open mesh: each along an axis of its own."""
    results = []
    for k, x in enumerate(as_arrays("ix_", *args)):
        if x.ndim != 1:
            raise ValueError(f"[ix_] expected sequences along one axis, got shape {x.shape}.")
        index = searching.nonzero(x)[0] if kind_of(x.dtype) == "b" else x
        is_untyped = not index.size and not hasattr(args[k], "dtype")
        index = index.astype(int64) if is_untyped else index
        results.append(index.reshape([-1 if j == k else 1 for j in range(len(args))]))
    return tuple(results)


def _is_any_outside(index: Array, extent: int) -> bool:
    are_inside = are_in_range(index._node, extent)
    if are_inside is not None or not index.size:
        return not are_inside and bool(index.size)
    return bool(ew.logical_or(index < 0, index >= extent).any())


@structural_function(1, index=0)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Array, ...]:
    """Convert indices of the flattened array to indices along the axes."""
    index = as_array(indices, "unravel_index")
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    size = math.prod(extents)
    if kind_of(index.dtype) not in "iu":
        raise TypeError(f"[unravel_index] indices must be integers, got {index.dtype}.")
    index = index.astype(int64)
    if _is_any_outside(index, size):
        raise ValueError(f"[unravel_index] an index is out of range for {size} elements.")
    if index.ndim and not extents:
        raise ValueError("[unravel_index] a 0d array has no indices of several elements.")
    # Quotients of unsigned numbers of 32 bits take a fraction of the time.
    index, results = index.astype(uint32) if 0 < size < 2**32 else index, []
    is_by_rows = _is_by_rows(order, "unravel_index")
    for extent in extents[:0:-1] if is_by_rows else extents[:-1]:
        quotient = index // extent
        results.append((index - quotient * extent).astype(int64))
        index = quotient
    results += [index.astype(int64)] * bool(extents)  # which is less than the last extent
    return tuple(reversed(results) if is_by_rows else results)


def _is_by_rows(order: str | None, where: str) -> bool:
    if order not in ("C", "F", None):
        raise ValueError(f"[{where}] order must be 'C' or 'F', got {order!r}.")
    return order != "F"


@structural_function(1)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Array:
    """Convert indices along the axes to indices of the flattened array."""
    operands = as_arrays("ravel_multi_index", *multi_index)
    if any(x.size and kind_of(x.dtype) not in "iub" for x in operands):
        raise TypeError("[ravel_multi_index] indices must be integers.")
    operands = [x.astype(int64) for x in operands]
    extents = (dims,) if isinstance(dims, int) else tuple(map(operator.index, dims))
    if math.prod(extents) >= 2**63:
        raise ValueError(f"[ravel_multi_index] {extents} are too many elements.")
    if 0 in extents and any(x.size for x in operands):
        raise ValueError(f"[ravel_multi_index] {extents} have no elements.")
    modes = (mode,) * len(extents) if isinstance(mode, str) else tuple(mode)
    result: Any = 0
    items = list(zip(operands, extents, modes, strict=True))
    is_by_rows = _is_by_rows(order, "ravel_multi_index")
    for index, extent, how in items if is_by_rows else reversed(items):
        if how == "raise" and _is_any_outside(index, extent):
            raise ValueError(f"[ravel_multi_index] an index is out of range for {extent} elements.")
        result = ew.add(_in_mode(index, extent, how), ew.multiply(result, extent))
    return as_array(result, "ravel_multi_index")


# -- writing: the array is rebound to a new value


@structural_update(3, index=1)
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> Any:
    """Set elements of the flattened array; values are repeated if there are too few."""
    x = as_array(a, "put")
    index = as_array(ind, "put", x.device).ravel()
    values = as_array(v, "put", x.device).ravel()
    if not index.size or not values.size:
        return None
    index = _in_mode(index, x.size, mode)
    new = repeated(values, index.size).astype(x.dtype)
    return Array(x.ravel()._node).at[index].set(new)


def repeated(values: Array, count: int) -> Array:
    """As many elements as needed, from the first on; one element for all."""
    if values.size in (1, count):
        return values
    return searching.elements_at(values, arange(count, device=values.device) % values.size)


@structural_update(3, index=1)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> Any:
    """Set elements along an axis, at indices that vary along the other axes."""
    x = as_array(arr, "put_along_axis")
    index = as_array(indices, "put_along_axis", x.device)
    flat, along = _along_axis(x, index, axis, "put_along_axis")
    grids = [index if axis == along else _counted(flat, axis) for axis in range(flat.ndim)]
    new = as_array(values, "values", x.device).astype(x.dtype)
    return Array(flat._node).at[tuple(grids)].set(new)


def _counted(x: Array, axis: int) -> Array:
    """The indices along an axis, which broadcast along the others."""
    shape = tuple(n if k == axis else 1 for k, n in enumerate(x.shape))
    return Array(iota(shape, axis, x.device))


@structural_update(3)
def place(arr: Any, mask: Any, vals: Any) -> Any:
    """Set the elements where a mask is true to successive values, repeatedly."""
    x = as_array(arr, "place")
    flags = as_array(mask, "place", x.device).astype(bool_).ravel()
    values = as_array(vals, "place", x.device).ravel().astype(x.dtype)
    if not values.size:
        if bool(flags.any()):
            raise ValueError("[place] there are no values to place.")
        return None
    number = scans.cumulative_sum(flags, dtype=uint32 if flags.size < 2**32 else int64) - 1
    chosen = searching.elements_at(values, number % values.size) if values.size > 1 else values
    return select.where(flags, chosen, x.ravel())


@structural_update(3)
def putmask(a: Any, mask: Any, values: Any) -> Any:
    """Set the elements where a mask is true to the values at the same indices."""
    x = as_array(a, "putmask")
    flags = as_array(mask, "putmask", x.device).astype(bool_).ravel()
    new = as_array(values, "putmask", x.device).ravel().astype(x.dtype)
    return select.where(flags, repeated(new, x.size), x.ravel()) if new.size else None


@structural_update(2, named=("where",))
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> Any:
    """Copy values into an array, where a mask is true."""
    x = as_array(dst, "copyto")
    is_number = isinstance(src, bool | int | float | complex)
    new = as_array(src, "copyto", x.device)
    fits = np.can_cast(new.dtype, x.dtype, casting)
    if is_number and casting != "unsafe":  # its type is weak
        fits = np.can_cast(new.dtype, x.dtype, "same_kind")
    if not fits:
        raise TypeError(f"[copyto] {new.dtype} does not convert to {x.dtype} with {casting!r}.")
    extra = max(new.ndim - x.ndim, 0)
    if set(new.shape[:extra]) <= {1}:  # more axes than those of the target
        new = new.reshape(new.shape[extra:])
    new = broadcast_to(new.astype(x.dtype), x.shape)
    if where is not True:
        mask = as_array(where, "where", x.device)
        if hasattr(where, "dtype") and mask.dtype != bool_:
            raise TypeError(f"[copyto] the mask must be boolean, got {mask.dtype}.")
        new = select.where(mask.astype(bool_), new, x)
    return new
