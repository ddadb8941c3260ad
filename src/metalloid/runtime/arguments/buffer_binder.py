"""Binders of parameters that take memory: arrays, buffers, and numbers."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metalloid.errors import ArgumentError
from metalloid.msl.signature import BoundParameter
from metalloid.runtime.arguments.argument_binder import ArgumentBinder
from metalloid.runtime.devices.device import Device
from metalloid.runtime.launch.launches import Arguments, PlainParameter
from metalloid.runtime.memory.buffer import Buffer, Window

#: Alignment of all arrays in Python. MSL's long4 needs more; devices that use host memory in place
#: have to accept this.
HOST_ALIGNMENT = 16

_CTYPES: dict[tuple[str, int], Callable[[Any], Any]] = {
    ("b", 1): ctypes.c_bool,
    ("i", 1): ctypes.c_int8,
    ("i", 2): ctypes.c_int16,
    ("i", 4): ctypes.c_int32,
    ("i", 8): ctypes.c_int64,
    ("u", 1): ctypes.c_uint8,
    ("u", 2): ctypes.c_uint16,
    ("u", 4): ctypes.c_uint32,
    ("u", 8): ctypes.c_uint64,
    ("f", 4): ctypes.c_float,
    ("f", 8): ctypes.c_double,
}
#: Faster than ctypes, for the usual types; they refuse numbers too large for a float.
_PACKERS: dict[tuple[str, int], Callable[[Any], bytes]] = {
    ("i", 4): struct.Struct("=i").pack,
    ("u", 4): struct.Struct("=I").pack,
    ("f", 4): struct.Struct("=f").pack,
}
_BYTES = np.dtype("V1")
_first_byte: Callable[[Any], ctypes.c_char] = ctypes.c_char.from_buffer


class BufferBinder(ArgumentBinder):
    """Binds values to a parameter that takes memory. Common types of values are fast."""

    __slots__ = (
        "_alignment",
        "_bytes",
        "_converters",
        "_ctype",
        "_dtype",
        "_is_padded",
        "_is_plain",
        "_is_reference",
        "_is_scalar",
        "_least_bytes",
        "_maximum",
        "_minimum",
        "_pack",
        "_takes_floats",
        "_takes_ints",
        "_writes",
    )

    def __init__(self, kernel: str, parameter: BoundParameter, device: Device) -> None:
        super().__init__(kernel, parameter, device)
        layout = parameter.layout
        self._dtype = layout.scalar.dtype if layout.scalar else None
        self._writes = not layout.read_only
        self._bytes = layout.bytes
        self._alignment = min(layout.alignment, HOST_ALIGNMENT)
        padded_bytes = 4 * layout.scalar_bytes * layout.columns
        self._is_padded = layout.lanes == 3 and layout.bytes == padded_bytes
        self._is_plain = layout.kind in "biuf"
        self._ctype = _CTYPES.get((layout.kind, layout.scalar_bytes))
        bits = 8 * layout.scalar_bytes
        signed = layout.kind == "i"
        self._minimum, self._maximum = (
            (-(2 ** (bits - 1)) if signed else 0),
            2 ** (bits - signed) - 1,
        )
        self._is_reference = layout.form == "reference"
        self._least_bytes = self._bytes if self._is_reference else 0
        self._pack = _PACKERS.get((layout.kind, layout.scalar_bytes)) if self.stages else None
        self._is_scalar = (
            not self._writes and self._ctype is not None and layout.lanes * layout.columns == 1
        )
        self._takes_floats = self._is_scalar and layout.kind == "f"
        self._takes_ints = self._is_scalar and layout.kind in "iu"
        self._converters: tuple[tuple[Any, Callable[[Any, Arguments], int]], ...] = (
            (Buffer, self._bind_buffer),
            (Window, self._bind_window),
            ((bool, int, float, np.number, np.bool_), self._bind_number),
            (np.void, self._bind_structured_scalar),
            ((tuple, list), self._bind_sequence),
        )

    @property
    def plain(self) -> PlainParameter:
        """See `ArgumentBinder.plain`."""
        layout = self.parameter.layout
        number = layout.kind if self._is_scalar and layout.kind in "fiub" else ""
        dtype = None if self._is_padded else self._dtype
        return PlainParameter(
            position=self.position,
            bytes=self._bytes,
            least_bytes=self._least_bytes,
            number=number,
            number_bytes=layout.scalar_bytes,
            dtype=dtype,
            writes=self._writes,
            alignment=self._alignment,
        )

    def bind(self, value: Any, bound: Arguments) -> int:
        """Address of the memory that `value` is or becomes."""
        kind = type(value)  # common types first
        if kind is Buffer:
            buffer: Buffer = value
            nbytes = buffer.nbytes
            if nbytes % self._bytes or nbytes < self._least_bytes or (
                buffer.device is not self.device
            ):  # fmt: skip
                return self._bind_buffer(buffer, bound)  # raises the error
            bound.buffers.append(buffer)
            if self._writes and buffer.is_fresh:
                bound.first_writes.append(buffer)
            bound.extents[self.position] = nbytes
            return buffer.address
        if kind is float and self._takes_floats:
            return self._bind_scalar(value, bound)
        if kind is int and self._takes_ints and self._minimum <= value <= self._maximum:
            return self._bind_scalar(value, bound)
        if kind is np.ndarray:
            return self._bind_array(value, bound)
        if kind is bytearray and value and len(value) % self._bytes == 0:
            first = _first_byte(value)  # prevents reallocation
            address = ctypes.addressof(first)
            if address % self._alignment == 0:
                bound.host_memory = True
                bound.keep_alive.append(first)
                bound.extents[self.position] = len(value)
                if self.stages:
                    self.stage(bound, address, len(value), self._writes)
                return address
        for types, convert in self._converters:
            if isinstance(value, types):
                return convert(value, bound)
        return self._bind_imported(value, bound)

    # -- arrays

    def _bind_array(self, array: np.ndarray, bound: Arguments) -> int:
        dtype = self._dtype
        if array.dtype is not dtype and array.dtype != dtype:
            self._check_dtype(array)
        flags = array.flags
        if not flags.c_contiguous:
            raise self.refuse(
                array, "the array is not contiguous", "Pass numpy.ascontiguousarray(x)."
            )
        if self._writes and not flags.writeable:
            raise self.refuse_read_only(array)
        nbytes = array.nbytes
        if self._is_plain and nbytes and flags.writeable:
            address = ctypes.addressof(_first_byte(array))  # 4 times as fast as NumPy's
        else:
            address = array.__array_interface__["data"][0]
        if nbytes % self._bytes or (self._is_reference and nbytes < self._bytes):
            raise self._wrong_size(array, nbytes)
        if self._is_padded and array.ndim > 1 and array.shape[-1] == 3:
            raise self._wrong_size(array, 3 * array.itemsize, "a row of the value")
        if address % self._alignment:
            raise self.refuse(
                array,
                f"its memory is not aligned to {self._alignment} bytes",
                "Pass a copy (x.copy()), not a slice that starts between two elements.",
            )
        bound.host_memory = True
        bound.keep_alive.append(array)
        bound.extents[self.position] = nbytes
        if self.stages:
            self.stage(bound, address, nbytes, self._writes)
        return address

    def _check_dtype(self, array: np.ndarray | Window) -> None:
        layout, dtype = self.parameter.layout, array.dtype
        if layout.scalar is None:
            # A struct: a structured dtype of its size, or bytes. `void` takes anything.
            if self._bytes == 1 or dtype.itemsize == 1:
                return
            from metalloid.runtime.arguments.struct_dtypes import is_incompatible

            if (
                dtype.fields
                and layout.members
                and (dtype.itemsize != self._bytes or is_incompatible(layout, dtype))
            ):
                raise self._other_layout(array)
            if dtype.itemsize == self._bytes:
                return
            raise self._wrong_size(array, dtype.itemsize)
        is_pair = layout.kind == "f" and layout.lanes == 2
        if dtype.kind == "c" and is_pair and dtype.itemsize == self._bytes:
            return
        if dtype.kind == "V" and dtype.itemsize == self._bytes and dtype.fields:
            return
        required = layout.scalar.dtype
        hint = f"Convert it: x.astype({_dtype_expression(required)})."
        if not dtype.isnative:
            hint = "It is not in native byte order. " + hint
        elif dtype.kind in "iu" and required.kind in "iu" and dtype.itemsize == required.itemsize:
            hint = f"Convert it, or view its bits: x.view({_dtype_expression(required)})."
        raise self.refuse(array, f"its elements are not {required}", hint)

    def _other_layout(self, array: np.ndarray | Window) -> ArgumentError:
        from metalloid.runtime.arguments.struct_dtypes import dtype_text, layout_text

        return self.refuse(
            array,
            f"the struct holds {layout_text(self.parameter.layout)}; "
            f"an element of the array {dtype_text(array.dtype)}",
            self._dtype_hint,
        )

    @property
    def _dtype_hint(self) -> str:
        return f"kernel.dtype({self.parameter.name!r}) is the dtype to use."

    def _wrong_size(self, value: Any, nbytes: int, which: str = "the value") -> ArgumentError:
        why = f"an element takes {self._bytes} bytes, {which} has {nbytes} bytes"
        layout = self.parameter.layout
        hint = self._dtype_hint if layout.members else ""
        if self._is_padded and layout.columns == 1:
            name = layout.scalar.name if layout.scalar else ""
            hint = (
                f"A {name}3 has the size of a {name}4: pad each to 4 numbers, "
                f"or use packed_{name}3 in the kernel."
            )
        return self.refuse(value, why, hint)

    def _bind_buffer(self, buffer: Buffer, bound: Arguments) -> int:
        if buffer.device is not self.device:
            raise self.refuse_device(buffer, buffer.device)
        if buffer.nbytes % self._bytes or (self._is_reference and buffer.nbytes < self._bytes):
            raise self._wrong_size(buffer, buffer.nbytes)
        bound.keep_alive.append(buffer)
        bound.buffers.append(buffer)
        if self._writes and buffer.is_fresh:
            bound.first_writes.append(buffer)
        bound.extents[self.position] = buffer.nbytes
        return buffer.address

    def _bind_window(self, window: Window, bound: Arguments) -> int:
        if window.dtype not in (self._dtype, _BYTES):
            self._check_dtype(window)
        buffer = window.buffer
        if buffer.device is not self.device:
            raise self.refuse_device(window, buffer.device)
        if window.nbytes % self._bytes or (self._is_reference and window.nbytes < self._bytes):
            raise self._wrong_size(window, window.nbytes)
        bound.keep_alive.append(window.owner or buffer)
        bound.buffers.append(buffer)
        if self._writes and buffer.is_fresh:
            bound.first_writes.append(buffer)
        bound.extents[self.position] = window.nbytes
        return buffer.address + window.start

    def _bind_imported(self, value: Any, bound: Arguments) -> int:
        """Anything with the buffer protocol, DLPack or CUDA's array interface."""
        if isinstance(value, type):
            raise self.refuse(value, "it is a type, not a value")
        if hasattr(value, "__metalloid_memory__"):  # a lazy array
            memory = value.__metalloid_memory__(self._writes)
            bind = self._bind_window if isinstance(memory, Window) else self._bind_array
            return bind(memory, bound)
        self.check_mutable(value)
        try:
            view = memoryview(value)
        except TypeError:
            pass
        else:
            return self._bind_array(self._array_of_view(value, view), bound)
        imported = self.import_memory(value, bound)
        if imported is not None:
            return self._bind_window(Window(imported, 0, imported.dtype, imported.shape), bound)
        if hasattr(value, "__dlpack__"):
            from metalloid.runtime.interop.dlpack import from_dlpack

            try:
                array = from_dlpack(value)
            except (ArgumentError, BufferError, RuntimeError) as error:
                raise self.refuse(value, str(error)) from None
            return self._bind_array(array, bound)
        if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
            return self._bind_array(np.asarray(value), bound)
        raise self.refuse(value, "it is neither memory nor a number")

    def _array_of_view(self, value: Any, view: memoryview) -> np.ndarray:
        if not view.contiguous:
            raise self.refuse(value, "its memory is not contiguous")
        array = np.asarray(view)
        raw = view.format in ("B", "c", None) or isinstance(value, ctypes.Structure)
        if raw and self._dtype is not None and array.nbytes % self._bytes == 0:
            # Bytes are untyped: they get the type of the parameter.
            return array.reshape(-1).view(np.uint8).view(self._dtype)
        if self._dtype is None:
            return array.reshape(-1).view(np.uint8) if raw else array
        return array

    # -- numbers

    def _bind_number(self, value: Any, bound: Arguments) -> int:
        layout = self.parameter.layout
        if self._writes:
            raise self.refuse(value, "the kernel may write to it", "Pass an array or a Buffer.")
        if self._dtype is None or layout.lanes * layout.columns != 1:
            raise self.refuse(value, "a single number does not fill it")
        number = self._number(value)
        if self._ctype is None:
            return self._bind_owned(np.array(number).astype(self._dtype), bound)
        return self._bind_scalar(number, bound)

    def _bind_scalar(self, number: float, bound: Arguments) -> int:
        """Bind a number that is known to fit, as a constant where memory is staged."""
        if self._pack is not None:
            try:
                bound.constants.append((self.position, self._pack(number)))
                return 0
            except OverflowError:  # ctypes makes it an infinity
                pass
        assert self._ctype is not None
        memory = self._ctype(number)
        if self.stages:
            bound.constants.append((self.position, bytes(memory)))
            return 0
        bound.keep_alive.append(memory)
        bound.extents[self.position] = self._bytes
        return ctypes.addressof(memory)

    def _number(self, value: Any) -> float | int:
        """`value` if the parameter's scalar type can hold it."""
        kind = self.parameter.layout.kind
        if kind in "fV":
            return float(value)
        fractional = isinstance(value, float | np.floating)
        if fractional and not float(value).is_integer():  # nor are NaN and the infinities
            raise self.refuse(value, "it is not an integer")
        if kind == "b" and value not in (0, 1):
            raise self.refuse(value, "it is neither true nor false")
        number = int(value)
        if kind in "iu" and not self._minimum <= number <= self._maximum:
            raise self.refuse(value, f"it is outside [{self._minimum}, {self._maximum}]")
        return number

    def _bind_sequence(self, value: Sequence[Any], bound: Arguments) -> int:
        if self._writes:
            raise self.refuse(value, "the kernel may write to it", "Pass an array or a Buffer.")
        if self._dtype is None:
            raise self.refuse(value, "a struct is filled from bytes or a structured array")
        try:
            flat = np.array(value)
        except ValueError:  # rows of different lengths
            raise self.refuse(value, "its rows differ in length") from None
        if flat.dtype.kind not in "biuf":
            raise self.refuse(value, "it does not hold numbers only")
        numbers = [self._number(item) for item in flat.reshape(-1).tolist()]
        array = np.array(numbers).astype(self._dtype).reshape(flat.shape)
        if self._is_padded and array.size % 3 == 0 and flat.shape[-1:] != (4,):
            # (x, y, z) is a float3, whose fourth number is padding.
            rows = array.reshape(-1, 3)
            array = np.concatenate([rows, np.zeros((len(rows), 1), self._dtype)], axis=1)
        return self._bind_owned(array, bound)

    def _bind_structured_scalar(self, value: np.void, bound: Arguments) -> int:
        if self._writes:
            raise self.refuse(value, "the kernel may write to it", "Pass an array or a Buffer.")
        return self._bind_owned(np.array(value), bound)

    def _bind_owned(self, array: np.ndarray, bound: Arguments) -> int:
        """Bind a temporary array that the kernel only reads, and keep it until it has run."""
        waits = bound.host_memory
        if array.__array_interface__["data"][0] % self._alignment:
            aligned = aligned_bytes(array.nbytes).view(array.dtype).reshape(array.shape)
            aligned[...] = array
            array = aligned
        address = self._bind_array(array, bound)
        bound.host_memory = waits
        return address


def aligned_bytes(nbytes: int) -> np.ndarray:
    """Zeroed bytes, aligned for every type."""
    padded = np.zeros(nbytes + HOST_ALIGNMENT, np.uint8)
    start = -padded.__array_interface__["data"][0] % HOST_ALIGNMENT
    return padded[start : start + nbytes]


def _dtype_expression(dtype: np.dtype) -> str:
    return f"ml_dtypes.{dtype}" if dtype.kind == "V" else f"numpy.{dtype}"
