"""Races between launches that may run at the same time."""

import threading

import numpy as np
import pytest

import metalloid as mtl

pytestmark = pytest.mark.needs("the CPU")

TEXT = """#include <metal_stdlib>
using namespace metal;
kernel void produce(device float* x, uint i [[thread_position_in_grid]]) {
  x[i] = i;
}
kernel void consume(device const float* x, device float* y, constant uint& first,
                    uint i [[thread_position_in_grid]]) {
  y[i] = x[first + i];
}
kernel void count(device atomic_uint* total) {
  atomic_fetch_add_explicit(total, 1, memory_order_relaxed);
}
kernel void reset(device uint* total) { total[0] = 0; }
"""


@pytest.fixture(scope="module")
def lib():
    return mtl.library(TEXT, device="cpu")


@pytest.fixture
def memory():
    return (np.zeros(n, np.float32) for n in (256, 64))


def test_a_read_of_what_another_launch_writes(lib, memory):
    x, y = memory
    with mtl.checking(raises=False, unordered=True) as findings:
        lib.produce(x, threads=64)
        lib.consume(x, y, 64, threads=64)
        assert not findings
        lib.consume(x, y, 40, threads=10)
    [race, _] = findings  # the other is that both write to y
    assert race.summary == "data race (write, read) on element 40 of 'x' (device memory)"
    write, read = race.accesses
    assert (write.line, write.thread, write.value) == (4, (40, 0, 0), "40.0")
    assert (read.line, read.thread, read.value) == (8, (0, 0, 0), "40.0")
    assert (write.earlier_launch, read.earlier_launch) == ("produce", "")
    assert "in the launch of 'produce' before wrote 40.0" in race.describe()
    assert race.count == 10
    assert race.hint.startswith("Nothing orders the two launches")


def test_three_launches(lib, memory):
    """The first one is remembered, too, and threadgroups are those of each launch."""
    x, y = memory
    with mtl.checking(raises=False, unordered=True) as findings:
        lib.produce(x, threads=128, group_size=32)
        lib.produce(x[128:], threads=64, group_size=32)
        lib.consume(x, y, 127, threads=2, group_size=1)
    assert [each.summary for each in findings] == [
        "data race (write, read) on element 127 of 'x' (device memory)"
    ]
    # One finding for the pair of lines; the second read races with the second launch.
    assert findings[0].count == 2
    assert findings[0].accesses[0].threadgroup == (3, 0, 0)
    assert findings[0].accesses[0].thread == (31, 0, 0)


def test_launches_are_ordered_otherwise(lib, memory):
    x, y = memory
    with mtl.checking():
        lib.produce(x, threads=64)
        lib.consume(x, y, 0, threads=64)
    for _ in range(2):  # other blocks
        with mtl.checking(unordered=True):
            lib.produce(x, threads=64)
    lib.consume(x, y, 0, threads=64, check=True)


def test_memory_of_freed_buffers(lib):
    """A buffer of another launch does not get the address of one whose accesses are remembered."""
    with mtl.checking(unordered=True):
        for _ in range(20):
            lib.produce(mtl.Buffer(1024, device="cpu"), threads=64)


def test_atomics(lib):
    total = mtl.Buffer(np.zeros(1, np.uint32), device="cpu")
    with mtl.checking(unordered=True):
        lib.count(total, threads=8)
        lib.count(total, threads=8)
        with pytest.raises(mtl.SanitizerError, match="Let both be atomic"):
            lib.reset(total, threads=1)


def test_launches_of_another_thread_are_no_part(lib, memory):
    x, y = memory
    with mtl.checking(unordered=True):
        lib.produce(x, threads=64)
        other = threading.Thread(target=lambda: lib.consume(x, y, 0, threads=64))
        other.start()
        other.join()
        lib.produce(x[64:], threads=64)
