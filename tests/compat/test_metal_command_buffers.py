"""metalloid.compat.Metal: command buffers from encoding to completion, and events."""

import gc
import struct
import threading
import time

import numpy as np
import pytest
from metal_programs import SHARED, array_of, buffer_of, encode, run, slow_commands

import metalloid as mtl
from metalloid.compat import Metal

# -- command buffers


def test_the_life_of_a_command_buffer(device, pipeline, queue):
    commands = queue.commandBuffer()
    assert commands.commandQueue() is queue
    assert commands.retainedReferences() is True
    assert queue.commandBufferWithUnretainedReferences().retainedReferences() is False
    assert commands.status() == Metal.MTLCommandBufferStatusNotEnqueued
    out = slow_commands(device, pipeline, commands)
    seen = array_of(out, np.uint32)
    commands.enqueue()
    assert commands.status() == Metal.MTLCommandBufferStatusEnqueued
    assert (commands.GPUStartTime(), commands.GPUEndTime(), commands.error()) == (0, 0, None)
    called = []
    commands.addScheduledHandler_(lambda c: called.append("scheduled"))
    for name in ("first", "second"):
        commands.addCompletedHandler_(lambda c, name=name: called.append((name, c.status())))
    commands.commit()
    commands.waitUntilScheduled()
    assert called == ["scheduled"]
    assert commands.status() == Metal.MTLCommandBufferStatusScheduled
    assert seen[0] == 0
    commands.waitUntilCompleted()
    done = Metal.MTLCommandBufferStatusCompleted
    assert called[1:] == [("first", done), ("second", done)]
    assert (commands.status(), commands.error()) == (done, None)
    assert array_of(out, np.uint32)[0] & 1
    assert 0 < commands.GPUStartTime() < commands.GPUEndTime() <= time.monotonic() + 0.01
    assert commands.kernelStartTime() <= commands.kernelEndTime()
    commands.waitUntilCompleted()


def test_status_is_known_without_waiting(device, pipeline, queue):
    commands = queue.commandBuffer()
    slow_commands(device, pipeline, commands)
    commands.commit()
    deadline = time.monotonic() + 30
    while commands.status() != Metal.MTLCommandBufferStatusCompleted:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert commands.GPUEndTime() > 0


def test_times_do_not_overlap(device, pipeline, queue):
    all_commands = [queue.commandBuffer() for _ in range(3)]
    for commands in all_commands:
        slow_commands(device, pipeline, commands)
        commands.commit()
    for commands in all_commands:
        commands.waitUntilCompleted()
    times = [t for c in all_commands for t in (c.GPUStartTime(), c.GPUEndTime())]
    assert times == sorted(times)


def test_what_a_command_buffer_refuses(device, pipeline, queue):
    commands = queue.commandBuffer()
    encoder = commands.computeCommandEncoder()

    def refuses(words, call, *arguments):
        with pytest.raises(Metal.FailedAssertion, match=words) as caught:
            call(*arguments)
        assert str(caught.value).startswith("-[MTLCommandBuffer ")

    refuses("already encoding", commands.computeCommandEncoder)
    refuses("already encoding", commands.blitCommandEncoder)
    refuses("already encoding", commands.encodeSignalEvent_value_, device.newEvent(), 1)
    refuses("uncommitted encoder", commands.commit)
    refuses("has not been committed", commands.waitUntilCompleted)
    encoder.endEncoding()
    run(commands)
    refuses("commit an already committed command buffer", commands.commit)
    refuses("place in the queue", commands.enqueue)
    refuses("committed", commands.computeCommandEncoder)
    refuses("after commit", commands.addCompletedHandler_, print)
    refuses("after commit", commands.addScheduledHandler_, print)


def test_command_buffers_run_in_the_order_of_enqueueing(device, queue):
    target = buffer_of(device, np.zeros(1, np.uint8))
    first, second = queue.commandBuffer(), queue.commandBuffer()
    for value, commands in ((1, first), (2, second)):
        encoder = commands.blitCommandEncoder()
        encoder.fillBuffer_range_value_(target, (0, 1), value)
        encoder.endEncoding()
    first.enqueue()
    second.commit()
    time.sleep(0.02)
    assert second.status() == Metal.MTLCommandBufferStatusCommitted
    assert array_of(target, np.uint8)[0] == 0
    first.commit()
    second.waitUntilCompleted()
    assert array_of(target, np.uint8)[0] == 2


def test_many_launches_in_many_command_buffers(device, pipeline, queue):
    x, state = device.newBufferWithLength_options_(4000, SHARED), pipeline("add_one")
    for _ in range(20):
        commands = queue.commandBuffer()
        for _ in range(10):
            encode(commands, state, [x], (1000, 1, 1), (100, 1, 1))
        commands.commit()
    commands.waitUntilCompleted()
    assert (array_of(x) == 200).all()


@pytest.mark.needs("a context that outlives a fault")
def test_a_failing_launch(device, pipeline, queue):
    x = device.newBufferWithLength_options_(4, SHARED)
    commands = encode(
        queue.commandBuffer(), pipeline("astray"), [x, struct.pack("Q", 2**60)], (1, 1, 1)
    )
    seen = []
    commands.addCompletedHandler_(lambda c: seen.append(c.error().code()))
    run(commands)
    assert commands.status() == Metal.MTLCommandBufferStatusError
    error = commands.error()
    assert error.domain() == Metal.MTLCommandBufferErrorDomain
    assert error.code() == Metal.MTLCommandBufferErrorPageFault == seen[0]
    assert "astray" in error.localizedDescription()
    run(encode(queue.commandBuffer(), pipeline("add_one"), [x], (1, 1, 1)))
    assert array_of(x)[0] == 1


def test_a_launch_that_metalloid_refuses(device, pipeline, queue, monkeypatch):
    """Metalloid refuses a launch when it is encoded; but there may be no memory to queue it."""

    def refuse(*arguments, **named):
        raise mtl.LaunchError("no memory")

    state = pipeline("add_one")
    x = device.newBufferWithLength_options_(4, SHARED)
    commands = encode(queue.commandBuffer(), state, [x], (1, 1, 1))
    with monkeypatch.context() as patch:
        patch.setattr(type(state.kernel), "__call__", refuse)
        run(commands)
    assert commands.status() == Metal.MTLCommandBufferStatusError
    assert commands.error().localizedDescription() == "no memory"
    run(encode(queue.commandBuffer(), state, [x], (1, 1, 1)))
    assert array_of(x).tolist() == [1]


def test_required_threadgroups(device, queue):
    source = """[[kernel, required_threads_per_threadgroup(8)]] void f(device uint *x,
        uint id [[thread_position_in_grid]]) { x[id] = id; }"""
    library, _ = device.newLibraryWithSource_options_error_(source, None, None)
    state, _ = device.newComputePipelineStateWithFunction_error_(
        library.newFunctionWithName_("f"), None
    )
    x = device.newBufferWithLength_options_(64, SHARED)
    commands = queue.commandBuffer()
    with pytest.raises(Metal.FailedAssertion, match=r"must be \(8, 1, 1\)"):
        encode(commands, state, [x], (16, 1, 1), (16, 1, 1))
    commands = run(encode(queue.commandBuffer(), state, [x], (16, 1, 1), (8, 1, 1)))
    assert array_of(x, np.uint32).tolist() == list(range(16))


def test_forgotten_command_buffers_run(device, pipeline, library):
    gate, x = device.newSharedEvent(), device.newBufferWithLength_options_(4, SHARED)
    values = array_of(x)  # while it is written, the host may not ask for it
    queue = device.newCommandQueue()
    commands = queue.commandBuffer()
    commands.encodeWaitForEvent_value_(gate, 1)
    encode(commands, pipeline("add_one"), [x], (1, 1, 1)).commit()
    del commands, queue
    gc.collect()
    gate.setSignaledValue_(1)
    run(device.newCommandQueue().commandBuffer())
    deadline = time.monotonic() + 30
    while values[0] == 0:
        assert time.monotonic() < deadline
        time.sleep(0.001)


# -- events


def filling(queue, target, value):
    commands = queue.commandBuffer()
    encoder = commands.blitCommandEncoder()
    encoder.fillBuffer_range_value_(target, (0, 1), value)
    encoder.endEncoding()
    return commands


def test_queues_wait_for_each_other(device):
    target, event = buffer_of(device, np.zeros(1, np.uint8)), device.newEvent()
    one, other = device.newCommandQueue(), device.newCommandQueueWithMaxCommandBufferCount_(4)
    waiting = other.commandBuffer()
    waiting.encodeWaitForEvent_value_(event, 3)
    encoder = waiting.blitCommandEncoder()
    encoder.fillBuffer_range_value_(target, (0, 1), 2)
    encoder.endEncoding()
    waiting.commit()
    for value in (2, 3):
        assert waiting.status() == Metal.MTLCommandBufferStatusCommitted
        commands = filling(one, target, 1)
        commands.encodeSignalEvent_value_(event, value)
        commands.commit()
    waiting.waitUntilCompleted()
    assert array_of(target, np.uint8)[0] == 2


def test_the_host_and_queues_wait_for_each_other(device, pipeline):
    queue, event = device.newCommandQueue(), device.newSharedEvent()
    assert event.signaledValue() == 0
    commands = queue.commandBuffer()
    commands.encodeWaitForEvent_value_(event, 1)
    out = slow_commands(device, pipeline, commands)
    seen = array_of(out, np.uint32)
    commands.encodeSignalEvent_value_(event, 2)
    commands.commit()
    told = threading.Event()
    event.notifyListener_atValue_block_(
        Metal.MTLSharedEventListener.alloc().init(), 2, lambda e, value: told.set()
    )
    assert event.waitUntilSignaledValue_timeoutMS_(1, 20) is False
    event.setSignaledValue_(1)
    assert event.signaledValue() == 1  # the queue is at it
    assert seen[0] == 0
    assert event.waitUntilSignaledValue_timeoutMS_(2, 30_000) is True
    assert array_of(out, np.uint32)[0] & 1
    assert event.signaledValue() == 2
    assert told.wait(30)
    commands.waitUntilCompleted()


def test_events_are_checked(device, queue):
    commands = queue.commandBuffer()
    for wrong in (None, 3, device.newFence()):
        with pytest.raises(ValueError, match="MTLEvent"):
            commands.encodeSignalEvent_value_(wrong, 1)
    with pytest.raises(ValueError, match="unsigned long long"):
        commands.encodeWaitForEvent_value_(device.newEvent(), -1)
    with pytest.raises(Metal.FailedAssertion, match="count"):
        device.newCommandQueueWithMaxCommandBufferCount_(0)
