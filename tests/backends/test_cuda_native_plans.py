"""Plans that native functions run on a GPU, by a driver that takes notes."""

import ctypes
import struct
import sys

import numpy as np
import pytest
from test_cuda_fast_launch import Card, native  # noqa: F401 - a fixture

import metalloid as mtl
from metalloid.arrays.execution.repeated_plan import RepeatedPlan
from metalloid.arrays.ir.memory import pool_of
from metalloid.backends.cuda.runtime.context import ContextDevice
from metalloid.backends.cuda.runtime.events import CudaEvent, TimedEvent
from metalloid.profiler.hooks import Hooks, RawLaunch
from metalloid.runtime.devices import registry
from metalloid.runtime.devices.device import DeviceInfo
from metalloid.runtime.devices.traits import CUDA_CORES
from metalloid.transforms.variants import CheckedCall


class ArrayCard(Card):
    """A GPU as far as launches of plans go."""

    traits = CUDA_CORES
    copy_out, copy_out_combined = ContextDevice.copy_out, ContextDevice.copy_out_combined

    def __init__(self, functions):
        super().__init__(functions)
        self._staging, self._pinned = [], []
        self.timer.free += [(k, k + 1) for k in range(30, 90, 2)]

    def launches(self):
        """The words of launches."""
        return [note for note in self.notes if isinstance(note[0], int)]

    def _pin(self, nbytes):
        self._pinned.append((ctypes.c_char * nbytes)())
        return ctypes.addressof(self._pinned[-1])

    def _copy(self, to, address, nbytes, stream):
        """Memory holds its address."""
        ctypes.memmove(to, struct.pack("=Q", address) * (nbytes // 8), nbytes)
        return super()._copy(to, address, nbytes, stream)

    def synchronize(self):
        self.notes.append(("synchronize",))

    def info(self):
        return DeviceInfo(self.name, "", 1 << 34, 132)

    def _launch(self, function, *rest):
        data = ctypes.cast(rest[-2], ctypes.POINTER(ctypes.c_void_p))[0]
        self.notes.append(struct.unpack("=3Q", ctypes.string_at(data, 24)))
        return self.status


@pytest.fixture
def card(native):  # noqa: F811 - the fixture
    return ArrayCard(native)


@pytest.fixture
def x(card):
    return mtl.asarray(np.ones(1000, np.float32), device=card)


def address(array):
    return array._node.memory.address


def refuse(*args, **options):
    raise AssertionError("Python runs the plan")


@pytest.fixture
def only_native(monkeypatch):
    """Lets Python run no more plans."""

    def apply():
        monkeypatch.setattr(RepeatedPlan, "__call__", refuse)
        monkeypatch.setattr(CheckedCall, "__call__", refuse)

    return apply


def evaluated(array):
    mtl.async_eval(array)
    return array


@pytest.fixture(params=["compiled", "eager"])
def scaled(request):
    """``x * k + 1``, whose numbers are on the GPU."""
    if request.param == "compiled":
        return mtl.compile(lambda x, k: x * k + 1)
    return lambda x, k: evaluated(x * k + 1)


def test_a_run_adds_its_launches_and_records_the_event(card, x, scaled, only_native):
    for k in (2.0, 3.0):
        scaled(x, k)
    only_native()
    for k in (4.0, 3.0):
        card.notes.clear()
        y = scaled(x, k)
        ((source, target, params),) = card.notes
        assert (source, target) == (address(x), address(y))
        (text,) = [value for value, where in card.constants.items() if where == params]
        assert struct.pack("f", k) in text
        event = y._node.memory.bound._pending
        assert type(event) is CudaEvent
        assert event._in_use == [y._node.memory.bound]
        assert card.in_flight[-1]() is event


def test_a_profile_times_each_launch_of_a_run(card, x, scaled, only_native, monkeypatch):
    monkeypatch.setitem(registry._open, card.name, card)
    for k in (2.0, 3.0):
        scaled(x, k)
    hooks = Hooks(counts=False)
    hooks.install()
    try:
        scaled(x, 4.0)  # the first of a frame
        only_native()
        card.notes.clear()
        hooks.launches.clear()
        y = scaled(x, 5.0)
        (_, began, _), (source, target, params), (_, ended, _) = card.notes
    finally:
        hooks.remove()
    card.notes.clear()
    scaled(x, 6.0)
    assert len(card.notes) == 1  # no events without a profile
    assert (source, target) == (address(x), address(y))
    (text,) = [value for value, where in card.constants.items() if where == params]
    assert struct.pack("f", 5.0) in text
    launch = RawLaunch(*hooks.launches)
    assert type(launch.event) is TimedEvent
    assert launch.name.startswith("array_multiply")
    assert (began, ended) == launch.event._events
    assert y._node.memory.bound._pending._in_use == [y._node.memory.bound]


def test_a_profile_reads_times_while_it_runs(card, x, scaled, monkeypatch):
    """So that few events are created."""
    monkeypatch.setitem(registry._open, card.name, card)
    for k in (2.0, 3.0):
        scaled(x, k)
    free = len(card.timer.free)
    hooks = Hooks(counts=False)
    hooks.install()
    try:
        scaled(x, 4.0)
        scaled(x, 5.0)
        assert len(card.timer.free) == free - 2
        hooks._limit = 0
        card.running = {card.timer.free[-1][1]}  # of the next launch
        scaled(x, 6.0)
        *ended, running = hooks.launches[RawLaunch._fields.index("event") :: len(RawLaunch._fields)]
        assert [type(each) for each in ended] == [float, float]
        assert ended[0] > 0
        assert type(running) is TimedEvent
        del running
        assert len(card.timer.free) == free - 1
        card.running = set()
        hooks._limit = 0
        scaled(x, 7.0)
        assert len(card.timer.free) == free
    finally:
        hooks.remove()


def test_arguments_that_native_functions_do_not_take_are_left_to_python(card, x, scaled):
    for _ in range(2):
        scaled(x, 2.0)
        scaled(x[1:], 2.0)
    card.notes.clear()
    y = scaled(x[1:], 2.0)
    ((read, written, *_),) = card.launches()
    assert read in (address(x), address(x) + 4)  # with an offset, or the plan for unaligned leaves
    assert written == address(y)
    card.timer.record = lambda event: None
    with mtl.config.scope(timeout=9):
        y = scaled(x, 2.0)
    assert isinstance(y._node.memory.bound._pending, TimedEvent)


def test_memory_of_other_libraries_is_left_to_python(card, x, scaled, monkeypatch):
    for _ in range(2):
        scaled(x, 2.0)
    x._node.memory._lease = None
    card.notes.clear()
    recorded = []
    monkeypatch.setattr(type(x._node.memory.bound), "used_by",
                        lambda self, event: recorded.append(self))  # fmt: skip
    y = scaled(x, 2.0)
    assert x._node.memory.bound in recorded
    assert [note[:2] for note in card.launches()] == [(address(x), address(y))]


def test_a_launch_that_fails_names_its_kernel_and_frees_the_lock(card, x, scaled):
    for _ in range(2):
        scaled(x, 2.0)
    card.status, card.driver.CUresult = 701, int
    card.failure = lambda status, name: mtl.LaunchError(f"[{name}] status {status}")
    live = pool_of(card).live_buffers
    with pytest.raises(mtl.LaunchError, match=r"\[array_multiply_add\] status 701"):
        scaled(x, 2.0)
    assert pool_of(card).live_buffers == live
    assert card.lock.acquire(blocking=False)


def test_launches_of_a_sort_and_their_scratch_memory(card, only_native):
    x = mtl.asarray(np.ones(300_000, np.float32), device=card)
    f = mtl.compile(lambda x: mtl.sort(x))
    for _ in range(2):
        f(x)
    only_native()
    card.notes.clear()
    live = pool_of(card).live_buffers
    y = f(x)
    assert len(card.notes) == 6  # cleared counts, counts, and a launch for each digit
    assert card.notes[-1][1] == address(y)
    assert pool_of(card).live_buffers == live + 1


def test_references_are_given_back(card, x, scaled):
    scaled(x, 2.0), scaled(x, 2.0)
    held = [x._node, x._node.memory, card, None, True, card.lock]

    def counts():
        return [*map(sys.getrefcount, held), pool_of(card).live_buffers]

    before = counts()
    for _ in range(500):
        scaled(x, 2.0)
    assert all(abs(now - then) < 50 for now, then in zip(counts(), before, strict=True))


def test_small_results_of_a_run_are_copied_at_once(card):
    f = mtl.compile(lambda n: (n.sum(), n + 1, n[:600].sum(), mtl.stack([n.min(), n.max()])))
    n = mtl.asarray(np.ones(1000, np.uint64), device=card)
    for _ in range(3):
        results = f(n)
    card.notes.clear()
    for k in (2, 0, 3):
        array = np.asarray(results[k])
        assert array.shape == results[k].shape
        assert set(array.flat) == {address(results[k])}
    assert [note[0] for note in card.notes] == ["copy", "copy", "copy", "query"]
    for k in (1, 0):  # the large one, and a small one again
        assert np.asarray(results[k]).flat[0] == address(results[k])
    assert [note[0] for note in card.notes[4:]] == ["copy", "query"] * 2


def test_a_copy_of_memory_that_a_kernel_writes_is_not_read(card, monkeypatch):
    monkeypatch.setattr(mtl.Array, "_is_uniquely_referenced", lambda self: True)
    f = mtl.compile(lambda n: (n.sum(), n.max()))
    n = mtl.asarray(np.ones(1000, np.uint64), device=card)
    for _ in range(3):
        total, largest = f(n)
    int(total)
    before = address(largest)
    text = "kernel void k(device ulong *x) { x[0] = 1; }"
    mtl.library(text, device=card).k(largest, threads=1)
    assert address(largest) == before
    card.notes.clear()
    int(largest)
    assert [note[0] for note in card.notes] == ["copy", "query"]


def test_a_copy_that_takes_long_is_waited_for_in_python(card, x):
    card.status = 600
    assert np.asarray(x).view(np.uint64)[0] == address(x)
    assert card.notes[-1] == ("synchronize",)
    assert card.notes[-2] == ("query", 77)


def test_a_copy_after_a_launch_that_failed_raises(card, x):
    card.status, card.driver.CUresult = 700, int
    card.failure = lambda status, name: mtl.KernelFault(f"[{name}] status {status}")
    for _ in range(2):
        with pytest.raises(mtl.KernelFault, match=r"\[copying from the device\] status 700"):
            np.asarray(x)
    assert len(card._staging) == 1
