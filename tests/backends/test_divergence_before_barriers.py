"""Lanes that could diverge before a barrier: as if they agreed, or a fault."""

import numpy as np
import pytest

import metalloid as mtl

pytestmark = pytest.mark.needs("the CPU")

TEXT = """
#include <metal_stdlib>
using namespace metal;

// Sums over a row of n, and what the neighbour had in each round.
kernel void strided(device int* y, device const int* x, constant uint& n, constant uint& size,
                    uint t [[thread_position_in_threadgroup]]) {
  threadgroup int shared[128];
  int sum = 0;
  for (uint i = t; i < n; i += size) {
    shared[t] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum = sum * 3 + shared[(t + 1) % size];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  y[t] = sum;
}

kernel void some(device int* y, device const int* x, constant uint& n, constant uint& size,
                 uint t [[thread_position_in_threadgroup]]) {
  threadgroup int shared[128];
  y[t] = -1;
  if (t >= n) return;
  shared[t] = x[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[t] = shared[(t + 1) % min(n, size)];
}

// The way round the outer loop leads to the same barrier again.
kernel void nested(device int* y, device const int* x, constant uint& n, constant uint& size,
                   uint t [[thread_position_in_threadgroup]]) {
  threadgroup int shared[128];
  int sum = 0;
  for (uint row = 0; row < 3; row++) {
    for (uint i = t; i < n; i += size) {
      shared[t] = x[i] + row;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      sum = sum * 3 + shared[(t + 1) % size];
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
  }
  y[t] = sum;
}
"""


def outcome(engine, name, n, size, threads=None):
    """The result, or the fault's message."""
    x, y = np.arange(1, 1025, dtype=np.int32), np.zeros(size, np.int32)
    with mtl.config.scope(cpu_engine=engine):
        kernel = mtl.library(TEXT)[name]
        assert kernel.engine.startswith(engine)
    try:
        kernel(y, x, n, size, threads=threads or size, group_size=size)
    except mtl.KernelFault as fault:
        return str(fault)
    return y.tolist()


@pytest.mark.parametrize("size", [128, 96, 45, 32, 7])
@pytest.mark.parametrize("name", ["strided", "nested"])
def test_lanes_that_agree_go_on(name, size):
    n = 5 * size
    iterations = np.arange(1, n + 1).reshape(5, size)
    expected = np.zeros(size, np.int64)
    for row in range(3 if name == "nested" else 1):
        for each in iterations:
            expected = expected * 3 + np.roll(each, -1) + row
    for engine in ("simd", "reference"):
        assert outcome(engine, name, n, size) == expected.astype(np.int32).tolist()


@pytest.mark.parametrize("n", [300, 293, 257, 20, 96])
@pytest.mark.parametrize("name", ["strided", "some"])
def test_divergent_lanes_are_missed_as_the_reference_says(name, n):
    size = 128 if name == "some" or n > 200 else 45
    results = [outcome(engine, name, n, size) for engine in ("simd", "reference")]
    assert results[0] == results[1]
    if n % size and not (name == "some" and n > size):
        assert "threadgroup_barrier that only" in results[0]


def test_launches_with_relaxed_barriers_have_code_for_divergent_lanes():
    with mtl.config.scope(strict_barriers=False):
        for name, n in (("strided", 300), ("some", 50)):
            results = [outcome(engine, name, n, 128) for engine in ("simd", "reference")]
            assert results[0] == results[1]
            assert isinstance(results[0], list)
    assert "threadgroup_barrier that only" in outcome("simd", "some", 50, 128)


def test_nothing_is_masked_where_lanes_agree():
    with mtl.config.scope(cpu_engine="simd"):
        ir = mtl.library(TEXT).strided.asm["ll"]
    assert "mtl_simdgroup" in ir
    assert "llvm.masked.load" not in ir
