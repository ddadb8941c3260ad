"""Simdgroup functions in loops that threads leave one by one, with every end that these can have."""

import numpy as np
import pytest

import metalloid as mtl

SOURCE = """
#include <metal_stdlib>
using namespace metal;

kernel void rounds(device uint* sums, device uint* members, device uint* neighbours,
                   device const uint* x, constant uint& n, constant uint& least,
                   uint t [[thread_position_in_threadgroup]],
                   uint size [[threads_per_threadgroup]]) {
  for (uint i = t; i < n; i += size) {
    sums[i] = simd_prefix_inclusive_sum(x[i]);
    if (x[i] < least) continue;
    members[i] = simd_sum(x[i]);
    neighbours[i] = simd_prefix_exclusive_sum(1u);
  }
}

// The loop in front of which only some are.
kernel void some(device uint* sums, device const uint* x, constant uint& n, constant uint& least,
                 uint t [[thread_position_in_threadgroup]],
                 uint size [[threads_per_threadgroup]]) {
  if (x[t] >= least)
    for (int i = int(t); i + 1 < int(n); i += size) sums[i] = simd_prefix_inclusive_sum(x[i]);
  sums[n + t] = simd_sum(x[t]);
}

kernel void last(device float* y, device const float* x, constant uint& n,
                 uint t [[thread_position_in_threadgroup]],
                 uint size [[threads_per_threadgroup]]) {
  float sum = 0, most = -1;
  uint i = t;
  while (i < n) {
    sum += simd_sum(x[i]);
    if (i >= 64) most = max(most, simd_max(x[i]));
    i += size;
  }
  y[2 * t] = sum + i;
  y[2 * t + 1] = most;
}
"""
SIZES = [32, 40, 64, 96]
ENDS = [0, 1, 31, 32, 33, 64, 75, 96, 128, 129, 191, 192, 200]


@pytest.fixture(scope="module")
def library():
    return mtl.library(SOURCE)


def rows(n, size):
    """Indices that the threads of a simdgroup have in the same round."""
    for begin in range(0, n, size):
        for first in range(begin, min(begin + size, n), 32):
            yield np.arange(first, min(first + 32, begin + size, n))


@pytest.mark.parametrize("size", SIZES)
def test_every_round_has_its_members(library, size):
    x = np.random.default_rng(size).integers(0, 1000, 200).astype(np.uint32)
    for n in ENDS:
        for least in (0, 500):
            got = np.zeros((3, 200), np.uint32)
            library.rounds(*got, x, np.uint32(n), np.uint32(least), threads=size, group_size=size)
            expected = np.zeros_like(got)
            for row in rows(n, size):
                expected[0, row] = np.cumsum(x[row])
                row = row[x[row] >= least]
                expected[1, row] = x[row].sum()
                expected[2, row] = np.arange(len(row))
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("size", SIZES)
def test_a_loop_that_only_some_come_to(library, size):
    x = np.random.default_rng(size).integers(0, 1000, 200).astype(np.uint32)
    for n in ENDS[1:]:
        for least in (0, 500):
            got = np.zeros(n + size, np.uint32)
            library.some(got, x, np.uint32(n), np.uint32(least), threads=size, group_size=size)
            expected = np.zeros_like(got)
            for row in rows(n - 1, size):
                row = row[x[row % size] >= least]
                expected[row] = np.cumsum(x[row])
            for row in rows(size, size):
                expected[n + row] = x[row].sum()
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("size", SIZES)
def test_values_of_the_last_iteration_are_live_out(library, size):
    x = np.random.default_rng(size).integers(0, 1000, 200).astype(np.float32)
    for n in ENDS:
        got = np.zeros((size, 2), np.float32)
        library.last(got, x, np.uint32(n), threads=size, group_size=size)
        sums, largest = np.zeros(size), np.full(size, -1.0)
        index = np.arange(size)
        for row in rows(n, size):
            sums[row % size] += x[row].sum()
            late = row[row >= 64]
            if len(late):
                largest[late % size] = np.maximum(largest[late % size], x[late].max())
            index[row % size] += size
        np.testing.assert_array_equal(got[:, 0], sums + index)  # whole numbers: exact
        np.testing.assert_array_equal(got[:, 1], largest)
