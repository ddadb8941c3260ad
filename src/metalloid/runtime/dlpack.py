"""Read a tensor that another library offers by DLPack, without copying it.

``numpy.from_dlpack`` does the same for types NumPy has; bfloat16 tensors need this.

The structures are those of DLPack's ``dlpack.h``, version 0.8 (the unversioned capsule, which every
producer still gives when asked for nothing newer).
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from metalloid.dtypes import scalar_of
from metalloid.errors import ArgumentError

_CPU_DEVICES = (1, 3)  # kDLCPU, kDLCUDAHost
_KINDS = {0: "i", 1: "u", 2: "f", 4: "V", 6: "b"}


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Owner:
    """Keeps the capsule, and with it the producer's memory, alive; shows it as an array."""

    def __init__(self, capsule: Any, interface: dict[str, Any]) -> None:
        self.capsule = capsule
        self.__array_interface__ = interface


_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)


def from_dlpack(tensor: Any) -> np.ndarray:
    """An array on the memory of `tensor`.

    Raises
    ------
    ArgumentError
        If it is not in host memory, or of a type MSL does not have.
    """
    device_type = int(tensor.__dlpack_device__()[0])
    if device_type not in _CPU_DEVICES:
        raise ArgumentError(
            f"[dlpack] the {type(tensor).__name__} is not in host memory "
            f"(DLPack device type {device_type}). Move it there first."
        )
    # The capsule keeps its name "dltensor": its destructor gives the memory back when we drop it.
    capsule = tensor.__dlpack__()
    view = _Tensor.from_address(_get_pointer(capsule, b"dltensor"))
    try:
        dtype = scalar_of(_KINDS[view.code], view.bits // 8).dtype
    except KeyError:
        raise ArgumentError(
            f"[dlpack] MSL has no type for this {type(tensor).__name__} "
            f"(DLPack type code {view.code}, {view.bits} bits)."
        ) from None
    shape = tuple(view.shape[axis] for axis in range(view.ndim))
    strides = None
    if view.strides:
        strides = tuple(view.strides[axis] * dtype.itemsize for axis in range(view.ndim))
    bits = np.dtype(f"V{dtype.itemsize}") if dtype.kind == "V" else dtype
    interface = {
        "version": 3,
        "shape": shape,
        "strides": strides,
        "typestr": bits.str,
        "data": ((view.data or 0) + view.byte_offset, False),
    }
    return np.asarray(_Owner(capsule, interface)).view(dtype)
