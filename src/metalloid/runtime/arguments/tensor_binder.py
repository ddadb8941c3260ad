"""Binders of Metal 4 tensors: arrays of any strides, used in place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from metalloid.runtime.arguments.argument_binder import ArgumentBinder
from metalloid.runtime.launch.launches import Arguments, HostMemory
from metalloid.runtime.memory.buffer import Buffer
from metalloid.runtime.textures.descriptor import contiguous_strides


class TensorBinder(ArgumentBinder):
    """Binds arrays of n axes to a ``tensor<device T, dextents<int, n>>`` parameter.

    Strides may be any. Dimension 0 of a tensor is the innermost, the last axis of an array.
    """

    __slots__ = ()

    def bind(self, value: Any, bound: Arguments) -> int:
        """Address of the descriptor, which tensor_entry.h reads."""
        imported = self.import_memory(value, bound)
        if imported is not None:
            value = imported
        if isinstance(value, Buffer):
            if value.device is not self.device:
                raise self.refuse_device(value, value.device)
            bound.buffers.append(value)
            value.is_fresh = False  # the sanitizer looks at buffers of pointers alone
            address, strides = value.address, contiguous_strides(value.shape, value.dtype.itemsize)
            memory: Any = value
            before, nbytes = 0, value.nbytes
        else:
            memory = self.as_array(value)
            if memory is None:
                raise self.refuse(value, "it is not an array")
            if not self.parameter.layout.read_only and not memory.flags.writeable:
                raise self.refuse_read_only(value)
            bound.host_memory = True
            address, strides = memory.__array_interface__["data"][0], memory.strides
            low, high = byte_bounds(memory)
            before, nbytes = address - low, high - low
        self._check(value, memory.dtype, memory.shape, strides, address)
        steps = [stride // memory.dtype.itemsize for stride in strides]
        numbers = np.array([address, *memory.shape[::-1], *steps[::-1]], np.int64)
        bound.keep_alive += [memory, numbers]
        first = int(numbers.__array_interface__["data"][0])
        bound.pointees[first] = before, nbytes
        if self.stages:
            if not isinstance(value, Buffer):
                bound.staged.append(
                    HostMemory(low, high - low, not self.parameter.layout.read_only)
                )
                bound.pointers.append(first)
            self.stage(bound, first, numbers.nbytes, False)
        return first

    def _check(
        self,
        value: Any,
        dtype: np.dtype,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        address: int,
    ) -> None:
        layout = self.parameter.layout
        if layout.scalar is None or dtype != layout.scalar.dtype:
            required = layout.scalar.dtype if layout.scalar else "structs"
            raise self.refuse(value, f"its elements are not of {required}")
        if len(shape) != layout.rank:
            raise self.refuse(
                value, f"the tensor is of rank {layout.rank}, the array has {len(shape)} axes"
            )
        if address % dtype.itemsize or any(stride % dtype.itemsize for stride in strides):
            raise self.refuse(value, "its elements are not aligned", "Pass a copy.")
