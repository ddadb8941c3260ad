"""Creation functions of the array API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from metalloid.arrays.array import Array, as_array, as_arrays
from metalloid.arrays.interop.dlpack import imported, imported_from_host, owned_copy, unshared
from metalloid.arrays.ir.dtypes import (
    DType,
    as_dtype,
    default_dtype,
    default_float,
    int32,
)
from metalloid.arrays.ir.extents import SymbolicExtent
from metalloid.arrays.ir.host_arrays import can_share, from_numpy
from metalloid.arrays.ir.node import Node, broadcast, cast, iota, reshape
from metalloid.arrays.ir.operands import (
    as_number,
    binary,
    is_number,
    op,
    python_type,
    to_node,
    to_numpy,
    where_node,
)
from metalloid.arrays.ir.views import as_shape
from metalloid.runtime.devices.device import Device
from metalloid.runtime.devices.registry import get_device
from metalloid.runtime.interop.dlpack import from_dlpack as _numpy_from_dlpack


def asarray(obj: Any, /, dtype: Any = None, *, device: str | Device | None = None,
            copy: bool | None = None) -> Array:  # fmt: skip
    """Convert an object to an array.

    Parameters
    ----------
    obj : Array, number, nested lists, or an object that shares memory
        Supported protocols are DLPack, the buffer protocol and ``__array__``. Python floats become
        float32, Python integers int64.
    dtype : dtype, optional
        Element type. By default that of `obj`.
    copy : bool, optional
        False: share the memory of `obj`, as `from_dlpack` does. Otherwise the contents are copied.

    Raises
    ------
    TypeError
        If `obj` is not numeric.
    ValueError
        If ``copy=False`` and a copy is required.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.asarray([[1, 2], [3, 4]])
    array([[1, 2],
           [3, 4]], dtype=int64)
    """
    result_dtype = None if dtype is None else as_dtype(dtype)
    if isinstance(obj, Array):
        is_other = result_dtype is not None and result_dtype != obj.dtype
        if copy is False and is_other:
            raise ValueError(f"[asarray] {obj.dtype} as {result_dtype} requires a copy.")
        result = obj if device is None else obj.to_device(device)
        return result.astype(result_dtype or obj.dtype) if copy or is_other else result
    node = imported(obj, device, "asarray")
    if node is not None:
        shares = copy is False
        return _elsewhere(
            node if shares else owned_copy(node), result_dtype, device, shares, "asarray"
        )
    target = get_device(device)
    if is_number(obj):
        if copy is False:
            raise ValueError("[asarray] a number has no memory to share.")
        if result_dtype is None:
            return Array(to_node(obj, "asarray", None, target))
        return Array(as_number(obj, result_dtype, target))
    array = to_numpy(obj, "asarray", result_dtype is not None)
    if copy is False:
        shares = result_dtype is None or result_dtype == array.dtype
        if not shares or not hasattr(obj, "__len__") or isinstance(obj, list | tuple):
            raise ValueError(f"[asarray] {type(obj).__name__} requires a copy.")
        return Array(imported_from_host(array, target, "asarray"))
    if result_dtype is not None and array.dtype != result_dtype:
        with np.errstate(all="ignore"):
            array = array.astype(result_dtype)
    return Array(from_numpy(array, target))


array = asarray


def from_dlpack(x: Any, /, *, device: str | Device | None = None,
                copy: bool | None = None) -> Array:  # fmt: skip
    """Create an array that shares the memory of another library's array.

    The array shows later writes of the other library, and never writes to that memory itself.
    Expressions that use it are computed immediately, so their values do not change. If the memory
    is read-only, the array is an ordinary value and its expressions are lazy.

    Parameters
    ----------
    x : object
        An object with ``__dlpack__``: an array of NumPy, torch, JAX ...
    copy : bool, optional
        Whether to copy the contents. By default they are copied only where sharing is impossible,
        such as arrays on the CPU that are not contiguous.

    Raises
    ------
    BufferError
        If the memory belongs to neither the host nor the device, or the capsule is invalid.
    ValueError
        If ``copy=False`` and a copy is required.

    Examples
    --------
    >>> import metalloid as mtl, numpy as np
    >>> mtl.from_dlpack(np.arange(3))
    array([0, 1, 2], dtype=int64)
    """
    if isinstance(x, Array):
        return asarray(x, device=device)
    node = imported(x, device, "from_dlpack")
    if node is not None:
        shares = copy is False
        return _elsewhere(owned_copy(node) if copy else node, None, device, shares, "from_dlpack")
    array, target = _from_host(x), get_device(device)
    if copy is False or (copy is None and can_share(array, target)):
        return Array(imported_from_host(array, target, "from_dlpack"))
    return Array(from_numpy(array, target))


def _from_host(x: Any) -> np.ndarray:
    try:
        if isinstance(x, np.ndarray):  # a DLPack import would lose its `base`
            as_dtype(x.dtype)
            return np.asarray(x)
        return _numpy_from_dlpack(x)
    except TypeError as error:
        raise BufferError(f"[from_dlpack] {error}") from None


def _elsewhere(node: Node, dtype: DType | None, device: str | Device | None, shares: bool,
               where: str) -> Array:  # fmt: skip
    """Convert an imported node to another type or device."""
    result = Array(node)
    is_other = device is not None and get_device(device) is not node.device
    is_converted = dtype is not None and dtype != node.dtype
    if shares and (is_other or is_converted):
        raise ValueError(f"[{where}] {node.dtype} on {node.device.name} requires a copy.")
    if dtype is not None:
        result = result.astype(dtype)
    return result.to_device(device) if is_other else result


def _filled(value: Any, shape: int | Sequence[int], dtype: DType, device: Any, where: str) -> Array:
    extents = as_shape(where, shape)
    return Array(broadcast(as_number(value, dtype, get_device(device)), extents))


def full(shape: int | Sequence[int], fill_value: Any, dtype: Any = None, *,
         device: str | Device | None = None) -> Array:  # fmt: skip
    """Return an array filled with one number.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.full((2, 2), 7)
    array([[7, 7],
           [7, 7]], dtype=int64)
    """
    if not is_number(fill_value):
        value = asarray(fill_value, dtype=dtype, device=device)
        return Array(broadcast(value._node, as_shape("full", shape)))
    result_dtype = default_dtype(python_type(fill_value)) if dtype is None else as_dtype(dtype)
    return _filled(fill_value, shape, result_dtype, device, "full")


def zeros(shape: int | Sequence[int], dtype: Any = None, *,
          device: str | Device | None = None) -> Array:  # fmt: skip
    """Return an array of zeros; float32 by default."""
    return _filled(0, shape, default_float() if dtype is None else as_dtype(dtype), device, "zeros")


def ones(shape: int | Sequence[int], dtype: Any = None, *,
         device: str | Device | None = None) -> Array:  # fmt: skip
    """Return an array of ones; float32 by default."""
    return _filled(1, shape, default_float() if dtype is None else as_dtype(dtype), device, "ones")


def empty(shape: int | Sequence[int], dtype: Any = None, *,
          device: str | Device | None = None) -> Array:  # fmt: skip
    """Return an array of zeros; lazy arrays are never uninitialised."""
    return zeros(shape, dtype=dtype, device=device)


def full_like(x: Any, /, fill_value: Any, dtype: Any = None, *, shape: Any = None,
              device: str | Device | None = None) -> Array:  # fmt: skip
    """Return `full` with the shape, type and device of another array by default."""
    x = as_array(x, "full_like")
    extents = x.shape if shape is None else shape
    return full(extents, fill_value, dtype=dtype or x.dtype, device=device or x.device)


def zeros_like(x: Any, /, dtype: Any = None, *, shape: Any = None,
               device: str | Device | None = None) -> Array:  # fmt: skip
    """Return `zeros` with the shape, type and device of another array by default."""
    return full_like(x, 0, dtype, shape=shape, device=device)


def ones_like(x: Any, /, dtype: Any = None, *, shape: Any = None,
              device: str | Device | None = None) -> Array:  # fmt: skip
    """Return `ones` with the shape, type and device of another array by default."""
    return full_like(x, 1, dtype, shape=shape, device=device)


def empty_like(x: Any, /, dtype: Any = None, *, shape: Any = None,
               device: str | Device | None = None) -> Array:  # fmt: skip
    """Return `empty` with the shape, type and device of another array by default."""
    return full_like(x, 0, dtype, shape=shape, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, k: int = 0, dtype: Any = None, *,
        device: str | Device | None = None) -> Array:  # fmt: skip
    """Return a matrix with ones on its `k`-th diagonal.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.eye(2, 3, k=1, dtype=mtl.int8)
    array([[0, 1, 0],
           [0, 0, 1]], dtype=int8)
    """
    shape = as_shape("eye", (n_rows, n_rows if n_cols is None else n_cols))
    result_dtype = default_float() if dtype is None else as_dtype(dtype)
    return Array(cast(_diagonal("equal", shape, k, get_device(device)), result_dtype))


def _diagonal(relation: str, shape: tuple[int, ...], k: int, device: Device) -> Node:
    """Mask of the elements whose column minus row equals `k`, or is less or greater."""
    columns = Array(iota(shape, len(shape) - 1, device))
    rows = Array(iota(shape, len(shape) - 2, device))
    beyond = max(shape[-2:]) + 1  # all diagonals outside the matrix are equivalent
    if not isinstance(beyond, SymbolicExtent) and beyond < 2**30:  # vectors have more of these
        columns, rows = (Array(cast(x._node, int32)) for x in (columns, rows))
    return binary(op(relation), columns - rows, max(min(int(k), beyond), -beyond))


def tril(x: Any, /, k: int = 0) -> Array:
    """Return the lower triangles of matrices, with zeros above the `k`-th diagonal.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.tril(mtl.ones((2, 2)))
    array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    return _triangle(as_array(x, "tril"), "tril", "less_equal", k)


def triu(x: Any, /, k: int = 0) -> Array:
    """Return the upper triangles of matrices, with zeros below the `k`-th diagonal."""
    return _triangle(as_array(x, "triu"), "triu", "greater_equal", k)


def _triangle(x: Array, where: str, relation: str, k: int) -> Array:
    if x.ndim < 2:
        raise ValueError(f"[{where}] expected at least two axes, got shape {x.shape}.")
    mask = Array(_diagonal(relation, x.shape, k, x.device))
    zero = Array(as_number(0, x.dtype, x.device))
    return Array(where_node(mask, x, zero))


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Array, ...]:
    """Return the coordinates of every point of a grid, one array per axis.

    Parameters
    ----------
    indexing : "xy" or "ij"
        Cartesian or matrix indexing: "xy" swaps the first two axes.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.meshgrid(mtl.arange(2), mtl.arange(3), indexing="ij")[0]
    array([[0, 0, 0],
           [1, 1, 1]], dtype=int64)
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"[meshgrid] indexing must be 'xy' or 'ij', got {indexing!r}.")
    operands = as_arrays("meshgrid", *arrays)
    if len({x.dtype for x in operands}) > 1:
        raise ValueError("[meshgrid] expected arrays of one type.")
    order = list(range(len(operands)))
    if indexing == "xy" and len(operands) > 1:
        order[:2] = [1, 0]
    shape = tuple(operands[k].size for k in order)
    results = []
    for k, x in enumerate(operands):
        own = tuple(n if order[axis] == k else 1 for axis, n in enumerate(shape))
        results.append(Array(broadcast(reshape(unshared(x._node), own), shape)))
    return tuple(results)
