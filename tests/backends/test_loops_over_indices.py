"""Loops over indices, which run without masks while all lanes go on: every end that they can have."""

import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.cpu.host import vector_extension

pytestmark = pytest.mark.needs("the CPU")

SOURCE = """
#include <metal_stdlib>
using namespace metal;

kernel void sums(device float* y, device const float* x, constant uint& n,
                 uint t [[thread_position_in_threadgroup]],
                 uint size [[threads_per_threadgroup]]) {
  float sum = 0;
  uint rounds = 0, last = 0;
  for (uint i = t; i < n; i += 64) {
    if (x[i] < 0.25f) continue;
    sum += x[i];
    rounds++;
    last = i;
  }
  for (int i = int(t); i + 1 < int(n); i += 32) sum -= x[i + 1] * 0.5f;
  y[t] = sum + rounds + 3 * last;
}

kernel void upwards(device int* y, constant int& n, uint t [[thread_position_in_grid]]) {
  int i = int(t) * 2 - 40, count = 0;
  while (!(i >= n)) {
    y[200 + (i & 127)] = n;
    i += 5;
    count++;
  }
  if (count > 3) for (int k = int(t); k < n; k += 7) count += k;
  y[t] = count * 1000 + i;
}

kernel void wrapping(device int* y, constant uint& n, constant uint& step,
                     uint t [[thread_position_in_grid]]) {
  int count = 0;
  for (uint i = t - 16; i < n; i += step) count += int(i) + 1;
  y[t] = count;
}

kernel void largest(device float* y, device const float* x, constant uint& n,
                    uint t [[thread_position_in_threadgroup]],
                    uint size [[threads_per_threadgroup]],
                    uint lane [[thread_index_in_simdgroup]],
                    uint simdgroup [[simdgroup_index_in_threadgroup]],
                    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float parts[32];
  float most = -INFINITY;
  for (uint i = t; i < n; i += size) most = max(most, x[i]);
  most = simd_max(most);
  if (lane == 0) parts[simdgroup] = most;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = 0; k < simdgroups; k++) most = max(most, parts[k]);
  for (uint i = t; i < n; i += size) y[i] = x[i] - most;
}
"""
COUNTS = [0, 1, 5, 31, 32, 33, 63, 64, 65, 96, 127, 128, 160, 161, 224, 255]


@pytest.fixture(scope="module", params=["simd", "reference"])
def library(request):
    with mtl.config.scope(cpu_engine=request.param):
        lib = mtl.library(SOURCE)
        for name in ("sums", "upwards", "wrapping", "largest"):
            assert lib[name].engine.startswith(request.param)
        yield lib


@pytest.fixture(scope="module")
def values():
    return np.random.default_rng(7).random(256, np.float32)


def test_iterations_that_some_lanes_skip(library, values):
    for n in COUNTS:
        y = np.zeros(64, np.float32)
        library.sums(y, values, np.uint32(n), threads=64, group_size=64)
        for t in range(64):
            mine = [i for i in range(t, n, 64) if values[i] >= 0.25]
            expected = values[mine].astype(np.float64).sum()
            expected -= 0.5 * values[t + 1 : n : 32].astype(np.float64).sum()
            expected += len(mine) + 3 * (mine[-1] if mine else 0)
            assert abs(y[t] - expected) <= 1e-6 * (10 + abs(expected)), (n, t)


def test_ends_between_lanes(library):
    for n in (-(2**31), -50, -40, -7, 0, 1, 30, 64, 91, 127):
        y = np.zeros(400, np.int32)
        library.upwards(y, n, threads=64)
        for t in range(64):
            i, count = 2 * t - 40, 0
            while i < n:
                i, count = i + 5, count + 1
            if count > 3:
                count += sum(range(t, n, 7))
            assert y[t] == count * 1000 + i, (n, t)


def test_lanes_that_wrap(library):
    for n, step in ((0, 1), (16, 32), (48, 32), (49, 7), (200, 64)):
        y = np.zeros(64, np.int32)
        library.wrapping(y, np.uint32(n), np.uint32(step), threads=64)
        expected = [sum(range(t - 16 + 1, n + 1, step)) if t >= 16 else 0 for t in range(64)]
        assert y.tolist() == expected


@pytest.mark.parametrize("group", [32, 64, 100, 256])
def test_around_barriers(library, values, group):
    for n in COUNTS:
        y = np.zeros(256, np.float32)
        library.largest(y, values, np.uint32(n), threads=group, group_size=group)
        expected = values - values[:n].max() if n else values
        np.testing.assert_array_equal(y[:n], expected[:n])
        assert not y[n:].any()


@pytest.mark.skipif(vector_extension() != "AVX-512", reason="without AVX-512 masks look otherwise")
def test_the_loop_has_no_masks():
    with mtl.config.scope(cpu_engine="simd"):
        kernel = mtl.library(SOURCE).largest
    code = kernel.asm["x86"]
    loops = [block for block in code.split("\n.L") if "vmaxps" in block and "addl" in block]
    assert any("kortest" not in loop and "kunpck" not in loop for loop in loops)
