"""Arguments of builders: memory with a shape and strides, read in place wherever it can be."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from metalloid.errors import ArgumentError
from metalloid.kernels.metal_kernel_memory import as_array, number_array, shared_memory_of
from metalloid.kernels.strides import row_major
from metalloid.runtime.arguments.argument_binder import describe
from metalloid.runtime.devices.registry import get_device
from metalloid.runtime.memory.buffer import Buffer

#: Ids are 32-bit, so that this many elements can have a thread each.
MAX_ELEMENTS = 2**32 - 1


class Operand:
    """An argument, as the kernel will see it.

    Attributes
    ----------
    label : str
        How messages call it.
    value : object
        What the caller gave.
    dtype : numpy.dtype
    shape, strides : tuple of int
        Strides in elements.
    start : int
        Element of the memory that is its first.
    memory : ndarray, Buffer or number
        What is bound.
    is_number : bool
        A number, not an array.
    is_weak : bool
        A number of Python's, which takes the type of the others.
    """

    def __init__(self, label: str, value: Any, is_written: bool, is_raw: bool = False) -> None:
        self.label, self.value = label, value
        self.is_number = isinstance(value, numbers.Number | np.generic)
        self.is_weak = self.is_number and not isinstance(value, np.generic)
        self._original: np.ndarray | None = None
        self.start = 0
        self.memory: Any = value
        self.shape: tuple[int, ...] = ()
        self.strides: tuple[int, ...] = ()
        if self.is_number and is_written:
            raise ArgumentError(f"{label} is an output, got {describe(value)}. Pass an array.")
        if self.is_number:
            self.dtype = number_array(label, value).dtype
            return
        value = shared_memory_of(label, value, get_device(), is_written)
        array = value if isinstance(value, Buffer) else as_array(label, value, is_written)
        # `newbyteorder` makes a new dtype, which NumPy's own one equals but is not.
        dtype = array.dtype
        self.dtype, self.shape = dtype if dtype.isnative else dtype.newbyteorder("="), array.shape
        if isinstance(array, np.ndarray):
            if is_written and not array.flags.writeable:
                raise ArgumentError(f"{label} is an output and is read-only. Pass a copy.")
            self._bind_array(array, is_written, is_raw)
        else:
            self.memory, self.strides = array, row_major(self.shape)

    def _bind_array(self, array: np.ndarray, is_written: bool, is_raw: bool) -> None:
        size = array.itemsize
        is_walkable = array.dtype.isnative and array.flags.aligned and size > 0
        if is_raw:
            is_walkable &= array.flags.c_contiguous
        if is_walkable and all(stride % size == 0 for stride in array.strides):
            self.strides = tuple(stride // size for stride in array.strides)
            self.memory, self.start = _window(array, self.strides)
            return
        self.memory = np.array(array, self.dtype, order="C", subok=False).reshape(-1)
        self.strides = row_major(self.shape)
        if is_written:
            self._original = array

    def detach_from(self, outputs: Sequence[Operand]) -> None:
        """Copy the memory if an output overlaps it differently: threads read the old elements."""
        if not isinstance(self.memory, np.ndarray):
            return
        for output in outputs:
            other = output.memory
            if isinstance(other, np.ndarray) and np.may_share_memory(self.memory, other):
                same = self.memory.ctypes.data == other.ctypes.data and self.start == output.start
                if not (same and (self.shape, self.strides) == (output.shape, output.strides)):
                    self.memory = self.memory.copy()

    def broadcast(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Its strides as an array of `shape`."""
        missing = len(shape) - len(self.shape)
        own = (
            0 if extent == 1 else stride
            for extent, stride in zip(self.shape, self.strides, strict=True)
        )
        return (0,) * missing + tuple(own)

    def write_back(self) -> None:
        """After the launch: update the caller's array, if the kernel worked on a copy."""
        if self._original is not None:
            self._original[...] = self.memory.reshape(self.shape)

    @property
    def is_converted(self) -> bool:
        """Whether the launch gets something else than the caller's number or array."""
        if self.is_number:
            return self.dtype == np.complex64
        is_own = isinstance(self.memory, np.ndarray) and self.memory.size and self.shape
        return not is_own or self.dtype == np.complex64

    @property
    def bound(self) -> Any:
        """The argument for the launch: complex numbers as pairs of floats."""
        if isinstance(self.memory, np.ndarray) and not self.memory.size:
            return np.zeros(2, self.dtype).view(
                np.float32 if self.dtype.kind == "c" else self.dtype
            )
        if self.dtype != np.complex64:
            return self.memory
        if self.is_number:
            return np.array([self.value], np.complex64).view(np.float32)
        return self.memory.view(np.float32) if isinstance(self.memory, np.ndarray) else self.memory


def _window(array: np.ndarray, strides: tuple[int, ...]) -> tuple[np.ndarray, int]:
    """All memory between the outermost elements of an array, and which one is its first."""
    if array.size == 0:
        return np.empty(0, array.dtype), 0
    steps = [(extent - 1) * step for extent, step in zip(array.shape, strides, strict=True)]
    below, above = sum(step for step in steps if step < 0), sum(s for s in steps if s > 0)
    corner = array[(..., *(slice(-1, None) if step < 0 else slice(1) for step in steps))]
    window = np.lib.stride_tricks.as_strided(
        corner, (above - below + 1,), (array.itemsize,), writeable=array.flags.writeable
    )
    return window, -below


def new_output(shape: tuple[int, ...], dtype: np.dtype[Any], as_buffer: bool) -> Any:
    """Uninitialised memory for a result; a Buffer where the inputs are Buffers."""
    if not as_buffer:
        return np.empty(shape, dtype)
    buffer = Buffer(math.prod(shape) * dtype.itemsize)
    buffer.dtype, buffer.shape = dtype, shape
    return buffer
