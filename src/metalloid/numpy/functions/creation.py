"""Creation of arrays, with NumPy's arguments."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from metalloid.arrays.array import Array, as_array, as_arrays
from metalloid.arrays.functions import creation, evenly_spaced
from metalloid.arrays.functions import elementwise as ew
from metalloid.arrays.functions.manipulation import (
    broadcast_arrays,
    broadcast_to,
    concat,
    expand_dims,
    stack,
)
from metalloid.arrays.functions.select import where
from metalloid.arrays.ir.dtypes import as_dtype, bool_, int64, kind_of, promote
from metalloid.arrays.ir.operands import is_scalar
from metalloid.numpy.array import numpy_function
from metalloid.numpy.known_calls import structural_function
from metalloid.numpy.memory_order import in_order

Shape = Any


@structural_function(1)
def array(object: Any, dtype: Any = None, *, copy: Any = True, order: str = "K",
          subok: bool = False, ndmin: int = 0, like: Any = None, device: Any = None
          ) -> Array:  # fmt: skip
    """Convert an object to an array.

    Parameters
    ----------
    copy : bool, optional
        False: share the memory of `object`.
    ndmin : int
        Minimum number of axes; new ones precede the others.

    Examples
    --------
    >>> import metalloid.numpy as np
    >>> np.array([[1, 2], [3, 4]]) * 0.5
    array([[0.5, 1. ],
           [1.5, 2. ]])
    """
    if hasattr(object, "__next__"):
        raise TypeError("[array] expected a sequence, got an iterator. Use fromiter.")
    x = creation.asarray(object, dtype, copy=copy, device=device)
    x = in_order(x, order, object, copy is True)
    return x.reshape((1,) * (ndmin - x.ndim) + x.shape) if x.ndim < ndmin else x


@numpy_function
def asarray(a: Any, dtype: Any = None, order: Any = None, *, device: Any = None,
            copy: Any = None, like: Any = None) -> Array:  # fmt: skip
    """Convert an object to an array; see `array`."""
    return in_order(creation.asarray(a, dtype, copy=copy, device=device), order, a)


@numpy_function
def asanyarray(a: Any, dtype: Any = None, order: Any = None, *, device: Any = None,
               copy: Any = None, like: Any = None) -> Array:  # fmt: skip
    """Convert an object to an array; see `array`."""
    return in_order(creation.asarray(a, dtype, copy=copy, device=device), order, a)


@numpy_function
def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Array:
    """Convert an object to a row-major array of at least one axis."""
    x = in_order(creation.asarray(a, dtype), "C")
    return x if x.ndim else x.reshape(1)


@numpy_function
def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Array:
    """Convert an object to a column-major array of at least one axis."""
    return in_order(ascontiguousarray(a, dtype), "F")


@numpy_function
def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Array:
    """Convert an object to an array, which is row-major, aligned and writeable anyway."""
    return creation.asarray(a, dtype)


@numpy_function
def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Array:
    """Convert an object to an array, and check that all numbers are finite."""
    x = creation.asarray(a, dtype)
    if kind_of(x.dtype) in "fc" and not bool(ew.isfinite(x).all()):
        raise ValueError("[asarray_chkfinite] the array has infinite numbers or NaN.")
    return x


@structural_function(1)
def copy(a: Any, order: str = "K", subok: bool = False) -> Array:
    """Return a copy."""
    return in_order(creation.asarray(a, copy=True), order, a, True)


@structural_function(0)
def empty(shape: Shape, dtype: Any = None, order: str = "C", *, device: Any = None,
          like: Any = None) -> Array:  # fmt: skip
    """Array of zeros: lazy arrays are never uninitialised."""
    return in_order(creation.zeros(shape, dtype, device=device), order)


@structural_function(0)
def zeros(shape: Shape, dtype: Any = None, order: str = "C", *, device: Any = None,
          like: Any = None) -> Array:  # fmt: skip
    """Array of zeros."""
    return in_order(creation.zeros(shape, dtype, device=device), order)


@structural_function(0)
def ones(shape: Shape, dtype: Any = None, order: str = "C", *, device: Any = None,
         like: Any = None) -> Array:  # fmt: skip
    """Array of ones."""
    return in_order(creation.ones(shape, dtype, device=device), order)


@structural_function(0)
def full(shape: Shape, fill_value: Any, dtype: Any = None, order: str = "C", *,
         device: Any = None, like: Any = None) -> Array:  # fmt: skip
    """Array filled with a number, or with an array that is broadcast."""
    return in_order(creation.full(shape, fill_value, dtype, device=device), order)


@structural_function(1)
def full_like(a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True,
              shape: Shape = None, *, device: Any = None) -> Array:  # fmt: skip
    """`full` with the shape and type of another array by default."""
    result = creation.full_like(a, fill_value, dtype, shape=shape, device=device)
    return in_order(result, order, a)


@structural_function(1)
def zeros_like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True,
               shape: Shape = None, *, device: Any = None) -> Array:  # fmt: skip
    """`zeros` with the shape and type of another array by default."""
    result = creation.full_like(a, 0, dtype, shape=shape, device=device)
    return in_order(result, order, a)


@structural_function(1)
def ones_like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True,
              shape: Shape = None, *, device: Any = None) -> Array:  # fmt: skip
    """`ones` with the shape and type of another array by default."""
    result = creation.full_like(a, 1, dtype, shape=shape, device=device)
    return in_order(result, order, a)


empty_like = zeros_like


@structural_function(0)
def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, order: str = "C", *,
        device: Any = None, like: Any = None) -> Array:  # fmt: skip
    """Matrix with ones on its `k`-th diagonal."""
    return creation.eye(N, M, k, dtype, device=device)


@structural_function(0)
def identity(n: int, dtype: Any = None, *, like: Any = None) -> Array:
    """Identity matrix."""
    return creation.eye(n, dtype=dtype)


@structural_function(0)
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None,
           like: Any = None) -> Array:  # fmt: skip
    """Evenly spaced numbers in a half-open interval.

    Examples
    --------
    >>> import metalloid.numpy as np
    >>> np.arange(0, 1, 0.25)
    array([0.  , 0.25, 0.5 , 0.75])
    """
    limits = start, stop, 1 if step is None else step
    first, last, distance = (x.item() if hasattr(x, "item") else x for x in limits)
    result = evenly_spaced.arange(first, last, distance, dtype, device=device)
    if result.dtype == bool_ and result.size > 2:
        raise TypeError("[arange] booleans are 0 and 1: at most two of them are in a range.")
    return result


@structural_function(0)
def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False,
             dtype: Any = None, axis: int = 0, *, device: Any = None) -> Any:  # fmt: skip
    """Evenly spaced numbers of an interval.

    Parameters
    ----------
    retstep : bool
        Whether to return the distance of the numbers as well.
    axis : int
        Axis of the numbers, if the limits are arrays.
    """
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"[linspace] the number of samples must not be negative, got {num}.")
    result = evenly_spaced.linspace(start, stop, num, endpoint, dtype=dtype, device=device)
    if axis:
        from metalloid.arrays.functions.manipulation import moveaxis

        result = moveaxis(result, 0, axis)
    if not retstep:
        return result
    count = num - endpoint
    first, last = as_arrays("linspace", start, stop)
    return result, (last - first) / count if count > 0 else math.nan


@structural_function(0)
def logspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0,
             dtype: Any = None, axis: int = 0) -> Array:  # fmt: skip
    """Powers of a base whose exponents are evenly spaced."""
    first, last = start, stop
    if np.ndim(base):
        first, last, base = as_arrays("logspace", start, stop, base)
        rank = max(base.ndim, first.ndim, last.ndim)
        first, last, base = (
            x.reshape((1,) * (rank - x.ndim) + x.shape) for x in (first, last, base)
        )
        base = expand_dims(base, axis=axis)
    result = ew.pow(base, linspace(first, last, num, endpoint, axis=axis))
    return result if dtype is None else result.astype(dtype)


@structural_function(0)
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None,
              axis: int = 0) -> Array:  # fmt: skip
    """Numbers with a constant ratio, of an interval."""
    first: Any
    last: Any
    module: Any = ew
    if is_scalar(start) and is_scalar(stop) and not isinstance(start + stop, complex):
        first, last, module = np.float64(start), np.float64(stop), np  # nothing to launch
    else:
        first, last = as_arrays("geomspace", start, stop)
    if bool((first == 0).any()) or bool((last == 0).any()):
        raise ValueError("[geomspace] the limits of a geometric sequence must not be 0.")
    is_complex = "c" in (kind_of(first.dtype), kind_of(last.dtype))
    if is_complex:  # a spiral: it turns by the smaller angle, from the direction of the first
        first = first.astype(promote(first.dtype, last.dtype))
    sign = module.sign(first)
    first, last = (first.__abs__() if is_complex else first * sign), last / sign
    lowest, highest = module.log10(first), module.log10(last)
    if module is np:  # numbers of Python are constants of kernels
        first, last, lowest, highest, sign = (
            x.item() for x in (first, last, lowest, highest, sign)
        )
    powers: Array = 10.0 ** linspace(lowest, highest, num, endpoint)
    index = evenly_spaced.arange(num, device=powers.device).reshape(-1, *(1,) * (powers.ndim - 1))
    if endpoint and num > 1:
        powers = where(index == num - 1, last, powers).astype(powers.dtype)
    powers = where(index == 0, first, powers).astype(powers.dtype)
    result: Array = powers * sign
    if axis:
        from metalloid.arrays.functions.manipulation import moveaxis

        result = moveaxis(result, 0, axis)
    return result if dtype is None else result.astype(dtype)


@structural_function(0)
def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float, *, like: Any = None) -> Array:
    """Lower triangle of ones."""
    return creation.tril(creation.ones((N, N if M is None else M), dtype), k)


@structural_function(1)
def tril(m: Any, k: int = 0) -> Array:
    """Lower triangles of matrices, with zeros above the `k`-th diagonal."""
    x = as_array(m, "tril")
    return creation.tril(broadcast_to(x, (x.size, x.size)) if x.ndim == 1 else x, k)


@structural_function(1)
def triu(m: Any, k: int = 0) -> Array:
    """Upper triangles of matrices, with zeros below the `k`-th diagonal."""
    x = as_array(m, "triu")
    return creation.triu(broadcast_to(x, (x.size, x.size)) if x.ndim == 1 else x, k)


@structural_function(1)
def diag(v: Any, k: int = 0) -> Array:
    """Diagonal of a matrix, or the matrix of a diagonal.

    Examples
    --------
    >>> import metalloid.numpy as np
    >>> np.diag([1, 2])
    array([[1, 0],
           [0, 2]])
    """
    from metalloid.numpy.functions.products import diagonal

    x = as_array(v, "diag")
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError(f"[diag] expected one or two axes, got shape {x.shape}.")
    size = x.size + abs(k)
    mask = creation.eye(size, k=k, dtype=bool_, device=x.device)
    zero = creation.zeros((abs(k),), x.dtype, device=x.device)
    by_row = concat([x, zero] if k >= 0 else [zero, x])[:, None]
    return where(mask, by_row, creation.zeros((), x.dtype, device=x.device))


@structural_function(1)
def diagflat(v: Any, k: int = 0) -> Array:
    """Matrix whose diagonal is the flattened array."""
    return diag(as_array(v, "diagflat").ravel(), k)


#: Maximum columns of a Vandermonde matrix that are products.
_MAX_FACTORS = 16


@structural_function(1)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Array:
    """Vandermonde matrix: the powers of numbers."""
    numbers = as_array(x, "vander")
    if numbers.ndim != 1:
        raise ValueError(f"[vander] expected one axis, got shape {numbers.shape}.")
    count = numbers.size if N is None else N
    wide = promote(numbers.dtype, int64)
    powers = evenly_spaced.arange(count)
    powers = powers if increasing else powers[::-1]
    column = numbers.astype(wide)[:, None]
    if count > _MAX_FACTORS:
        return ew.pow(column, powers.astype(wide))
    # The products of all powers, of which each element takes one, cost less than a function.
    result, product = creation.ones((), wide, device=numbers.device), column
    for k in range(1, count):
        result = where(powers == k, product, result)
        product = product * column
    return broadcast_to(result, (numbers.size, count))


@structural_function(0)
def _grids(shape: tuple[int, ...], dtype: Any) -> tuple[Array, ...]:
    """Indices of each element, which are not in memory."""
    lines = indices(shape, dtype, sparse=True)
    return tuple(broadcast_arrays(*lines)) if lines else ()


def fromfunction(function: Callable[..., Any], shape: Shape, *, dtype: Any = float,
                 like: Any = None, **options: Any) -> Any:  # fmt: skip
    """Call a function with the indices of each element, as arrays."""
    return function(*_grids(tuple(shape), dtype), **options)


@structural_function(0)
def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    """Indices of each element along each axis."""
    shape = tuple(dimensions)
    grids = []
    for axis, extent in enumerate(shape):
        line = evenly_spaced.arange(extent, dtype=as_dtype(dtype))
        line = line.reshape(*(1,) * axis, extent, *(1,) * (len(shape) - axis - 1))
        grids.append(line if sparse else broadcast_to(line, shape))
    if sparse:
        return tuple(grids)
    return stack(grids) if grids else creation.zeros((0,), as_dtype(dtype))


@structural_function()
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Coordinates of a grid from the coordinates along its axes."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"[meshgrid] indexing must be 'xy' or 'ij', got {indexing!r}.")
    lines = [x.ravel() for x in as_arrays("meshgrid", *xi)]
    order = list(range(len(lines)))
    if indexing == "xy" and len(lines) > 1:
        order[:2] = 1, 0
    shape = [0] * len(lines)
    grids = []
    for k, line in enumerate(lines):
        shape[order[k]] = line.size
        grids.append(line.reshape([line.size if j == order[k] else 1 for j in range(len(lines))]))
    return tuple(grid if sparse else broadcast_to(grid, shape) for grid in grids)


class _Grid:
    """``mgrid`` and ``ogrid``: grids of slices."""

    def __init__(self, is_sparse: bool) -> None:
        self._is_sparse = is_sparse

    def __getitem__(self, key: Any) -> Any:
        return _grid(key, self._is_sparse)


@numpy_function
def _grid(key: Any, is_sparse: bool) -> Any:
    values = (np.ogrid if is_sparse else np.mgrid)[key]
    if isinstance(values, tuple):
        return tuple(creation.asarray(value) for value in values)
    return creation.asarray(values)


mgrid, ogrid = _Grid(False), _Grid(True)


@numpy_function
def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Array:
    """Array that shares the memory of another library's array; see `metalloid.from_dlpack`."""
    return creation.from_dlpack(x, device=device, copy=copy)


@numpy_function
def fromiter(iter: Any, dtype: Any, count: int = -1, *, like: Any = None) -> Array:
    """Array of the numbers of an iterator."""
    return creation.asarray(np.fromiter(iter, as_dtype(dtype), count))


@numpy_function
def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0, *,
               like: Any = None) -> Array:  # fmt: skip
    """Array of the bytes of a buffer, copied."""
    values = np.frombuffer(buffer, as_dtype(dtype), count, offset)
    return creation.asarray(values.view(np.uint8) != 0 if values.dtype == bool else values)
