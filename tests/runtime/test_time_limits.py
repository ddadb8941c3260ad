"""Launches that may only run for so long, and launches that fail while no thread waits for them."""

import math
import subprocess
import sys
import time

import numpy as np
import pytest

import metalloid as mtl
from metalloid.runtime.launch import failures

on_the_cpu = pytest.mark.needs("the CPU")
ends = pytest.mark.needs("an end to launches")

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void spin(device atomic_int* a) {
  while (atomic_load_explicit(a, memory_order_relaxed) == 0) {}
}
kernel void spin_at_barrier(device atomic_int* a) {
  while (atomic_load_explicit(a, memory_order_relaxed) == 0) threadgroup_barrier(mem_flags::mem_none);
}
kernel void wild(device int* a, device const int* b, constant long& at) { a[at] = b[0]; }
kernel void fill(device int* a, uint i [[thread_position_in_grid]]) { a[i] = 7; }
kernel void copy(device const int* a, device int* b, uint i [[thread_position_in_grid]]) {
  b[i] = a[i];
}
kernel void fault_beside_endless(device atomic_int* a, constant long& at,
                                 uint i [[threadgroup_position_in_grid]]) {
  if (i == 0) ((device int*)a)[at] = 1;
  while (atomic_load_explicit(a, memory_order_relaxed) == 0) {}
}
"""
FAR = 1 << 45  # an address that no process has


@pytest.fixture(scope="module")
def lib():
    return mtl.library(SOURCE)


def zeros():
    return np.zeros(8, np.int32)


# -- time limits


@ends
@pytest.mark.parametrize("name", ["spin", "spin_at_barrier"])
@pytest.mark.parametrize("limit", [0.001, 0.06, 0.4])
@pytest.mark.parametrize("kind", [np.copy, mtl.Buffer])
def test_a_launch_ends_at_its_limit(lib, name, limit, kind):
    kernel, x = getattr(lib, name), kind(zeros())
    start = time.perf_counter()
    with pytest.raises(mtl.LaunchTimeout, match=rf"^\[{name}\] .*timeout={limit} s") as caught:
        kernel(x, threads=100, timeout=limit).wait()
    assert limit <= time.perf_counter() - start < limit + 0.5
    assert (caught.value.kernel, caught.value.timeout) == (name, limit)
    assert isinstance(caught.value, TimeoutError)


@ends
def test_the_setting_limits_every_launch(lib):
    expression = mtl.ElementwiseKernel(
        "float x", "float y", "float v = x; while (v < 2) v = 0.5f * v + 0.5f; y = v;", "never"
    )
    with mtl.config.scope(timeout=0.1):
        for _ in range(2):  # the second one is bound without the interpreter
            with pytest.raises(mtl.LaunchTimeout):
                lib.spin(zeros(), threads=1)
        with pytest.raises(mtl.LaunchTimeout, match="never"):
            np.asarray(expression(np.ones(4, np.float32)))
        x = zeros()
        lib.fill(x, threads=8)
        assert (x == 7).all()
    with mtl.config.scope(timeout=0.05):
        event = lib.spin(mtl.Buffer(zeros()), threads=1, timeout=math.inf)
        with pytest.raises(TimeoutError, match="still running"):
            event.wait(0.3)
        event.cancel()


@on_the_cpu
def test_the_limit_counts_from_the_start_of_the_launch(lib):
    first, x = mtl.Buffer(zeros()), mtl.Buffer(zeros())
    endless = lib.spin(first, threads=1, timeout=0.3)
    lib.fill(x, threads=8, timeout=0.1)  # waits longer than that for the first one
    assert (np.asarray(x) == 7).all()
    with pytest.raises(mtl.LaunchTimeout):
        endless.wait()


@pytest.mark.parametrize("limit", [0, -1, math.nan, "soon"])
def test_limits_are_positive_numbers(lib, limit):
    with pytest.raises(mtl.ArgumentError, match=r"^\[fill\] timeout must be a number of seconds"):
        lib.fill(zeros(), threads=8, timeout=limit)


@on_the_cpu
def test_a_fault_ends_threads_that_would_run_for_ever(lib):
    with pytest.raises(mtl.KernelFault, match="write to index"):
        lib.fault_beside_endless(zeros(), FAR, threads=64, group_size=1)


@ends
def test_a_launch_can_be_cancelled(lib):
    x, y = mtl.Buffer(zeros()), mtl.Buffer(zeros())
    running = lib.spin(x, threads=1)
    assert running.cancel()
    for wait in (running.wait, lambda: np.asarray(x)):
        with pytest.raises(mtl.LaunchCancelled):
            wait()
    lib.fill(y, threads=8)
    assert np.asarray(y).tolist() == [7] * 8
    assert not running.cancel()


@on_the_cpu
def test_a_launch_that_waits_can_be_cancelled_alone(lib):
    x, y, z = (mtl.Buffer(zeros()) for _ in range(3))
    running, queued, last = lib.spin(x, threads=1), lib.fill(y, threads=8), lib.fill(z, threads=8)
    assert queued.cancel()
    assert running.cancel()
    assert np.asarray(z).tolist() == [7] * 8
    for wait in (running.wait, queued.wait, lambda: np.asarray(x), lambda: np.asarray(y)):
        with pytest.raises(mtl.LaunchCancelled):
            wait()
    assert not running.cancel()
    assert not last.cancel()


# -- failures that no thread waits for


@on_the_cpu
def test_every_read_of_what_a_failed_launch_wrote_raises(lib):
    a, b, c = (mtl.Buffer(zeros()) for _ in range(3))
    event = lib.wild(a, b, FAR, threads=1)
    lib.copy(a, c, threads=8)  # a later launch does not hide it
    assert np.asarray(b).tolist() == [0] * 8  # it was only read
    assert repr(event) == "<Event: wild, failed>"
    for _ in range(3):
        with pytest.raises(mtl.KernelFault, match="wild"):
            np.asarray(a)
    lib.copy(a, c, threads=8)  # a launch that reads it does not mend it
    with pytest.raises(mtl.KernelFault, match="wild"):
        np.asarray(a)
    lib.fill(a, threads=8)
    lib.copy(a, c, threads=8)
    assert np.asarray(a).tolist() == np.asarray(c).tolist() == [7] * 8


@on_the_cpu
def test_a_failure_that_was_not_seen_outlives_what_is_written_over_it(lib):
    a = mtl.Buffer(zeros())
    lib.wild(a, mtl.Buffer(zeros()), FAR, threads=1)
    lib.fill(a, threads=8)
    with pytest.raises(mtl.KernelFault, match="wild"):
        np.asarray(a)
    lib.fill(a, threads=8)
    assert np.asarray(a).tolist() == [7] * 8


@on_the_cpu
def test_graphs_tell_buffers_of_failures(lib):
    a, b = mtl.Buffer(zeros()), mtl.Buffer(zeros())
    bad, good = mtl.Graph(), mtl.Graph()
    with bad:
        lib.wild(a, b, FAR, threads=1)
        lib.copy(b, mtl.Buffer(zeros()), threads=8)
    with good:
        lib.fill(a, threads=8)
        lib.copy(a, b, threads=8)
    bad.launch()
    with pytest.raises(mtl.KernelFault):
        np.asarray(a)
    good.launch()
    assert np.asarray(a).tolist() == np.asarray(b).tolist() == [7] * 8


@on_the_cpu
def test_a_failure_that_was_seen_is_not_reported_twice(lib, caplog, monkeypatch):
    monkeypatch.setattr(failures, "_unseen", [])
    event = lib.wild(mtl.Buffer(zeros()), mtl.Buffer(zeros()), FAR, threads=1)
    with pytest.raises(mtl.KernelFault):
        event.wait()
    failures.report()
    assert not caplog.records


@on_the_cpu
def test_the_end_of_the_process_reports_what_was_never_seen():
    script = f"""
import metalloid as mtl, numpy as np
lib = mtl.library('''{SOURCE}''')
x = mtl.Buffer(np.zeros(8, np.int32))
for _ in range(12):
    lib.wild(x, x, {FAR}, threads=1)
"""
    command = [sys.executable, "-W", "default", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    lines = [line for line in done.stderr.splitlines() if line.startswith("a launch failed")]
    assert len(lines) == 10
    assert lines[0] == (
        "a launch failed and the program did not wait for it: [wild] program_source:10: write to "
        f"index {FAR} of 'a', which has 8 elements, in thread (0, 0, 0) of threadgroup (0, 0, 0)."
    )
    assert "\n2 more launches failed" in done.stderr
    assert (
        "ResourceWarning: failed launch never waited for: [wild] program_source:10: write"
        in done.stderr
    )


@ends
@pytest.mark.parametrize("name", ["spin", "spin_at_barrier"])
def test_many_launches_in_a_row_end_at_their_limits(lib, name, rng):
    """Kernels are abandoned at hundreds of points; the threads that ran them are as good as new.

    On GPUs the end of a launch is that of those queued after it by then.
    """
    for limit in rng.uniform(1e-4, 4e-3, 60):
        event = getattr(lib, name)(mtl.Buffer(zeros()), threads=70, timeout=limit)
        x = np.zeros(5000, np.int32)
        try:
            lib.fill(x, threads=x.size)
        except mtl.LaunchCancelled:
            assert mtl.default_device().name != "cpu"
            lib.fill(x, threads=x.size)
        assert (x == 7).all()
        with pytest.raises(mtl.LaunchTimeout):
            event.wait()
