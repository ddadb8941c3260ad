"""Lanes that go to addresses of their own, one after the other: by index of any width and sign."""

import numpy as np
import pytest

import metalloid as mtl

TEXT = """
#include <metal_stdlib>
using namespace metal;
struct slot { uint unused; atomic_uint counts[2]; };
template <class T> kernel void count(device atomic_uint* direct, device uint* pairs,
                                     device const T* x, device const uint* weight,
                                     uint i [[thread_position_in_grid]],
                                     uint t [[thread_position_in_threadgroup]],
                                     uint n [[threads_per_threadgroup]]) {
  threadgroup slot own[256];
  threadgroup atomic_int least[256];
  for (uint k = t; k < 256; k += n) {
    atomic_store_explicit(&own[k].counts[1], 0, memory_order_relaxed);
    atomic_store_explicit(&least[k], 1000, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(direct + 128 + x[i], weight[i], memory_order_relaxed);
  threadgroup slot* middle = own + 128;
  atomic_fetch_add_explicit(&middle[x[i]].counts[1], 1, memory_order_relaxed);
  atomic_fetch_min_explicit(&least[x[i] + 128], int(weight[i]), memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = t; k < 256; k += n) {
    pairs[k] = atomic_load_explicit(&own[k].counts[1], memory_order_relaxed);
    pairs[256 + k] = atomic_load_explicit(&least[k], memory_order_relaxed);
  }
}
#define COUNT(T) template [[host_name("count_" #T)]] kernel void count(device atomic_uint*, \\
    device uint*, device const T*, device const uint*, uint, uint, uint);
COUNT(uchar) COUNT(char) COUNT(ushort) COUNT(short) COUNT(uint) COUNT(int) COUNT(ulong) COUNT(long)
"""

TYPES = {
    "uchar": np.uint8, "char": np.int8, "ushort": np.uint16, "short": np.int16, "uint": np.uint32,
    "int": np.int32, "ulong": np.uint64, "long": np.int64,
}  # fmt: skip


@pytest.fixture(scope="module")
def lib():
    return mtl.library(TEXT)


@pytest.mark.parametrize("threads", [8, 32, 50, 256])
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.sample(3)
def test_atomics_by_index(lib, name, threads):
    rng = np.random.default_rng(threads)
    x = rng.integers(0 if name[0] == "u" else -128, 128, threads).astype(TYPES[name])
    weight = rng.integers(1, 100, threads, dtype=np.uint32)
    direct, pairs = np.zeros(256, np.uint32), np.zeros(512, np.uint32)
    kernel = lib[f"count_{name}"]
    kernel(direct, pairs, x, weight, threads=threads, group_size=threads)
    index = x.astype(np.int64) + 128
    least = np.full(256, 1000, np.uint32)
    np.minimum.at(least, index, weight)
    assert np.array_equal(direct, np.bincount(index, weight, 256))
    assert np.array_equal(pairs[:256], np.bincount(index, minlength=256))
    assert np.array_equal(pairs[256:], least)
