"""Trees of operations in threadgroup memory, whose last steps a few lanes do."""

import numpy as np
import pytest

import metalloid as mtl

SOURCE = """
#include <metal_stdlib>
using namespace metal;
constant uint SIZE = GROUP;
kernel void tree(device TYPE* y, device const TYPE* x, uint i [[thread_position_in_grid]],
                 uint group [[threadgroup_position_in_grid]],
                 uint t [[thread_position_in_threadgroup]]) {
  threadgroup TYPE parts[SIZE];
  parts[t] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint s = SIZE / 2; s > 0; s /= 2) {
    if (CONDITION) parts[t] += parts[t + s];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (t == 0) y[group] = parts[0];
}
// Some of the first lanes; not all numbers are powers of two.
kernel void first(device TYPE* y, device const TYPE* x, uint i [[thread_position_in_grid]],
                  uint t [[thread_position_in_threadgroup]]) {
  threadgroup TYPE given[SIZE + 8], parts[SIZE + 8];
  given[t] = parts[t] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t < 3) parts[t + 1] += given[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t > 7) parts[t] += 2;
  else parts[t] += given[t + 8];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t <= 15) parts[15 - t] += given[t + 5];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = parts[t];
}
"""
CASES = [
    ("float", "f4", 256, "t < s"), ("float", "f4", 2, "t < s"), ("half", "f2", 64, "t < s"),
    ("uchar", "u1", 256, "t < s"), ("int", "i4", 1024, "t < s"), ("float", "f4", 32, "t <= s - 1"),
    ("float", "f4", 64, "!(t >= s)"),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "dtype", "group", "condition"), CASES)
@pytest.mark.sample(2)
def test_trees(type_, dtype, group, condition, rng):
    source = SOURCE.replace("GROUP", str(group)).replace("TYPE", type_)
    kernel = mtl.library(source.replace("CONDITION", condition)).tree
    x = (rng.normal(size=5 * group) * 9).astype(dtype)
    y = np.zeros(5, dtype)
    kernel(y, x, threads=x.size, group_size=group)
    expected = x.reshape(5, group)
    while expected.shape[1] > 1:
        half = expected.shape[1] // 2
        expected = expected[:, :half] + expected[:, half:]
    np.testing.assert_array_equal(y, expected[:, 0])


def test_some_of_the_first_lanes(rng):
    group = 64
    source = SOURCE.replace("GROUP", str(group)).replace("TYPE", "int")
    kernel = mtl.library(source.replace("CONDITION", "t < s")).first
    x = rng.integers(-99, 99, 3 * group, np.int32)
    y = np.zeros_like(x)
    kernel(y, x, threads=x.size, group_size=group)
    expected = x.reshape(3, group).copy()
    given = expected.copy()
    expected[:, 1:4] += given[:, :3]
    expected[:, 8:] += 2
    expected[:, :8] += given[:, 8:16]
    expected[:, :16] += given[:, 20:4:-1]
    np.testing.assert_array_equal(y.reshape(3, group), expected)
