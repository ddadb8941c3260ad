"""Bind Python values to the parameters of a kernel, and check that they fit.

Everything a launch could get wrong is found here, before anything runs. Memory is never copied:
a kernel works on the caller's own array.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metalloid.errors import ArgumentError
from metalloid.msl.signature import BoundParameter, Signature
from metalloid.runtime.buffer import Buffer
from metalloid.runtime.device import Arguments, Device
from metalloid.runtime.dlpack import from_dlpack

_THREADGROUP_ALIGNMENT = 16
#: Threadgroup memory a launch may ask for: what Apple's GPUs have.
MAX_THREADGROUP_BYTES = 32 * 1024
#: Alignment that every array of Python's world has. MSL's long4 wants more; devices that read the
#: caller's arrays in place must do with this.
HOST_ALIGNMENT = 16

_first_byte: Callable[[Any], ctypes.c_char] = ctypes.c_char.from_buffer


@dataclass(frozen=True)
class ThreadgroupMemory:
    """The argument for a ``threadgroup T* [[threadgroup(n)]]`` parameter: how much of it."""

    nbytes: int


def threadgroup_memory(nbytes: int) -> ThreadgroupMemory:
    """Memory of `nbytes` bytes that the threads of each threadgroup share.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.threadgroup_memory(256 * 4)
    ThreadgroupMemory(nbytes=1024)
    """
    if not isinstance(nbytes, int) or nbytes < 0:
        raise ArgumentError(f"[threadgroup_memory] wants a size in bytes, got {nbytes!r}.")
    return ThreadgroupMemory(nbytes)


class Binder:
    """Binds arguments to one signature, again and again."""

    def __init__(self, signature: Signature, device: Device) -> None:
        self.signature = signature
        self._buffers = [_BufferSlot(signature.name, p, device) for p in signature.buffers]
        self._threadgroup = signature.threadgroup
        self._names = {p.name: p for p in signature.buffers + signature.threadgroup if p.name}
        self._count = len(signature.sources)

    def bind(self, args: Sequence[Any], named: Mapping[str, Any]) -> Arguments:
        """Bind arguments by position (the order of the buffer indices) and by name.

        Raises
        ------
        ArgumentError
            Naming the kernel, the parameter, what it wants and what it got.
        """
        bound = Arguments(self._count)
        if named or self._threadgroup:
            args, sizes = self._arrange(args, named)
            self._bind_threadgroup(bound, sizes)
        if len(args) != len(self._buffers):
            raise self._wrong_count(len(args))
        words = bound.words
        for slot, value in zip(self._buffers, args, strict=True):
            words[slot.position] = slot.bind(value, bound)
        return bound

    def _arrange(
        self, args: Sequence[Any], named: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Memory arguments in order of their index, and threadgroup arguments by label."""
        sizes = {}
        plain = []
        unnamed = [p for p in self._threadgroup if p.name not in named]
        for value in args:
            if isinstance(value, ThreadgroupMemory) and unnamed:
                sizes[unnamed.pop(0).label] = value
            else:
                plain.append(value)
        values: dict[int, Any] = {}
        for name, value in named.items():
            parameter = self._names.get(name)
            if parameter is None:
                raise ArgumentError(
                    f"[{self.signature.name}] has no parameter {name!r}. "
                    f"Its parameters: {', '.join(self._names) or 'none'}."
                )
            if parameter.is_threadgroup:
                sizes[parameter.label] = value
            else:
                values[parameter.position] = value
        places = [slot.position for slot in self._buffers]
        remaining = [position for position in places if position not in values]
        if len(plain) > len(remaining) and any(p.label not in sizes for p in self._threadgroup):
            self._threadgroup_bytes(unnamed[0], plain[-1])
        if len(plain) > len(remaining):
            raise self._wrong_count(len(args) + len(named))
        values.update(zip(remaining, plain, strict=False))
        missing = [slot.label for slot in self._buffers if slot.position not in values]
        missing += [p.label for p in self._threadgroup if p.label not in sizes]
        if missing:
            raise ArgumentError(
                f"[{self.signature.name}] got no value for {', '.join(missing)}. "
                f"Signature: {self.signature}"
            )
        return [values[position] for position in places], sizes

    def _bind_threadgroup(self, bound: Arguments, sizes: Mapping[str, Any]) -> None:
        total = 0
        for parameter in self._threadgroup:
            nbytes = self._threadgroup_bytes(parameter, sizes[parameter.label])
            bound.words[parameter.position] = total
            total += -(-nbytes // _THREADGROUP_ALIGNMENT) * _THREADGROUP_ALIGNMENT
        if total > MAX_THREADGROUP_BYTES:
            raise ArgumentError(
                f"[{self.signature.name}] asks for {total} bytes of threadgroup memory; "
                f"there are {MAX_THREADGROUP_BYTES}."
            )
        bound.threadgroup_bytes = total

    def _threadgroup_bytes(self, parameter: BoundParameter, value: Any) -> int:
        if not isinstance(value, ThreadgroupMemory):
            raise ArgumentError(
                f"[{self.signature.name}] {parameter.label} wants "
                f"metalloid.threadgroup_memory(nbytes), got {_describe(value)}."
            )
        if value.nbytes % parameter.layout.bytes:
            raise ArgumentError(
                f"[{self.signature.name}] {parameter.label} holds elements of "
                f"{parameter.layout.bytes} bytes ({parameter.declaration}), "
                f"got {value.nbytes} bytes."
            )
        return value.nbytes

    def _wrong_count(self, got: int) -> ArgumentError:
        wanted = len(self._buffers) + len(self._threadgroup)
        return ArgumentError(
            f"[{self.signature.name}] wants {wanted} argument{'s' * (wanted != 1)}, got {got}. "
            f"Signature: {self.signature}"
        )


class _BufferSlot:
    """One parameter that takes memory, ready to check values quickly."""

    __slots__ = (
        "_alignment",
        "_bytes",
        "_converters",
        "_device",
        "_dtype",
        "_is_padded",
        "_is_plain",
        "_is_reference",
        "_kernel",
        "_parameter",
        "_writes",
        "label",
        "position",
    )

    def __init__(self, kernel: str, parameter: BoundParameter, device: Device) -> None:
        layout = parameter.layout
        self._kernel, self._parameter, self._device = kernel, parameter, device
        self.position, self.label = parameter.position, parameter.label
        self._dtype = layout.scalar.dtype if layout.scalar else None
        self._writes = not layout.read_only
        self._bytes = layout.bytes
        self._alignment = min(layout.alignment, HOST_ALIGNMENT)
        self._is_padded = layout.lanes == 3 and layout.bytes == 4 * layout.scalar_bytes
        self._is_plain = layout.kind in "biuf"
        self._is_reference = layout.form == "reference"
        self._converters: tuple[tuple[Any, Callable[[Any, Arguments], int]], ...] = (
            (Buffer, self._bind_buffer),
            ((bool, int, float, np.number, np.bool_), self._bind_number),
            (np.void, self._bind_structured_scalar),
            ((tuple, list), self._bind_sequence),
        )

    def bind(self, value: Any, bound: Arguments) -> int:
        """Address of the memory that `value` is or becomes."""
        if type(value) is np.ndarray:
            return self._bind_array(value, bound)
        for types, convert in self._converters:
            if isinstance(value, types):
                return convert(value, bound)
        if isinstance(value, ThreadgroupMemory):
            raise self._refuse(value, "threadgroup memory goes to [[threadgroup(n)]] parameters")
        return self._bind_foreign(value, bound)

    # -- arrays

    def _bind_array(self, array: np.ndarray, bound: Arguments) -> int:
        dtype = self._dtype
        if array.dtype is not dtype and array.dtype != dtype:
            self._check_dtype(array)
        flags = array.flags
        if not flags.c_contiguous:
            raise self._refuse(
                array, "the array is not contiguous", "Pass numpy.ascontiguousarray(x)."
            )
        if self._writes and not flags.writeable:
            raise self._refuse(
                array, "the kernel may write to it and the array is read-only", "Pass a copy."
            )
        nbytes = array.nbytes
        if self._is_plain and nbytes and flags.writeable:
            address = ctypes.addressof(_first_byte(array))  # four times as quick as asking NumPy
        else:
            address = array.__array_interface__["data"][0]
        if nbytes % self._bytes or (self._is_reference and nbytes < self._bytes):
            raise self._wrong_size(array, nbytes)
        if self._is_padded and array.ndim > 1 and array.shape[-1] == 3:
            raise self._wrong_size(array, 3 * array.itemsize, "a row of the value")
        if address % self._alignment:
            raise self._refuse(
                array,
                f"its memory is not aligned to {self._alignment} bytes",
                "Pass a copy (x.copy()), not a slice that starts between two elements.",
            )
        bound.host_memory = True
        bound.keep.append(array)
        return address

    def _check_dtype(self, array: np.ndarray) -> None:
        layout, dtype = self._parameter.layout, array.dtype
        if layout.scalar is None:
            # A struct: a structured dtype of its size, or bytes. `void` takes anything.
            if self._bytes == 1 or dtype.itemsize == self._bytes or dtype.itemsize == 1:
                return
            raise self._wrong_size(array, dtype.itemsize)
        is_pair = layout.kind == "f" and layout.lanes == 2
        if dtype.kind == "c" and is_pair and dtype.itemsize == self._bytes:
            return
        if dtype.kind == "V" and dtype.itemsize == self._bytes and dtype.fields:
            return
        wanted = layout.scalar.dtype
        hint = f"Convert it: x.astype({_dtype_expression(wanted)})."
        if dtype.kind in "iu" and wanted.kind in "iu" and dtype.itemsize == wanted.itemsize:
            hint = f"Convert it, or view its bits: x.view({_dtype_expression(wanted)})."
        if not dtype.isnative:
            hint = "Its byte order is not this machine's: " + hint
        raise self._refuse(array, f"its elements are not {wanted}", hint)

    def _wrong_size(self, value: Any, nbytes: int, which: str = "the value") -> ArgumentError:
        why = f"an element takes {self._bytes} bytes, {which} has {nbytes} bytes"
        layout = self._parameter.layout
        hint = ""
        if self._is_padded and layout.columns == 1:
            name = layout.scalar.name if layout.scalar else ""
            hint = (
                f"A {name}3 takes as much room as a {name}4: pad each to 4 numbers, "
                f"or use packed_{name}3 in the kernel."
            )
        return self._refuse(value, why, hint)

    def _bind_buffer(self, buffer: Buffer, bound: Arguments) -> int:
        if buffer.device is not self._device:
            raise self._refuse(
                buffer, f"it is on {buffer.device.name}, the kernel on {self._device.name}"
            )
        if buffer.nbytes % self._bytes or (self._is_reference and buffer.nbytes < self._bytes):
            raise self._wrong_size(buffer, buffer.nbytes)
        bound.keep.append(buffer)
        bound.buffers.append(buffer)
        return buffer.address

    def _bind_foreign(self, value: Any, bound: Arguments) -> int:
        """Anything with the buffer protocol or DLPack."""
        try:
            view = memoryview(value)
        except TypeError:
            pass
        else:
            return self._bind_array(self._array_of_view(value, view), bound)
        if hasattr(value, "__dlpack__"):
            try:
                array = from_dlpack(value)
            except (ArgumentError, BufferError, RuntimeError) as error:
                raise self._refuse(value, str(error)) from None
            return self._bind_array(array, bound)
        if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
            return self._bind_array(np.asarray(value), bound)
        raise self._refuse(value, "it is neither memory nor a number")

    def _array_of_view(self, value: Any, view: memoryview) -> np.ndarray:
        if not view.contiguous:
            raise self._refuse(value, "its memory is not contiguous")
        array = np.asarray(view)
        raw = view.format in ("B", "c", None) or isinstance(value, ctypes.Structure)
        if raw and self._dtype is not None and array.nbytes % self._bytes == 0:
            # Bytes have no type of their own: they are taken as what the parameter wants.
            return array.reshape(-1).view(np.uint8).view(self._dtype)
        if self._dtype is None:
            return array.reshape(-1).view(np.uint8) if raw else array
        return array

    # -- numbers

    def _bind_number(self, value: Any, bound: Arguments) -> int:
        layout = self._parameter.layout
        if isinstance(value, np.ndarray):
            return self._bind_array(value, bound)
        if self._writes:
            raise self._refuse(value, "the kernel may write to it", "Pass an array or a Buffer.")
        if self._dtype is None or layout.lanes * layout.columns != 1:
            raise self._refuse(value, "a single number does not fill it")
        return self._bind_owned(self._number(value), bound)

    def _number(self, value: Any) -> np.ndarray:
        assert self._dtype is not None
        kind = self._parameter.layout.kind
        if kind in "iu":
            if isinstance(value, float | np.floating) and not float(value).is_integer():
                raise self._refuse(value, "it is not a whole number")
            if isinstance(value, float | np.floating) and not math.isfinite(value):
                raise self._refuse(value, "it is not a whole number")
            limits = np.iinfo(self._dtype)
            if not limits.min <= int(value) <= limits.max:
                raise self._refuse(value, f"it is outside [{limits.min}, {limits.max}]")
            return np.array(int(value), self._dtype)
        if kind == "b" and value not in (0, 1):
            raise self._refuse(value, "it is neither true nor false")
        with np.errstate(over="ignore"):
            return np.array(value).astype(self._dtype)

    def _bind_sequence(self, value: Sequence[Any], bound: Arguments) -> int:
        if self._writes:
            raise self._refuse(value, "the kernel may write to it", "Pass an array or a Buffer.")
        if self._dtype is None:
            raise self._refuse(value, "a struct is filled from bytes or a structured array")
        try:
            flat = np.array(value)
            numbers = [self._number(item) for item in flat.reshape(-1).tolist()]
        except (ValueError, TypeError) as error:
            if isinstance(error, ArgumentError):
                raise
            raise self._refuse(value, "it does not hold numbers only") from None
        array = np.array(numbers, self._dtype).reshape(flat.shape)
        if self._is_padded and array.size % 3 == 0:
            # The author of (x, y, z) means a float3, whose fourth number is padding.
            rows = array.reshape(-1, 3)
            array = np.concatenate([rows, np.zeros((len(rows), 1), self._dtype)], axis=1)
        return self._bind_owned(array, bound)

    def _bind_structured_scalar(self, value: np.void, bound: Arguments) -> int:
        if self._writes:
            raise self._refuse(value, "the kernel may write to it", "Pass an array or a Buffer.")
        return self._bind_owned(np.array(value), bound)

    def _bind_owned(self, array: np.ndarray, bound: Arguments) -> int:
        """Bind a value of our own making: read by the kernel only, and kept until it has run."""
        waits = bound.host_memory
        if array.__array_interface__["data"][0] % self._alignment:
            room = np.empty(array.nbytes + self._alignment, np.uint8)
            start = -room.__array_interface__["data"][0] % self._alignment
            aligned = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
            aligned[...] = array
            array = aligned
        address = self._bind_array(array, bound)
        bound.host_memory = waits
        return address

    # -- errors

    def _refuse(self, value: Any, why: str, hint: str = "") -> ArgumentError:
        text = (
            f"[{self._kernel}] {self.label} wants {self._parameter.declaration}, "
            f"got {_describe(value)}: {why}."
        )
        return ArgumentError(f"{text} {hint}".rstrip())


def _dtype_expression(dtype: np.dtype) -> str:
    return f"ml_dtypes.{dtype}" if dtype.kind == "V" else f"numpy.{dtype}"


def _describe(value: Any) -> str:
    """A value in a few words: its type, and its dtype and shape or itself."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} with shape {value.shape}"
    if isinstance(value, Buffer):
        return f"a Buffer of {value.nbytes} bytes"
    if hasattr(value, "dtype") and hasattr(value, "shape") and not isinstance(value, np.generic):
        return f"a {type(value).__name__} of {value.dtype} with shape {tuple(value.shape)}"
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 40 else text[:37] + '...'}"
