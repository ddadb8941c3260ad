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
_MAX_EXTENT, _MAX_DEPTH, _MAX_SLICES, _MAX_ROW = 16384, 2048, 2048, 32767
#: Kinds that Metal can copy to; it has no such copies of the others.
TYPES = {"1d": "1D", "1d_array": "1DArray", "2d": "2D", "2d_array": "2DArray", "3d": "3D",
         "cube": "Cube", "cube_array": "CubeArray"}  # fmt: skip
_FACES = 6
#: The plain formats come last, and stay; depth textures have the same codes.
_FORMATS_BY_CODE = {pixel_format.code: pixel_format for pixel_format in reversed(FORMATS.values())}
_DEPTH_FORMATS = {"r32float": "Depth32Float", "r16unorm": "Depth16Unorm"}

Triple = tuple[int, int, int]


class CopyRegion(NamedTuple):
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
    regions : list of CopyRegion
        What it is filled from.
    is_written : bool
        Whether the kernel may write to it.
    """

    texture: Any
    regions: list[CopyRegion]
    is_written: bool

    def fill(self, encoder: Any) -> None:
        """Copy its texels from where the host sees them."""
        copy = encoder.copyFromBuffer_sourceOffset_sourceBytesPerRow_sourceBytesPerImage_sourceSize_toTexture_destinationSlice_destinationLevel_destinationOrigin_  # noqa: E501
        for buffer, offset, row, size, slice_, level, origin in self.regions:
            copy(buffer, offset, row, row * size[1], size, self.texture, slice_, level, origin)

    def empty(self, encoder: Any) -> None:
        """Copy them back."""
        copy = encoder.copyFromTexture_sourceSlice_sourceLevel_sourceOrigin_sourceSize_toBuffer_destinationOffset_destinationBytesPerRow_destinationBytesPerImage_  # noqa: E501
        for buffer, offset, row, size, slice_, level, origin in self.regions:
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
            regions = list(_regions(layout, levels, borrower))
        except ArgumentError as error:
            kernel = borrower.command.program.signature.name
            raise ArgumentError(f"[{kernel}] {layout}: {error}") from None
        texture = gpu.newTextureWithDescriptor_(descriptor)
        if texture is None:
            shape = f"{levels[0].width} x {levels[0].height} x {levels[0].slices}"
            raise OutOfMemory(f"[Texture] {gpu.name()} has no room for {shape} texels.")
        images[key] = Image(texture, regions, not layout.read_only)
    return images[key]


def _descriptor(wanted: TextureType, code: int, levels: list[Level], module: Any) -> Any:
    """The MTLTextureDescriptor of a texture."""
    kind, (first, *_) = wanted.kind, levels
    limit = _MAX_DEPTH if kind == "3d" else _MAX_EXTENT
    if max(first.width, first.height) > limit or first.slices > _MAX_SLICES:
        raise ArgumentError(f"Apple's GPUs have {limit} texels along an axis, {_MAX_SLICES} slices")
    if len(levels) > 1 and kind.startswith("1d"):
        raise ArgumentError("Metal's textures of one dimension have one mip level")
    descriptor = module.MTLTextureDescriptor.alloc().init()
    descriptor.setTextureType_(getattr(module, f"MTLTextureType{TYPES[kind]}"))
    descriptor.setPixelFormat_(getattr(module, format_name(code, wanted.is_depth)))
    descriptor.setWidth_(first.width)
    descriptor.setHeight_(first.height)
    if kind == "3d":
        descriptor.setDepth_(first.slices)
    elif kind.endswith("_array"):
        descriptor.setArrayLength_(first.slices // (_FACES if "cube" in kind else 1))
    descriptor.setMipmapLevelCount_(len(levels))
    descriptor.setStorageMode_(module.MTLStorageModePrivate)
    read, write = module.MTLTextureUsageShaderRead, module.MTLTextureUsageShaderWrite
    usages = {"write": write, "read_write": read | write}
    descriptor.setUsage_(usages.get(wanted.access, read))
    return descriptor


def format_name(code: int, is_depth: bool) -> str:
    """Metal's constant for a pixel format.

    Examples
    --------
    >>> format_name(FORMATS["bgra8unorm_srgb"].code, False)
    'MTLPixelFormatBGRA8Unorm_sRGB'
    """
    pixels = _FORMATS_BY_CODE[code]
    if is_depth and pixels.name not in _DEPTH_FORMATS:
        raise ArgumentError(f"Metal's depth textures are of float32 or uint16, not {pixels.name}")
    if is_depth:
        return f"MTLPixelFormat{_DEPTH_FORMATS[pixels.name]}"
    channels = pixels.name.partition(pixels.component)[0]
    srgb = "_sRGB" if pixels.is_srgb else ""
    return f"MTLPixelFormat{channels.upper()}{pixels.component.title()}{srgb}"


def _regions(layout: Layout, levels: list[Level], borrower: Borrower) -> Iterator[CopyRegion]:
    """Copy regions from which a texture is filled; one memory holds all its levels."""
    assert layout.texture is not None
    is_volume = layout.texture.kind == "3d"
    memory = borrower.find(levels[0].address, not layout.read_only)
    assert memory is not None, "a launch names the memory of its textures"
    for number, (address, row, plane, width, height, slices, texel) in enumerate(levels):
        start, rows, distance = memory.offset_of(address), height, row
        if row % texel or not width <= row // texel <= _MAX_ROW:
            rows, distance = 1, width * texel  # each by itself
        if any(n % texel for n in (start, row * (rows < height), plane * (slices > 1))):
            raise ArgumentError(f"its texels of {texel} bytes are not aligned: pass a copy")
        for z in range(slices):
            slice_, depth = (0, z) if is_volume else (z, 0)
            for y in range(0, height, rows):
                offset = start + z * plane + y * row
                size, origin = (width, rows, 1), (0, y, depth)
                yield CopyRegion(memory.buffer, offset, distance, size, slice_, number, origin)
