"""metalloid.compat.Metal: textures and samplers, in encoders and in argument buffers."""

import numpy as np
import pytest
from metal_programs import SHARED, array_of, run

from metalloid.compat import Metal

KERNELS = """
#include <metal_stdlib>
using namespace metal;
kernel void between(texture2d<float> image [[texture(1)]], device float *out [[buffer(0)]],
                    sampler s [[sampler(2)]], constant float2 *places [[buffer(1)]],
                    uint i [[thread_position_in_grid]]) {
    out[i] = image.sample(s, places[i], level(0)).y;
}
kernel void invert(texture2d<float, access::read> in [[texture(0)]],
                   texture2d<float, access::write> out [[texture(1)]],
                   uint2 at [[thread_position_in_grid]]) {
    out.write(1 - in.read(at), at);
}
kernel void sum(array<texture2d<uint, access::read>, 3> all [[texture(4)]],
                device uint *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = all[0].read(uint2(i, 0)).x + all[1].read(uint2(i, 0)).x + all[2].read(uint2(i, 0)).x;
}
struct material { texture2d<float> image [[id(1)]]; sampler how; device float *out; };
kernel void shade(constant material &m [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    m.out[i] = m.image.sample(m.how, float2((i + 1) / 4.0, 0.5)).x;
}
"""
READ, WRITE = Metal.MTLTextureUsageShaderRead, Metal.MTLTextureUsageShaderWrite


@pytest.fixture(scope="module")
def library(device):
    library, error = device.newLibraryWithSource_options_error_(KERNELS, None, None)
    assert error is None
    return library


def texture_of(device, texels, pixel_format, usage=READ | WRITE):
    height, width = texels.shape[:2]
    make = Metal.MTLTextureDescriptor.texture2DDescriptorWithPixelFormat_width_height_mipmapped_
    descriptor = make(pixel_format, width, height, False)
    descriptor.setUsage_(usage)
    texture = device.newTextureWithDescriptor_(descriptor)
    region = Metal.MTLRegionMake2D(0, 0, width, height)
    texture.replaceRegion_mipmapLevel_withBytes_bytesPerRow_(
        region, 0, np.ascontiguousarray(texels), texels.strides[0]
    )
    return texture


def texels_of(texture, like):
    out = np.zeros_like(like)
    height, width = like.shape[:2]
    region = Metal.MTLRegionMake2D(0, 0, width, height)
    texture.getBytes_bytesPerRow_fromRegion_mipmapLevel_(out, like.strides[0], region, 0)
    return out


def linear(device):
    descriptor = Metal.MTLSamplerDescriptor.alloc().init()
    descriptor.setMinFilter_(Metal.MTLSamplerMinMagFilterLinear)
    descriptor.setMagFilter_(Metal.MTLSamplerMinMagFilterLinear)
    descriptor.setSAddressMode_(Metal.MTLSamplerAddressModeRepeat)
    descriptor.setLabel_("linear")
    return device.newSamplerStateWithDescriptor_(descriptor)


def test_sampling(device, pipeline, queue, rng):
    texels = rng.random((5, 7, 4), np.float32)
    image = texture_of(device, texels, Metal.MTLPixelFormatRGBA32Float)
    coordinates = rng.random((100, 2), np.float32)
    out = device.newBufferWithLength_options_(400, SHARED)
    commands = queue.commandBuffer()
    encoder = commands.computeCommandEncoder()
    encoder.setComputePipelineState_(pipeline("between"))
    encoder.setBuffer_offset_atIndex_(out, 0, 0)
    encoder.setBytes_length_atIndex_(coordinates, coordinates.nbytes, 1)
    encoder.setTexture_atIndex_(image, 1)
    encoder.setSamplerState_atIndex_(linear(device), 2)
    encoder.dispatchThreads_threadsPerThreadgroup_((100, 1, 1), (100, 1, 1))
    encoder.endEncoding()
    run(commands)
    x, y = coordinates.T.astype(np.float64) * [[7], [5]] - 0.5
    left, above = np.floor(x).astype(int), np.floor(y).astype(int)
    green, expected = texels[..., 1].astype(np.float64), 0
    for row, rows in ((above, 1 - (y - above)), (above + 1, y - above)):
        for column, columns in ((left, 1 - (x - left)), (left + 1, x - left)):
            expected = expected + rows * columns * green[np.clip(row, 0, 4), column % 7]
    assert (np.abs(array_of(out) - expected) < 2e-6).all()


def test_reading_and_writing(device, pipeline, queue, rng):
    texels = rng.integers(0, 256, (33, 50, 4), np.uint8)
    source = texture_of(device, texels, Metal.MTLPixelFormatBGRA8Unorm, READ)
    target = texture_of(device, np.zeros_like(texels), Metal.MTLPixelFormatBGRA8Unorm, WRITE)
    commands = queue.commandBuffer()
    encoder = commands.computeCommandEncoder()
    encoder.setComputePipelineState_(pipeline("invert"))
    encoder.setTextures_withRange_([source, target], (0, 2))
    encoder.dispatchThreadgroups_threadsPerThreadgroup_((5, 33, 1), (10, 1, 1))
    encoder.endEncoding()
    run(commands)
    assert (texels_of(target, texels) == 255 - texels).all()


def test_arrays_of_textures(device, pipeline, queue, rng):
    texels = rng.integers(0, 100, (3, 1, 20, 1), np.uint32)
    textures = [texture_of(device, one, Metal.MTLPixelFormatR32Uint) for one in texels]
    out = device.newBufferWithLength_options_(80, SHARED)
    commands = queue.commandBuffer()
    encoder = commands.computeCommandEncoder()
    encoder.setComputePipelineState_(pipeline("sum"))
    encoder.setBuffer_offset_atIndex_(out, 0, 0)
    encoder.setTextures_withRange_(textures, (4, 3))
    encoder.dispatchThreads_threadsPerThreadgroup_((20, 1, 1), (20, 1, 1))
    encoder.endEncoding()
    run(commands)
    assert (array_of(out, np.uint32) == texels.sum(axis=0).reshape(-1)).all()


def test_in_argument_buffers(device, library, pipeline, queue):
    image = texture_of(device, np.float32([[0, 10, 20, 30]]), Metal.MTLPixelFormatR32Float)
    out = device.newBufferWithLength_options_(16, SHARED)
    encoder = library.newFunctionWithName_("shade").newArgumentEncoderWithBufferIndex_(0)
    arguments = device.newBufferWithLength_options_(encoder.encodedLength(), SHARED)
    encoder.setArgumentBuffer_offset_(arguments, 0)
    encoder.setTexture_atIndex_(image, 1)
    sampler = linear(device)
    encoder.setSamplerState_atIndex_(sampler, 2)
    encoder.setBuffer_offset_atIndex_(out, 0, 3)
    for call, value in (
        (encoder.setTexture_atIndex_, image), (encoder.setSamplerState_atIndex_, sampler),
    ):  # fmt: skip
        with pytest.raises(Metal.FailedAssertion, match=r"index\(3\) is not a"):
            call(value, 3)
    commands = queue.commandBuffer()
    launches = commands.computeCommandEncoder()
    launches.setComputePipelineState_(pipeline("shade"))
    launches.setBuffer_offset_atIndex_(arguments, 0, 0)
    launches.useResources_count_usage_([image, out], 2, Metal.MTLResourceUsageRead)
    launches.memoryBarrierWithResources_count_([image, out], 2)
    launches.dispatchThreads_threadsPerThreadgroup_((4, 1, 1), (4, 1, 1))
    launches.endEncoding()
    run(commands)
    assert array_of(out).tolist() == [5, 15, 25, 15]


KINDS = {
    "1D": ({"Width": 9}, Metal.MTLRegionMake1D(2, 5), 0),
    "1DArray": ({"Width": 9, "ArrayLength": 3}, Metal.MTLRegionMake1D(2, 5), 2),
    "2DArray": ({"Width": 9, "Height": 6, "ArrayLength": 3}, Metal.MTLRegionMake2D(2, 1, 5, 4), 1),
    "3D": ({"Width": 9, "Height": 6, "Depth": 4}, Metal.MTLRegionMake3D(2, 1, 1, 5, 4, 3), 0),
    "Cube": ({"Width": 8, "Height": 8}, Metal.MTLRegionMake2D(2, 1, 5, 4), 5),
    "CubeArray": (
        {"Width": 8, "Height": 8, "ArrayLength": 2},
        Metal.MTLRegionMake2D(2, 1, 5, 4),
        9,
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", [0, 1])
def test_regions(device, kind, level, rng):
    settings, region, slice_ = KINDS[kind]
    levels = 1 if kind.startswith("1D") else 2
    if level >= levels:
        region = None
    descriptor = Metal.MTLTextureDescriptor.new()
    descriptor.setTextureType_(getattr(Metal, f"MTLTextureType{kind}"))
    descriptor.setPixelFormat_(Metal.MTLPixelFormatRG16Uint)
    descriptor.setMipmapLevelCount_(levels)
    for name, value in settings.items():
        getattr(descriptor, f"set{name}_")(value)
    texture = device.newTextureWithDescriptor_(descriptor)
    assert texture.mipmapLevelCount() == levels
    assert (texture.width(), texture.pixelFormat()) == (settings["Width"], descriptor.pixelFormat())
    if region is None:
        return
    if level:
        region = Metal.MTLRegionMake3D(1, 1, 0, 2, 2, 1)
    size = region.size
    row, image = (size.width + 3) * 4, (size.width + 3) * 4 * size.height + 8
    memory = rng.integers(0, 2**16, image * size.depth // 2, np.uint16)
    texture.replaceRegion_mipmapLevel_slice_withBytes_bytesPerRow_bytesPerImage_(
        region, level, slice_, memory, row, image
    )
    out = np.zeros((size.depth, size.height, size.width, 2), np.uint16)
    texture.getBytes_bytesPerRow_bytesPerImage_fromRegion_mipmapLevel_slice_(
        out, size.width * 4, size.width * 4 * size.height, region, level, slice_
    )
    for z in range(size.depth):
        for y in range(size.height):
            start = (z * image + y * row) // 2
            assert out[z, y].reshape(-1).tolist() == memory[start : start + size.width * 2].tolist()


def test_descriptors():
    make = Metal.MTLTextureDescriptor.texture2DDescriptorWithPixelFormat_width_height_mipmapped_
    assert make(Metal.MTLPixelFormatR8Unorm, 100, 37, True).mipmapLevelCount() == 7
    cube = Metal.MTLTextureDescriptor.textureCubeDescriptorWithPixelFormat_size_mipmapped_
    descriptor = cube(Metal.MTLPixelFormatR8Unorm, 16, True)
    assert descriptor.textureType() == Metal.MTLTextureTypeCube
    assert (descriptor.width(), descriptor.height(), descriptor.mipmapLevelCount()) == (16, 16, 5)
    assert Metal.MTLTextureDescriptor.alloc().init().usage() == READ
    sampler = Metal.MTLSamplerDescriptor.new()
    assert (sampler.normalizedCoordinates(), sampler.maxAnisotropy()) == (True, 1)
    for wrong in (-1, 2.5, "8"):
        with pytest.raises(ValueError, match="depythonifying"):
            descriptor.setWidth_(wrong)


def test_what_is_refused(device, pipeline, queue):
    texels = np.zeros((4, 4), np.float32)
    pixels = Metal.MTLPixelFormatR32Float
    texture = texture_of(device, texels, pixels, READ)
    region = Metal.MTLRegionMake2D(1, 1, 3, 3)

    def refuses(words, call, *arguments):
        with pytest.raises(Metal.FailedAssertion, match=words):
            call(*arguments)

    replace = texture.replaceRegion_mipmapLevel_withBytes_bytesPerRow_
    refuses("must lie in", replace, Metal.MTLRegionMake2D(1, 1, 4, 1), 0, texels, 16)
    refuses("no level 1 of slice 0", replace, region, 1, texels, 16)
    refuses(r"bytesPerRow\(8\) must be a multiple of 4 and >= 12", replace, region, 0, texels, 8)
    with pytest.raises(ValueError, match="depythonifying 44 bytes, got 8"):
        replace(region, 0, bytes(8), 16)
    with pytest.raises(ValueError, match="depythonifying 'pointer'"):
        texture.getBytes_bytesPerRow_fromRegion_mipmapLevel_(bytes(64), 16, region, 0)
    descriptor = Metal.MTLTextureDescriptor.new()
    descriptor.setPixelFormat_(Metal.MTLPixelFormatInvalid)
    refuses(r"no textures of .*pixelFormat\(0\)", device.newTextureWithDescriptor_, descriptor)
    descriptor.setPixelFormat_(pixels)
    descriptor.setWidth_(0)
    refuses("its width is 0", device.newTextureWithDescriptor_, descriptor)
    sampler = Metal.MTLSamplerDescriptor.new()
    sampler.setSAddressMode_(Metal.MTLSamplerAddressModeMirrorClampToEdge)
    refuses("invalid descriptor", device.newSamplerStateWithDescriptor_, sampler)

    encoder = queue.commandBuffer().computeCommandEncoder()
    dispatch = encoder.dispatchThreads_threadsPerThreadgroup_
    encoder.setComputePipelineState_(pipeline("invert"))
    refuses("missing Texture binding at index 0 for in", dispatch, (1, 1, 1), (1, 1, 1))
    encoder.setTextures_withRange_([texture, texture], (0, 2))
    refuses("for out has usage", dispatch, (1, 1, 1), (1, 1, 1))
    line = Metal.MTLTextureDescriptor.new()
    line.setTextureType_(Metal.MTLTextureType1D)
    encoder.setTexture_atIndex_(device.newTextureWithDescriptor_(line), 0)
    refuses("is of the type 1d, not 2d", dispatch, (1, 1, 1), (1, 1, 1))
    encoder.setTexture_atIndex_(None, 0)
    refuses("missing Texture binding", dispatch, (1, 1, 1), (1, 1, 1))
    refuses(r"index\(128\) must be <", encoder.setTexture_atIndex_, texture, 128)
    refuses(r"index\(16\) must be <", encoder.setSamplerState_atIndex_, linear(device), 16)
    with pytest.raises(ValueError, match="MTLTexture"):
        encoder.setTexture_atIndex_(linear(device), 0)
    encoder.endEncoding()
