"""Planted errors that would do no harm on the software device, and that it finds all the same."""

import gc
from collections import Counter

import numpy as np
import pytest

import metalloid as mtl
from metalloid.compat import Metal

SLOW = """
#include <metal_stdlib>
using namespace metal;
kernel void slow(device uint* x, constant uint& rounds, uint i [[thread_position_in_grid]])
{ for (uint k = 0; k < rounds; ++k) x[i] = x[i] * 1664525u + 1013904223u; }
kernel void copy(device uint* y, device const uint* x, uint i [[thread_position_in_grid]])
{ y[i] = x[i]; }
"""
ONE = Metal.MTLSizeMake(1, 1, 1)


@pytest.fixture(scope="module")
def pipelines(device):
    library, error = device.newLibraryWithSource_options_error_(SLOW, None, None)
    assert error is None
    states = {}
    for name in library.functionNames():
        function = library.newFunctionWithName_(name)
        states[name], error = device.newComputePipelineStateWithFunction_error_(function, None)
        assert error is None
    return states


@pytest.fixture
def buffers(device):
    return [device.newBufferWithLength_options_(64, 0) for _ in range(3)]


def slow(encoder, pipelines, x, iterations=100_000_000):
    encoder.setComputePipelineState_(pipelines["slow"])
    encoder.setBuffer_offset_atIndex_(x, 0, 0)
    encoder.setBytes_length_atIndex_(np.uint32(iterations), 4, 1)
    encoder.dispatchThreads_threadsPerThreadgroup_(ONE, ONE)


def copy(encoder, pipelines, y, x):
    encoder.setComputePipelineState_(pipelines["copy"])
    encoder.setBuffer_offset_atIndex_(y, 0, 0)
    encoder.setBuffer_offset_atIndex_(x, 0, 1)
    encoder.dispatchThreads_threadsPerThreadgroup_(ONE, ONE)


def committed(commands, encode, *arguments):
    encoder = commands.computeCommandEncoder()
    encode(encoder, *arguments)
    encoder.endEncoding()
    commands.commit()
    return commands


# -- the host


def test_the_host_reads_before_the_end(queue, pipelines, buffers):
    x = buffers[0]
    pointer = x.contents()
    commands = committed(queue.commandBuffer(), slow, pipelines, x)
    with pytest.raises(Metal.FailedAssertion, match=r"the host uses a buffer that .* writes"):
        x.contents().as_buffer(4)
    with pytest.raises(Metal.FailedAssertion, match="wait until it has completed"):
        pointer.as_buffer(4)
    commands.waitUntilCompleted()
    assert len(pointer.as_buffer(4)) == 4


def test_the_host_may_read_what_is_only_read(queue, pipelines, buffers):
    x, y, z = buffers
    first = committed(queue.commandBuffer(), slow, pipelines, z)
    second = committed(queue.commandBuffer(), copy, pipelines, y, x)
    x.contents().as_buffer(4)
    first.waitUntilCompleted()
    second.waitUntilCompleted()


# -- concurrent encoders


def test_launches_that_may_overlap(queue, pipelines, buffers):
    x, y, z = buffers
    commands = queue.commandBuffer()
    encoder = commands.computeCommandEncoderWithDispatchType_(Metal.MTLDispatchTypeConcurrent)
    copy(encoder, pipelines, y, x)
    copy(encoder, pipelines, z, x)  # both read x
    for written, read in ((z, y), (x, z), (y, z)):
        with pytest.raises(Metal.FailedAssertion, match="a memory barrier is missing"):
            copy(encoder, pipelines, written, read)
    encoder.memoryBarrierWithScope_(Metal.MTLBarrierScopeTextures)
    with pytest.raises(Metal.FailedAssertion, match="a memory barrier is missing"):
        copy(encoder, pipelines, z, y)
    encoder.memoryBarrierWithResources_count_([y, z], 2)
    copy(encoder, pipelines, z, y)
    encoder.memoryBarrierWithScope_(Metal.MTLBarrierScopeBuffers)
    copy(encoder, pipelines, y, z)
    encoder.endEncoding()
    commands.commit()
    commands.waitUntilCompleted()


def test_elements_of_launches_that_may_overlap(queue, pipelines, buffers):
    """Where launches are checked, elements count, not buffers; the lines are named."""
    x, y, z = buffers

    def run(offset, barrier):
        commands = queue.commandBuffer()
        encoder = commands.computeCommandEncoderWithDispatchType_(Metal.MTLDispatchTypeConcurrent)
        copy(encoder, pipelines, y, x)
        if barrier:
            encoder.memoryBarrierWithScope_(Metal.MTLBarrierScopeBuffers)
        encoder.setBuffer_offset_atIndex_(z, 0, 0)
        encoder.setBuffer_offset_atIndex_(y, offset, 1)
        encoder.dispatchThreads_threadsPerThreadgroup_(ONE, ONE)
        encoder.endEncoding()
        commands.commit()
        commands.waitUntilCompleted()
        return commands.error()

    with pytest.raises(Metal.FailedAssertion, match="set METALLOID_CHECK=1"):
        run(16, False)
    with mtl.config.scope(check=True):
        assert run(16, False) is None
        assert run(0, True) is None
        error = run(0, False).localizedDescription()
    assert "data race (write, read) on element 0 of 'x' (device memory)" in error
    assert "in the launch of 'copy' before wrote 0" in error


def test_serial_encoders_need_no_barriers(queue, pipelines, buffers):
    x, y, z = buffers
    commands = queue.commandBuffer()
    encoder = commands.computeCommandEncoder()
    copy(encoder, pipelines, y, x)
    copy(encoder, pipelines, z, y)
    encoder.endEncoding()
    commands.commit()
    commands.waitUntilCompleted()


# -- other queues


def test_another_queue_reads_before_the_write_has_ended(device, queue, pipelines, buffers):
    x, y, _ = buffers
    writing = committed(queue.commandBuffer(), slow, pipelines, x)
    other = device.newCommandQueue()
    with pytest.raises(Metal.FailedAssertion, match="another queue has yet to write"):
        committed(other.commandBuffer(), copy, pipelines, y, x)
    writing.waitUntilCompleted()
    committed(other.commandBuffer(), copy, pipelines, y, x).waitUntilCompleted()


def test_an_event_orders_queues(device, queue, pipelines, buffers):
    x, y, z = buffers
    event, unrelated = device.newEvent(), device.newEvent()
    writing = queue.commandBuffer()
    encoder = writing.computeCommandEncoder()
    slow(encoder, pipelines, x)
    encoder.endEncoding()
    writing.encodeSignalEvent_value_(event, 1)
    writing.commit()
    other, third = device.newCommandQueue(), device.newCommandQueue()
    signalling = third.commandBuffer()
    signalling.encodeSignalEvent_value_(unrelated, 1)
    signalling.commit()
    wrong = other.commandBuffer()
    wrong.encodeWaitForEvent_value_(unrelated, 1)
    with pytest.raises(Metal.FailedAssertion, match="another queue has yet to write"):
        committed(wrong, copy, pipelines, z, x)
    right = other.commandBuffer()
    right.encodeWaitForEvent_value_(event, 1)
    committed(right, copy, pipelines, y, x).waitUntilCompleted()
    writing.waitUntilCompleted()


# -- lifetimes


def test_a_buffer_is_released_while_nobody_retains_it(device, queue, pipelines):
    x = device.newBufferWithLength_options_(64, 0)
    commands = queue.commandBufferWithUnretainedReferences()
    committed(commands, slow, pipelines, x)
    del x
    gc.collect()
    with pytest.raises(Metal.FailedAssertion, match=r"released while .* unretained references"):
        commands.waitUntilCompleted()


def test_a_command_buffer_retains_its_buffers(device, queue, pipelines):
    x = device.newBufferWithLength_options_(64, 0)
    commands = committed(queue.commandBuffer(), slow, pipelines, x)
    del x
    gc.collect()
    commands.waitUntilCompleted()


def test_an_encoder_is_used_after_its_command_buffer_was_committed(queue, pipelines, buffers):
    commands = queue.commandBuffer()
    encoder = commands.computeCommandEncoder()
    copy(encoder, pipelines, buffers[1], buffers[0])
    encoder.endEncoding()
    commands.commit()
    with pytest.raises(Metal.FailedAssertion, match="encoding after endEncoding"):
        copy(encoder, pipelines, buffers[1], buffers[0])
    with pytest.raises(Metal.FailedAssertion, match="has been committed"):
        commands.computeCommandEncoder()
    with pytest.raises(Metal.FailedAssertion, match="already committed"):
        commands.commit()
    commands.waitUntilCompleted()


def test_what_nobody_releases_is_counted(device, queue, pipelines):
    def count():
        gc.collect()
        return Counter(type(thing).__name__ for thing in device.alive)

    device.currentAllocatedSize()  # forgets what has ended
    before = count()
    leaked = [device.newBufferWithLength_options_(64, 0) for _ in range(3)]
    commands = committed(queue.commandBuffer(), copy, pipelines, leaked[0], leaked[1])
    commands.waitUntilCompleted()
    after = count()
    assert after["MTLBuffer"] == before["MTLBuffer"] + 3
    assert after["MTLCommandBuffer"] == before["MTLCommandBuffer"] + 1
    del leaked, commands
    device.currentAllocatedSize()  # forgets what has ended
    assert count() == before
