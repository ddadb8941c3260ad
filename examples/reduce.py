"""A sum with threadgroup memory, barriers and simdgroup functions, checked against NumPy."""

import numpy as np

import metalloid as mtl

SOURCE = """
#include <metal_stdlib>
using namespace metal;

// Each threadgroup adds up its part of x: first every simdgroup, then the first simdgroup the rest.
kernel void sum(device const float *x [[buffer(0)]],
                device float *partial [[buffer(1)]],
                uint id [[thread_position_in_grid]],
                uint group [[threadgroup_position_in_grid]],
                uint lane [[thread_index_in_simdgroup]],
                uint simdgroup [[simdgroup_index_in_threadgroup]],
                uint simdgroups [[simdgroups_per_threadgroup]])
{
    threadgroup float sums[32];
    const float mine = simd_sum(x[id]);
    if (lane == 0)
        sums[simdgroup] = mine;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simdgroup == 0) {
        const float all = simd_sum(lane < simdgroups ? sums[lane] : 0.0);
        if (lane == 0)
            partial[group] = all;
    }
}
"""


def main(count=1_000_000, group_size=256):
    x = np.random.default_rng(1).random(count, dtype=np.float32)
    partial = np.zeros(-(-count // group_size), np.float32)
    mtl.library(SOURCE).sum(x, partial, threads=count, group_size=group_size)
    exact = x.sum(dtype=np.float64)
    error = abs(partial.sum(dtype=np.float64) - exact) / exact
    # Eight halvings of rounding errors at most, each of half an ULP.
    assert error < 8 * 2**-24, error
    print(f"sum of {count} numbers: {partial.sum():.1f}, relative error {error:.1e}")


if __name__ == "__main__":
    main()
