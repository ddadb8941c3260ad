"""Launches on buffers and numbers only, which return before they have run."""

import gc
import sys

import numpy as np
import pytest

import metalloid as mtl

pytestmark = pytest.mark.needs("the CPU")

SOURCE = """
kernel void add(device long* x, constant long& step, constant float& scale,
                uint i [[thread_position_in_grid]]) { x[i] += step * long(scale); }
kernel void divide(device int* x, constant int& by, uint i [[thread_position_in_grid]])
{ x[i] /= by; }
"""


@pytest.fixture(scope="module")
def lib():
    return mtl.library(SOURCE)


@pytest.mark.parametrize("wait", [None, False, True])
def test_each_launch_has_its_own_numbers(lib, wait):
    x = mtl.Buffer(np.zeros(100, np.int64))
    events = [lib.add(x, k, 2.0, threads=100, wait=wait) for k in range(500)]
    assert (np.asarray(x) == 2 * sum(range(500))).all()
    assert all(event.done and event.seconds >= 0 for event in events)


@pytest.mark.parametrize("wait", [None, False])
def test_a_failure_is_raised_by_its_event_and_by_reads(lib, wait):
    x, other = mtl.Buffer(np.ones(4, np.int32)), mtl.Buffer(np.ones(4, np.int32))
    lib.divide(x, 1, threads=4).wait()
    event = lib.divide(x, 0, threads=4, wait=wait)
    later = [lib.divide(other, 1, threads=4, wait=wait) for _ in range(3)]
    with pytest.raises(mtl.KernelFault, match="divide"):
        event.wait()
    with pytest.raises(mtl.KernelFault, match="divide"):
        np.asarray(x)
    assert all(each.wait().done for each in later)
    assert np.asarray(other).tolist() == [1, 1, 1, 1]


def test_many_launches_leak_nothing(lib):
    x = mtl.Buffer(np.zeros(8, np.int64))

    def work(count):
        for k in range(count):
            lib.add(x, k, 1.0, threads=8)
        x.wait()
        gc.collect()
        return sys.getrefcount(x), sys.getallocatedblocks()

    references, blocks = work(100)
    later_references, later_blocks = work(5000)
    assert later_references == references
    assert later_blocks < blocks + 500
