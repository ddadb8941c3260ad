"""Descriptors of textures, by which kernels find texels, and the extents of each kind."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

#: Extents of each kind, in the order of the axes of an array.
KIND_EXTENTS = {
    "1d": ("width",),
    "1d_array": ("layers", "width"),
    "2d": ("height", "width"),
    "2d_array": ("layers", "height", "width"),
    "3d": ("depth", "height", "width"),
    "cube": ("6 faces", "height", "width"),
    "cube_array": ("layers", "6 faces", "height", "width"),
    "2d_ms": ("samples", "height", "width"),
    "buffer": ("width",),
}
#: Shapes of arrays, for messages: ``"(height, width[, channels])"``.
KIND_SHAPES = {kind: f"({', '.join(axes)}[, channels])" for kind, axes in KIND_EXTENTS.items()}

#: Limits of 32-bit arithmetic on coordinates; Metal's own limits are not larger.
MAX_EXTENT, MAX_CUBE_EXTENT = 2**28, 2**14

# texture_descriptor and texture_level in texture_memory.h
_HEADER = struct.Struct("=II")
_LEVEL = struct.Struct("=QqqIIII")
#: Offset of the first level's address in a descriptor.
FIRST_LEVEL = _HEADER.size


@dataclass(frozen=True)
class LevelMemory:
    """One mip level in memory.

    Attributes
    ----------
    address : int
    shape : tuple of int
        Extents as in `KIND_EXTENTS`.
    strides : tuple of int
        Of the same axes, in bytes.
    texel : int
        Bytes of a texel.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    texel: int


def contiguous_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides, in bytes, of an array without gaps."""
    strides = []
    for extent in reversed(shape):
        strides.append(itemsize)
        itemsize *= extent
    return tuple(reversed(strides))


def extents_problem(kind: str, shape: tuple[int, ...]) -> str:
    """Why a texture of `kind` cannot have these extents; empty if it can."""
    for name, extent in zip(KIND_EXTENTS[kind], shape, strict=True):
        if name == "6 faces" and extent != 6:
            return f"a cube has 6 faces, not {extent}"
        if not 1 <= extent <= MAX_EXTENT:
            return f"its {name} is {extent}"
    if kind.startswith("cube") and shape[-1] != shape[-2]:
        return f"the faces of a cube are squares, not {shape[-1]} by {shape[-2]}"
    if kind.startswith("cube") and shape[-1] > MAX_CUBE_EXTENT:
        return f"the faces of a cube have at most {MAX_CUBE_EXTENT} rows, not {shape[-1]}"
    return ""


def descriptor(kind: str, format_code: int, levels: Sequence[LevelMemory]) -> bytes:
    """The texture_descriptor of a texture."""
    packed = [_HEADER.pack(format_code, len(levels))]
    for level in levels:
        width, height, slices, row, slice_ = _planes(kind, level)
        packed.append(_LEVEL.pack(level.address, row, slice_, width, height, slices, level.texel))
    return b"".join(packed)


class Level(NamedTuple):
    """One mip level in a descriptor.

    Attributes
    ----------
    address : int
    row, plane : int
        Strides of rows and slices, in bytes.
    width, height, slices : int
    texel : int
        Bytes of a texel.
    """

    address: int
    row: int
    plane: int
    width: int
    height: int
    slices: int
    texel: int

    @property
    def extent(self) -> int:
        """Maximum distance of a texel from the first one, in bytes."""
        rows, planes = (self.height - 1) * abs(self.row), (self.slices - 1) * abs(self.plane)
        return (self.width - 1) * self.texel + rows + planes


def read_descriptor(address: int) -> tuple[int, list[Level]]:
    """The format code and the levels in the descriptor at an address."""
    code, count = _HEADER.unpack(ctypes.string_at(address, _HEADER.size))
    levels = ctypes.string_at(address + FIRST_LEVEL, count * _LEVEL.size)
    return code, [Level(*numbers) for numbers in _LEVEL.iter_unpack(levels)]


def _planes(kind: str, level: LevelMemory) -> tuple[int, int, int, int, int]:
    """Width, height, slices, and the strides of rows and slices."""
    shape, strides = level.shape, level.strides
    if "1d" in kind or kind == "buffer":
        layers, stride = (shape[0], strides[0]) if kind == "1d_array" else (1, 0)
        return shape[-1], 1, layers, 0, stride
    slices = 1
    for extent in shape[:-2]:
        slices *= extent
    # Layers of cubes are contiguous: the stride of a layer is that of six faces.
    stride = strides[-3] if len(shape) > 2 else 0
    return shape[-1], shape[-2], slices, strides[-2], stride
