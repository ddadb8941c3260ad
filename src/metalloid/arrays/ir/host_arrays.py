"""Leaves on the values of NumPy arrays."""

from __future__ import annotations

import ctypes
import functools
import math
import weakref
from typing import Any

import numpy as np

from metalloid.arrays.ir import native
from metalloid.arrays.ir.dtypes import DType, as_dtype
from metalloid.arrays.ir.layout import Ints, contiguous
from metalloid.arrays.ir.memory import Memory, bucket_size, pool_of
from metalloid.arrays.ir.node import Node, in_memory
from metalloid.kernels.strides import row_major
from metalloid.runtime.devices.device import Device

#: Leaves that depend on nothing, such as tables: calls that are like others have them as well.
tables: weakref.WeakSet[Node] = weakref.WeakSet()
#: Results of the host up to this size are copied.
_COPIED_BYTES = 2**17


def can_share(array: np.ndarray, device: Device) -> bool:
    """Whether arrays of a device can use the memory of a NumPy array in place."""
    return (
        device.memory == "host"
        and array.dtype.isnative
        and array.flags.c_contiguous
        and array.__array_interface__["data"][0] % array.itemsize == 0
    )


def from_numpy(array: np.ndarray, device: Device, copy: bool = True, sharing: int = 0) -> Node:
    """A leaf with a copy of a NumPy array, or on its memory if it `can_share` that.

    Parameters
    ----------
    sharing : int
        Sharing of the memory, if it is used in place.
    """
    dtype = as_dtype(array.dtype)
    if not copy and can_share(array, device):
        memory = Memory.of(device, array.reshape(-1), sharing)
        return in_memory(memory, contiguous(array.shape), dtype)
    is_plain = device.memory == "host" and array.dtype == dtype and array.flags.c_contiguous
    if is_plain and array.size:
        leaf: Node | None = native.copied_leaf(recipe(array.shape, dtype, device), array)
        if leaf is not None:
            return leaf
    memory = Memory(device, array.size * dtype.itemsize)
    memory.begin_overwriting()
    layout = contiguous(array.shape)
    if is_plain:
        ctypes.memmove(memory.address, array.__array_interface__["data"][0], array.nbytes)
    elif device.memory != "own":
        memory.host_view(dtype, layout.shape, layout.strides, 0)[...] = array
    elif array.size:
        plain = np.ascontiguousarray(array, dtype)
        device.copy_in(memory.bound.address, plain.reshape(-1).view(np.uint8).data)
    return in_memory(memory, layout, dtype)


@functools.lru_cache(maxsize=1024)
def recipe(shape: Ints, dtype: DType, device: Device) -> tuple[Any, ...]:
    """Properties of a contiguous leaf, for native functions (native/fresh_array.c)."""
    size = bucket_size(math.prod(shape) * dtype.itemsize)
    return pool_of(device).address, size, as_dtype(dtype), shape, (row_major(shape), 0)


def table(array: np.ndarray, device: Device) -> Node:
    """A leaf with numbers that depend on nothing."""
    node = from_numpy(array, device)
    tables.add(node)
    return node


def from_result(array: np.ndarray, device: Device) -> Node:
    """A leaf with an array to which nothing else refers.

    Small ones are copied to memory of the pool, which is faster to read than imported memory.
    """
    return from_numpy(array, device, copy=array.nbytes <= _COPIED_BYTES)
