"""Launches bound by native/fast_launch.c and by Python tell a driver that takes notes the same."""

import ctypes
import gc
import shutil
import struct
import sys
import threading
import types
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.cuda.compile.compile_ptx import bounds_with_lines, compile_ptx
from metalloid.backends.cuda.compile.target import cuda_target
from metalloid.backends.cuda.runtime import launcher
from metalloid.backends.cuda.runtime.cancellation import Cancellation
from metalloid.backends.cuda.runtime.device import CudaDevice
from metalloid.backends.cuda.runtime.events import CudaEvent, TimedEvent
from metalloid.backends.cuda.runtime.program import CudaProgram, Function
from metalloid.backends.cuda.runtime.timing_events import Timer
from metalloid.compiler.toolchain.cache import shared_cache
from metalloid.runtime.launch.fault_records import FaultRecords
from metalloid.runtime.memory.constants import Constants

SOURCE = """
kernel void mixed(device float* x, constant float& f, device const float4* v, constant int& i,
                  constant uchar& b, constant ulong& u, uint t [[thread_position_in_grid]])
{ x[t] = f + v[0].x + i + b + u; }
"""
WORDS = 7  # one is the thread's index
LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint32] * 7, *[ctypes.c_void_p] * 3
)
RECORD = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
ELAPSED = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_float), ctypes.c_void_p, ctypes.c_void_p
)
CREATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint)
ENTER = QUERY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
COPY = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p
)


class Driver:
    """Does nothing, and says that all went well."""

    CUresult = types.SimpleNamespace(
        CUDA_ERROR_INVALID_VALUE=1, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES=701,
        CUDA_ERROR_OUT_OF_MEMORY=2, CUDA_ERROR_NOT_SUPPORTED=801, CUDA_ERROR_NOT_READY=600,
    )  # fmt: skip

    def __getattr__(self, name):
        return lambda *args: (0,)


class Program(CudaProgram):
    def _load(self, kernel):
        return None

    def _find(self, module, symbol):
        return Function(31, 1024)


class Card(CudaDevice):
    """A GPU as far as launches go."""

    words = WORDS
    create_status = 0
    running = frozenset()  # events that have not passed

    def __init__(self, native):
        self.name, self.target = "cuda:0", cuda_target("sm_90")
        self.driver, self.context = Driver(), 9
        self._has_multiple_gpus, self._lost, self.lock = False, "", threading.RLock()
        self.in_flight, self.cancellation = deque(), Cancellation(self)
        self._thread = types.SimpleNamespace(entered=True)
        self._visible, self.stream, self.stream_handle = {}, 77, 77
        self.constants = Constants(1 << 20, lambda address, value: None)
        self.fault_records = FaultRecords(self.allocate_visible)
        self.timer = Timer(self.stream)
        self.timer.free.append((21, 22))
        self._allocated, self.notes, self.status = 1 << 30, [], 0
        self.native = native
        self._callbacks = (LAUNCH(self._launch), RECORD(self._record), ENTER(self._enter_it),
                           COPY(self._copy), QUERY(self._query), CREATE(self._create),
                           ELAPSED(self._elapsed))  # fmt: skip
        self.native.use_driver(*(ctypes.cast(f, ctypes.c_void_p).value for f in self._callbacks))

    def compile(self, unit, entry, constants):
        kernel = compile_ptx(unit, entry, constants, self.target, shared_cache(), 0)
        flags = self.cancellation.flags
        with_lines = partial(bounds_with_lines, unit, entry, constants, self.target, shared_cache())
        return Program(
            kernel, entry, "sm_90", None, 0, 132, flags.append, self._settle_all, with_lines,
            self.fault_records,
        )  # fmt: skip

    def allocate(self, nbytes):
        self._allocated += 4096
        return self._allocated

    def allocate_visible(self, nbytes):
        self._visible[nbytes] = memory = ctypes.create_string_buffer(nbytes)
        return ctypes.addressof(memory)

    def copy_in(self, address, source):
        pass

    def copy_out(self, address, destination):
        pass

    def host_memory(self, nbytes):
        return np.zeros(nbytes, np.uint8)

    def synchronize(self):
        pass

    def _launch(self, function, *rest):
        *sizes, stream, parameters, _ = rest
        data = ctypes.cast(parameters, ctypes.POINTER(ctypes.c_void_p))[0]
        words = struct.unpack(f"={self.words}Q", ctypes.string_at(data, 8 * self.words))
        self.notes.append(("launch", function, stream, *sizes, words))
        return self.status

    def _record(self, mark, stream):
        self.notes.append(("mark", mark, stream))
        return 0

    def _enter_it(self, context):
        self.notes.append(("enter", context))
        return 0

    def _copy(self, to, address, nbytes, stream):
        self.notes.append(("copy", address, nbytes))
        return 0

    def _create(self, event, flags):
        self.notes.append(("create", flags))
        event[0] = 100 + len(self.notes)
        return self.create_status

    def _elapsed(self, milliseconds, started, ended):
        if ended in self.running:
            return 600
        milliseconds[0] = ended
        return 0

    def _query(self, stream):
        self.notes.append(("query", stream))
        return self.status


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    """A copy: what the library itself is told of a driver goes for the whole process."""
    path = launcher.build(shared_cache())
    return launcher.load(Path(shutil.copy(path, tmp_path_factory.mktemp("native"))))


@pytest.fixture
def card(native):
    return Card(native)


@pytest.fixture
def kernel(card):
    return mtl.library(SOURCE, device=card).mixed


@pytest.fixture
def usual(card):
    """Arguments of a usual launch."""
    return [mtl.Buffer(256, device=card), 2.5, mtl.Buffer(64, device=card), -3, 200, 2**63]


def slowly(kernel, *args, **named):
    """The driver's notes of a launch that Python binds."""
    kernel._fast_launch, fast = None, kernel._fast_launch
    kernel.device.notes.clear()
    kernel(*args, **named)
    kernel._fast_launch = fast
    for buffer in (value for value in args if isinstance(value, mtl.Buffer)):
        buffer._pending = None  # the marks of the launch are free again
    return list(kernel.device.notes)


def quickly(kernel, *args, threads=64, group_size=16):
    """The event, and what the driver was told; the event is None if the launch is not usual."""
    kernel.device.notes.clear()
    event = kernel._fast_launch(args, threads, group_size)
    return event, list(kernel.device.notes)


SIZES = {"threads": 64, "group_size": 16}


@pytest.mark.parametrize(
    ("position", "value"),
    [(1, 2.5), (1, float("inf")), (1, -0.0), (1, 3), (1, np.float32(0.1)), (1, np.float64(0.1)),
     (1, np.float16(2)), (1, np.int8(-1)), (3, -(2**31)), (3, np.int64(7)), (3, np.uint8(7)),
     (4, 255), (4, True), (5, 0), (5, 2**64 - 1)],
)  # fmt: skip
def test_the_driver_is_told_the_same_as_by_pythons_road(kernel, usual, position, value):
    usual[position] = value
    expected = slowly(kernel, *usual, **SIZES)
    event, notes = quickly(kernel, *usual)
    assert isinstance(event, TimedEvent)
    assert notes == [("enter", 9), *expected]
    assert [note[0] for note in expected] == ["mark", "launch", "mark"]


@pytest.mark.parametrize(
    ("position", "value"),
    [(0, np.zeros(4, np.float32)), (0, 1.0), (0, None), (1, 1e300), (1, 7.25),
     (1, "2.5"), (3, 2.0), (3, 2**31), (3, np.float32(1)), (4, 256), (4, -1), (5, -1),
     (5, 2**64), (2, "of 8 bytes"), (2, "elsewhere"), (1, "elsewhere")],
)  # fmt: skip
def test_other_values_are_left_to_pythons_road(kernel, usual, position, value, card):
    slowly(kernel, *usual, **SIZES)
    buffers = {"of 8 bytes": (8, card), "elsewhere": (64, Card(card.native))}
    if isinstance(value, str) and value in buffers:
        nbytes, device = buffers[value]
        value = mtl.Buffer(nbytes, device=device)
    usual[position] = value
    assert quickly(kernel, *usual) == (None, [])
    assert card.timer.free == [(21, 22)]


def test_addresses_that_are_not_aligned_are_left_to_pythons_road_where_that_matters(card):
    text = "kernel void k(device uchar* x, uint i [[thread_position_in_grid]]) { x[i] = 1; }"
    kernel = mtl.library(text, device=card).k
    card.timer.free.append((23, 24))
    for address, is_usual in ((1 << 31, True), ((1 << 31) + 8, False)):
        x = mtl.Buffer(64, device=card)
        x.address = address
        slowly(kernel, x, **SIZES)
        assert (quickly(kernel, x)[0] is not None) == is_usual


@pytest.mark.parametrize("size", [{"threads": 65}, {"threads": [64]}, {"threads": None}])
def test_other_sizes_are_left_to_pythons_road(kernel, usual, size):
    slowly(kernel, *usual, **SIZES)
    assert quickly(kernel, *usual, **size) == (None, [])


def test_other_counts_of_arguments_are_left_to_pythons_road(kernel, usual):
    slowly(kernel, *usual, **SIZES)
    assert quickly(kernel, *usual[:-1]) == (None, [])
    with pytest.raises(mtl.ArgumentError, match="expects 6 arguments, got 5"):
        kernel(*usual[:-1], **SIZES)


def test_buffers_of_failed_launches_are_left_to_pythons_road(kernel, usual):
    slowly(kernel, *usual, **SIZES)
    buffer = next(value for value in usual if isinstance(value, mtl.Buffer))
    buffer.failure = object()
    assert quickly(kernel, *usual) == (None, [])
    buffer.failure = None
    assert quickly(kernel, *usual)[0] is not None


def test_a_device_that_records_or_is_lost_is_left_to_pythons_road(kernel, usual, card):
    slowly(kernel, *usual, **SIZES)
    card.recording = object()
    assert quickly(kernel, *usual) == (None, [])
    card.recording, card._lost = None, "gone"
    assert quickly(kernel, *usual) == (None, [])
    card._lost = ""
    assert quickly(kernel, *usual)[0] is not None


def test_marks_are_created_where_events_of_the_program_use_all(kernel, usual, card):
    slowly(kernel, *usual, **SIZES)
    events = [quickly(kernel, *usual) for _ in range(3)]
    kinds = [[note[0] for note in notes] for _, notes in events]
    assert kinds[0] == ["enter", "mark", "launch", "mark"]
    assert kinds[1] == kinds[2] == ["enter", "create", "create", *kinds[0]]
    assert [n[1] for n in events[1][1] if n[0] == "mark"] == [102, 103]
    usual[0]._pending = usual[2]._pending = None
    del events
    gc.collect()
    assert sorted(card.timer.free) == [(21, 22), (102, 103), (102, 103)]
    card.timer.free.clear()
    card.create_status = 2
    event, notes = quickly(kernel, *usual)
    assert event is None  # Python's road raises the error
    assert [note[0] for note in notes] == ["enter", "create"]


def test_what_python_may_have_written_goes_to_the_device_first(kernel, usual):
    slowly(kernel, *usual, **SIZES)
    seen = np.asarray(usual[0])
    assert quickly(kernel, *usual) == (None, [])
    slowly(kernel, *usual, **SIZES)  # brings it over
    del seen
    assert quickly(kernel, *usual)[0] is not None  # what it was is old by now


def test_buffers_wait_for_the_event_whose_marks_are_free_afterwards(kernel, usual, card):
    slowly(kernel, *usual, **SIZES)
    event, _ = quickly(kernel, *usual)
    assert usual[0]._pending is usual[2]._pending is event
    assert card.timer.free == []
    assert event._in_use == tuple(usual)
    usual[0].wait()
    usual[2].wait()
    assert event.done
    assert repr(event) == "<Event: mixed, done>"
    del event
    gc.collect()
    assert card.timer.free == [(21, 22)]


def test_a_launch_with_wait_waits_for_the_end(kernel, usual, monkeypatch):
    slowly(kernel, *usual, **SIZES)
    waited = []
    monkeypatch.setattr(TimedEvent, "wait", lambda self, timeout=None: waited.append(self) or self)
    monkeypatch.setattr(kernel, "_binder", None)  # not by Python's road
    event = kernel(*usual, **SIZES, wait=True)
    assert waited == [event]


def test_without_timing_there_are_no_marks(kernel, usual, card):
    slowly(kernel, *usual, **SIZES)
    with mtl.config.scope(timing=False):
        event, notes = quickly(kernel, *usual)
    assert type(event) is CudaEvent
    assert [note[0] for note in notes] == ["enter", "launch"]
    assert card.timer.free == [(21, 22)]


def test_what_the_driver_refuses_is_raised_and_the_lock_is_free(kernel, usual, card, monkeypatch):
    slowly(kernel, *usual, **SIZES)
    card.driver.CUresult = type("CUresult", (int,), vars(Driver.CUresult))
    monkeypatch.setattr("metalloid.backends.cuda.runtime.context.describe", str)
    for card.status, error, says in (
        (1, mtl.LaunchError, "cuda:0 cannot launch it: 1"),
        (700, mtl.KernelFault, "its context is lost"),
        (0, mtl.LaunchError, "its context is lost"),
    ):
        with pytest.raises(error, match=rf"\[\S*\] {says}"):
            kernel(*usual, **SIZES)
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(card.lock.acquire, timeout=5).result()
            pool.submit(card.lock.release).result()
    gc.collect()
    assert card.timer.free == [(21, 22)]


def test_ctrl_c_is_raised_and_the_lock_is_free(kernel, usual, card, monkeypatch):
    slowly(kernel, *usual, **SIZES)

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(TimedEvent, "__init__", interrupted)
    monkeypatch.delattr(TimedEvent, "__del__")
    with pytest.raises(KeyboardInterrupt):
        kernel(*usual, **SIZES)
    assert [note[0] for note in card.notes].count("launch") == 1  # the one before
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(card.lock.acquire, timeout=5).result()
        pool.submit(card.lock.release).result()


def test_a_launch_waits_for_the_lock_of_the_device(kernel, usual, card):
    slowly(kernel, *usual, **SIZES)
    card.timer.free.extend([(23, 24)] * 4)
    threads = [threading.Thread(target=kernel, args=usual, kwargs=SIZES) for _ in range(4)]
    card.notes.clear()
    with card.lock:
        for thread in threads:
            thread.start()
        threads[0].join(0.05)
        assert card.notes == []
    for thread in threads:
        thread.join()
    assert [note[0] for note in card.notes].count("launch") == 4


def test_an_array_is_brought_and_fetched_around_its_launch(kernel, usual, card, monkeypatch):
    slowly(kernel, *usual, **SIZES)
    monkeypatch.setattr(card, "allocate_uninitialized", card.allocate)
    for name in ("cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync"):
        note = lambda *args, name=name: card.notes.append((name[8:12], *args)) or (0,)  # noqa: E731
        monkeypatch.setattr(card.driver, name, note, raising=False)
    usual[0] = x = np.zeros(64, np.float32)
    staged = card._allocated + 4096
    notes = slowly(kernel, *usual, **SIZES, wait=False)
    address = x.__array_interface__["data"][0]
    staged += address % 256  # with the alignment that it has
    assert [note[0] for note in notes] == ["HtoD", "mark", "launch", "mark", "DtoH"]
    assert notes[0] == ("HtoD", staged, address, 256, 77)
    assert notes[2][-1][0] == staged
    assert notes[4] == ("DtoH", address, staged, 256, 77)


def test_references_are_given_back(kernel, usual, card):
    slowly(kernel, *usual, **SIZES)
    card.timer.free.append((23, 24))  # buffers keep the event of their last launch
    (shape,) = kernel._program.shapes[(64, 1, 1), (16, 1, 1)]
    held = [*usual, shape, card, TimedEvent, mtl.Buffer, kernel._sizes[64, 16], None, False]

    def counts():
        return [sys.getrefcount(thing) for thing in held]

    def all_kinds():
        quickly(kernel, *usual)
        quickly(kernel, *usual[:-1], -1)
        quickly(kernel, *usual, threads=63)

    all_kinds()
    gc.collect()  # events of other tests
    before = counts()
    for _ in range(1000):
        all_kinds()
    assert all(abs(now - then) < 50 for now, then in zip(counts(), before, strict=True))


@pytest.mark.parametrize("first", [1 << 31, (1 << 31) + 4])
def test_repeated_launches_tell_the_driver_the_same_in_one_call(card, first):
    text = """
    kernel void bytes(device uchar* x, device const uchar* y, uint i [[thread_position_in_grid]])
    { x[i] = y[i] + 1; }
    kernel void floats(device float* x, constant float& f, uint i [[thread_position_in_grid]])
    { x[i] = f; }
    """
    lib = mtl.library(text, device=card)
    one, two = (mtl.Buffer(2**16, device=card) for _ in range(2))
    launches = [
        lib.bytes.sized((2**16, 1, 1), (64, 1, 1))([one, two]),
        lib.floats.sized((100, 1, 1), (32, 1, 1))([one, bytearray(4)]),
    ]
    parameter = bytearray(struct.pack("f", 2.5))
    words = [(0, 0, 0), (0, 1, 1), (1, 0, 1)]
    repeated = card.repeater(launches, words, [(1, 1, parameter)])
    for addresses in ([first, 1 << 32], [1 << 33, first]):
        card.notes.clear()
        with mtl.config.scope(timing=False):
            repeated(addresses, [])
        told = [note for note in card.notes if note[0] == "launch"]
        card.notes.clear()
        for arguments, position, address in words:
            launches[arguments].arguments.words[position] = addresses[address]
        launches[1].arguments.words[1] = card.constants[bytes(parameter)]
        for launch in launches:
            card.enqueue(*launch, card.stream_handle)
        assert told == card.notes
        card.timer.free.append((21, 22))


def test_a_repeated_launch_that_fails_names_its_kernel(card):
    text = "kernel void k(device uchar* x, uint i [[thread_position_in_grid]]) { x[i] = 1; }"
    kernel = mtl.library(text, device=card).k
    launch = kernel.sized((64, 1, 1), (16, 1, 1))([mtl.Buffer(64, device=card)])
    repeated = card.repeater([launch], [(0, 0, 0)], [])
    card.status = 701
    card.driver.CUresult = int
    card.failure = lambda status, name: mtl.LaunchError(f"[{name}] status {status}")
    with mtl.config.scope(timing=False), pytest.raises(mtl.LaunchError, match=r"\[k\] status 701"):
        repeated([1 << 31], [])


def test_launches_that_are_sure_to_fail_do_not_reach_the_driver(kernel, usual):
    slowly(kernel, *usual, **SIZES)
    short = [mtl.Buffer(252, device=kernel.device), *usual[1:]]
    assert quickly(kernel, *usual)[0] is not None
    assert quickly(kernel, *short) == (None, [])
    for args, threads in ((usual, 65), (short, 64)):
        with pytest.raises(mtl.KernelFault, match=f"write to index {threads - 1} of 'x'"):
            kernel(*args, threads=threads, group_size=16)
        assert not kernel.device.notes
