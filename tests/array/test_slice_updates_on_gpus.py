"""Writes in place on a device whose memory Python cannot access, with launches in a stream."""

import ctypes
import threading

import numpy as np
import pytest

import metalloid as mtl
from metalloid.arrays.execution import evaluate
from metalloid.backends.cpu.runtime.repeater import CpuRepeater
from metalloid.runtime.launch.event import FinishedEvent
from metalloid.runtime.launch.launches import NativeStream
from own_memory_device import OwnMemoryDevice


class StreamRepeater(CpuRepeater):
    """Launches of the CPU, in the form of those of a GPU's stream."""

    lock, finished = threading.RLock(), []

    @property
    def native(self):
        functions = self.lock.acquire, self.lock.release, lambda: True, self.finish, {}
        return super().native._replace(stream=NativeStream(*functions))

    def finish(self, written):
        self.finished.append(list(written))
        for buffer in written:
            buffer.used_by(FinishedEvent(0.0))


class Gpu(OwnMemoryDevice):
    def repeater(self, launches, words, params):
        for k, position, memory in params:
            address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
            launches[k].arguments.words[position] = address
        return StreamRepeater(lambda: None, launches, words)


@pytest.fixture
def gpu():
    StreamRepeater.finished.clear()
    device = Gpu()
    with mtl.config.scope(device=device):
        yield device


def evaluated(values, device):
    x = mtl.asarray(np.asarray(values, np.float32), device=device) * 1
    mtl.eval(x)
    return x


def test_launches_of_known_evaluations_are_recorded_for_overwritten_memory(gpu):
    x, y = evaluated(np.ones((8, 4)), gpu), evaluated([0, 1, 2, 3], gpu)
    for k in range(8):
        x[k] = y * y
        mtl.eval(x)
    buffer = x._node.memory.bound
    assert len(StreamRepeater.finished) > 4
    assert all(written[-1] is buffer for written in StreamRepeater.finished[-4:])
    np.testing.assert_array_equal(np.asarray(x), [[0, 1, 4, 9]] * 8)


def test_a_copy_of_a_small_result_is_dropped_before_it_is_overwritten(gpu):
    x = evaluated(np.ones((4, 3)), gpu)
    x[0] = 5.0
    total = x.sum()
    mtl.eval(x, total)
    assert float(total) == 24  # copies both
    x[1] = evaluated([1, 2, 3], gpu) * 2
    mtl.eval(x)
    np.testing.assert_array_equal(np.asarray(x), [[5] * 3, [2, 4, 6], [1] * 3, [1] * 3])


def test_a_known_evaluation_checks_indices(gpu, monkeypatch):
    x = evaluated([1, 2, 3, 4], gpu)

    def selected(k):
        result = x[mtl.asarray(np.array([k, 0]), device=gpu)] * 2
        mtl.async_eval(result)
        return result

    for k in range(3):
        np.testing.assert_array_equal(np.asarray(selected(k)), [2 * k + 2, 2])
    monkeypatch.setattr(evaluate, "lower", None)  # not by the general path
    np.testing.assert_array_equal(np.asarray(selected(3)), [8, 2])
    wrong = selected(4)
    with pytest.raises(IndexError, match="4 is out of range for axis 0 of extent 4"):
        np.asarray(wrong)
