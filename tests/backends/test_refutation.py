"""Devices that do not check accesses refuse launches that are sure to access memory outside."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from bounded_kernels import ELEMENTS, random_kernel
from hypothesis import given, settings
from hypothesis import strategies as st

import metalloid as mtl
from metalloid.backends.cpu.runtime.device import CpuDevice
from own_memory_device import OwnMemoryDevice

#: Kernels, and the lowest number of elements of `y` for a grid, a threadgroup and n.
KERNELS = {
    "next": ("uint i [[thread_position_in_grid]]", "y[i + 1] = 1;", lambda p, g, s, n: p[0] + 1),
    "rows": (
        "uint2 i [[thread_position_in_grid]], uint2 size [[threads_per_grid]]",
        "y[i.y * size.x + i.x] = 1;",
        lambda p, g, s, n: p[1] * s[0] + p[0],
    ),
    "pitch": (
        "uint3 i [[thread_position_in_grid]]",
        "if (i.x < n) y[(i.z * 3 + i.y) * n + i.x] = 1;",
        lambda p, g, s, n: (p[2] * 3 + p[1]) * n + p[0] if p[0] < n else None,
    ),
    "reversed": (
        "uint i [[thread_position_in_grid]], uint size [[threads_per_grid]]",
        "y[int(size - 1 - i) * 2] = 1;",
        lambda p, g, s, n: 2 * (s[0] - 1 - p[0]),
    ),
    "local": (
        "uint l [[thread_position_in_threadgroup]]",
        "threadgroup int t[64]; t[l] = int(l); threadgroup_barrier(mem_flags::mem_threadgroup); "
        "y[l] = t[l];",
        lambda p, g, s, n: p[0] % g[0],
    ),
    "strided": (
        "uint i [[thread_position_in_grid]], uint size [[threads_per_grid]]",
        "for (uint k = i; k < n; k += size) y[k] = 1;",
        lambda p, g, s, n: max(range(p[0], n, s[0]), default=None),
    ),
}
TEXT = "#include <metal_stdlib>\nusing namespace metal;\n" + "".join(
    f"kernel void {name}(device int *y, constant uint &n, {inputs}) {{ {body} }}\n"
    for name, (inputs, body, _) in KERNELS.items()
)


def _unchecked(unit):
    return replace(unit, options=unit.options._replace(bounds="unchecked"))


class Unchecked(CpuDevice):
    """The CPU without checks of accesses; it has a fast launch path."""

    name = "unchecked:0"
    checks_accesses = False

    def compile(self, unit, entry, constants):
        return super().compile(_unchecked(unit), entry, constants)


class Card(OwnMemoryDevice):
    """The same with memory of its own."""

    checks_accesses = False

    def compile(self, unit, entry, constants):
        return super().compile(_unchecked(unit), entry, constants)


@pytest.fixture(scope="module")
def card():
    return Card()


@pytest.fixture(scope="module")
def lib(card):
    return mtl.library(TEXT, device=card)


def refused(kernel, args, threads, group):
    """The fault of a launch that is only compared, not run; None if it may run."""
    grid, group = kernel._check_sizes(threads, group)
    try:
        kernel._refutation.check(kernel._binder.bind(args, {}), grid, group)
    except mtl.KernelFault as fault:
        return fault
    return None


@settings(max_examples=60)
@given(
    name=st.sampled_from([*KERNELS]),
    size=st.tuples(st.integers(1, 40), st.integers(1, 3), st.integers(1, 3)),
    group=st.integers(1, 16),
    n=st.integers(1, 30),
)
def test_needs_of_launches(lib, name, size, group, n):
    """A launch is refused if a buffer is one element too small, and runs if it is not."""
    inputs, _, index_of = KERNELS[name]
    size = size if "uint3" in inputs else (*size[:2], 1) if "uint2" in inputs else (size[0], 1, 1)
    threads = itertools.product(*map(range, size))
    indices = [index_of(p, (group, 1, 1), size, n) for p in threads]
    need = max((index for index in indices if index is not None), default=-1) + 1
    kernel = lib[name]
    # Only so many numbers are looked at.
    kernel._refutation._count = 0
    if need:
        y = mtl.Buffer(np.zeros(need, np.int32), lib.device)
        kernel(y, n, threads=size, group_size=(group, 1, 1)).wait()
    if need > 1:
        y = mtl.Buffer(np.zeros(need - 1, np.int32), lib.device)
        fault = refused(kernel, (y, n), size, (group, 1, 1))
        if name == "strided" and n > size[0] and fault is None:
            return  # an inner thread
        assert f"write to index {need - 1} of 'y'" in fault.reason


def check_random_kernel(card, seed, launches):
    """Refused accesses are outside, by an oracle in Python; returns the numbers of both."""
    text = random_kernel(seed).text
    f, refusals, faults = mtl.library(text, device=card).f, 0, 0
    for launch in range(launches):
        kernel = random_kernel(seed, launch)
        y, x = (mtl.Buffer(np.zeros(ELEMENTS, np.int32), card) for _ in range(2))
        data = mtl.Buffer(kernel.data, card)
        sums = mtl.Buffer(np.zeros(kernel.threads, np.int32), card)
        fault = refused(f, (y, x, data, sums, kernel.n), kernel.threads, kernel.group)
        outside = {
            i for i in range(kernel.threads)
            if any(not 0 <= index < ELEMENTS for _, index in kernel.accesses(i))
        }  # fmt: skip
        faults += bool(outside)
        if fault is not None:
            refusals += 1
            i = fault.threadgroup[0] * kernel.group + fault.thread[0]
            assert i in outside, f"seed {seed}, launch {launch}: {fault}\n{kernel.text}"
            name, index = fault.reason.split(",")[0].split("'")[1], int(fault.reason.split()[3])
            assert (name, index) in kernel.accesses(i), f"seed {seed}: {fault}\n{kernel.text}"
    return refusals, faults


def test_random_kernels(card):
    counts = [check_random_kernel(card, seed, 12) for seed in range(3)]
    assert sum(refusals for refusals, _ in counts) > 0


@pytest.mark.slow
def test_many_random_kernels(card):
    counts = [check_random_kernel(card, seed, 12) for seed in range(100)]
    refusals, faults = map(sum, zip(*counts, strict=True))
    assert refusals > faults / 4


def message(kernel, *args, **launch):
    with pytest.raises(mtl.KernelFault) as fault:
        kernel(*args, **launch)
    return str(fault.value)


NEXT = """kernel void next(device int *y, uint i [[thread_position_in_grid]]) {
  y[i + 1] = 1;
}
kernel void may_be_next(device int *y, device const int *x, uint i [[thread_position_in_grid]]) {
  if (x[i]) y[i + 1] = 1;
}
kernel void unused(device int *y, device const int *x, uint i [[thread_position_in_grid]]) {
  int value = x[i + 1];
  if (i < 3) y[i] = value;
}
"""


def test_messages_are_those_of_the_cpu(metal):
    y, expected = np.zeros(4, np.int32), []
    for device in (metal, "cpu"):
        kernel = mtl.library(NEXT, device=device).next
        # One thread, or the CPU names others.
        expected.append([message(kernel, y[:size], threads=size or 1) for size in (1, 0)])
        assert (
            "write to index 1 of 'y', which has 1 element, in thread (0, 0, 0)" in expected[-1][0]
        )
    assert expected[0] == expected[1]
    fault = message(mtl.library(NEXT, device=metal).next, y, threads=4)
    assert "index 4 of 'y', which has 4 elements, in thread (3, 0, 0)" in fault
    assert not y.any()  # nothing was run


def test_only_what_is_sure_is_refused(metal):
    lib = mtl.library(NEXT, device=metal)
    y, x = np.zeros(4, np.int32), np.zeros(4, np.int32)
    lib.may_be_next(y, x, threads=4)
    lib.unused(y, x, threads=4)


def test_bounds_switch_it_off():
    device = Unchecked()
    memory = np.zeros(6, np.int32)
    mtl.library(NEXT, device=device, bounds="unchecked").next(memory[:4], threads=4)
    assert memory.tolist() == [0, 1, 1, 1, 1, 0]
    with mtl.config.scope(bounds="unchecked"):
        mtl.library(NEXT, device=device).next(memory[:4], threads=5)
    assert memory.tolist() == [0, 1, 1, 1, 1, 1]


def test_fast_launches():
    """The fast path takes launches that were looked at, with buffers that are large enough."""
    device = Unchecked()
    kernel = mtl.library(NEXT, device=device).next
    large, small = (mtl.Buffer(np.zeros(size, np.int32), device) for size in (6, 4))
    assert kernel._fast_launch((large,), 5, None, True) is None
    kernel(large, threads=5, wait=True)
    assert kernel._fast_launch((large,), 5, None, True) is not None
    for _ in range(2):
        assert "index 5 of 'y', which has 4" in message(kernel, small, threads=5)
        kernel(small, threads=3, wait=True)
    assert np.asarray(small).tolist() == [0, 1, 1, 1]


def test_numbers_in_the_memory_of_objects():
    """A number may be given by an object that has no hash, such as a memoryview of a bytearray."""
    text = """kernel void fill(device int* y, constant int& n, uint i [[thread_position_in_grid]]) {
      y[i * n] = n;
    }"""
    device = Unchecked()
    kernel = mtl.library(text, device=device).fill
    y = mtl.Buffer(np.zeros(8, np.int32), device)
    for n in (1, 2):
        kernel(y, n, threads=4, wait=True)
    kernel(y, memoryview(bytearray(b"\1\0\0\0")), threads=4, wait=True)
    assert np.asarray(y).tolist() == [1, 1, 1, 1, 2, 0, 2, 0]


def test_numbers_that_change_are_not_all_looked_at(lib):
    y = mtl.Buffer(np.zeros(64, np.int32), lib.device)
    kernel = lib.strided
    kernel._refutation._count = 0
    for n in range(70):
        assert refused(kernel, (y, n), 8, 8) is None or n > 64
    assert kernel._refutation._count == 64
    assert refused(kernel, (y, 1000), 8, 8) is None


def test_graphs_and_batches(card):
    kernel = mtl.library(NEXT, device=card).next
    y = mtl.Buffer(np.zeros(4, np.int32), card)
    launch = kernel.sized(4)
    with pytest.raises(mtl.KernelFault):
        launch((y,))
    with pytest.raises(mtl.KernelFault), mtl.Graph(device=card):
        kernel(y, threads=4)


def test_a_machine_without_a_compiler(card, monkeypatch):
    def absent(*args):
        raise mtl.DeviceUnavailable("[cpu] no compiler")

    monkeypatch.setattr(CpuDevice, "thread_code", absent)
    kernel = mtl.library(NEXT, device=card).next
    y = mtl.Buffer(np.zeros(4, np.int32), card)
    assert refused(kernel, (y,), 4, 4) is None


def test_control_flow_that_is_not_understood(card):
    """A loop with two entries."""
    text = """kernel void f(device int *y, device const int *x, uint i [[thread_position_in_grid]]) {
      int n = x[i];
      y[i + 1] = 1;
      if (x[i] & 1) goto inside;
      while (n < 100) { y[n & 3] += n; inside: n += x[n & 3] + 1; }
    }"""
    kernel = mtl.library(text, device=card).f
    y, x = (mtl.Buffer(np.zeros(4, np.int32), card) for _ in range(2))
    assert refused(kernel, (y, x), 4, 4) is None
    assert kernel._refutation._thread() is None
