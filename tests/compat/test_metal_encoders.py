"""metalloid.compat.Metal: launches and copies, and what encoders refuse."""

import ctypes

import numpy as np
import pytest
from metal_programs import SHARED, array_of, buffer_of, encode, run

from metalloid.compat import Metal

# -- launches


@pytest.mark.parametrize(
    ("threads", "group"),
    [((100, 1, 1), (32, 1, 1)), ((5, 3, 2), (4, 2, 1)), ((7, 1, 1), (1, 1, 1))],
)
def test_grids_of_threads(device, pipeline, queue, threads, group):
    count = threads[0] * threads[1] * threads[2]
    out = device.newBufferWithLength_options_((count + 1) * 16, SHARED)
    state = pipeline("where_am_i")
    run(
        encode(
            queue.commandBuffer(),
            state,
            [out],
            Metal.MTLSizeMake(*threads),
            Metal.MTLSizeMake(*group),
        )
    )
    rows = array_of(out, np.uint32).reshape(-1, 4)
    z, y, x = np.unravel_index(np.arange(count), threads[::-1])
    assert (rows[:count, :3] == np.stack([x, y, z], 1)).all()
    sizes = [
        np.minimum(g, t - at // g * g) for g, t, at in zip(group, threads, (x, y, z), strict=True)
    ]
    lane = x % group[0] + sizes[0] * (y % group[1] + sizes[1] * (z % group[2]))
    assert (rows[:count, 3] == lane).all()
    assert not rows[count].any()


def test_grids_of_threadgroups(device, pipeline, queue):
    x = device.newBufferWithLength_options_(100 * 4, SHARED)
    commands = queue.commandBuffer()
    encoder = commands.computeCommandEncoder()
    encoder.setComputePipelineState_(pipeline("add_one"))
    encoder.setBuffer_offset_atIndex_(x, 0, 0)
    encoder.dispatchThreadgroups_threadsPerThreadgroup_(Metal.MTLSizeMake(3, 1, 1), (25, 1, 1))
    encoder.endEncoding()
    run(commands)
    assert array_of(x).tolist() == [1] * 75 + [0] * 25


def test_threads_beyond_small_buffers_do_no_harm(device, pipeline, queue):
    """As on Apple's GPUs: the guide's own load runs 1024 threads for one number."""
    buffers = [device.newBufferWithLength_options_(4, SHARED) for _ in range(20)]
    for x in buffers:
        run(encode(queue.commandBuffer(), pipeline("add_one"), [x], (1024, 1, 1), (32, 1, 1)))
    assert all(array_of(x).tolist() == [1] for x in buffers)


def test_arguments_by_index(device, pipeline, queue, rng):
    x, y = rng.standard_normal((2, 1000)).astype(np.float32)
    both = buffer_of(device, np.concatenate([x, y]))
    commands = queue.commandBuffer()
    encoder = commands.computeCommandEncoderWithDispatchType_(Metal.MTLDispatchTypeConcurrent)
    assert encoder.dispatchType() == Metal.MTLDispatchTypeConcurrent
    assert encoder.commandBuffer() is commands
    encoder.setComputePipelineState_(pipeline("saxpy"))
    encoder.setBuffers_offsets_withRange_([both, None, None, both], [0, 0, 0, 16], (1, 4))
    encoder.setBufferOffset_atIndex_(4000, 4)
    encoder.setBytes_length_atIndex_((ctypes.c_float * 1)(2.5), 4, 30)
    encoder.dispatchThreads_threadsPerThreadgroup_((1000, 1, 1), (256, 1, 1))
    # What is set later does not reach back, and what is not set again stays.
    encoder.setBytes_length_atIndex_(np.float32([-2.5]), 4, 30)
    encoder.memoryBarrierWithScope_(Metal.MTLBarrierScopeBuffers)
    encoder.dispatchThreads_threadsPerThreadgroup_((500, 1, 1), (256, 1, 1))
    encoder.endEncoding()
    run(commands)
    once = (x.astype(np.float64) * 2.5 + y).astype(np.float32)
    twice = (x.astype(np.float64) * -2.5 + once).astype(np.float32)
    assert (array_of(both)[1000:] == np.where(np.arange(1000) < 500, twice, once)).all()
    assert (array_of(both)[:1000] == x).all()


def test_threadgroup_memory(device, pipeline, queue):
    x = buffer_of(device, np.arange(64, dtype=np.int32))
    commands = queue.commandBuffer()
    encoder = commands.computeCommandEncoder()
    encoder.setComputePipelineState_(pipeline("reversed"))
    encoder.setBuffer_offset_atIndex_(x, 0, 0)
    encoder.setThreadgroupMemoryLength_atIndex_(64, 0)
    dispatch = encoder.dispatchThreads_threadsPerThreadgroup_
    with pytest.raises(
        Metal.FailedAssertion, match=r"missing Threadgroup Memory binding at index 1 for other\[0\]"
    ):
        dispatch((64, 1, 1), (16, 1, 1))
    for length, words in ((20, "multiple of 16"), (32784, "exceeds the limit")):
        with pytest.raises(Metal.FailedAssertion, match=words):
            encoder.setThreadgroupMemoryLength_atIndex_(length, 1)
    encoder.setThreadgroupMemoryLength_atIndex_(16, 1)
    dispatch((64, 1, 1), (16, 1, 1))
    encoder.endEncoding()
    run(commands)
    expected = np.arange(64).reshape(4, 16)[:, ::-1].reshape(-1) + 1
    assert (array_of(x, np.int32) == expected).all()


def test_pointers_in_memory(device, pipeline, queue):
    data = device.newBufferWithLength_options_(40, SHARED)
    rows = buffer_of(device, np.array([(data.gpuAddress(), 10, 0)], "u8,u4,u4"))
    commands = queue.commandBuffer()
    encoder = commands.computeCommandEncoder()
    encoder.setComputePipelineState_(pipeline("through"))
    encoder.setBuffer_offset_atIndex_(rows, 0, 0)
    encoder.useResource_usage_(data, Metal.MTLResourceUsageWrite)
    encoder.useResources_count_usage_([data], 1, Metal.MTLResourceUsageRead)
    encoder.dispatchThreads_threadsPerThreadgroup_((16, 1, 1), (16, 1, 1))
    encoder.endEncoding()
    run(commands)
    assert array_of(data).tolist() == list(range(10))


def test_blits(device, queue):
    source, target = (
        buffer_of(device, np.arange(100, dtype=np.uint8)),
        buffer_of(device, np.zeros(50, np.uint8)),
    )
    commands = queue.commandBuffer()
    encoder = commands.blitCommandEncoder()
    copy = encoder.copyFromBuffer_sourceOffset_toBuffer_destinationOffset_size_
    copy(source, 10, target, 5, 20)
    encoder.fillBuffer_range_value_(target, (40, 10), 255)
    encoder.synchronizeResource_(target)
    for wrong in (
        (source, 90, target, 0, 20),
        (source, 0, target, 40, 20),
        (source, 0, target, 0, 0),
    ):
        with pytest.raises(Metal.FailedAssertion, match="must lie in"):
            copy(*wrong)
    with pytest.raises(ValueError, match="unsigned char"):
        encoder.fillBuffer_range_value_(target, (0, 1), 256)
    encoder.endEncoding()
    run(commands)
    expected = np.zeros(50, np.uint8)
    expected[5:25], expected[40:] = np.arange(10, 30), 255
    assert (array_of(target, np.uint8) == expected).all()


# -- what an encoder refuses


def test_dispatches_that_cannot_be(device, pipeline, queue):
    x = device.newBufferWithLength_options_(4, SHARED)
    commands = queue.commandBuffer()
    encoder = commands.computeCommandEncoder()
    dispatch = encoder.dispatchThreads_threadsPerThreadgroup_
    one = Metal.MTLSizeMake(1, 1, 1)

    def refuses(words, call, *arguments):
        with pytest.raises(Metal.FailedAssertion, match=words) as caught:
            call(*arguments)
        assert str(caught.value).startswith("-[MTLComputeCommandEncoder ")

    refuses("pipeline state must be set", dispatch, one, one)
    refuses("must not be nil", encoder.setComputePipelineState_, None)
    encoder.setComputePipelineState_(pipeline("where_am_i"))
    refuses(
        r"Compute Function\(where_am_i\): missing Buffer binding at index 0 for out\[0\]\.",
        dispatch,
        one,
        one,
    )
    encoder.setBuffer_offset_atIndex_(x, 0, 0)
    refuses(r"space for 4 bytes, but argument has a length\(16\)", dispatch, one, one)
    refuses(r"2048 threads, which must be <= 1024", dispatch, one, (2048, 1, 1))
    refuses("no threads", dispatch, (0, 1, 1), one)
    refuses("no threads", encoder.dispatchThreadgroups_threadsPerThreadgroup_, one, (1, 0, 1))
    refuses(r"index\(31\) must be < 31", encoder.setBuffer_offset_atIndex_, x, 0, 31)
    refuses(r"index\(31\) must be < 31", encoder.setBytes_length_atIndex_, b"abcd", 4, 31)
    refuses(r"index\(31\) must be < 31", encoder.setThreadgroupMemoryLength_atIndex_, 16, 31)
    refuses(
        r"offset\(4\) must be < \[buffer length\]\(4\)", encoder.setBuffer_offset_atIndex_, x, 4, 0
    )
    refuses(r"no buffer at index\(3\)", encoder.setBufferOffset_atIndex_, 0, 3)
    refuses(
        r"length\(5000\) must be <= 4096", encoder.setBytes_length_atIndex_, bytes(5000), 5000, 0
    )
    refuses(r"length\(0\)", encoder.setBytes_length_atIndex_, b"", 0, 0)
    encoder.setBuffer_offset_atIndex_(None, 0, 0)
    refuses("missing Buffer binding", dispatch, one, one)
    encoder.setComputePipelineState_(pipeline("add_one"))
    encoder.setBuffer_offset_atIndex_(device.newBufferWithLength_options_(16, SHARED), 2, 0)
    refuses(r"offset\(2\) for x\[0\] must be a multiple of 4", dispatch, one, one)
    for call, arguments in (
        (encoder.setComputePipelineState_, ["add_one"]),
        (encoder.setBuffer_offset_atIndex_, [b"abcd", 0, 0]),
        (encoder.setBuffer_offset_atIndex_, [x, "0", 0]),
        (encoder.setBytes_length_atIndex_, [3, 4, 0]),
        (encoder.useResource_usage_, [None, 1]),
        (dispatch, [1, 1]),
        (dispatch, [(1, 1), one]),
    ):
        with pytest.raises(ValueError):  # noqa: PT011 - several of PyObjC's own
            call(*arguments)
    encoder.endEncoding()
    refuses("endEncoding", dispatch, one, one)
    refuses("endEncoding", encoder.setBuffer_offset_atIndex_, x, 0, 0)
    refuses("endEncoding", encoder.endEncoding)


def test_debug_groups_and_fences(device, queue):
    commands = queue.commandBuffer()
    encoder = commands.computeCommandEncoder()
    fence = device.newFence()
    encoder.pushDebugGroup_("inner")
    encoder.insertDebugSignpost_("here")
    encoder.popDebugGroup()
    encoder.updateFence_(fence)
    encoder.waitForFence_(fence)
    encoder.memoryBarrierWithResources_count_([device.newBufferWithLength_options_(4, SHARED)], 1)
    with pytest.raises(Metal.FailedAssertion, match="without pushDebugGroup"):
        encoder.popDebugGroup()
    with pytest.raises(ValueError, match="MTLFence"):
        encoder.waitForFence_(None)
    encoder.endEncoding()
    commands.pushDebugGroup_("outer")
    commands.popDebugGroup()
    with pytest.raises(Metal.FailedAssertion, match="without pushDebugGroup"):
        commands.popDebugGroup()
    queue.insertDebugCaptureBoundary()
