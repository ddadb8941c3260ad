"""Binders of structs and of arrays of resources.

Structs with pointers, textures or samplers are Metal's argument buffers. They are encoded from a
mapping of member names to values; each member is checked like a parameter of its type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from metalloid.msl.layout import Layout
from metalloid.msl.signature import BoundParameter
from metalloid.runtime.arguments.argument_binder import ArgumentBinder
from metalloid.runtime.arguments.buffer_binder import BufferBinder, aligned_bytes
from metalloid.runtime.arguments.member_writers import WORD_BYTES, Members, writer_for
from metalloid.runtime.arguments.tensor_binder import TensorBinder
from metalloid.runtime.arguments.texture_binder import SamplerBinder, TextureBinder
from metalloid.runtime.devices.device import Device
from metalloid.runtime.launch.launches import Arguments

_ARRAY_EXTENT = re.compile(r"\[\s*(\d+)\s*\]$")


def binder_for(kernel: str, parameter: BoundParameter, device: Device) -> ArgumentBinder:
    """The binder of a parameter, by its type."""
    layout = parameter.layout
    if layout.count and layout.form != "value":
        return ResourceArrayBinder(kernel, parameter, device)
    if layout.form == "texture":
        return TextureBinder(kernel, parameter, device)
    if layout.form == "sampler":
        return SamplerBinder(kernel, parameter, device)
    if layout.form == "tensor":
        return TensorBinder(kernel, parameter, device)
    if layout.members:
        return StructBinder(kernel, parameter, device)
    return BufferBinder(kernel, parameter, device)


class EncodedStruct:
    """The bytes of a struct, and the objects they refer to.

    Attributes
    ----------
    layout : Layout
        Of its parameter.
    memory : ndarray
    arguments : Arguments
        Objects that must stay alive while a launch uses the struct, and its buffers.
    """

    def __init__(self, layout: Layout, memory: np.ndarray, arguments: Arguments) -> None:
        self.layout, self.memory, self.arguments = layout, memory, arguments

    def bind(self, bound: Arguments) -> int:
        """Address of the bytes; the objects they refer to are added to `bound`."""
        bound.keep_alive.append(self)
        bound.buffers += self.arguments.buffers
        bound.first_writes += self.arguments.first_writes
        bound.host_memory |= self.arguments.host_memory
        bound.staged += self.arguments.staged
        bound.pointers += self.arguments.pointers
        bound.pointees.update(self.arguments.pointees)
        return int(self.memory.__array_interface__["data"][0])


class StructBinder(BufferBinder):
    """Binds values to a pointer or reference to a struct with known members."""

    __slots__ = ("_members",)

    def __init__(self, kernel: str, parameter: BoundParameter, device: Device) -> None:
        super().__init__(kernel, parameter, device)
        self._members: Members | None = None  # made on first use: few launches bind members

    def bind(self, value: Any, bound: Arguments) -> int:
        """Address of a struct, or of an array of structs."""
        if type(value) is bytearray:
            return super().bind(value, bound)
        if isinstance(value, EncodedStruct):
            mine = self.parameter.layout
            if value.layout is not mine and value.layout.members != mine.members:
                raise self.refuse(value, "it was made for another struct")
            return self._bind_encoded(value, bound)
        if isinstance(value, Mapping | tuple | list):
            return self._bind_encoded(self.encode(value), bound)
        return super().bind(value, bound)

    def _bind_encoded(self, struct: EncodedStruct, bound: Arguments) -> int:
        address = struct.bind(bound)
        bound.extents[self.position] = struct.memory.nbytes
        if self.stages:
            self.stage(bound, address, struct.memory.nbytes, False)
        return address

    def encode(self, value: Any) -> EncodedStruct:
        """The bytes of a mapping (or tuple) of members, or of a list of these."""
        layout = self.parameter.layout
        if self._writes and not layout.holds_resources:
            raise self.refuse(value, "the kernel may write to it", "Pass an array or a Buffer.")
        if self._members is None:
            self._members = Members(self, self.parameter.name, layout.members, binder_for)
        elements = self._elements(value)
        bound = Arguments(0)
        memory = aligned_bytes(len(elements) * layout.bytes)
        for number, element in enumerate(elements):
            self._members.write(memory[number * layout.bytes :], element, bound)
        return EncodedStruct(layout, memory, bound)

    def _elements(self, value: Any) -> list[Any]:
        """`value` as a list of structs, pointers or textures."""
        (first, *_) = self.parameter.layout.members
        if isinstance(value, list) and (first.name or not first.count):
            elements = value
        elif isinstance(value, tuple) and not first.name and not first.count:
            elements = list(value)
        else:
            elements = [value]
        if self._is_reference and len(elements) != 1:
            raise self.refuse(value, "a reference is to one struct")
        # A parameter `device float* x[3]` is a pointer; only the text has the number.
        written = _ARRAY_EXTENT.search(self.parameter.declaration)
        if written and not first.name and len(elements) != int(written[1]):
            raise self.refuse(
                value,
                f"it expects {written[1]} elements, the {type(value).__name__} has {len(value)}",
            )
        return elements


class ResourceArrayBinder(ArgumentBinder):
    """Binds values to an array of resources, such as ``array<texture2d<float>, 4>``."""

    __slots__ = ("_writer",)

    def __init__(self, kernel: str, parameter: BoundParameter, device: Device) -> None:
        super().__init__(kernel, parameter, device)
        self._writer = writer_for(self, parameter.name, parameter.layout, binder_for)

    def bind(self, value: Any, bound: Arguments) -> int:
        """Address of the words of the elements."""
        memory = aligned_bytes(self.parameter.layout.count * WORD_BYTES)
        extents, bound.extents = bound.extents, {}  # those of elements are not the launch's
        self._writer.write(memory, value, bound)
        bound.extents = {**extents, self.position: memory.nbytes}
        bound.keep_alive.append(memory)
        address = int(memory.__array_interface__["data"][0])
        if self.stages:
            self.stage(bound, address, memory.nbytes, False)
        return address
