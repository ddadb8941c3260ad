"""Elements that masks select, and their indices, on the host: by native/compaction.c, or NumPy."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from metalloid.arrays.ir import native
from metalloid.arrays.ir.dtypes import DType, as_dtype
from metalloid.arrays.ir.host_arrays import from_result
from metalloid.arrays.ir.layout import contiguous
from metalloid.arrays.ir.memory import Memory
from metalloid.arrays.ir.node import Node, in_memory
from metalloid.runtime.devices.device import Device

_ITEM_BYTES = {1, 2, 4, 8, 16}
_AVX512_BYTES = 64
_INT64 = as_dtype("int64")


def elements_at_true(values: np.ndarray, mask: np.ndarray, device: Device) -> Node:
    """A leaf with the elements of a vector at the true elements of another one."""
    functions = native.library()
    if functions is None or values.itemsize not in _ITEM_BYTES:
        return from_result(np.compress(mask, values), device)
    values = np.ascontiguousarray(values)
    return _compacted(functions, values, mask, as_dtype(values.dtype), device)


def indices_of_true(mask: np.ndarray, device: Device) -> Node:
    """A leaf with the indices of the true elements of a vector."""
    functions = native.library()
    if functions is None:
        return from_result(np.flatnonzero(mask), device)
    return _compacted(functions, None, mask, _INT64, device)


def _compacted(
    functions: Any, values: np.ndarray | None, mask: np.ndarray, dtype: DType, device: Device
) -> Node:
    mask = np.ascontiguousarray(mask)
    count = int(np.count_nonzero(mask))
    memory = Memory(device, count * dtype.itemsize)
    memory.begin_overwriting()
    given = 0 if values is None else _address(values)
    has_avx512 = device.traits.vector_bytes == _AVX512_BYTES
    words = given, _address(mask), memory.address, mask.size, count, dtype.itemsize, has_avx512
    functions.mtl_compact(struct.pack("=7q", *words))
    return in_memory(memory, contiguous((count,)), dtype)


def _address(array: np.ndarray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
