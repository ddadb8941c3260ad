"""Binders of textures and samplers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from metalloid.errors import ArgumentError
from metalloid.msl.layout import TextureType
from metalloid.msl.signature import BoundParameter
from metalloid.runtime.arguments.argument_binder import ArgumentBinder
from metalloid.runtime.devices.device import Device
from metalloid.runtime.launch.launches import Arguments, HostMemory
from metalloid.runtime.memory.buffer import Buffer
from metalloid.runtime.textures.descriptor import (
    FIRST_LEVEL,
    KIND_EXTENTS,
    KIND_SHAPES,
    LevelMemory,
    contiguous_strides,
    descriptor,
    extents_problem,
)
from metalloid.runtime.textures.pixel_formats import LONG_FORMAT, PixelFormat, dtypes_of, format_of
from metalloid.runtime.textures.sampler import Sampler
from metalloid.runtime.textures.texture import Texture, padding_hint


class TextureBinder(ArgumentBinder):
    """Binds a `Texture` to a texture parameter, or an array whose texels are used in place."""

    __slots__ = ("_axes", "_element_kind", "_type", "_writes")

    def __init__(self, kernel: str, parameter: BoundParameter, device: Device) -> None:
        super().__init__(kernel, parameter, device)
        assert parameter.layout.texture is not None
        self._type: TextureType = parameter.layout.texture
        self._axes = len(KIND_EXTENTS[self._type.kind])
        self._element_kind = parameter.layout.kind
        self._writes = not parameter.layout.read_only

    def bind(self, value: Any, bound: Arguments) -> int:
        """Address of the descriptor of a texture."""
        if isinstance(value, Texture):
            return self._bind_texture(value, bound)
        imported = self.import_memory(value, bound)
        if imported is not None:
            value = imported
        if isinstance(value, Buffer):
            # Reads of the buffer wait for its launches.
            if value.device is not self.device:
                raise self.refuse_device(value, value.device)
            strides = contiguous_strides(value.shape, value.dtype.itemsize)
            bound.buffers.append(value)
            value.is_fresh = False  # the sanitizer looks at buffers of pointers alone
            bound.keep_alive.append(value)
            return self._describe(value, value.dtype, value.shape, strides, value.address, bound)
        array = self._as_array(value)
        if self._writes and not array.flags.writeable:
            raise self.refuse_read_only(value)
        address = array.__array_interface__["data"][0]
        bound.host_memory = True
        bound.keep_alive.append(array)
        word = self._describe(value, array.dtype, array.shape, array.strides, address, bound)
        if self.stages:
            low, high = byte_bounds(array)
            bound.staged.insert(-1, HostMemory(low, high - low, self._writes))
            bound.pointers.append(word + FIRST_LEVEL)
        return word

    def _bind_texture(self, texture: Texture, bound: Arguments) -> int:
        if texture.device is not self.device:
            raise self.refuse_device(texture, texture.device)
        if texture.kind != self._type.kind:
            raise self.refuse(texture, f"it is of the kind {texture.kind!r}")
        self._check_format(texture, texture.pixel_format)
        bound.keep_alive.append(texture)
        bound.buffers.append(texture.memory)
        return texture.address

    def _as_array(self, value: Any) -> np.ndarray:
        array = self.as_array(value)
        if array is not None:
            return array
        try:
            return np.asarray(memoryview(value))
        except TypeError:
            pass
        if hasattr(value, "__array_interface__") and not isinstance(value, type):
            return np.asarray(value)
        raise self.refuse(value, "it is not an image", f"Pass an array of shape {self._shape}.")

    def _describe(
        self,
        value: Any,
        dtype: np.dtype,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        address: int,
        bound: Arguments,
    ) -> int:
        """Address of a new descriptor of texels in memory."""
        if len(shape) not in (self._axes, self._axes + 1):
            raise self.refuse(value, f"its shape is not {self._shape}")
        channels = shape[-1] if len(shape) > self._axes else 1
        if self._is_long and channels != 1:
            raise self.refuse(value, "a texture of ulong has one channel")
        if channels not in (1, 2, 4):
            raise self.refuse(
                value, f"texels have 1, 2 or 4 channels, not {channels}", padding_hint(channels)
            )
        pixel_format = format_of(dtype, channels, self._element_kind)
        if self._is_long:
            pixel_format = LONG_FORMAT if dtype == np.uint64 else None
        if pixel_format is None:
            raise self._wrong_dtype(value, dtype)
        self._check_format(value, pixel_format)
        extents = shape[: self._axes]
        if problem := extents_problem(self._type.kind, extents):
            raise self.refuse(value, problem)
        self._check_memory(value, address, shape, strides, dtype.itemsize)
        level = LevelMemory(address, extents, strides[: self._axes], pixel_format.bytes)
        memory = np.frombuffer(descriptor(self._type.kind, pixel_format.code, [level]), np.uint8)
        bound.keep_alive.append(memory)
        word = int(memory.__array_interface__["data"][0])
        if self.stages:
            self.stage(bound, word, memory.nbytes, False)
        return word

    def _check_memory(
        self,
        value: Any,
        address: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        itemsize: int,
    ) -> None:
        """Rows and slices may have any stride; the texels of a row must be contiguous."""
        channels = shape[-1] if len(shape) > self._axes else 1
        texel = strides[self._axes - 1]
        is_contiguous = texel == itemsize * channels or shape[self._axes - 1] == 1
        if len(shape) > self._axes:
            is_contiguous = is_contiguous and (strides[-1] == itemsize or channels == 1)
        if self._type.kind == "cube_array":
            is_contiguous = is_contiguous and strides[0] == 6 * strides[1]
        if not is_contiguous:
            raise self.refuse(
                value,
                "the texels of a row are not contiguous",
                "Pass numpy.ascontiguousarray(x).",
            )
        if address % itemsize or any(stride % itemsize for stride in strides):
            raise self.refuse(value, "its texels are not aligned", "Pass a copy.")

    def _check_format(self, value: Any, pixel_format: PixelFormat) -> None:
        if self._is_long and pixel_format is not LONG_FORMAT:
            raise self.refuse(value, f"textures of ulong read {LONG_FORMAT.name}")
        if pixel_format.element_kind != self._element_kind:
            readers = {"f": "float or half", "i": "int or short", "u": "uint or ushort"}
            raise self.refuse(
                value,
                f"{pixel_format.name} is read by textures of {readers[pixel_format.element_kind]}",
            )
        if self._type.is_depth and pixel_format.channels != 1:
            raise self.refuse(value, "a depth texture has one channel")

    def _wrong_dtype(self, value: Any, dtype: np.dtype) -> ArgumentError:
        names = ("uint64",) if self._is_long else dtypes_of(self._element_kind)
        listed = " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
        return self.refuse(
            value,
            f"a texture of {self._type.element} has components of {listed}",
            "Convert it to native byte order."
            if not dtype.isnative
            else f"Convert it: x.astype(numpy.{names[-1]}).",
        )

    @property
    def _is_long(self) -> bool:
        return self._type.element == "ulong"

    @property
    def _shape(self) -> str:
        return KIND_SHAPES[self._type.kind]


class SamplerBinder(ArgumentBinder):
    """Binds a `Sampler` to a sampler parameter, whose word it is."""

    __slots__ = ()

    def bind(self, value: Any, bound: Arguments) -> int:
        """The word of a `Sampler`."""
        if not isinstance(value, Sampler):
            raise self.refuse(value, "it is not a sampler", "Pass metalloid.Sampler(...).")
        return value.word
