"""Textures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

import metalloid as mtl
from metalloid.compat.memory import bytes_of
from metalloid.compat.Metal import constants
from metalloid.compat.Metal.conversions import instance, leading_bytes, unsigned
from metalloid.compat.Metal.descriptors import Descriptor, setting
from metalloid.compat.Metal.failures import fail
from metalloid.compat.Metal.objects import MetalObject
from metalloid.compat.Metal.structures import MTLResourceID, box

if TYPE_CHECKING:
    from metalloid.compat.Metal.device import MTLDevice

#: Metalloid's names of formats and kinds by Metal's numbers.
_FORMATS = {
    number: name.removeprefix("MTLPixelFormat").lower()
    for name, number in vars(constants).items()
    if name.startswith("MTLPixelFormat") and number
}
KINDS = {
    constants.MTLTextureType1D: "1d",
    constants.MTLTextureType1DArray: "1d_array",
    constants.MTLTextureType2D: "2d",
    constants.MTLTextureType2DArray: "2d_array",
    constants.MTLTextureType2DMultisample: "2d_ms",
    constants.MTLTextureType3D: "3d",
    constants.MTLTextureTypeCube: "cube",
    constants.MTLTextureTypeCubeArray: "cube_array",
    constants.MTLTextureTypeTextureBuffer: "buffer",
}


class MTLTextureDescriptor(Descriptor):
    """The description of a texture."""

    __slots__ = ()

    textureType, setTextureType_ = setting("textureType", constants.MTLTextureType2D, unsigned)
    pixelFormat, setPixelFormat_ = setting(
        "pixelFormat", constants.MTLPixelFormatRGBA8Unorm, unsigned
    )
    width, setWidth_ = setting("width", 1, unsigned)
    height, setHeight_ = setting("height", 1, unsigned)
    depth, setDepth_ = setting("depth", 1, unsigned)
    mipmapLevelCount, setMipmapLevelCount_ = setting("mipmapLevelCount", 1, unsigned)
    sampleCount, setSampleCount_ = setting("sampleCount", 1, unsigned)
    arrayLength, setArrayLength_ = setting("arrayLength", 1, unsigned)
    usage, setUsage_ = setting("usage", constants.MTLTextureUsageShaderRead, unsigned)
    storageMode, setStorageMode_ = setting("storageMode", constants.MTLStorageModeShared, unsigned)
    resourceOptions, setResourceOptions_ = setting("resourceOptions", 0, unsigned)

    @classmethod
    def texture2DDescriptorWithPixelFormat_width_height_mipmapped_(
        cls, pixel_format: int, width: int, height: int, mipmapped: bool
    ) -> MTLTextureDescriptor:
        """Describe a texture of two dimensions, perhaps with all its mip levels."""
        descriptor = cls()
        descriptor.setPixelFormat_(pixel_format)
        descriptor.setWidth_(width)
        descriptor.setHeight_(height)
        if mipmapped:
            descriptor.setMipmapLevelCount_(max(width, height).bit_length())
        return descriptor

    @classmethod
    def textureCubeDescriptorWithPixelFormat_size_mipmapped_(
        cls, pixel_format: int, size: int, mipmapped: bool
    ) -> MTLTextureDescriptor:
        """Describe a cube, perhaps with all its mip levels."""
        descriptor = cls.texture2DDescriptorWithPixelFormat_width_height_mipmapped_(
            pixel_format, size, size, mipmapped
        )
        descriptor.setTextureType_(constants.MTLTextureTypeCube)
        return descriptor


class MTLTexture(MetalObject):
    """An image, or several, that kernels read and write.

    Attributes
    ----------
    texture : Texture
    bytes : ndarray
        The memory of all its levels. Looking at it does not wait for launches.
    """

    __slots__ = ("_levels", "_settings", "bytes", "texture")

    def __init__(
        self, device: MTLDevice, texture: mtl.Texture, descriptor: MTLTextureDescriptor
    ) -> None:
        super().__init__(device)
        self.texture, self._settings = texture, dict(descriptor._settings)
        self.bytes: np.ndarray = np.asarray(texture.memory)
        self._levels = [_in_bytes(texture, level) for level in range(texture.levels)]

    def _setting(self, name: str) -> int:
        default = getattr(MTLTextureDescriptor(), name)()
        return int(self._settings.get(name, default))

    def textureType(self) -> int:
        """Its kind: ``MTLTextureType2D`` ..."""
        return self._setting("textureType")

    def pixelFormat(self) -> int:
        """The format of its texels: ``MTLPixelFormatRGBA8Unorm`` ..."""
        return self._setting("pixelFormat")

    def width(self) -> int:
        """Texels of a row of level 0."""
        return self._setting("width")

    def height(self) -> int:
        """Rows of level 0."""
        return self._setting("height")

    def depth(self) -> int:
        """Planes of level 0."""
        return self._setting("depth")

    def mipmapLevelCount(self) -> int:
        """Its mip levels."""
        return self.texture.levels

    def arrayLength(self) -> int:
        """Its images, if it is an array; else 1."""
        return self._setting("arrayLength")

    def sampleCount(self) -> int:
        """Samples of a texel."""
        return self._setting("sampleCount")

    def usage(self) -> int:
        """The permitted uses in kernels."""
        return self._setting("usage")

    def storageMode(self) -> int:
        """Shared, managed or private."""
        return self._setting("storageMode")

    def gpuResourceID(self) -> MTLResourceID:
        """Its handle in an argument buffer."""
        return MTLResourceID(self.texture.address)

    def replaceRegion_mipmapLevel_withBytes_bytesPerRow_(
        self, region: Any, level: int, contents: Any, row: int
    ) -> None:
        """Copy texels into a part of a level."""
        selector = "replaceRegion:mipmapLevel:withBytes:bytesPerRow:"
        self._host_region(selector, region, level, 0)[...] = _rows(
            selector, self, region, contents, row, 0
        )

    def replaceRegion_mipmapLevel_slice_withBytes_bytesPerRow_bytesPerImage_(
        self, region: Any, level: int, slice_: int, contents: Any, row: int, image: int
    ) -> None:
        """Copy texels into a part of a level of one of its images."""
        selector = "replaceRegion:mipmapLevel:slice:withBytes:bytesPerRow:bytesPerImage:"
        texels = self._host_region(selector, region, level, slice_)
        texels[...] = _rows(selector, self, region, contents, row, image)

    def getBytes_bytesPerRow_fromRegion_mipmapLevel_(
        self, target: Any, row: int, region: Any, level: int
    ) -> None:
        """Copy texels of a part of a level to memory."""
        selector = "getBytes:bytesPerRow:fromRegion:mipmapLevel:"
        texels = self._host_region(selector, region, level, 0)
        _rows(selector, self, region, _writeable(target), row, 0)[...] = texels

    def getBytes_bytesPerRow_bytesPerImage_fromRegion_mipmapLevel_slice_(
        self, target: Any, row: int, image: int, region: Any, level: int, slice_: int
    ) -> None:
        """Copy texels of a part of a level of one of its images to memory."""
        selector = "getBytes:bytesPerRow:bytesPerImage:fromRegion:mipmapLevel:slice:"
        texels = self._host_region(selector, region, level, slice_)
        _rows(selector, self, region, _writeable(target), row, image)[...] = texels

    def _host_region(self, selector: str, region: Any, level: int, slice_: int) -> np.ndarray:
        """The bytes of a region by plane, row and texel, for the host."""
        if self.storageMode() == constants.MTLStorageModePrivate:
            self._fail(selector, "storageMode must not be MTLStorageModePrivate")
        return self.region(f"MTLTexture {selector}", region, level, slice_)

    def region(self, selector: str, region: Any, level: int, slice_: int) -> np.ndarray:
        """The bytes of a region by plane, row and texel.

        Raises
        ------
        FailedAssertion
            If it does not lie in the texture.
        """
        if unsigned(level) >= len(self._levels) or unsigned(slice_) >= len(self._levels[level]):
            fail(selector, f"there is no level {level} of slice {slice_}")
        image = self._levels[level][slice_]
        origin, size = box(region)
        extents = image.shape[2::-1]
        if any(at + n > extent for at, n, extent in zip(origin, size, extents, strict=True)):
            fail(selector, f"region {origin} + {size} must lie in {extents}")
        (x, y, z), (width, height, depth) = origin, size
        texels: np.ndarray = image[z : z + depth, y : y + height, x : x + width]
        return texels

    def _fail(self, selector: str, what: str) -> NoReturn:
        fail(f"MTLTexture {selector}", what)


def texture_of(device: MTLDevice, descriptor: MTLTextureDescriptor) -> MTLTexture | None:
    """The result of ``newTextureWithDescriptor:``; None without enough memory."""
    selector = "MTLDevice newTextureWithDescriptor:"
    requested = instance(descriptor, MTLTextureDescriptor)
    kind, pixel_format = KINDS.get(requested.textureType()), _FORMATS.get(requested.pixelFormat())
    if kind is None or pixel_format is None:
        numbers = (
            f"textureType({requested.textureType()}) or pixelFormat({requested.pixelFormat()})"
        )
        fail(selector, f"the software device has no textures of {numbers}")
    height, width = requested.height(), requested.width()
    extents = {
        "1d": (width,), "1d_array": (requested.arrayLength(), width), "buffer": (width,),
        "2d": (height, width), "2d_array": (requested.arrayLength(), height, width),
        "2d_ms": (requested.sampleCount(), height, width), "3d": (requested.depth(), height, width),
        "cube": (6, height, width), "cube_array": (requested.arrayLength(), 6, height, width),
    }[kind]  # fmt: skip
    try:
        texture = mtl.Texture(
            extents,
            pixel_format,
            kind,
            requested.mipmapLevelCount(),
            device.metalloid,
            visible=True,
        )
    except mtl.ArgumentError as failure:
        fail(selector, str(failure))
    except mtl.OutOfMemory:
        return None
    return MTLTexture(device, texture, requested)


def check_use(texture: MTLTexture, parameter: Any, kernel: str, selector: str) -> None:
    """Raise if a texture cannot be what a parameter of a kernel takes."""
    required, usage = parameter.layout.texture, texture.usage()
    where = f"Compute Function({kernel}): texture at index {parameter.index} for {parameter.name}"
    if texture.texture.kind != required.kind:
        fail(selector, f"{where} is of the type {texture.texture.kind}, not {required.kind}.")
    read, write = constants.MTLTextureUsageShaderRead, constants.MTLTextureUsageShaderWrite
    needed = {"write": write, "read_write": read | write}.get(required.access, read)
    if usage != constants.MTLTextureUsageUnknown and needed & ~usage:
        fail(selector, f"{where} has usage({usage:#x}), which must contain {needed:#x}.")


def _in_bytes(texture: mtl.Texture, level: int) -> np.ndarray:
    """The bytes of a level by image, plane, row and texel; the texture's own memory."""
    texels = texture.numpy(level)
    extents = texels.shape[: len(texture.shape)]
    kind = texture.kind
    planes = extents[0] if kind == "3d" else 1
    height = 1 if kind in ("1d", "1d_array", "buffer") else extents[-2]
    shape = (-1, planes, height, extents[-1], texture.pixel_format.bytes)
    return texels.reshape(-1).view(np.uint8).reshape(shape)


def _rows(
    selector: str, texture: MTLTexture, region: Any, contents: Any, row: int, image: int
) -> np.ndarray:
    """Memory as rows that are `row` bytes apart, in planes that are `image` bytes apart."""
    _, (width, height, depth) = box(region)
    texel = texture.texture.pixel_format.bytes
    row = unsigned(row) or width * texel
    image = unsigned(image) or row * height
    if row < width * texel or row % texel:
        fail(
            f"MTLTexture {selector}",
            f"bytesPerRow({row}) must be a multiple of {texel} and >= {width * texel}.",
        )
    needed = (depth - 1) * image + (height - 1) * row + width * texel
    memory = leading_bytes(contents, needed)
    return np.lib.stride_tricks.as_strided(
        memory, (depth, height, width, texel), (image, row, texel, 1)
    )


def _writeable(target: Any) -> np.ndarray:
    memory = bytes_of(target)
    if memory is None or not memory.flags.writeable:
        raise ValueError(f"depythonifying 'pointer', got '{type(target).__name__}'")
    return memory
