"""Textures on a device."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from metalloid.display import is_image, png
from metalloid.errors import ArgumentError
from metalloid.runtime.devices.device import Device
from metalloid.runtime.memory.buffer import Buffer
from metalloid.runtime.textures.descriptor import (
    KIND_EXTENTS,
    KIND_SHAPES,
    LevelMemory,
    contiguous_strides,
    descriptor,
    extents_problem,
)
from metalloid.runtime.textures.mipmaps import mip_shapes, smaller
from metalloid.runtime.textures.pixel_formats import FORMATS, PixelFormat, format_of

_WITHOUT_MIPMAPS = ("2d_ms", "buffer")


class Texture:
    """An image for the texture parameters of kernels.

    Parameters
    ----------
    source : array-like, or int or tuple of ints
        Texels to copy, or the extents of a texture of zeros: ``(height, width)`` for the kind
        ``"2d"``. An array has one more axis for the channels, unless there is only one.
    format : str, optional
        Metal's pixel format in lower case: ``"rgba8unorm"``, ``"r32float"``, ``"bgra8unorm_srgb"``,
        ``"depth32float"``. By default the format that fits the array: integers of 8 and 16
        bits are normalised, those of 32 bits are not.
    kind : str, optional
        ``"1d"``, ``"1d_array"``, ``"2d"``, ``"2d_array"``, ``"3d"``, ``"cube"``, ``"cube_array"``,
        ``"2d_ms"`` or ``"buffer"``. Depth textures have the same kinds.
    mipmaps : bool or int, optional
        True for all mip levels down to one texel, or their number. Each level holds averages of
        the one above (for integers that are not normalised: every other texel).
    device : str or Device, optional
    visible : bool, optional
        See `Buffer`.

    Attributes
    ----------
    kind : str
    format : str
    shape : tuple of int
        Extents of level 0, without channels.
    channels, levels : int
    device : Device

    Raises
    ------
    ArgumentError
        If array, format and kind do not match.
    OutOfMemory
        If the device is out of memory.

    Examples
    --------
    >>> import metalloid as mtl, numpy as np
    >>> image = np.zeros((4, 6, 4), np.uint8)
    >>> texture = mtl.Texture(image, mipmaps=True, device="cpu")
    >>> texture
    <Texture 2d 4 x 6, rgba8unorm, 3 levels on cpu>
    >>> texture.numpy(level=1).shape
    (2, 3, 4)
    """

    def __init__(
        self,
        source: Any,
        format: str | None = None,
        kind: str = "2d",
        mipmaps: bool | int = False,
        device: str | Device | None = None,
        visible: bool = False,
    ) -> None:
        if kind not in KIND_EXTENTS:
            raise ArgumentError(
                f"[Texture] kind must be one of {', '.join(map(repr, KIND_EXTENTS))}, got {kind!r}."
            )
        if format is not None and format not in FORMATS:
            raise ArgumentError(
                f"[Texture] unknown format {format!r}. Known: {', '.join(sorted(FORMATS))}."
            )
        self.kind = kind
        texels = None if _is_shape(source) else np.asarray(source)
        if texels is None:
            self.shape = _extents(source)
            if format is None:
                raise ArgumentError("[Texture] of a shape expects a format, such as 'rgba8unorm'.")
            pixel_format = FORMATS[format]
        else:
            pixel_format = _format_for(texels, format, kind)
            self.shape = texels.shape[: len(KIND_EXTENTS[kind])]
        if len(self.shape) != len(KIND_EXTENTS[kind]):
            raise ArgumentError(
                f"[Texture] a texture of kind {kind!r} expects the extents "
                f"({', '.join(KIND_EXTENTS[kind])}), got {self.shape}."
            )
        problem = extents_problem(kind, self.shape)
        if problem:
            raise ArgumentError(f"[Texture] cannot have the extents {self.shape}: {problem}.")
        self.pixel_format = pixel_format
        self.format, self.channels = pixel_format.name, pixel_format.channels
        shapes = mip_shapes(kind, self.shape)
        self._shapes = shapes[: _level_count(kind, mipmaps, len(shapes))]
        self._allocate(device, visible)
        if texels is not None:
            self._level(0)[...] = texels
            for level in range(1, self.levels):
                self._level(level)[...] = smaller(self._level(level - 1), kind, pixel_format)

    def _allocate(self, device: str | Device | None, visible: bool) -> None:
        self._offsets = [0]
        for shape in self._shapes:
            nbytes = math.prod(shape) * self.pixel_format.bytes
            self._offsets.append(self._offsets[-1] + -(-nbytes // 16) * 16)
        #: Texels of all levels.
        self.memory = Buffer(self._offsets[-1], device, visible)
        self.memory.is_fresh = False  # the sanitizer looks for reads of fresh buffers alone
        self.device = self.memory.device
        levels = [
            LevelMemory(
                self.memory.address + offset,
                shape,
                contiguous_strides(shape, self.pixel_format.bytes),
                self.pixel_format.bytes,
            )
            for shape, offset in zip(self._shapes, self._offsets, strict=False)
        ]
        packed = descriptor(self.kind, self.pixel_format.code, levels)
        self._descriptor = Buffer(np.frombuffer(packed, np.uint8), self.device)

    @property
    def levels(self) -> int:
        """Number of mip levels."""
        return len(self._shapes)

    @property
    def address(self) -> int:
        """Address of the descriptor, which a launch passes for the texture."""
        return self._descriptor.address

    def numpy(self, level: int = 0) -> np.ndarray:
        """The texels of a mip level, once the launches that use the texture have ended.

        Parameters
        ----------
        level : int, optional

        Returns
        -------
        ndarray
            Of shape ``(*extents, channels)``, without the last axis for one channel; on the CPU a
            view of the texture's own memory. The channels of a bgra format are in that order.
        """
        if not 0 <= level < self.levels:
            raise ArgumentError(
                f"[Texture] level {level} is out of range: there are {self.levels} levels."
            )
        self.memory.wait()
        return self._level(level)

    def _level(self, level: int) -> np.ndarray:
        shape = self._shapes[level]
        if self.channels > 1:
            shape = (*shape, self.channels)
        start = self._offsets[level]
        nbytes = math.prod(shape) * self.pixel_format.dtype.itemsize
        texels = np.asarray(self.memory)[start : start + nbytes]
        return texels.view(self.pixel_format.dtype).reshape(shape)

    def _repr_png_(self) -> bytes | None:
        if self.kind != "2d":
            return None
        pixels = self.numpy()
        if pixels.ndim == 3 and pixels.shape[2] == 1:
            pixels = pixels[..., 0]
        return png(pixels) if is_image(pixels.shape, pixels.dtype) else None

    def __repr__(self) -> str:
        extents = " x ".join(map(str, self.shape))
        levels = f", {self.levels} levels" if self.levels > 1 else ""
        return f"<Texture {self.kind} {extents}, {self.format}{levels} on {self.device.name}>"


def _is_shape(source: Any) -> bool:
    if isinstance(source, Sequence):
        return all(isinstance(extent, int | np.integer) for extent in source)
    return isinstance(source, int | np.integer)


def _extents(source: Any) -> tuple[int, ...]:
    return tuple(map(operator.index, source)) if isinstance(source, Sequence) else (int(source),)


def _format_for(texels: np.ndarray, name: str | None, kind: str) -> PixelFormat:
    """The format of an array's texels: `name`, if they fit it."""
    axes = len(KIND_EXTENTS[kind])
    shown = f"an array of {texels.dtype} with shape {texels.shape}"
    channels = texels.shape[-1] if texels.ndim == axes + 1 else 1
    if texels.ndim not in (axes, axes + 1):
        raise ArgumentError(
            f"[Texture] of the kind {kind!r} expects an array of shape {KIND_SHAPES[kind]}, "
            f"got {shown}."
        )
    if channels not in (1, 2, 4):
        text = f"[Texture] texels have 1, 2 or 4 channels, got {shown}. {padding_hint(channels)}"
        raise ArgumentError(text.rstrip())
    if name is not None:
        required = FORMATS[name]
        if texels.dtype != required.dtype or channels != required.channels:
            plural = "s" * (required.channels > 1)
            raise ArgumentError(
                f"[Texture] {name} expects {required.channels} channel{plural} of "
                f"{required.dtype}, got {shown}."
            )
        return required
    for element_kind in ("f", "u", "i"):
        pixel_format = format_of(texels.dtype, channels, element_kind)
        if pixel_format is not None:
            return pixel_format
    raise ArgumentError(
        f"[Texture] no pixel format has components of {texels.dtype}. "
        "Convert the array, to float32 for example."
    )


def padding_hint(channels: int) -> str:
    """A hint for images of three channels; empty for others."""
    if channels != 3:
        return ""
    return (
        "Pad it to 4: numpy.concatenate([x, numpy.full_like(x[..., :1], alpha)], axis=-1), "
        "with alpha 255 for uint8 and 1 for floats."
    )


def _level_count(kind: str, mipmaps: bool | int, max_levels: int) -> int:
    if mipmaps is True or mipmaps is False:
        return max_levels if mipmaps and kind not in _WITHOUT_MIPMAPS else 1
    if not 1 <= mipmaps <= (1 if kind in _WITHOUT_MIPMAPS else max_levels):
        raise ArgumentError(
            f"[Texture] mipmaps must be True or 1 to {max_levels} levels, got {mipmaps!r}."
        )
    return mipmaps
