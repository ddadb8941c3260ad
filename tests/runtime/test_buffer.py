"""Buffers: memory that outlives launches, and is given back."""

import gc
import os
import subprocess
import sys
import weakref

import numpy as np
import pytest

import metalloid as mtl
from metalloid.runtime.devices import registry

ADD = mtl.library(
    "kernel void add(device int* x, uint i [[thread_position_in_grid]]) { x[i] += 1; }"
)


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_new_buffer_is_zero():
    for size in (1, 100, 2**20 + 1):
        buffer = mtl.Buffer(size)
        assert not np.asarray(buffer).any()
        np.asarray(buffer)[:] = 255
        del buffer


@pytest.mark.needs("the CPU")
def test_sizes_beyond_any_address_are_refused():
    for size in (2**60, 2**63, 2**64 + 16):
        with pytest.raises(mtl.OutOfMemory, match=f"{size} bytes"):
            mtl.Buffer(size)


def test_garbage_is_collected_before_memory_is_said_to_be_out(monkeypatch):
    device = mtl.default_device()
    allocate, forgotten = device.allocate, []

    class Cycle:
        def __init__(self):
            self.own, self.buffer = self, mtl.Buffer(1000)

    def full(nbytes):
        if len(forgotten) and forgotten[0]() is not None:
            raise mtl.OutOfMemory("there is no room")
        return allocate(nbytes)

    gc.disable()
    try:
        forgotten.append(weakref.ref(Cycle()))
        monkeypatch.setattr(device, "allocate", full)
        assert mtl.Buffer(10).nbytes == 10
    finally:
        gc.enable()


def test_shape_and_type_are_retained():
    for array in (
        np.zeros((2, 3), np.float16),
        np.float64(1.5),
        np.zeros((0, 4)),
        np.arange(3)[::-1],
    ):
        buffer = mtl.Buffer(array)
        assert np.asarray(buffer).shape == np.shape(array)
        assert (np.asarray(buffer) == array).all()
        assert buffer.nbytes == np.asarray(array).nbytes


def test_memory_is_aligned_for_every_type():
    for size in (1, 7, 100, 5000):
        assert mtl.Buffer(size).address % 64 == 0


def test_reading_waits_and_copying_in_waits():
    buffer = mtl.Buffer(np.zeros(100_000, np.int32))
    for round_ in range(50):
        ADD.add(buffer, threads=100_000, wait=False)
        assert (np.asarray(buffer) == round_ + 1).all()


def test_an_array_of_a_buffer_retains_its_memory():
    array = np.asarray(mtl.Buffer(np.arange(1000, dtype=np.int32)))
    gc.collect()
    others = [mtl.Buffer(np.full(1000, -1, np.int32)) for _ in range(50)]
    assert (array == np.arange(1000)).all()
    del others


def test_visible_memory_is_seen_where_it_lies():
    buffer = mtl.Buffer(np.arange(1000, dtype=np.int32), visible=True)
    seen = np.asarray(buffer)
    ADD.add(buffer, threads=1000).wait()
    assert (seen == np.arange(1000) + 1).all()
    seen[:] = 5
    ADD.add(buffer, threads=500).wait()
    assert seen.tolist() == [6] * 500 + [5] * 500


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux's /proc")
@pytest.mark.needs("the process's memory")
def test_memory_is_given_back():
    def round_():
        for _ in range(20):
            buffer = mtl.Buffer(2**24)
            np.asarray(buffer)[:] = 1
            ADD.add(buffer, threads=16)

    round_()
    gc.collect()
    before = resident_bytes()
    round_()
    gc.collect()
    mtl.default_device().synchronize()
    assert resident_bytes() - before < 2**25


ENDS_EARLY = """
import numpy as np, metalloid as mtl
kernel = mtl.library(
    "kernel void slow(device uint* x, uint i [[thread_position_in_grid]]) { uint a = i;"
    " for (uint k = 0; k < 100000; k++) a = a * 1664525u + (a >> 3) + k; x[i] = a; }"
).slow
x = np.zeros(5000, np.uint32)
kernel(ARGUMENT, threads=5000, wait=False)
"""


@pytest.mark.parametrize("argument", ["mtl.Buffer(x)", "x"])
def test_a_process_may_end_while_its_kernels_run(argument):
    if os.environ.get("METALLOID_DEVICE") == "own":
        pytest.skip("own lacks: other processes that know it")
    code = ENDS_EARLY.replace("ARGUMENT", argument)
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.needs("the CPU")
def test_representation():
    assert repr(mtl.Buffer(12)) == "<Buffer 12 bytes (uint8 (12,)) on cpu>"
    assert len(mtl.Buffer(np.zeros((3, 2)))) == 3


def test_the_default_device_is_looked_for_once(monkeypatch):
    """Most launches of generated kernels ask for it, and kinds that are absent are slow to say so."""
    monkeypatch.setattr(registry, "_open", {})
    with mtl.config.scope(device=""):
        first = mtl.default_device()
        monkeypatch.setattr(registry, "_module", lambda kind: pytest.fail(f"asked for {kind}"))
        assert mtl.default_device() is first
