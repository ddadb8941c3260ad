"""The memory of a `metal_kernel`: Python values as typed arrays with shapes and strides."""

from __future__ import annotations

import contextlib
import functools
import math
import numbers
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from metalloid.dtypes import SCALARS
from metalloid.errors import ArgumentError, OutOfMemory
from metalloid.kernels.strides import row_major
from metalloid.runtime.arguments.argument_binder import describe
from metalloid.runtime.devices.device import Device
from metalloid.runtime.interop.dlpack import from_dlpack
from metalloid.runtime.memory.buffer import Buffer, ImportedBuffer, Window
from metalloid.settings import settings

#: Type in the signature by NumPy's name of the dtype.
_SIGNATURE_TYPES = {
    "bool": "bool",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "uint8": "uint8_t",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
    "uint64": "uint64_t",
    "float16": "float16_t",
    "bfloat16": "bfloat16_t",
    "float32": "float",
    "float64": "double",
    "complex64": "complex64_t",
}
#: Types that have an atomic twin.
ATOMIC_TYPES = frozenset(("bool", "int32_t", "uint32_t", "int64_t", "uint64_t", "float"))
_MAX_EXTENT = 2**31 - 1  # a shape is an array of int


@functools.cache
def signature_type(dtype: np.dtype[Any]) -> str:
    """The MSL name of `dtype` in a signature; empty if MSL has no such type."""
    return _SIGNATURE_TYPES.get(dtype.name, "")


class InputMemory:
    """An input, as the kernel will see it.

    Attributes
    ----------
    value : object
        What the caller gave.
    dtype : numpy.dtype
    type : str
        In the signature.
    shape : tuple of int
    memory : ndarray, Buffer or Window
        What is bound: the value's own memory, or a row-contiguous copy of it.
    """

    def __init__(self, label: str, value: Any, row_contiguous: bool, is_written: bool) -> None:
        self.value = value
        array = value if isinstance(value, Buffer) else as_array(label, value, is_written)
        self.dtype, self.shape = array.dtype, array.shape
        self.type = signature_type(self.dtype)
        if not self.type:
            raise ArgumentError(
                f"{label} is {describe(value)}, a type that MSL does not support."
                f"{_remedy(self.dtype)}"
            )
        if max(self.shape, default=0) > _MAX_EXTENT:
            raise ArgumentError(
                f"{label} has the shape {self.shape}; an extent is at most {_MAX_EXTENT}."
            )
        self._strides: tuple[int, ...] | None = None
        self.memory: np.ndarray | Buffer | Window = array
        self._written: np.ndarray | None = None
        if isinstance(array, np.ndarray):
            self._bind_array(label, array, row_contiguous, is_written)

    def _bind_array(
        self, label: str, array: np.ndarray, row_contiguous: bool, is_written: bool
    ) -> None:
        if is_written and not array.flags.writeable:
            raise ArgumentError(f"{label} is updated in place and is read-only. Pass a copy.")
        is_native = array.dtype.isnative and array.flags.aligned
        if is_native and array.flags.c_contiguous:
            return
        if is_native and not row_contiguous and _is_walked_forwards(array):
            self._strides = tuple(stride // array.itemsize for stride in array.strides)
            self.memory = _all_memory(array)
            return
        self.memory = np.array(array, self.dtype.newbyteorder("="), order="C", subok=False)
        if is_written:
            self._written = array

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides, in elements."""
        return row_major(self.shape) if self._strides is None else self._strides

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def companions(self, name: str) -> dict[str, Any]:
        """The parameters that describe its layout, if it is called `name`."""
        return {
            f"{name}_shape": np.array(self.shape, np.int32),
            f"{name}_strides": np.array(self.strides, np.int64),
            f"{name}_ndim": len(self.shape),
        }

    def write_back(self) -> None:
        """After the launch: update the caller's array, if the kernel worked on a copy."""
        if self._written is not None:
            self._written[...] = self.memory


def shared_memory_of(label: str, value: Any, device: Device, is_written: bool) -> Any:
    """Another library's memory of the device as a Buffer; anything else as it is."""
    if isinstance(value, Buffer | np.ndarray) or hasattr(value, "__metalloid_memory__"):
        return value
    try:
        memory = device.exchange.import_memory(value)
    except (ArgumentError, BufferError, RuntimeError) as error:
        raise ArgumentError(f"{label} is {describe(value)}: {error}") from None
    if memory is None:
        return value
    if not memory.is_contiguous or (is_written and memory.read_only):
        why = "read-only" if memory.is_contiguous else "not contiguous"
        raise ArgumentError(f"{label} is {describe(value)}, which is {why}. Pass a copy.")
    return ImportedBuffer(device, memory)


def as_array(label: str, value: Any, is_written: bool) -> np.ndarray | Window:
    """The memory of `value` as an array; a number as an array without axes."""
    if isinstance(value, np.ndarray):
        return np.asarray(value)  # without what a subclass adds
    if isinstance(value, np.generic | numbers.Number):
        if is_written:
            raise ArgumentError(
                f"{label} is updated in place and is {describe(value)}. Pass an array or a Buffer."
            )
        return number_array(label, value)
    if hasattr(value, "__metalloid_memory__"):  # a lazy array
        lazy: np.ndarray | Window = value.__metalloid_memory__(is_written)
        return lazy
    try:
        return np.asarray(memoryview(value))
    except (TypeError, ValueError):
        pass  # no buffer protocol, or of a type it has no letter for
    if hasattr(value, "__dlpack__"):
        try:
            return from_dlpack(value)
        except (ArgumentError, BufferError, RuntimeError) as error:
            raise ArgumentError(f"{label} is {describe(value)}: {error}") from None
    shares_memory = hasattr(value, "__array_interface__")
    if not isinstance(value, type) and (
        shares_memory or (hasattr(value, "__array__") and not is_written)
    ):
        return np.asarray(value)
    raise ArgumentError(
        f"{label} expects an array, a Buffer or a number, got {describe(value)}. "
        "Pass numpy.array(x, dtype)."
    )


def number_array(label: str, value: Any) -> np.ndarray:
    """A number as an array without axes, of the type that MSL gives such a literal."""
    if isinstance(value, np.generic):
        return np.asarray(value)
    if isinstance(value, bool):
        return np.array(value)
    if isinstance(value, int):
        for bits in ("int32", "int64", "uint64"):
            if np.iinfo(bits).min <= value <= np.iinfo(bits).max:
                return np.array(value, bits)
        raise ArgumentError(f"{label} is {value}, which no integer type of MSL can hold.")
    with np.errstate(over="ignore"):
        return np.array(value, np.complex64 if isinstance(value, complex) else np.float32)


def _remedy(dtype: np.dtype[Any]) -> str:
    nearest = {"c": "complex64", "f": "float64"}.get(dtype.kind)
    return f" Convert it: x.astype(numpy.{nearest})." if nearest else ""


def _is_walked_forwards(array: np.ndarray) -> bool:
    """Whether strides in whole elements, none negative, lead from its first element to all others.

    Bodies keep locations in unsigned integers, which a negative stride would make huge.
    """
    return all(
        extent == 1 or (stride >= 0 and stride % array.itemsize == 0)
        for extent, stride in zip(array.shape, array.strides, strict=True)
    )


def _all_memory(array: np.ndarray) -> np.ndarray:
    """All memory from the first element of `array` to its last, gaps included."""
    last = sum(
        (extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True)
    )
    return np.lib.stride_tricks.as_strided(
        array, (last // array.itemsize + 1,), (array.itemsize,), writeable=array.flags.writeable
    )


# -- outputs


@functools.cache
def _known_dtypes() -> dict[Any, np.dtype[Any]]:
    """Every spelling of a dtype that NumPy and MSL share.

    Python's ``float`` is not among them: NumPy takes it for a double, MSL does not.
    """
    complex64 = np.dtype(np.complex64)
    known: dict[Any, np.dtype[Any]] = dict.fromkeys((complex64, np.complex64), complex64)
    known[complex64.name] = complex64
    known[bool] = np.dtype(bool)
    for scalar in SCALARS:
        for spelling in (scalar, scalar.numpy_name, scalar.dtype, scalar.dtype.type):
            known[spelling] = scalar.dtype
    return known


def dtype_of(value: Any) -> np.dtype[Any] | None:
    """The dtype that `value` says; None if it says none that MSL has.

    Parameters
    ----------
    value : numpy.dtype, NumPy or ml_dtypes scalar type, NumPy's name of it, ScalarType, or bool
    """
    try:
        return _known_dtypes().get(value)
    except TypeError:
        return None  # not hashable


#: Makes an array, with anything in it, of a shape and a dtype.
NewMemory = Callable[[tuple[int, ...], np.dtype[Any]], np.ndarray]


def allocate(
    label: str, shape: Any, dtype: np.dtype[Any], initial: Any, new: NewMemory = np.empty
) -> np.ndarray:
    """A new array for an output; uninitialised without an initial value."""
    try:
        extents = tuple(operator.index(extent) for extent in shape)
    except TypeError:
        extents = (-1,)
    if min(extents, default=0) < 0:
        raise ArgumentError(
            f"{label} expects a shape, a sequence of numbers not below 0, got {shape!r}."
        )
    try:
        output = new(extents, dtype)
    except (MemoryError, ValueError):
        raise OutOfMemory(
            f"{label} of shape {extents} and {dtype} does not fit in memory."
        ) from None
    if initial is not None:
        output.fill(_initial(label, dtype, initial))
    return output


@contextlib.contextmanager
def uninitialised(
    names: Sequence[str], values: list[Any], outputs: Mapping[str, np.ndarray], device: Device,
    initial: Any,
) -> Iterator[list[Any]]:  # fmt: skip
    """Arguments of a launch, whose outputs the sanitizer knows to be uninitialised if it is on."""
    if initial is not None or not settings.check:
        yield values
        return
    windows = {
        name: Window(Buffer(output.nbytes, device), 0, output.dtype, output.shape)
        for name, output in outputs.items()
    }
    for window in windows.values():
        window.buffer.is_zeroed = False
    yield [windows.get(name, value) for name, value in zip(names, values, strict=True)]
    for name, output in outputs.items():
        output.reshape(-1).view(np.uint8)[...] = windows[name].buffer.host_bytes()


def _initial(label: str, dtype: np.dtype[Any], value: Any) -> np.ndarray:
    """The initial value as `dtype`; only floats may be rounded."""
    if isinstance(value, numbers.Number | np.generic):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                converted = np.array(value).astype(dtype)
                is_exact = dtype.kind not in "biu" or bool(converted == value)
            except (TypeError, ValueError, OverflowError):
                is_exact = False
        if is_exact and not (isinstance(value, complex) and dtype.kind != "c"):
            return converted
    raise ArgumentError(f"{label} is an array of {dtype}, which cannot hold init_value {value!r}.")
