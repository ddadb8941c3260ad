"""Textures: Metal's own, filled from the memory that a launch names and copied back to it.

Where texels lie in a texture is the GPU's own business, so arrays cannot be used in place. The
copies are commands of the same command buffer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from metalloid.backends.metal.compile.limits import TEXTURE_KINDS
from metalloid.backends.metal.runtime.borrowing import Borrower
from metalloid.backends.metal.runtime.images import CopyRegion, Image
from metalloid.errors import ArgumentError, OutOfMemory
from metalloid.msl.layout import Layout, TextureType
from metalloid.runtime.textures.descriptor import Level, read_descriptor
from metalloid.runtime.textures.pixel_formats import FORMATS

#: Texels along an axis on every GPU that metalloid runs on, and from row to row of a buffer.
_MAX_EXTENT, _MAX_DEPTH, _MAX_SLICES, _MAX_ROW = 16384, 2048, 2048, 32767
_FACES = 6
#: The plain formats come last, and stay; depth textures have the same codes.
_FORMATS_BY_CODE = {pixel_format.code: pixel_format for pixel_format in reversed(FORMATS.values())}
_DEPTH_FORMATS = {"r32float": "Depth32Float", "r16unorm": "Depth16Unorm"}


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
            raise OutOfMemory(f"[Texture] {gpu.name()} cannot allocate {shape} texels.")
        images[key] = Image(texture, regions, not layout.read_only)
    return images[key]


def _descriptor(texture_type: TextureType, code: int, levels: list[Level], module: Any) -> Any:
    """The MTLTextureDescriptor of a texture."""
    kind, (first, *_) = texture_type.kind, levels
    limit = _MAX_DEPTH if kind == "3d" else _MAX_EXTENT
    if max(first.width, first.height) > limit or first.slices > _MAX_SLICES:
        raise ArgumentError(f"at most {limit} texels along an axis and {_MAX_SLICES} slices")
    if len(levels) > 1 and kind.startswith("1d"):
        raise ArgumentError("Metal's one-dimensional textures have one mip level")
    descriptor = module.MTLTextureDescriptor.alloc().init()
    descriptor.setTextureType_(getattr(module, f"MTLTextureType{TEXTURE_KINDS[kind]}"))
    descriptor.setPixelFormat_(getattr(module, format_name(code, texture_type.is_depth)))
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
    descriptor.setUsage_(usages.get(texture_type.access, read))
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
        raise ArgumentError(f"Metal's depth textures hold float32 or uint16, not {pixels.name}")
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
