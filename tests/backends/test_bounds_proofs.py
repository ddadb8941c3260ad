"""Accesses in loops that launches prove: the code has no checks of them."""

import numpy as np
import pytest
from test_bounds import fault_of, guarded, is_intact

import metalloid as mtl

TEXT = """#include <metal_stdlib>
using namespace metal;
kernel void pairs(device int *y, constant long &n, uint i [[thread_position_in_grid]]) {
  long begin = 2 * long(i);
  if (begin + 2 > n) {
    for (int k = 0; begin + k < n; ++k) y[begin + k] = 1;
  } else {
    for (int k = 0; k < 2; ++k) y[begin + k] = 1;
  }
}
kernel void strided(device int *y, constant uint &n, uint l [[thread_position_in_threadgroup]],
                    uint size [[threads_per_threadgroup]]) {
  for (uint r = l; r < n; r += size) y[r] = 1;
}
kernel void rows(device int *y, constant uint &n, uint g [[threadgroup_position_in_grid]],
                 uint l [[thread_position_in_threadgroup]],
                 uint size [[threads_per_threadgroup]]) {
  y += g * ulong(n) + l * 4;
  for (uint r = 0; r < n; r += size * 4)
    for (int k = 0; k < 4; k++)
      if (r + l * 4 + k < n) y[r + k] = 1;
}
kernel void blocks(device int *y, constant int &n, uint l [[thread_position_in_threadgroup]]) {
  int in_blocks = n - n % 64;
  for (int base = 0; base < in_blocks; base += 64)
    for (int k = 0; k < 2; k++) y[base + k * 32 + l % 32] = 1;
  for (int i = in_blocks + l % 32; i < n; i += 32) y[i] = 1;
}
kernel void wraps(device int *y, constant uint &start, constant uint &step) {
  uint r = start;
  do {
    y[1 - (r >> 31)] = 1;
    r += step;
  } while (r < 5);
}
kernel void wraps_by_3(device int *y, constant uint &start, constant uint &step) {
  uint r = start;
  do {
    y[1 - (r >> 31)] = 1;
    r += 3;
  } while (r < 5);
}
"""


@pytest.fixture
def lib():
    with mtl.config.scope(cpu_engine="simd", device="cpu"):
        yield mtl.library(TEXT)


@pytest.mark.parametrize(
    ("name", "size", "launch"),
    [
        ("pairs", 71, {"threads": 36}),
        ("strided", 71, {"threads": 32, "group_size": 32}),
        ("rows", 3 * 70, {"threads": 48, "group_size": 16}),
        ("blocks", 71, {"threads": 32, "group_size": 32}),
        ("blocks", 128, {"threads": 32, "group_size": 32}),
    ],
)
def test_loops(lib, name, size, launch):
    kernel, (y, around), n = lib[name], guarded(size, np.int32), size if name != "rows" else 70
    kernel(y, n, **launch)
    assert y.all()
    proof = kernel._program.proof
    assert proof.request.sites == ()
    assert not proof.request.every
    assert all(site["node"] != -2 for site in proof._table.sites)
    assert f"write to index {size - 1} of 'y', which has {size - 1} elements" in fault_of(
        lambda: kernel(y[:-1], n, **launch)
    )
    assert proof.request.sites or proof.request.every
    assert is_intact(around)


@pytest.mark.parametrize(
    ("name", "start", "step"), [("wraps", 2**31, 2**31), ("wraps_by_3", 2**32 - 1, 0)]
)
def test_counters_that_wrap(lib, name, start, step):
    y, around = guarded(1, np.int32)
    text = fault_of(lambda: lib[name](y, start, step, threads=1))
    assert "write to index 1 of 'y', which has 1 element" in text
    assert is_intact(around)
