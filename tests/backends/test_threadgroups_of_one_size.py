"""Code for threadgroups of the size that a kernel's arrays tell, and launches of that and others."""

import re

import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.cpu.runtime import device
from metalloid.compiler.toolchain import clang

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void tree(device float* y, device const float* x, uint i [[thread_position_in_grid]],
                 uint group [[threadgroup_position_in_grid]],
                 uint t [[thread_position_in_threadgroup]],
                 uint n [[threads_per_threadgroup]]) {
  threadgroup float parts[64];
  parts[t] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint s = 32; s > 0; s /= 2) {
    if (t < s && t + s < n) parts[t] += parts[t + s];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (t == 0) y[group] = parts[0];
}
// Each simdgroup adds what those before it have, which is known behind a barrier.
kernel void running(device uint* y, device const uint* x, uint i [[thread_position_in_grid]],
                    uint own [[simdgroup_index_in_threadgroup]],
                    uint count [[simdgroups_per_threadgroup]]) {
  threadgroup uint totals[4];
  uint sum = simd_prefix_inclusive_sum(x[i]);
  totals[own] = simd_sum(x[i]);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = 0; k < own; k++) sum += totals[k];
  y[i] = sum + 1000 * count;
}
kernel void turned(device uint* y, device const uint* x, constant uint2& size,
                   uint2 p [[thread_position_in_grid]],
                   uint2 group [[threadgroup_position_in_grid]],
                   uint2 t [[thread_position_in_threadgroup]],
                   uint2 n [[threads_per_threadgroup]]) {
  threadgroup uint tile[16][17];
  tile[t.y][t.x] = x[p.y * size.x + p.x];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint k = t.y * n.x + t.x;
  uint2 q = uint2(group.y * n.y + k % n.y, group.x * n.x + k / n.y);
  y[q.y * size.y + q.x] = tile[k % n.y][k / n.y];
}
"""


@pytest.fixture
def loaded(monkeypatch):
    """Variants that are loaded."""
    names = []
    load = device.CpuProgram._load

    def note(program, kernel):
        names.append(str(kernel.variant))
        return load(program, kernel)

    monkeypatch.setattr(device.CpuProgram, "_load", note)
    return names


@pytest.fixture
def lib():
    with mtl.config.scope(cpu_engine="simd"):
        yield mtl.library(SOURCE)


@pytest.mark.parametrize("group", [64, 32, 63, 1])
@pytest.mark.parametrize("strict", [True, False])
def test_trees(lib, loaded, rng, group, strict):
    x = rng.integers(-99, 99, 5 * group).astype("f4")
    y = np.zeros(5, "f4")
    with mtl.config.scope(strict_barriers=strict):
        lib.tree(y, x, threads=x.size, group_size=group)
    assert np.array_equal(y, x.reshape(5, group).sum(1))
    [first, *others] = loaded
    assert first.endswith("-64x1x1")
    assert bool(others) == (group != 64 or not strict)
    assert all("64x1x1" in name for name in others) == (group == 64)


@pytest.mark.parametrize(("threads", "group"), [(384, 128), (256, 64), (200, 128)])
def test_numbers_of_simdgroups(lib, loaded, rng, threads, group):
    x = rng.integers(0, 9, threads, np.uint32)
    y = np.zeros_like(x)
    lib.running(y, x, threads=threads, group_size=group)
    assert loaded[0] == "single_row-32-128x1x1"
    parts = np.split(x, range(group, threads, group))
    expected = [part.cumsum() + 1000 * -(-part.size // 32) for part in parts]
    assert np.array_equal(y, np.concatenate(expected))


@pytest.mark.parametrize("group", [(16, 16), (16, 8), (8, 16)])
def test_tiles(lib, loaded, rng, group):
    size = 3 * group[0], 2 * group[1]
    x = rng.integers(0, 9999, size[::-1], np.uint32)
    y = np.zeros(size, np.uint32)
    lib.turned(y, x, np.array(size, np.uint32), threads=size, group_size=group)
    assert np.array_equal(y, x.T)
    if loaded[0].startswith("single_column-16"):  # with 8 lanes there are too many simdgroups
        assert loaded[0] == "single_column-16-16x16x1"
        assert len(loaded) == (1 if group == (16, 16) else 2)


def test_a_tree_stays_in_registers():
    """Values that pass through threadgroup memory are not read there."""
    with mtl.config.scope(cpu_engine="simd"):
        kernel = mtl.library(SOURCE.replace("t < s && t + s < n", "t < s")).tree
    kernel(np.zeros(1, "f4"), np.zeros(64, "f4"), threads=64, group_size=64)
    command = [*kernel._program._first.code_command, "-S", "-emit-llvm", "-o", "-", "-"]
    text = clang.run(command, kernel.asm["ll"]).text
    entry = re.search(r"^define void @mtl_kernel\(.*?^\}", text, re.M | re.S)[0]
    own = {*re.findall(r"(%stack_memory\S*) = alloca", entry)}
    assert own
    own |= {*re.findall(r"(%\S+) = getelementptr .*%stack_memory\b", entry)}
    assert own.isdisjoint(re.findall(r"= load .*ptr (%[^\s,]+),", entry))
