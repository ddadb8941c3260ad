"""metalloid.compat.Metal: argument encoders, and launches whose size lies in a buffer."""

import ctypes
import struct

import numpy as np
import pytest
from metal_programs import SHARED, array_of, buffer_of, encode, run

from metalloid.compat import Metal

KERNELS = """
#include <metal_stdlib>
using namespace metal;
constant int last = 20;
struct inner { device float *data; uint count; };
struct scene {
    device float *out [[id(3)]];
    inner pair[2];                    // data is 4 and 6, count 5 and 7
    float3 scale [[id(10)]];
    array<device const float *, 3> parts;  // 11, 12, 13
    constant inner *more;             // 14
    int shifts[4] [[id(last)]];       // 20 to 23
    float bias;                       // 24
};
kernel void blend(constant scene &s [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    s.out[i] = s.parts[0][i] * s.scale.x + s.parts[1][i] * s.scale.y + s.parts[2][i] * s.scale.z
             + s.pair[1].data[i] + s.pair[1].count + s.shifts[3] + s.bias + s.more->data[i];
}
kernel void plain(device float *x [[buffer(0)]]) { x[0] = 1; }
kernel void halve(device uint3 *groups) { groups->x /= 2; }
kernel void count_groups(device atomic_uint *n, uint i [[thread_index_in_threadgroup]]) {
    atomic_fetch_add_explicit(n, 1, memory_order_relaxed);
}
"""


@pytest.fixture(scope="module")
def library(device):
    library, error = device.newLibraryWithSource_options_error_(KERNELS, None, None)
    assert error is None
    return library


@pytest.fixture
def encoder(library):
    return library.newFunctionWithName_("blend").newArgumentEncoderWithBufferIndex_(2)


def write(pointer, value):
    ctypes.memmove(pointer.pointerAsInteger, value, len(value))


@pytest.mark.parametrize("element", [0, 2])
def test_members_by_number(device, library, pipeline, queue, encoder, element, rng):
    assert encoder.encodedLength() % encoder.alignment() == 0
    data = rng.integers(0, 100, (5, 1000)).astype(np.float32)
    parts = [buffer_of(device, row) for row in data]
    out = device.newBufferWithLength_options_(8000, SHARED)
    start = 64
    arguments = device.newBufferWithLength_options_(start + 3 * encoder.encodedLength(), SHARED)
    encoder.setArgumentBuffer_startOffset_arrayElement_(arguments, start, element)
    encoder.setBuffer_offset_atIndex_(out, 4000, 3)
    encoder.setBuffer_offset_atIndex_(parts[3], 0, 6)
    write(encoder.constantDataAtIndex_(7), struct.pack("I", 1000))
    write(encoder.constantDataAtIndex_(10), np.float32([1, 10, 100]).tobytes())
    encoder.setBuffers_offsets_withRange_(parts[:3], [0, 0, 0], (11, 3))
    write(encoder.constantDataAtIndex_(20), np.int32([1, 2, 3, 4]).tobytes())
    write(encoder.constantDataAtIndex_(23), np.int32([5]).tobytes())  # of the same array
    write(encoder.constantDataAtIndex_(24), np.float32([0.5]).tobytes())

    below = encoder.newArgumentEncoderForBufferAtIndex_(14)
    more = device.newBufferWithLength_options_(below.encodedLength(), SHARED)
    below.setArgumentBuffer_offset_(more, 0)
    below.setBuffer_offset_atIndex_(parts[4], 0, 0)
    encoder.setBuffer_offset_atIndex_(more, 0, 14)

    commands = queue.commandBuffer()
    launches = commands.computeCommandEncoder()
    launches.setComputePipelineState_(pipeline("blend"))
    launches.setBuffer_offset_atIndex_(arguments, start + element * encoder.encodedLength(), 2)
    launches.useResources_count_usage_([*parts, more], 6, Metal.MTLResourceUsageRead)
    launches.useResource_usage_(out, Metal.MTLResourceUsageWrite)
    launches.dispatchThreads_threadsPerThreadgroup_((1000, 1, 1), (32, 1, 1))
    launches.endEncoding()
    run(commands)
    expected = np.float32([1, 10, 100, 1, 1]) @ data + 1000 + 5 + 0.5
    assert (array_of(out)[1000:] == expected).all()
    assert not array_of(out)[:1000].any()


def described(index, kind, count=0):
    descriptor = Metal.MTLArgumentDescriptor.argumentDescriptor()
    descriptor.setIndex_(index)
    descriptor.setDataType_(kind)
    descriptor.setArrayLength_(count)
    return descriptor


def test_members_that_are_described(device, library, pipeline, queue, encoder):
    """The same struct without its text."""
    pointer, number = Metal.MTLDataTypePointer, Metal.MTLDataTypeUInt
    members = [
        (3, pointer), (4, pointer), (5, number), (6, pointer), (7, number),
        (10, Metal.MTLDataTypeFloat3), (11, pointer, 3), (14, pointer),
        (20, Metal.MTLDataTypeInt, 4), (24, Metal.MTLDataTypeFloat),
    ]  # fmt: skip
    same = device.newArgumentEncoderWithArguments_([described(*member) for member in members])
    assert same.encodedLength() == encoder.encodedLength()
    assert same.alignment() == encoder.alignment()
    arguments = device.newBufferWithLength_options_(encoder.encodedLength(), SHARED)
    for one in (same, encoder):
        one.setArgumentBuffer_offset_(arguments, 0)
    for index in (7, 10, 20, 23, 24):
        addresses = [one.constantDataAtIndex_(index).pointerAsInteger for one in (same, encoder)]
        assert addresses[0] == addresses[1]
    for index in (3, 4, 6, 11, 13, 14):
        same.setBuffer_offset_atIndex_(arguments, index, index)
        before = bytes(arguments.contents().as_buffer(arguments.length()))
        encoder.setBuffer_offset_atIndex_(arguments, index, index)
        assert bytes(arguments.contents().as_buffer(arguments.length())) == before
    for wrong, words in (
        ([(1, pointer), (1, pointer)], "must be greater"), ([(0, 9999)], "not a valid type"),
    ):  # fmt: skip
        with pytest.raises(Metal.FailedAssertion, match=words):
            device.newArgumentEncoderWithArguments_([described(*member) for member in wrong])


def test_the_null_pointer(device, encoder):
    arguments = buffer_of(device, np.full(encoder.encodedLength(), 255, np.uint8))
    encoder.setArgumentBuffer_offset_(arguments, 0)
    encoder.setBuffer_offset_atIndex_(None, 0, 3)
    assert array_of(arguments, np.uint64)[:2].tolist() == [0, 2**64 - 1]


def test_what_argument_encoders_refuse(device, library, encoder):
    x = device.newBufferWithLength_options_(16, SHARED)
    arguments = device.newBufferWithLength_options_(2 * encoder.encodedLength(), SHARED)

    def refuses(words, call, *arguments):
        with pytest.raises(Metal.FailedAssertion, match=words):
            call(*arguments)

    choose, set_buffer = encoder.setArgumentBuffer_offset_, encoder.setBuffer_offset_atIndex_
    refuses("setArgumentBuffer:offset: has not been called", set_buffer, x, 0, 3)
    refuses("has not been called", encoder.constantDataAtIndex_, 10)
    refuses("leaves 16 bytes", choose, x, 0)
    refuses("must be a multiple of", choose, arguments, 4)
    choose(arguments, 0)
    refuses(r"index\(10\) is not a buffer", set_buffer, x, 0, 10)
    refuses(r"index\(2\) is not a buffer", set_buffer, x, 0, 2)
    refuses(r"index\(3\) is not a constant", encoder.constantDataAtIndex_, 3)
    refuses(r"offset\(16\) must be <", set_buffer, x, 16, 3)
    refuses("not an argument buffer", encoder.newArgumentEncoderForBufferAtIndex_, 3)
    for wrong in ((3, 0, 3), (x, -1, 3), (x, 0, "3")):
        with pytest.raises(ValueError, match="depythonifying"):
            set_buffer(*wrong)
    choose(None, 0)
    refuses("has not been called", set_buffer, x, 0, 3)
    plain = library.newFunctionWithName_("plain")
    for index in (0, 1):
        refuses("is not an argument buffer", plain.newArgumentEncoderWithBufferIndex_, index)
    choose(arguments, 0)
    with pytest.raises(AttributeError):  # the binding knows no length for that pointer
        encoder.constantDataAtIndex_(10).as_buffer(4)


@pytest.mark.parametrize(("groups", "expected"), [((6, 2, 1), 3 * 2 * 8), ((1, 5, 5), 0)])
def test_threadgroups_counted_by_a_kernel(device, pipeline, queue, groups, expected):
    """The numbers are read when the launch that halves the first has ended."""
    counts = buffer_of(device, np.uint32([0, 0, 0, 0, *groups, 0]))
    n = device.newBufferWithLength_options_(4, SHARED)
    commands = queue.commandBuffer()
    halve = commands.computeCommandEncoder()
    halve.setComputePipelineState_(pipeline("halve"))
    halve.setBuffer_offset_atIndex_(counts, 16, 0)
    halve.dispatchThreads_threadsPerThreadgroup_((1, 1, 1), (1, 1, 1))
    halve.setComputePipelineState_(pipeline("count_groups"))
    halve.setBuffer_offset_atIndex_(n, 0, 0)
    dispatch = (
        halve.dispatchThreadgroupsWithIndirectBuffer_indirectBufferOffset_threadsPerThreadgroup_
    )
    dispatch(counts, 16, Metal.MTLSizeMake(4, 2, 1))
    halve.endEncoding()
    run(
        encode(
            commands, pipeline("plain"), [device.newBufferWithLength_options_(4, SHARED)], (1, 1, 1)
        )
    )
    assert commands.status() == Metal.MTLCommandBufferStatusCompleted
    assert array_of(n, np.uint32).tolist() == [expected]


def test_what_indirect_dispatches_refuse(device, pipeline, queue):
    counts = device.newBufferWithLength_options_(16, SHARED)
    encoder = queue.commandBuffer().computeCommandEncoder()
    dispatch = (
        encoder.dispatchThreadgroupsWithIndirectBuffer_indirectBufferOffset_threadsPerThreadgroup_
    )
    with pytest.raises(Metal.FailedAssertion, match="pipeline state must be set"):
        dispatch(counts, 0, (1, 1, 1))
    encoder.setComputePipelineState_(pipeline("count_groups"))
    encoder.setBuffer_offset_atIndex_(counts, 0, 0)
    for offset in (2, 8, 16):
        with pytest.raises(Metal.FailedAssertion, match="must be a multiple of 4, with 12 bytes"):
            dispatch(counts, offset, (1, 1, 1))
    with pytest.raises(Metal.FailedAssertion, match="has no threads"):
        dispatch(counts, 4, (0, 1, 1))
    with pytest.raises(ValueError, match="depythonifying 'MTLBuffer'"):
        dispatch(None, 0, (1, 1, 1))
    encoder.endEncoding()
