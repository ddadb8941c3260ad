"""metalloid.compat.Metal: texels from buffers to textures and back."""

import numpy as np
import pytest
from metal_programs import SHARED

from metalloid.compat import Metal

READ = Metal.MTLTextureUsageShaderRead


@pytest.fixture
def volume(device):
    """3 x 4 x 5 texels of two bytes, which the host does not see."""
    descriptor = Metal.MTLTextureDescriptor.new()
    descriptor.setTextureType_(Metal.MTLTextureType3D)
    descriptor.setPixelFormat_(Metal.MTLPixelFormatR16Uint)
    descriptor.setStorageMode_(Metal.MTLStorageModePrivate)
    descriptor.setDepth_(3)
    descriptor.setHeight_(4)
    descriptor.setWidth_(5)
    return device.newTextureWithDescriptor_(descriptor)


def copies(queue):
    """An encoder, and its copies to a texture and from one."""
    encoder = queue.commandBuffer().blitCommandEncoder()
    into = encoder.copyFromBuffer_sourceOffset_sourceBytesPerRow_sourceBytesPerImage_sourceSize_toTexture_destinationSlice_destinationLevel_destinationOrigin_
    out = encoder.copyFromTexture_sourceSlice_sourceLevel_sourceOrigin_sourceSize_toBuffer_destinationOffset_destinationBytesPerRow_destinationBytesPerImage_
    return encoder, into, out


def test_a_part_goes_in_and_out(device, queue, volume, rng):
    numbers = rng.integers(0, 2**16, 200).astype(np.uint16)
    source = device.newBufferWithBytes_length_options_(numbers, 400, SHARED)
    target = device.newBufferWithLength_options_(400, SHARED)
    encoder, into, out = copies(queue)
    into(source, 6, 20, 100, (3, 2, 2), volume, 0, 0, (1, 2, 1))
    out(volume, 0, 0, (0, 1, 1), (5, 3, 2), target, 10, 12, 40)
    encoder.endEncoding()
    encoder.commandBuffer().commit()
    encoder.commandBuffer().waitUntilCompleted()
    expected = np.zeros((3, 4, 5), np.uint16)
    for z, y, x in np.ndindex(2, 2, 3):
        expected[1 + z, 2 + y, 1 + x] = numbers[3 + z * 50 + y * 10 + x]
    got = np.frombuffer(target.contents().as_buffer(400), np.uint16)
    for z, y, x in np.ndindex(2, 3, 5):
        assert got[5 + z * 20 + y * 6 + x] == expected[1 + z, 1 + y, x]
    assert np.count_nonzero(got) <= 12


def test_what_is_wrong_is_refused(device, queue, volume):
    buffer = device.newBufferWithLength_options_(100, SHARED)
    encoder, into, out = copies(queue)

    def refuses(what, *arguments):
        with pytest.raises(Metal.FailedAssertion, match=what):
            into(*arguments)

    at = volume, 0, 0, (0, 0, 0)
    refuses(
        r"offset\(1\) must be a multiple of the texel's 2 bytes", buffer, 1, 10, 40, (5, 4, 1), *at
    )
    refuses(r"bytesPerRow\(8\) must be 10 to 65534", buffer, 0, 8, 40, (5, 4, 1), *at)
    refuses(r"bytesPerRow\(11\) must be", buffer, 0, 11, 44, (5, 4, 1), *at)
    refuses(r"bytesPerImage\(30\) must be >= 40", buffer, 0, 10, 30, (5, 4, 2), *at)
    refuses(
        r"the texels end at 120, behind \[buffer length\]\(100\)", buffer, 0, 10, 40, (5, 4, 3), *at
    )
    refuses("has no texels", buffer, 0, 10, 40, (5, 0, 1), *at)
    refuses("must lie in", buffer, 0, 10, 40, (5, 4, 1), volume, 0, 0, (1, 0, 0))
    refuses("there is no level 1", buffer, 0, 10, 40, (5, 4, 1), volume, 0, 1, (0, 0, 0))
    with pytest.raises(ValueError, match="MTLBuffer"):
        into(volume, 0, 10, 40, (5, 4, 1), *at)
    with pytest.raises(ValueError, match="MTLTexture"):
        out(buffer, 0, 0, (0, 0, 0), (5, 4, 1), buffer, 0, 10, 40)
    encoder.endEncoding()
