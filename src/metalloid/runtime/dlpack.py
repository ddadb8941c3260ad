"""Tensors of other libraries by DLPack, without copying: theirs for us, and ours for them.

``numpy.from_dlpack`` reads host memory of the types that NumPy has; bfloat16 and the memory of GPUs
need this.

The structures are those of DLPack's ``dlpack.h``, version 0.8 (the unversioned capsule, which every
producer still gives, and every consumer takes, when asked for nothing newer).
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from metalloid.dtypes import scalar_of
from metalloid.errors import ArgumentError
from metalloid.runtime.strided import Borrowed

_CPU_DEVICES = (1, 3)  # kDLCPU, kDLCUDAHost
_DEVICES = {2: "cuda", 4: "opencl", 7: "vulkan", 8: "metal", 10: "rocm", 13: "cuda", 14: "oneapi"}
_BFLOAT = 4  # the type code
_KINDS = {0: "i", 1: "u", 2: "f", _BFLOAT: "V", 5: "c", 6: "b"}


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
    """Keeps something alive that has memory; shows the memory as an array."""

    def __init__(self, owner: Any, interface: dict[str, Any]) -> None:
        self.owner = owner
        self.__array_interface__ = interface


_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)


def _tensor_in(capsule: Any) -> _Tensor:
    return _Tensor.from_address(_get_pointer(capsule, b"dltensor"))


# -- theirs


def from_dlpack(tensor: Any) -> np.ndarray:
    """An array on the memory of `tensor`.

    Raises
    ------
    ArgumentError
        If it is not in host memory, or of a type MSL does not have.
    """
    device_type, number = map(int, tensor.__dlpack_device__())
    if device_type not in _CPU_DEVICES:
        where = _DEVICES.get(device_type, "device")
        raise ArgumentError(
            f"[dlpack] the {type(tensor).__name__} is not in host memory but on {where}:{number} "
            f"(DLPack device type {device_type}). Move it there first."
        )
    found = read_capsule(tensor.__dlpack__(), tensor)
    dtype = found.dtype
    bits = np.dtype(f"V{dtype.itemsize}") if dtype.kind == "V" else dtype
    interface = _interface(found.address, bits, found.shape, found.strides)
    return np.asarray(_Owner(found.owner, interface)).view(dtype)


def read_capsule(capsule: Any, tensor: Any) -> Borrowed:
    """What a capsule of `tensor` says.

    Raises
    ------
    ArgumentError
        If the elements are of a type that MSL does not have.
    """
    # The capsule keeps its name "dltensor": its destructor gives the memory back when we drop it.
    view = _tensor_in(capsule)
    try:
        kind, size = _KINDS[view.code], view.bits // 8
        dtype = np.dtype(f"c{size}") if kind == "c" else scalar_of(kind, size).dtype
    except (KeyError, TypeError):
        raise ArgumentError(
            f"[dlpack] MSL has no type for this {type(tensor).__name__} "
            f"(DLPack type code {view.code}, {view.bits} bits)."
        ) from None
    shape = tuple(view.shape[axis] for axis in range(view.ndim))
    strides = None
    if view.strides:
        strides = tuple(view.strides[axis] * dtype.itemsize for axis in range(view.ndim))
    return Borrowed((view.data or 0) + view.byte_offset, dtype, shape, strides, capsule)


# -- ours


def make_capsule(
    owner: Any,
    address: int,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    device: tuple[int, int],
) -> Any:
    """A capsule for memory of a device, which keeps `owner` alive as long as anybody uses it.

    NumPy makes it, of an array that nobody looks into, because a consumer may drop it in any thread
    and as late as at the end of the process, which NumPy's code in C can stand and ours could not.
    What says where the memory is, and of what type, is then put right.

    Parameters
    ----------
    strides : tuple of int, optional
        In bytes.
    device : tuple of int
        DLPack's type of it, and its number.
    """
    plain = np.dtype(np.uint16) if dtype.kind == "V" else dtype
    interface = _interface(address, plain, shape, strides)
    capsule = np.asarray(_Owner(owner, interface)).__dlpack__()
    tensor = _tensor_in(capsule)
    tensor.device_type, tensor.device_id = device
    if dtype.kind == "V":
        tensor.code = _BFLOAT
    return capsule


def _interface(
    address: int,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
) -> dict[str, Any]:
    return {
        "version": 3,
        "shape": shape,
        "strides": strides,
        "typestr": dtype.str,
        "data": (address, False),
    }
