"""Simdgroups of kernels with small threadgroups have fewer lanes on CPUs; the others are inactive."""

import numpy as np
import pytest

import metalloid as mtl

TEXT = """
#include <metal_stdlib>
using namespace metal;
[[max_total_threads_per_threadgroup(%d)]]
kernel void f(device uint *out, constant ushort &step, uint group [[threadgroup_position_in_grid]],
              ushort lane [[thread_index_in_simdgroup]], uint index [[thread_index_in_threadgroup]],
              uint size [[threads_per_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  const uint value = 1000 * group + lane + 1;
  device uint *own = out + (group * size + index) * 6;
  own[0] = simd_shuffle_xor(value, 1);
  own[1] = simd_shuffle_xor(value, 4);
  own[2] = simd_shuffle_xor(value, 16);
  own[3] = simd_shuffle_xor(value, step);
  if (lane & 1) own[4] = simd_shuffle_xor(value, 2);
  own[5] = simdgroup;
}
"""


@pytest.mark.parametrize("limit", [8, 16])
def test_lanes_exchange_values(limit):
    """A lane that does not exist is inactive, and an inactive lane has 0 for all others."""
    kernel = mtl.library(TEXT % limit).f
    for size in (limit, limit - 3):
        for step in (0, 2, 7, 13, 31):
            out = np.zeros((3, size, 6), np.uint32)
            kernel(out, np.uint16(step), threads=3 * size, group_size=size)
            lane, first = np.arange(size), 1000 * np.arange(3)[:, None]
            for column, distance in enumerate((1, 4, 16, step)):
                other = lane ^ distance
                expected = np.where(other < size, first + other + 1, 0)
                assert np.array_equal(out[..., column], expected), (size, distance)
            is_read = (lane % 2 == 1) & ((lane ^ 2) < size)
            assert np.array_equal(out[..., 4], np.where(is_read, first + (lane ^ 2) + 1, 0))
            assert not out[..., 5].any()
    engine = kernel.engine
    if engine.startswith("simd") and mtl.default_device().name == "cpu":
        widths = (limit, 32)  # without AVX-512, vectors of 16 lanes may not be available
        assert engine.startswith(tuple(f"simd: {width} threads" for width in widths))
