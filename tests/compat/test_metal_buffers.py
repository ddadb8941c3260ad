"""metalloid.compat.Metal: buffers."""

import ctypes
import gc
import mmap
import struct

import numpy as np
import pytest
from metal_programs import ITERATIONS, SHARED, array_of, buffer_of, encode

from metalloid.compat import Metal


def test_buffers(device):
    buffer = device.newBufferWithLength_options_(10, SHARED)
    assert buffer.length() == 10
    assert buffer.allocatedSize() >= 10
    view = buffer.contents().as_buffer(10)
    assert (view.format, view.shape, view.readonly) == ("B", (10,), False)
    assert list(view) == [0] * 10
    view[3] = 7
    ctypes.c_uint16.from_buffer(view, 4).value = 513
    assert bytes(buffer.contents().as_buffer(6)) == b"\0\0\0\7\1\2"
    assert buffer.storageMode() == Metal.MTLStorageModeShared
    assert buffer.resourceOptions() == 0
    assert buffer.gpuAddress() == ctypes.addressof(ctypes.c_char.from_buffer(view))
    assert buffer.setPurgeableState_(Metal.MTLPurgeableStateEmpty) == 2
    with pytest.raises(ValueError, match="10 bytes, not 11"):
        buffer.contents().as_buffer(11)


@pytest.mark.parametrize(
    "contents",
    [b"abcd", bytearray(b"abcd"), np.frombuffer(b"abcd", np.uint16), (ctypes.c_char * 4)(*b"abcd")],
)
def test_buffers_of_bytes_are_copies(device, contents):
    buffer = device.newBufferWithBytes_length_options_(contents, 3, SHARED)
    assert bytes(buffer.contents().as_buffer(3)) == b"abc"
    buffer.contents().as_buffer(3)[0] = 0
    assert bytes(memoryview(contents))[:1] == b"a"


def test_buffers_that_cannot_be(device):
    assert device.newBufferWithLength_options_(0, SHARED) is None
    with pytest.raises(Metal.FailedAssertion, match="must not exceed"):
        device.newBufferWithLength_options_(2**62, SHARED)
    with pytest.raises(ValueError, match="8 bytes, got 4"):
        device.newBufferWithBytes_length_options_(b"abcd", 8, SHARED)
    for wrong in ("abcd", [1.0], None, 3):
        with pytest.raises(ValueError, match="pointer"):
            device.newBufferWithBytes_length_options_(wrong, 1, SHARED)
    with pytest.raises(ValueError, match="unsigned long long"):
        device.newBufferWithLength_options_(-1, SHARED)


def test_arrays_with_gaps_are_packed(device):
    table = np.arange(8, dtype=np.float32).reshape(4, 2)[::2].T
    buffer = device.newBufferWithBytes_length_options_(table, table.nbytes, SHARED)
    assert array_of(buffer).tolist() == table.reshape(-1).tolist()


def test_private_and_managed_buffers(device):
    private = device.newBufferWithLength_options_(16, Metal.MTLResourceStorageModePrivate)
    assert private.contents() is None
    managed = device.newBufferWithLength_options_(16, Metal.MTLResourceStorageModeManaged)
    managed.didModifyRange_((0, 16))
    with pytest.raises(Metal.FailedAssertion, match="16 bytes"):
        managed.didModifyRange_((1, 16))
    shared = device.newBufferWithLength_options_(16, SHARED)
    for buffer in (private, shared):
        with pytest.raises(Metal.FailedAssertion, match="Managed"):
            buffer.didModifyRange_((0, 1))


def test_memory_is_counted(device):
    gc.collect()
    before = device.currentAllocatedSize()
    buffer = device.newBufferWithLength_options_(2**20, SHARED)
    assert device.currentAllocatedSize() == before + 2**20
    del buffer
    assert device.currentAllocatedSize() == before


def test_views_retain_memory(device):
    view = array_of(buffer_of(device, np.float32([1, 2, 3])))
    others = [buffer_of(device, np.full(3, -1, np.float32)) for _ in range(20)]
    assert view.tolist() == [1, 2, 3]
    del others


def test_memory_of_the_host(device, pipeline, queue):
    memory, released = mmap.mmap(-1, mmap.PAGESIZE), []
    x = device.newBufferWithBytesNoCopy_length_options_deallocator_(
        memory, mmap.PAGESIZE, SHARED, lambda pointer, length: released.append((pointer, length))
    )
    commands = queue.commandBuffer()
    encode(
        commands,
        pipeline("slow"),
        [device.newBufferWithLength_options_(4, SHARED), struct.pack("I", ITERATIONS)],
        (1, 1, 1),
    )
    encode(commands, pipeline("add_one"), [x], (1024, 1, 1), (32, 1, 1))
    del x
    commands.commit()
    assert released == []  # not before the launch has ended
    commands.waitUntilCompleted()
    assert released == [(memory, mmap.PAGESIZE)]
    assert (np.frombuffer(memory, np.float32) == 1).all()
    selector = device.newBufferWithBytesNoCopy_length_options_deallocator_
    with pytest.raises(Metal.FailedAssertion, match="length 0x64 is not"):
        selector(memory, 100, SHARED, None)
    with pytest.raises(Metal.FailedAssertion, match="pointer 0x"):
        selector(np.zeros(2 * mmap.PAGESIZE, np.uint8)[1:], mmap.PAGESIZE, SHARED, None)
