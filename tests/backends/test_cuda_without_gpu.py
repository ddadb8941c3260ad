"""The parts of the NVIDIA device that need no GPU: events, numbers on the device, reports."""

import ctypes
import enum
import gc
import logging
import shutil
import struct
import threading
import types
from pathlib import Path

import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.cuda.runtime import launcher
from metalloid.backends.cuda.runtime.device import CudaDevice
from metalloid.backends.cuda.runtime.events import CudaEvent, TimedEvent
from metalloid.backends.cuda.runtime.exchange import CudaExchange
from metalloid.backends.cuda.runtime.geometry import SubGrid
from metalloid.backends.cuda.runtime.pinned_memory import PinnedMemory
from metalloid.compiler.toolchain import native_build
from metalloid.compiler.toolchain.cache import shared_cache
from metalloid.runtime.launch.launches import Arguments
from metalloid.runtime.launch.printf_buffer import (
    BUFFER_BYTES,
    HEAD_BYTES,
    deliver,
    read_head,
)
from metalloid.runtime.memory.constants import SLOT_BYTES, Constants


class CUresult(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_NOT_READY = 600
    CUDA_ERROR_ILLEGAL_ADDRESS = 700


class Driver:
    CUresult = CUresult

    def __init__(self, *answers):
        self.answers = list(answers)

    def cuEventQuery(self, mark):
        return (self.answers.pop(0),)

    cuStreamQuery = cuEventQuery


class Timer:
    timeout = 0.0

    def __init__(self):
        self.free = []


class Device:
    stream = "stream"

    def __init__(self, *answers, says=None):
        self.driver, self.timer, self.says = Driver(*answers), Timer(), says
        self.in_flight = []
        self.cancelled = []

    def enter(self):
        pass

    def running(self):
        return self.in_flight[0]()

    def failure(self, status, kernel):
        return mtl.KernelFault(f"[{kernel}] {status.name}", kernel=kernel)

    def flush_printf(self, kernel):
        raise mtl.KernelFault(f"[{kernel}] {self.says}", kernel=kernel)


def test_done_raises_no_fault_and_wait_does_each_time():
    device = Device(CUresult.CUDA_ERROR_NOT_READY, CUresult.CUDA_ERROR_ILLEGAL_ADDRESS)
    event = TimedEvent(device, "step", False, Arguments(0), ("start", "end"))
    assert not event.done
    assert event.done
    assert repr(event) == "<Event: step, failed>"
    for _ in range(2):
        with pytest.raises(mtl.KernelFault, match="ILLEGAL_ADDRESS"):
            event.wait()
    assert device.driver.answers == []  # the driver was not asked again
    del event
    gc.collect()  # the error's traceback holds it
    assert device.timer.free == [("start", "end")]


def test_a_failed_assertion_is_raised_where_the_launch_is_waited_for():
    device = Device(CUresult.CUDA_SUCCESS, says="assertion failed")
    event = CudaEvent(device, "step", True, Arguments(0))
    assert event.done
    with pytest.raises(mtl.KernelFault, match="assertion failed"):
        event.wait()
    del event
    assert device.timer.free == []  # it had no marks


def test_a_wait_has_an_end():
    device = Device(*[CUresult.CUDA_ERROR_NOT_READY] * 10_000)
    event = TimedEvent(device, "step", False, Arguments(0), ("start", "end"))
    with pytest.raises(TimeoutError, match=r"still running after 0\.01 s"):
        event.wait(0.01)


def test_the_limit_of_the_launch_that_runs_ends_a_wait_for_a_later_one():
    device = Device(*[CUresult.CUDA_ERROR_NOT_READY] * 100_000)
    first, second = Arguments(0), Arguments(0)
    first.limit_ns = 10_000_000
    spins = CudaEvent(device, "spins", False, first)
    waits = CudaEvent(device, "waits", False, second)

    class Cancellation:
        def start(self, timed_out, limit):
            device.cancelled.append((timed_out, limit))
            device.driver.answers = [CUresult.CUDA_SUCCESS] * 2

    device.cancellation = Cancellation()
    assert waits.end(10.0)
    assert device.cancelled == [(spins, 0.01)]


def test_a_number_is_copied_once_and_its_slot_reused_only_in_turn():
    memory = {}
    constants = Constants(4096, memory.__setitem__)
    count = Constants.ARENA_BYTES // SLOT_BYTES
    values = [struct.pack("=i", number) for number in range(count + 1)]
    slots = [constants[value] for value in values[:count]]
    assert len(set(slots)) == count
    assert all(memory[slot] == value for slot, value in zip(slots, values, strict=False))
    memory.clear()
    assert [constants[value] for value in values[:count]] == slots
    assert memory == {}  # nothing was copied again
    assert constants[values[count]] == slots[0]  # the oldest goes
    assert memory == {slots[0]: values[count]}
    assert constants[values[0]] == slots[1]
    long = bytes(range(256)) * 2
    address = constants[long]  # takes two slots
    assert (address, constants[values[2]]) == (slots[2], slots[4])
    assert constants[values[3]] == slots[5]  # its slot has the end of the long one
    assert constants[long] == address


STAND_IN = r"""
#include <stdint.h>
#include <string.h>
#define PUBLIC __attribute__((visibility("default")))
PUBLIC uint64_t seen[64], fails_at;
PUBLIC uint32_t count;
static int note(const uint64_t* values, int many) {
  memcpy(seen + count, values, 8 * many);
  return (count += many) == fails_at ? 700 : 0;
}
PUBLIC int record(void* event, void* stream) {
  uint64_t values[] = {1, (uint64_t)event, (uint64_t)stream};
  return note(values, 3);
}
PUBLIC int launch(void* function, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b,
                  unsigned c, unsigned shared, void* stream, void** parameters, void** extra) {
  const uint64_t* words = parameters[0];
  const uint32_t* geometry = (uint32_t*)(words + 2);
  uint64_t values[] = {2, (uint64_t)function, x, y, z, a, b, c, shared, (uint64_t)stream,
                       words[0], words[1], geometry[0], geometry[9], (uint64_t)extra};
  return note(values, 15);
}
"""


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    """The functions that launch, over a driver that writes down what it is asked for."""
    folder = tmp_path_factory.mktemp("driver")
    (folder / "driver.c").write_text(STAND_IN)
    cache = shared_cache()
    stand_in = ctypes.CDLL(str(native_build.build(folder, "driver", cache)))
    # A copy: what the library itself is told of a driver goes for the whole process.
    own = shutil.copy(launcher.build(cache), folder)
    functions = launcher.load(Path(own))
    launch = functions.launch
    names = (stand_in.launch, *[stand_in.record] * 6)
    functions.use_driver(*(ctypes.cast(f, ctypes.c_void_p).value for f in names))

    def run(marks, fails_at=0):
        count = ctypes.c_uint32.in_dll(stand_in, "count")
        count.value, ctypes.c_uint64.in_dll(stand_in, "fails_at").value = 0, fails_at
        sub_grid = SubGrid((4, 5, 6, 7, 8, 9), tuple(range(100, 110)))
        words = launcher.launch_layout(2).pack(77, *marks, 640, 2**63, 12)
        status = launch(launcher.pack_shape(31, 2, sub_grid), words)
        seen = (ctypes.c_uint64 * 64).in_dll(stand_in, "seen")
        return status, list(seen[: count.value])

    return run, launch


LAUNCHED = [2, 31, 4, 5, 6, 7, 8, 9, 640, 77, 2**63, 12, 100, 109, 0]


def test_a_launch_goes_to_the_driver_between_its_marks(native):
    run, _ = native
    assert run((21, 22)) == (0, [1, 21, 77, *LAUNCHED, 1, 22, 77])
    assert run((0, 0)) == (0, LAUNCHED)
    assert run((0, 22)) == (0, [*LAUNCHED, 1, 22, 77])


def test_an_error_of_the_driver_is_returned_and_nothing_is_called_after_it(native):
    run, _ = native
    assert run((21, 22), fails_at=3) == (700, [1, 21, 77])
    assert run((21, 22), fails_at=18) == (700, [1, 21, 77, *LAUNCHED])


def test_more_words_than_a_launch_holds_are_refused_before_the_driver_sees_them(native):
    _, launch = native
    sub_grid = SubGrid((1, 1, 1, 1, 1, 1), (0,) * 10)
    words = launcher.launch_layout(600).pack(77, 0, 0, 0, *range(600))
    assert launch(launcher.pack_shape(31, 600, sub_grid), words) == 1


def test_streams_are_put_in_order():
    calls = []

    class Streams:
        def __getattr__(self, name):
            return lambda *args: calls.append((name, *args)) or (0,)

    device = object.__new__(CudaDevice)
    device.driver, device.lock = Streams(), threading.RLock()
    device.enter, device.stream = lambda: None, "ours"
    exchange = object.__new__(CudaExchange)
    exchange._device, exchange._event = device, "mark"
    exchange.hand_over(5)
    exchange.follow(6)
    assert calls == [
        ("cuEventRecord", "mark", "ours"),
        ("cuStreamWaitEvent", 5, "mark", 0),
        ("cuEventRecord", "mark", 6),
        ("cuStreamWaitEvent", "ours", "mark", 0),
    ]
    exchange.hand_over(1)  # CUDA's default stream waits by itself
    assert len(calls) == 4


@pytest.mark.parametrize("concurrent", [0, 1])
def test_visible_memory_is_managed_or_the_hosts(concurrent):
    memory, calls = ctypes.create_string_buffer(b"something", 16), []

    def called(name):
        return lambda *args: calls.append((name, *args)) or (0, ctypes.addressof(memory))

    device = object.__new__(CudaDevice)
    device.driver = types.SimpleNamespace(
        CUdevice_attribute=types.SimpleNamespace(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS=89),
        CUmemAttach_flags=types.SimpleNamespace(CU_MEM_ATTACH_GLOBAL=1),
        CU_MEMHOSTALLOC_PORTABLE=1,
        CU_MEMHOSTALLOC_DEVICEMAP=2,
        **{name: called(name) for name in ("cuMemAllocManaged", "cuMemFree", "cuMemHostAlloc",
                                           "cuMemFreeHost", "cuStreamSynchronize")},
    )  # fmt: skip
    device.lock, device._lost, device._visible = threading.RLock(), "", {}
    device.name, device.stream, device.enter = "cuda:0", "ours", lambda: None
    device.attribute = {89: concurrent}.__getitem__
    address = device.allocate_visible(10)
    assert memory.raw[:10] == bytes(10)
    device.free(address, 10)
    allocated, freed = ("cuMemAllocManaged", 10, 1), "cuMemFree"
    if not concurrent:
        allocated, freed = ("cuMemHostAlloc", 10, 3), "cuMemFreeHost"
    assert calls == [allocated, ("cuStreamSynchronize", "ours"), (freed, address)]


def test_pinned_memory_is_reused_when_it_is_unreferenced():
    blocks = []

    def pin(nbytes):
        blocks.append(np.empty(nbytes, np.uint8))
        return blocks[-1].ctypes.data

    memory = PinnedMemory(pin, max_bytes=2**20)
    first = memory.take(100_000)
    view = first[10:].view(np.uint16)
    assert (first.nbytes, len(blocks), blocks[0].nbytes) == (100_000, 1, 2**17)
    assert np.shares_memory(first, blocks[0])
    del first
    second = memory.take(100_000)
    assert len(blocks) == 2  # the first is still looked at
    del view, second
    third, fourth = memory.take(80_000), memory.take(2**17)
    assert len(blocks) == 2
    assert not np.shares_memory(third, fourth)
    assert memory.pinned == 2**18
    memory.take(2**19)
    assert [a.nbytes for a in (memory.take(2**20), memory.take(2**25), memory.take(10))] == [
        2**20, 2**25, 10]  # fmt: skip
    assert len(blocks) == 3  # plain memory: there is no room, it is too large, it is too small


def test_where_nothing_can_be_pinned_memory_is_plain():
    memory = PinnedMemory(lambda nbytes: 0)
    assert memory.take(2**20).nbytes == 2**20
    assert memory.pinned == 0


def test_reports(caplog):
    assert read_head(bytes(HEAD_BYTES)) is None
    assert BUFFER_BYTES - HEAD_BYTES == 2**20  # report_block.messages
    text = b"\0\0value %d\0"
    size = 48 + 16 + len(text)
    message = struct.pack("=IIQ3I3III", size, 3, 0, 1, 0, 0, 5, 0, 0, 1, 0)
    message += struct.pack("=cB6xq", b"i", 1, -7) + text
    head = struct.pack("=IIII3I3I256s256s", size, 0, 1, 12, 1, 0, 0, 5, 0, 0, b"x > 0", b"a.metal")
    report = read_head(head)
    with (
        caplog.at_level(logging.DEBUG, "metalloid.kernels"),
        pytest.raises(mtl.KernelFault) as raised,
    ):
        deliver(report, message, "step")
    assert caplog.messages == ["[step] value -7 (thread (5, 0, 0) of threadgroup (1, 0, 0))"]
    assert str(raised.value) == (
        "[step] a.metal:12: assertion failed: x > 0, in thread (5, 0, 0) of threadgroup (1, 0, 0)."
    )
    assert raised.value.thread == (5, 0, 0)
