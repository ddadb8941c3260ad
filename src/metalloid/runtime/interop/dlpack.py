"""DLPack: read the capsules of other libraries and make capsules for them, without copies.

``numpy.from_dlpack`` reads host memory of NumPy's types only. This module also reads bfloat16 and
memory of GPUs.

The structures are those of DLPack's ``dlpack.h``, version 1. Versioned capsules say whether the
memory is read-only. Libraries older than DLPack 1.0 give unversioned capsules, which do not.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from metalloid.dtypes import scalar_of
from metalloid.errors import ArgumentError
from metalloid.runtime.interop.exchange import HOST
from metalloid.runtime.interop.strided import Imported

#: The newest version that this module reads and writes.
VERSION = (1, 0)
_CPU_DEVICES = (1, 3)  # kDLCPU, kDLCUDAHost
_DEVICES = {2: "cuda", 4: "opencl", 7: "vulkan", 8: "metal", 10: "rocm", 13: "cuda", 14: "oneapi"}
_BFLOAT = 4  # the type code
_KINDS = {0: "i", 1: "u", 2: "f", _BFLOAT: "V", 5: "c", 6: "b"}
_UNVERSIONED, _VERSIONED = b"dltensor", b"dltensor_versioned"  # names of capsules
_READ_ONLY, _IS_COPIED = 1, 2  # flags of versioned capsules
_MAX_AXES = 64  # NumPy's limit


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


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


class _Owner:
    """Exposes memory as an array, and keeps the owner of the memory alive."""

    def __init__(self, owner: Any, interface: dict[str, Any]) -> None:
        self.owner = owner
        self.__array_interface__ = interface


_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_is_capsule = ctypes.pythonapi.PyCapsule_IsValid
_is_capsule.argtypes = (ctypes.py_object, ctypes.c_char_p)


# -- import


def from_dlpack(tensor: Any) -> np.ndarray:
    """An array on the memory of `tensor`, read-only if its library marks it so.

    Raises
    ------
    ArgumentError
        If it is not in host memory, or has a type that MSL lacks.
    BufferError
        If its capsule cannot be read, see `read_capsule`.
    """
    device_type, number = map(int, tensor.__dlpack_device__())
    if device_type not in _CPU_DEVICES:
        where = _DEVICES.get(device_type, "device")
        raise ArgumentError(
            f"[dlpack] the {type(tensor).__name__} is not in host memory but on {where}:{number} "
            f"(DLPack device type {device_type}). Move it there first."
        )
    imported = read_capsule(capsule_of(tensor), tensor)
    dtype = imported.dtype
    bits = np.dtype(f"V{dtype.itemsize}") if dtype.kind == "V" else dtype
    interface = _interface(
        imported.address, bits, imported.shape, imported.strides, imported.read_only
    )
    return np.asarray(_Owner(imported.owner, interface)).view(dtype)


def capsule_of(tensor: Any, **options: Any) -> Any:
    """The capsule of a tensor, versioned if its library supports that.

    Parameters
    ----------
    **options
        For ``__dlpack__``.
    """
    try:
        return tensor.__dlpack__(max_version=VERSION, **options)
    except TypeError:  # a library older than DLPack 1.0, without the argument
        return tensor.__dlpack__(**options)


def read_capsule(capsule: Any, tensor: Any) -> Imported:
    """The array that a capsule of `tensor` describes.

    Raises
    ------
    ArgumentError
        If the elements have a type that MSL lacks.
    BufferError
        If it is not a capsule of DLPack 1, its elements are vectors of several lanes, its data is
        not aligned to the element size, or its shape is invalid.
    """
    # The capsule keeps its name, so that its destructor releases the memory.
    name = type(tensor).__name__
    view, is_read_only = _opened(capsule, name)
    if view.lanes != 1:
        raise BufferError(
            f"[dlpack] the elements of this {name} are vectors ({view.lanes} lanes). "
            "Export it with one lane and the vector as an axis."
        )
    try:
        kind, (size, rest) = _KINDS[view.code], divmod(view.bits, 8)
        dtype = np.dtype(f"c{size}") if kind == "c" else scalar_of(kind, size).dtype
        if rest:
            raise KeyError(view.bits)
    except (KeyError, TypeError):
        raise ArgumentError(
            f"[dlpack] MSL has no type for this {name} "
            f"(DLPack type code {view.code}, {view.bits} bits)."
        ) from None
    shape, strides = _extents(view, dtype, name)
    address = (view.data or 0) + view.byte_offset
    if math.prod(shape) and (not view.data or address % dtype.itemsize):
        where = (
            f"starts at {address:#x}, which is not a multiple of the {dtype.itemsize} bytes "
            "of an element"
        )
        raise BufferError(
            f"[dlpack] the data of this {name} {where if view.data else 'is a null pointer'}. "
            "Pass a copy of it."
        )
    return Imported(address, dtype, shape, strides, capsule, is_read_only)


def _opened(capsule: Any, name: str) -> tuple[_Tensor, bool]:
    """The tensor in a capsule, and whether it is read-only."""
    if _is_capsule(capsule, _UNVERSIONED):
        return _Tensor.from_address(_get_pointer(capsule, _UNVERSIONED)), False
    if not _is_capsule(capsule, _VERSIONED):
        raise BufferError(
            f"[dlpack] {name}.__dlpack__() returned {capsule!r:.60}, not an unused DLPack capsule."
        )
    managed = _Versioned.from_address(_get_pointer(capsule, _VERSIONED))
    if managed.major != VERSION[0]:
        raise BufferError(
            f"[dlpack] the {name} is exported as DLPack {managed.major}.{managed.minor}; "
            f"the supported versions are {VERSION[0]}.x."
        )
    return managed.tensor, bool(managed.flags & _READ_ONLY)


def _extents(
    view: _Tensor, dtype: np.dtype[Any], name: str
) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Shape, and strides in bytes."""
    has_axes = 0 <= view.ndim <= _MAX_AXES and (view.shape or not view.ndim)
    shape = tuple(view.shape[axis] for axis in range(view.ndim)) if has_axes else ()
    if not has_axes or min(shape, default=0) < 0:
        raise BufferError(
            f"[dlpack] the shape of this {name} is not supported: {view.ndim} axes, {shape}."
        )
    if not view.strides:
        return shape, None
    return shape, tuple(view.strides[axis] * dtype.itemsize for axis in range(view.ndim))


# -- export


def can_say_read_only(max_version: tuple[int, int] | None) -> bool:
    """Whether a capsule for a consumer of `max_version` has a read-only flag."""
    is_known = np.lib.NumpyVersion(np.__version__) >= "2.1.0"  # NumPy makes the capsules
    return is_known and max_version is not None and max_version[0] >= VERSION[0]


def capsule_of_array(
    array: np.ndarray, max_version: tuple[int, int] | None, is_copied: bool = False
) -> Any:
    """A capsule for host memory; see `make_capsule`."""
    address = array.__array_interface__["data"][0]
    return make_capsule(
        owner=array,
        address=address,
        dtype=array.dtype,
        shape=array.shape,
        strides=array.strides,
        device=HOST,
        max_version=max_version,
        read_only=not array.flags.writeable,
        is_copied=is_copied,
    )


def make_capsule(
    owner: Any,
    address: int,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    device: tuple[int, int],
    max_version: tuple[int, int] | None = None,
    read_only: bool = False,
    is_copied: bool = False,
) -> Any:
    """A capsule for memory of a device, which keeps `owner` alive while a consumer uses it.

    NumPy makes the capsule, from an array that is never read: a consumer may drop it in any thread
    and as late as the end of the process, when only a destructor in C is safe. Then the device, the
    type and the flags are corrected.

    Parameters
    ----------
    strides : tuple of int, optional
        In bytes.
    device : tuple of int
        DLPack's device type and number.
    max_version : tuple of int, optional
        The newest version the consumer takes; without it the capsule is unversioned.
    read_only : bool
        Only where `can_say_read_only`.
    is_copied : bool
        Whether the memory is a copy for this consumer.
    """
    plain = np.dtype(np.uint16) if dtype.kind == "V" else dtype
    array = np.asarray(_Owner(owner, _interface(address, plain, shape, strides, read_only)))
    if can_say_read_only(max_version):
        capsule = array.__dlpack__(max_version=VERSION)
        managed = _Versioned.from_address(_get_pointer(capsule, _VERSIONED))
        managed.flags |= _IS_COPIED if is_copied else 0
        tensor = managed.tensor
    else:
        capsule = array.__dlpack__()
        tensor = _Tensor.from_address(_get_pointer(capsule, _UNVERSIONED))
    tensor.device_type, tensor.device_id = device
    if dtype.kind == "V":
        tensor.code = _BFLOAT
    return capsule


def _interface(
    address: int,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    read_only: bool,
) -> dict[str, Any]:
    return {
        "version": 3,
        "shape": shape,
        "strides": strides,
        "typestr": dtype.str,
        "data": (address, read_only),
    }
