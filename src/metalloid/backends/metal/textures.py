"""Textures: Metal's own, filled from the memory that a launch names and copied back to it.

Where texels lie in a texture is the GPU's own business, so arrays cannot be used in place. The
copies are commands of the same command buffer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from metalloid.backends.metal.borrowing import Borrower
from metalloid.errors import ArgumentError, OutOfMemory
from metalloid.msl.layout import Layout, TextureType
from metalloid.runtime.textures.descriptor import Level, read_descriptor
from metalloid.runtime.textures.pixel_formats import FORMATS

#: Texels along an axis on every GPU that metalloid runs on, and from row to row of a buffer.
_MOST_EXTENT, _MOST_DEPTH, _MOST_SLICES, _MOST_ROW = 16384, 2048, 2048, 32767
#: Kinds that Metal can copy to; it has no such copies of the others.
TYPES = {"1d": "1D", "1d_array": "1DArray", "2d": "2D", "2d_array": "2DArray", "3d": "3D",
         "cube": "Cube", "cube_array": "CubeArray"}  # fmt: skip
_FACES = 6
#: The plain formats come last, and stay; depth textures have the same codes.
_FORMATS_BY_CODE = {found.code: found for found in reversed(FORMATS.values())}
_DEPTH_FORMATS = {"r32float": "Depth32Float", "r16unorm": "Depth16Unorm"}

Triple = tuple[int, int, int]


class Part(NamedTuple):
    """Texels of one slice, which lie in a buffer with the same distance from row to row."""

    buffer: Any
    offset: int
    row: int
    size: Triple
    slice: int
    level: int
    origin: Triple


@dataclass(frozen=True)
class Image:
    """A texture of one launch.

    Attributes
    ----------
    texture : MTLTexture
    parts : list of Part
        What it is filled from.
    is_written : bool
        Whether the kernel may write to it.
    """

    texture: Any
    parts: list[Part]
    is_written: bool

    def fill(self, encoder: Any) -> None:
        """Copy its texels from where the host sees them."""
        copy = encoder.copyFromBuffer_sourceOffset_sourceBytesPerRow_sourceBytesPerImage_sourceSize_toTexture_destinationSlice_destinationLevel_destinationOrigin_  # noqa: E501
        for buffer, offset, row, size, slice_, level, origin in self.parts:
            copy(buffer, offset, row, row * size[1], size, self.texture, slice_, level, origin)

    def empty(self, encoder: Any) -> None:
        """Copy them back."""
        copy = encoder.copyFromTexture_sourceSlice_sourceLevel_sourceOrigin_sourceSize_toBuffer_destinationOffset_destinationBytesPerRow_destinationBytesPerImage_  # noqa: E501
        for buffer, offset, row, size, slice_, level, origin in self.parts:
            copy(self.texture, slice_, level, origin, size, buffer, offset, row, row * size[1])


def image_of(word: int, layout: Layout, borrower: Borrower) -> Image:
    """The texture that a word of a launch stands for; what it is filled from joins the launch.

    Raises
    ------
    ArgumentError
        If Metal has no such texture.
    OutOfMemory
    """
    assert layout.texture is not None
    images, key = borrower.command.images, (word, layout.texture)
    if key not in images:
        code, levels = read_descriptor(word)
        gpu, module = borrower.device.gpu, borrower.device.binding.module
        try:
            descriptor = _descriptor(layout.texture, code, levels, module)
            parts = list(_parts(layout, levels, borrower))
        except ArgumentError as error:
            kernel = borrower.command.program.signature.name
            raise ArgumentError(f"[{kernel}] {layout}: {error}") from None
        texture = gpu.newTextureWithDescriptor_(descriptor)
        if texture is None:
            shape = f"{levels[0].width} x {levels[0].height} x {levels[0].slices}"
            raise OutOfMemory(f"[Texture] {gpu.name()} has no room for {shape} texels.")
        images[key] = Image(texture, parts, not layout.read_only)
    return images[key]


def _descriptor(wanted: TextureType, code: int, levels: list[Level], module: Any) -> Any:
    """The MTLTextureDescriptor of a texture."""
    kind, (first, *_) = wanted.kind, levels
    most = _MOST_DEPTH if kind == "3d" else _MOST_EXTENT
    if max(first.width, first.height) > most or first.slices > _MOST_SLICES:
        raise ArgumentError(f"Apple's GPUs have {most} texels along an axis, {_MOST_SLICES} slices")
    if len(levels) > 1 and kind.startswith("1d"):
        raise ArgumentError("Metal's textures of one dimension have one mip level")
    made = module.MTLTextureDescriptor.alloc().init()
    made.setTextureType_(getattr(module, f"MTLTextureType{TYPES[kind]}"))
    made.setPixelFormat_(getattr(module, format_name(code, wanted.is_depth)))
    made.setWidth_(first.width)
    made.setHeight_(first.height)
    if kind == "3d":
        made.setDepth_(first.slices)
    elif kind.endswith("_array"):
        made.setArrayLength_(first.slices // (_FACES if "cube" in kind else 1))
    made.setMipmapLevelCount_(len(levels))
    made.setStorageMode_(module.MTLStorageModePrivate)
    read, write = module.MTLTextureUsageShaderRead, module.MTLTextureUsageShaderWrite
    usages = {"write": write, "read_write": read | write}
    made.setUsage_(usages.get(wanted.access, read))
    return made


def format_name(code: int, is_depth: bool) -> str:
    """Metal's constant for a pixel format.

    Examples
    --------
    >>> format_name(FORMATS["bgra8unorm_srgb"].code, False)
    'MTLPixelFormatBGRA8Unorm_sRGB'
    """
    found = _FORMATS_BY_CODE[code]
    if is_depth and found.name not in _DEPTH_FORMATS:
        raise ArgumentError(f"Metal's depth textures are of float32 or uint16, not {found.name}")
    if is_depth:
        return f"MTLPixelFormat{_DEPTH_FORMATS[found.name]}"
    channels = found.name.partition(found.component)[0]
    srgb = "_sRGB" if found.is_srgb else ""
    return f"MTLPixelFormat{channels.upper()}{found.component.title()}{srgb}"


def _parts(layout: Layout, levels: list[Level], borrower: Borrower) -> Iterator[Part]:
    """What a texture is filled from; one memory holds all its levels."""
    assert layout.texture is not None
    is_volume = layout.texture.kind == "3d"
    memory = borrower.find(levels[0].address, not layout.read_only)
    assert memory is not None, "a launch names the memory of its textures"
    for number, (address, row, plane, width, height, slices, texel) in enumerate(levels):
        start, rows, distance = memory.place(address), height, row
        if row % texel or not width <= row // texel <= _MOST_ROW:
            rows, distance = 1, width * texel  # each by itself
        if any(n % texel for n in (start, row * (rows < height), plane * (slices > 1))):
            raise ArgumentError(f"its texels of {texel} bytes are not aligned: pass a copy")
        for z in range(slices):
            place, depth = (0, z) if is_volume else (z, 0)
            for y in range(0, height, rows):
                offset = start + z * plane + y * row
                size, origin = (width, rows, 1), (0, y, depth)
                yield Part(memory.buffer, offset, distance, size, place, number, origin)
